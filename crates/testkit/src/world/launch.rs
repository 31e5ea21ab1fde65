//! Programs started in a world: prepared, running, finished.

use crate::process_group::end_group;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// After the program has ended its output is read to the end, unless a child of it still holds the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A program that is ready to start.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    folder: PathBuf,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    limit: Duration,
}

impl Launch {
    pub(super) fn new(
        program: impl AsRef<Path>,
        args: &[&str],
        folder: PathBuf,
        env: Vec<(String, String)>,
    ) -> Launch {
        let args = args.iter().map(OsString::from).collect();
        let program = program.as_ref().to_path_buf();
        Launch { program, args, folder, env, stdin: Vec::new(), limit: super::TIMEOUT }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// Gives the program this on stdin; without it stdin is empty.
    pub fn stdin(self, bytes: impl Into<Vec<u8>>) -> Launch {
        Launch { stdin: bytes.into(), ..self }
    }

    /// Ends the program and fails the test when it runs longer than this.
    pub fn timeout(self, limit: Duration) -> Launch {
        Launch { limit, ..self }
    }

    /// Starts the program in another folder than the project.
    pub fn cwd(self, folder: impl Into<PathBuf>) -> Launch {
        Launch { folder: folder.into(), ..self }
    }

    /// Sets a variable for this program only.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Launch {
        let name = name.into();
        self.env.retain(|(old, _)| *old != name);
        self.env.push((name, value.into()));
        self
    }

    /// Takes a variable away from this program.
    pub fn env_remove(mut self, name: &str) -> Launch {
        self.env.retain(|(old, _)| old != name);
        self
    }

    /// Runs the program to its end.
    pub fn run(self) -> Finished {
        let limit = self.limit;
        self.spawn().wait(limit)
    }

    /// Starts the program in a process group of its own.
    pub fn spawn(self) -> Running {
        let name = format!("{} {:?}", self.program.display(), self.args);
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        feed(&mut child, self.stdin);
        let stdout = Output::of(child.stdout.take().expect("stdout is piped"));
        let stderr = Output::of(child.stderr.take().expect("stderr is piped"));
        Running { name, child, stdout, stderr, start: Instant::now(), status: None }
    }
}

/// Writes stdin on a thread of its own: a program may answer before it has read everything.
fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A program that does not read its stdin breaks the pipe, which is its good right.
    std::thread::spawn(move || drop(stdin.write_all(&bytes)));
}

/// What a program has written so far.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Output {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let reader = std::thread::spawn({
            let bytes = Arc::clone(&bytes);
            move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..count]);
                }
            }
        });
        Output { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// A program that was started; when dropped, its whole process group ends.
pub struct Running {
    name: String,
    child: Child,
    stdout: Output,
    stderr: Output,
    start: Instant,
    status: Option<ExitStatus>,
}

impl Running {
    /// The process id, which is also its group's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to stdout so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to stderr so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.poll().is_none()
    }

    /// Waits for its end; ends its group and panics with its output when this takes too long.
    pub fn wait(mut self, limit: Duration) -> Finished {
        let start = Instant::now();
        while self.poll().is_none() && start.elapsed() < limit {
            sleep(Duration::from_millis(2));
        }
        let elapsed = self.start.elapsed();
        let Some(status) = self.status else {
            self.end();
            let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
            panic!("{} still ran after {limit:?}\nstdout: {stdout}\nstderr: {stderr}", self.name);
        };
        let start = Instant::now();
        let reading =
            |running: &Running| !running.stdout.reader.is_finished() || !running.stderr.reader.is_finished();
        while reading(&self) && start.elapsed() < LAST_OUTPUT {
            sleep(Duration::from_millis(1));
        }
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            elapsed,
        }
    }

    /// Sends SIGKILL to the program itself, not to its children.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// Sends SIGINT to the program itself.
    pub fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM to the program itself.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    fn signal(&mut self, signal: Signal) {
        if self.poll().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("our own child can be waited for");
        }
        self.status
    }

    fn end(&mut self) {
        end_group(self.child.id(), || _ = self.poll());
        if self.poll().is_none() {
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A program that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit code, none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    /// From its start to its end.
    pub elapsed: Duration,
}

impl Finished {
    /// Panics with the output unless the exit code is 0.
    pub fn expect_success(self) -> Finished {
        let Finished { code, stdout, stderr, .. } = &self;
        assert_eq!(*code, Some(0), "it failed\nstdout: {stdout}\nstderr: {stderr}");
        self
    }

    /// Stdout as one JSON value; panics with the output if it is none.
    pub fn json(&self) -> Value {
        let stdout = &self.stdout;
        serde_json::from_str(stdout)
            .unwrap_or_else(|error| panic!("{error}: {stdout}\nstderr: {}", self.stderr))
    }

    /// The lines of stdout that are JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The client's last result object, from `--output-format json` or `stream-json`.
    pub fn result(&self) -> Value {
        let last = self.json_lines().into_iter().rev().find(|line| line["type"] == "result");
        last.unwrap_or_else(|| panic!("no result\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }
}
