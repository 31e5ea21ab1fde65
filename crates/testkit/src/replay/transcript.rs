//! Writes the transcript. Lines reach the file up to 100 ms late, as with the client, so that a hook that reads
//! the file too early also fails with the replayed client.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two writes of the client (measured: nearly all lines arrive within 106 ms).
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// Writes lines to the transcript with a delay. Dropping the writer writes all pending lines.
#[derive(Debug)]
pub(super) struct TranscriptWriter {
    path: PathBuf,
    line_sender: Option<Sender<String>>,
    writer_thread: Option<JoinHandle<()>>,
}

impl TranscriptWriter {
    pub(super) fn start_delayed_writer_thread(path: PathBuf) -> TranscriptWriter {
        let (line_sender, line_receiver) = mpsc::channel::<String>();
        let transcript_path = path.clone();
        let writer_thread = std::thread::spawn(move || {
            let mut pending_text = String::new();
            let mut flush_at: Option<Instant> = None;
            loop {
                let timeout = flush_at
                    .map_or(FLUSH_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
                match line_receiver.recv_timeout(timeout) {
                    Ok(line) => {
                        flush_at.get_or_insert_with(|| Instant::now() + FLUSH_INTERVAL);
                        pending_text.push_str(&line);
                        pending_text.push('\n');
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        append_and_clear_pending_text(&transcript_path, &mut pending_text);
                        flush_at = None;
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return append_and_clear_pending_text(&transcript_path, &mut pending_text);
                    }
                }
            }
        });
        TranscriptWriter { path, line_sender: Some(line_sender), writer_thread: Some(writer_thread) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write_line(&self, line: String) {
        if let Some(line_sender) = &self.line_sender {
            let _ = line_sender.send(line);
        }
    }
}

impl Drop for TranscriptWriter {
    fn drop(&mut self) {
        self.line_sender = None;
        if let Some(writer_thread) = self.writer_thread.take() {
            let _ = writer_thread.join();
        }
    }
}

/// Appends the pending text to the file and clears it. Like the client, opens the file for each write, so a
/// removed transcript is created again.
fn append_and_clear_pending_text(path: &Path, pending_text: &mut String) {
    if pending_text.is_empty() {
        return;
    }
    let open_file = || -> std::io::Result<File> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        OpenOptions::new().create(true).append(true).open(path)
    };
    if let Ok(mut file) = open_file() {
        let _ = file.write_all(pending_text.as_bytes());
    }
    pending_text.clear();
}
