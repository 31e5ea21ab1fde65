//! The transcript. Lines reach the file up to 100 ms late, as with the client, so that a hook that reads too early fails
//! here, too.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The client's writer rests this long between two turns (seen: nearly all lines within 106 ms).
const REST: Duration = Duration::from_millis(100);

/// Writes what it is given, late; on drop, all of it.
#[derive(Debug)]
pub(super) struct Transcript {
    path: PathBuf,
    lines: Option<Sender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Transcript {
    pub(super) fn at(path: PathBuf) -> Transcript {
        let (lines, received) = mpsc::channel::<String>();
        let file = path.clone();
        let writer = std::thread::spawn(move || {
            let mut waiting = String::new();
            let mut due: Option<Instant> = None;
            loop {
                let timeout = due.map_or(REST, |due| due.saturating_duration_since(Instant::now()));
                match received.recv_timeout(timeout) {
                    Ok(line) => {
                        due.get_or_insert_with(|| Instant::now() + REST);
                        waiting.push_str(&line);
                        waiting.push('\n');
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        append(&file, &mut waiting);
                        due = None;
                    }
                    Err(RecvTimeoutError::Disconnected) => return append(&file, &mut waiting),
                }
            }
        });
        Transcript { path, lines: Some(lines), writer: Some(writer) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, line: String) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(line);
        }
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The client opens the file for each writing: a transcript that was taken away is started again.
fn append(path: &Path, waiting: &mut String) {
    if waiting.is_empty() {
        return;
    }
    let open = || -> std::io::Result<File> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        OpenOptions::new().create(true).append(true).open(path)
    };
    if let Ok(mut file) = open() {
        let _ = file.write_all(waiting.as_bytes());
    }
    waiting.clear();
}
