//! Starts programs in a world, waits for them and returns their results.

use crate::process_group::{start_in_own_group, terminate_process_group};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How long to keep reading output after a program has ended while one of its children keeps the pipe open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A builder for a program start, like `std::process::Command`.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    working_folder: PathBuf,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    timeout: Duration,
}

impl Launch {
    pub(super) fn new(
        program: impl AsRef<Path>,
        args: &[&str],
        working_folder: PathBuf,
        env: Vec<(String, String)>,
    ) -> Launch {
        let args = args.iter().map(OsString::from).collect();
        let program = program.as_ref().to_path_buf();
        Launch { program, args, working_folder, env, stdin: Vec::new(), timeout: super::TIMEOUT }
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// Sets the content of stdin, which is empty by default.
    pub fn stdin(self, bytes: impl Into<Vec<u8>>) -> Launch {
        Launch { stdin: bytes.into(), ..self }
    }

    /// Sets the time after which the program is killed and the test fails.
    pub fn timeout(self, timeout: Duration) -> Launch {
        Launch { timeout, ..self }
    }

    /// Sets the working directory, which is the project by default.
    pub fn cwd(self, working_folder: impl Into<PathBuf>) -> Launch {
        Launch { working_folder: working_folder.into(), ..self }
    }

    /// Sets an environment variable for this program only.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Launch {
        let name = name.into();
        self.env.retain(|(variable, _)| *variable != name);
        self.env.push((name, value.into()));
        self
    }

    /// Removes an environment variable from this program.
    pub fn env_remove(mut self, name: &str) -> Launch {
        self.env.retain(|(variable, _)| variable != name);
        self
    }

    /// Starts the program and waits until it ends.
    pub fn run(self) -> FinishedProgram {
        let timeout = self.timeout;
        self.spawn().wait_or_kill_and_panic(timeout)
    }

    /// Starts the program in its own process group and captures its output in the background.
    pub fn spawn(self) -> RunningProgram {
        let name = format!("{} {:?}", self.program.display(), self.args);
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.working_folder)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = start_in_own_group(&mut command)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        spawn_stdin_writer(&mut child, self.stdin);
        let stdout = CapturedOutput::spawn_reader(child.stdout.take().expect("stdout is piped"));
        let stderr = CapturedOutput::spawn_reader(child.stderr.take().expect("stderr is piped"));
        RunningProgram { name, child, stdout, stderr, started_at: Instant::now(), status: None }
    }
}

/// Writes stdin on a separate thread, because a program may write output before it has read all of its input.
fn spawn_stdin_writer(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // The write fails if the program does not read its stdin, which is not an error.
    std::thread::spawn(move || drop(stdin.write_all(&bytes)));
}

/// The output that a program has written so far, collected by a thread.
struct CapturedOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader_thread: JoinHandle<()>,
}

impl CapturedOutput {
    fn spawn_reader(mut pipe: impl Read + Send + 'static) -> CapturedOutput {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let reader_thread = std::thread::spawn({
            let bytes = Arc::clone(&bytes);
            move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..count]);
                }
            }
        });
        CapturedOutput { bytes, reader_thread }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// A started program. Dropping it ends its whole process group.
pub struct RunningProgram {
    name: String,
    child: Child,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
    started_at: Instant,
    status: Option<ExitStatus>,
}

impl RunningProgram {
    /// Returns the process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the text that the program has written to stdout so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// Returns the text that the program has written to stderr so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Returns true if the program has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.try_wait().is_none()
    }

    /// Waits until the program ends. After `timeout`, ends its process group and panics with its output.
    pub fn wait_or_kill_and_panic(mut self, timeout: Duration) -> FinishedProgram {
        let wait_started_at = Instant::now();
        while self.try_wait().is_none() && wait_started_at.elapsed() < timeout {
            sleep(Duration::from_millis(2));
        }
        let elapsed = self.started_at.elapsed();
        let Some(status) = self.status else {
            self.terminate_group_and_wait();
            let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
            panic!("{} still ran after {timeout:?}\nstdout: {stdout}\nstderr: {stderr}", self.name);
        };
        let read_started_at = Instant::now();
        let is_reading = |running: &RunningProgram| {
            !running.stdout.reader_thread.is_finished() || !running.stderr.reader_thread.is_finished()
        };
        while is_reading(&self) && read_started_at.elapsed() < LAST_OUTPUT_TIMEOUT {
            sleep(Duration::from_millis(1));
        }
        FinishedProgram {
            code: status.code(),
            signal: signal_of_status(status),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            elapsed,
        }
    }

    /// Kills the program (SIGKILL), but not its children.
    pub fn kill(&mut self) {
        if self.try_wait().is_none() {
            let _ = self.child.kill();
        }
    }

    fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("our own child can be waited for");
        }
        self.status
    }

    fn terminate_group_and_wait(&mut self) {
        terminate_process_group(self.child.id(), || self.try_wait().is_some());
        if self.try_wait().is_none() {
            self.status = self.child.wait().ok();
        }
    }
}

#[cfg(unix)]
impl RunningProgram {
    /// Sends SIGINT to the program, but not to its children.
    pub fn interrupt(&mut self) {
        self.send_signal_if_running(Signal::INT);
    }

    /// Sends SIGTERM to the program, but not to its children.
    pub fn terminate(&mut self) {
        self.send_signal_if_running(Signal::TERM);
    }

    /// Sends SIGHUP to the program, but not to its children, as when its terminal is closed.
    pub fn hang_up(&mut self) {
        self.send_signal_if_running(Signal::HUP);
    }

    fn send_signal_if_running(&mut self, signal: Signal) {
        if self.try_wait().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.terminate_group_and_wait();
    }
}

/// Returns the signal that ended a program. Windows has none.
fn signal_of_status(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(windows)]
    return status.code().and(None);
}

/// The exit status and output of a program that has ended.
#[derive(Clone, Debug)]
pub struct FinishedProgram {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The time between the start and the end of the program.
    pub elapsed: Duration,
}

impl FinishedProgram {
    /// Returns `self`. Panics with the output unless the exit code is 0.
    pub fn expect_success(self) -> FinishedProgram {
        let FinishedProgram { code, stdout, stderr, .. } = &self;
        assert_eq!(*code, Some(0), "it failed\nstdout: {stdout}\nstderr: {stderr}");
        self
    }

    /// Returns stdout as one JSON value. Panics with the output if it is not JSON.
    pub fn stdout_json(&self) -> Value {
        let stdout = &self.stdout;
        serde_json::from_str(stdout)
            .unwrap_or_else(|error| panic!("{error}: {stdout}\nstderr: {}", self.stderr))
    }

    /// Returns the lines of stdout that are valid JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the client's last result object, from `--output-format json` or `stream-json`. Panics if there
    /// is none.
    pub fn last_result(&self) -> Value {
        let result = self.json_lines().into_iter().rev().find(|line| line["type"] == "result");
        result.unwrap_or_else(|| panic!("no result\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }
}
