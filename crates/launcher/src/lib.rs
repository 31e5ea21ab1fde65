//! RULE: the only crate that starts other programs and signals them.
//!
//! Every child has a process group of its own, no standard input unless given, and a deadline. Only what we
//! started (or verified as ours by pid and start time) is ever signalled. User text never goes through a
//! shell; what a user gives *as a command line* (`--verify`) does.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the one place that starts programs, and their output lies in files"
)]

pub mod client;
pub mod git;
pub mod process;

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a child came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Its exit code; none when a signal ended it or it was not started.
    pub code: Option<i32>,
    /// True when it was ended at its deadline.
    pub timed_out: bool,
    /// True when it was ended because nobody waits for it any more.
    pub given_up: bool,
    /// What it printed, at most [`MOST_OUTPUT`] bytes of each stream.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
    /// Why it could not be started.
    pub trouble: Option<String>,
}

/// More output than this is read and thrown away.
pub const MOST_OUTPUT: usize = 8 * 1024 * 1024;

impl Outcome {
    /// True when it ran and exited with 0 in time.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0) && !self.timed_out && !self.given_up
    }
}

/// Runs a command line as the user gave it, with `sh -c`, in a folder. Its whole group is ended at the deadline.
pub fn shell(line: &str, folder: &Path, deadline: Duration) -> Outcome {
    shell_unless(line, folder, deadline, &|| false)
}

/// The same, ended early once `give_up` says so; it is asked a few times a second.
pub fn shell_unless(line: &str, folder: &Path, deadline: Duration, give_up: &dyn Fn() -> bool) -> Outcome {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder);
    run_unless(command, deadline, give_up)
}

/// Runs a program in our place: its streams are ours, its environment is exactly what is given. Answers with
/// its exit code; none when a signal ended it.
pub fn stand_in(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    environment: &[(String, String)],
) -> std::io::Result<Option<i32>> {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().cloned())
        .status()?;
    Ok(status.code())
}

/// The client's version as it says it: `2.1.329 (Claude Code)`.
pub fn client_version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    let outcome = run(command, Duration::from_secs(20));
    let words = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    (outcome.succeeded() && !words.is_empty()).then_some(words)
}

/// Runs a command with nothing on its standard input, collecting what it prints.
fn run(command: Command, deadline: Duration) -> Outcome {
    run_unless(command, deadline, &|| false)
}

const ASKED_EVERY: Duration = Duration::from_millis(250);

fn run_unless(mut command: Command, deadline: Duration, give_up: &dyn Fn() -> bool) -> Outcome {
    let mut asked = Instant::now();
    let started = Instant::now();
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Outcome { trouble: Some(error.to_string()), ..Outcome::default() },
    };
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let mut outcome = Outcome::default();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                outcome.code = status.code();
                break;
            }
            Ok(None) if started.elapsed() < deadline && !outcome.given_up => {
                std::thread::sleep(Duration::from_millis(2));
                if asked.elapsed() >= ASKED_EVERY {
                    asked = Instant::now();
                    outcome.given_up = give_up();
                }
            }
            _ => {
                outcome.timed_out = !outcome.given_up;
                process::end_group(child.id(), Duration::from_millis(500));
                let _ = child.wait();
                break;
            }
        }
    }
    // A grandchild may hold the pipe open for ever: what has come so far must do.
    let patience = Duration::from_millis(500);
    outcome.stdout = stdout.recv_timeout(patience).unwrap_or_default();
    outcome.stderr = stderr.recv_timeout(patience).unwrap_or_default();
    outcome
}

fn collect(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(MOST_OUTPUT as u64).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_runs_in_its_folder_and_reports_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = shell("pwd; echo oops >&2; exit 3", folder.path(), Duration::from_secs(10));
        assert_eq!(outcome.code, Some(3));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains(&*folder.path().to_string_lossy()));
        assert_eq!(outcome.stderr, b"oops\n");
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_everything_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let outcome = shell("sleep 60 & sleep 60", folder.path(), Duration::from_millis(200));
        assert!(outcome.timed_out && !outcome.succeeded());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
