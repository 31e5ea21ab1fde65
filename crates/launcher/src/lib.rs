//! RULE: the only crate that starts other programs and signals them.
//!
//! It starts the client ([`client`]), git ([`git`]) and the user's own commands, finds processes in `/proc` ([`process`]), and
//! works with the tree through git ([`worktree_fingerprint`], [`wip`], [`branch`]). Every child has a process group of its own,
//! no standard input unless given, and a deadline; what it printed and how it ended is an [`Outcome`], not an error. Only what
//! we started (or verified as ours by pid and start time) is ever signalled. User text never goes through a shell; what a user
//! gives *as a command line* (`--verify`) does.
//!
//! Limits: a child that leaves its process group outlives its deadline (a session's own are found by their environment). Git
//! runs no program that a repository names, so its answer can lack what a filter or a monitor would add. Where git is too slow
//! the answer is "unknown", never "unchanged".
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the one place that starts programs, and their output lies in files"
)]

pub mod branch;
mod changes;
mod child;
pub mod client;
pub mod git;
mod git_error;
mod git_output;
pub mod merge_repository;
pub mod own_repository;
pub mod process;
pub mod remote_repository;
mod search_path;
mod time_limit;
pub mod wip;
pub mod worktree;
pub mod worktree_fingerprint;

use child::Terms;
use plimsoll_domain::build::Build;
use plimsoll_domain::workers::DATABASE_VARIABLE;
use search_path::new_command;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// The shell for command lines. It is not searched: the PATH may have relative entries.
const SHELL: &str = "/bin/sh";

/// Runs a command line of the user's own, with `sh -c`, in a folder. Its whole group is ended at the deadline. It finds programs by
/// the absolute entries of the PATH alone.
pub fn shell(line: &str, folder: &Path, deadline: Duration) -> Outcome {
    let mut command = new_command(SHELL);
    command.arg("-c").arg(line).current_dir(folder).env_remove(DATABASE_VARIABLE);
    child::run(command, Terms::within(deadline))
}

/// Runs a command line that runs the project's own programs, with `sh -c`, in a folder: also by relative entries of the PATH. It is
/// ended early once `give_up` returns true; that is called a few times a second.
pub fn shell_unless(line: &str, folder: &Path, deadline: Duration, give_up: &dyn Fn() -> bool) -> Outcome {
    shell_with(line, folder, &[], deadline, give_up)
}

/// Runs a command line as [`shell_unless`] does, with these variables beside ours.
pub fn shell_with(
    line: &str,
    folder: &Path,
    environment: &[(&str, String)],
    deadline: Duration,
    give_up: &dyn Fn() -> bool,
) -> Outcome {
    let mut command = Command::new(SHELL);
    command.arg("-c").arg(line).current_dir(folder).envs(environment.iter().cloned());
    // It may run what sessions wrote.
    command.env_remove(DATABASE_VARIABLE);
    child::run(command, Terms { give_up, ..Terms::within(deadline) })
}

/// A sandbox for the user's command lines, as bubblewrap makes it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// bubblewrap.
    pub program: PathBuf,
    /// Its arguments before the command.
    pub arguments: Vec<OsString>,
    /// Every variable of the command.
    pub environment: Vec<(String, String)>,
}

/// Runs a command line as [`shell_unless`] does, in a sandbox and with these variables besides the sandbox's. Everything that it
/// started has ended when this returns, also what left its process group.
pub fn shell_in_sandbox(
    line: &str,
    sandbox: &Sandbox,
    environment: &[(&str, String)],
    deadline: Duration,
    give_up: &dyn Fn() -> bool,
) -> Outcome {
    let mut command = Command::new(&sandbox.program);
    command.args(&sandbox.arguments).args(["--", "sh", "-c", line]);
    command.env_clear().envs(sandbox.environment.iter().cloned()).envs(environment.iter().cloned());
    child::run(command, Terms { give_up, ..Terms::within(deadline) })
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

/// Runs a program between its caller and us: these bytes on its standard input, the other streams ours, some variables
/// set or taken away. It stays in our group and has no deadline of ours: whoever ends us ends it too. Answers with its
/// exit code as a shell would.
pub fn pass_on(
    arguments: &[String],
    input: &[u8],
    variables: &[(&'static str, Option<String>)],
) -> std::io::Result<u8> {
    let mut command = new_command(arguments.first().map_or("", String::as_str));
    command.args(arguments.get(1..).unwrap_or_default()).stdin(Stdio::piped());
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who does not read it needs nothing of it.
        let _ = stdin.write_all(input);
    }
    let status = child.wait()?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The client's version as it says it: `2.1.329 (Claude Code)`.
pub fn client_version(program: &Path) -> Option<String> {
    let mut command = new_command(program);
    command.arg("--version");
    let outcome = run(command, Duration::from_secs(15));
    let words = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    (outcome.succeeded() && !words.is_empty()).then_some(words)
}

/// The build that one of our own programs says it is of, when it is asked with these words. None if it answers under another
/// name than its file's.
pub fn own_build(program: &Path, words: &[&str]) -> Option<Build> {
    query_build(Command::new(program), program, words)
}

/// Does what [`own_build`] does, with an empty PATH.
pub fn own_build_without_path(program: &Path, words: &[&str]) -> Option<Build> {
    let mut command = Command::new(program);
    command.env("PATH", "");
    query_build(command, program, words)
}

fn query_build(mut command: Command, program: &Path, words: &[&str]) -> Option<Build> {
    command.args(words);
    let outcome = run(command, Duration::from_secs(5));
    let build = Build::read(&String::from_utf8_lossy(&outcome.stdout)).filter(|_| outcome.succeeded())?;
    program.file_name().is_some_and(|file| file == build.program.as_str()).then_some(build)
}

/// Runs a program (no shell: each argument reaches it as it is, the first is the program) with these bytes
/// on its standard input. Its whole group is ended at the deadline; a program that does not read is no error.
pub fn tell(arguments: &[String], folder: &Path, input: &[u8], deadline: Duration) -> Outcome {
    match program_in(folder, arguments) {
        Ok(command) => {
            child::run(command, Terms { input: Some(input.to_owned()), ..Terms::within(deadline) })
        }
        Err(outcome) => outcome,
    }
}

/// A program of ours that does a part of our work.
#[derive(Debug)]
pub struct Assistance<'a> {
    /// Where it is.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Its working directory.
    pub folder: &'a Path,
    /// What it finds on its standard input; none: nothing at all.
    pub input: Option<&'a [u8]>,
    /// What it finds in its environment beside ours.
    pub environment: &'a [(&'a str, &'a str)],
    /// When its group is ended.
    pub deadline: Duration,
    /// More output of one stream than this is read and thrown away.
    pub most_output: usize,
}

/// Runs a program of ours for a part of our work. Past its deadline it has no time to tidy up: it must be written so that a
/// kill loses nothing.
pub fn assist(assistance: &Assistance<'_>) -> Outcome {
    let mut command = Command::new(assistance.program);
    command
        .args(assistance.arguments)
        .current_dir(assistance.folder)
        .envs(assistance.environment.iter().copied());
    let grace_period = Duration::from_millis(50);
    child::run(
        command,
        Terms {
            input: assistance.input.map(<[u8]>::to_owned),
            grace_period,
            most_output: assistance.most_output,
            ..Terms::within(assistance.deadline)
        },
    )
}

/// A program of ours that is told something while we work: what is written goes to its standard input, what it says is not heard.
/// Nobody waits for it; it ends by itself once its input has ended, with us or without.
#[derive(Debug)]
pub struct Listener(std::process::Child);

/// Starts one, in a group of its own: Ctrl-C at our terminal must not reach it, for it tells our end.
pub fn start_listener(program: &Path, arguments: &[String], folder: &Path) -> std::io::Result<Listener> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Listener(command.process_group(0).spawn()?))
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.0.stdin.as_mut().ok_or_else(gone)?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Becomes another program, with our streams, environment and working directory. Answers only where that cannot be.
pub fn become_successor(program: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> std::io::Error {
    Command::new(program).args(arguments).exec()
}

/// Asks programs (no shell) for a few words, all at once, with these bytes on the standard input of each. The status line
/// waits for them: past its deadline none has time to tidy up.
pub fn ask_programs(asked: &[(&[String], Duration)], folder: &Path, input: &[u8]) -> Vec<Outcome> {
    // Mostly there are none, and the status line is drawn after each answer: it starts no thread that waits for nobody.
    if let [] | [_] = asked {
        return asked
            .iter()
            .map(|(arguments, deadline)| ask_program(arguments, folder, input, *deadline))
            .collect();
    }
    std::thread::scope(|scope| {
        let ask =
            |&(arguments, deadline)| scope.spawn(move || ask_program(arguments, folder, input, deadline));
        let at_work: Vec<_> = asked.iter().map(ask).collect();
        at_work.into_iter().map(|one| one.join().unwrap_or_default()).collect()
    })
}

fn ask_program(arguments: &[String], folder: &Path, input: &[u8], deadline: Duration) -> Outcome {
    match program_in(folder, arguments) {
        Ok(command) => ask(command, Some(input), deadline),
        Err(outcome) => outcome,
    }
}

/// A program of the user's with its arguments; an error where none is named.
fn program_in(folder: &Path, arguments: &[String]) -> Result<Command, Outcome> {
    let Some((program, arguments)) = arguments.split_first() else {
        return Err(Outcome { trouble: Some("no program is named".into()), ..Outcome::default() });
    };
    let mut command = new_command(program);
    command.args(arguments).current_dir(folder);
    Ok(command)
}

/// Starts a program of the user's (no shell) and leaves it: it lives on without us, in a group of its own, and what it
/// says is not heard. An error where it cannot be started, or fails before the timeout is over.
pub fn leave(program: &Path, arguments: &[&std::ffi::OsStr], timeout: Duration) -> std::io::Result<()> {
    let mut command = new_command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn()?;
    let started = std::time::Instant::now();
    while started.elapsed() < timeout {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(std::io::Error::other(format!("it ended with {status}"))),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

fn ask(command: Command, input: Option<&[u8]>, deadline: Duration) -> Outcome {
    // The client kills a status line that still runs at its next trigger (2.1.329): there is no time to tidy up.
    let grace_period = Duration::from_millis(20);
    let most_output = 1024 * 1024;
    child::run(
        command,
        Terms { input: input.map(<[u8]>::to_owned), grace_period, most_output, ..Terms::within(deadline) },
    )
}

/// Becomes another program, with these bytes on its standard input: whoever ends us then ends it. Answers only
/// where that cannot be.
pub fn become_program(arguments: &[String], input: &[u8]) -> std::io::Error {
    let (program, arguments) = match arguments {
        // What a user gives as a command line is one.
        [line] => (SHELL, vec!["-c".to_owned(), line.clone()]),
        [program, arguments @ ..] => (program.as_str(), arguments.to_vec()),
        [] => return std::io::Error::other("no program is named"),
    };
    match preloaded(input) {
        Ok(stdin) => new_command(program).args(arguments).stdin(stdin).exec(),
        Err(error) => error,
    }
}

/// A pipe that holds these bytes and nothing more. It takes 64 KiB; nobody could read more out while we fill it.
fn preloaded(input: &[u8]) -> std::io::Result<Stdio> {
    if input.len() > 64 * 1024 {
        return Err(std::io::Error::other(format!("{} bytes are too many to hand on", input.len())));
    }
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(input)?;
    Ok(reader.into())
}

/// Runs a command with nothing on its standard input, collecting what it prints.
fn run(command: Command, deadline: Duration) -> Outcome {
    child::run(command, Terms::within(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

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
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_was_said_is_there_though_a_daemon_holds_the_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let outcome = shell("echo said; echo oops >&2; sleep 30 &", folder.path(), Duration::from_secs(20));
        assert!(outcome.succeeded());
        assert_eq!((outcome.stdout.as_slice(), outcome.stderr.as_slice()), (&b"said\n"[..], &b"oops\n"[..]));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn who_is_only_asked_is_not_waited_for_because_a_daemon_holds_the_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let asked = words(&["sh", "-c", "echo said; sleep 9 &"]);
        let is_quick = || {
            let started = Instant::now();
            let outcome = ask_program(&asked, folder.path(), b"", Duration::from_millis(100));
            assert!(outcome.timed_out || outcome.stdout == b"said\n", "{outcome:?}");
            // For each of the two streams others wait half a second.
            started.elapsed() < Duration::from_millis(900)
        };
        assert!((0..5).any(|_| is_quick()));
    }

    #[test]
    fn what_was_said_before_the_deadline_is_there_too() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = shell("echo said; sleep 30", folder.path(), Duration::from_millis(300));
        assert!(outcome.timed_out);
        assert_eq!(outcome.stdout, b"said\n");
    }

    #[test]
    fn more_output_than_we_keep_is_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = shell("head -c 9000000 /dev/zero", folder.path(), Duration::from_secs(20));
        assert!(outcome.succeeded());
        assert_eq!(outcome.stdout.len(), MOST_OUTPUT);
    }

    #[test]
    fn a_program_is_told_every_byte_in_its_folder_and_no_shell_reads_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let input = vec![b'x'; 300_000];
        let outcome = tell(&words(&["cat"]), folder.path(), &input, Duration::from_secs(10));
        assert!(outcome.succeeded());
        assert_eq!(outcome.stdout, input);
        let outcome = tell(&words(&["echo", "$HOME; *"]), folder.path(), b"", Duration::from_secs(10));
        assert_eq!(outcome.stdout, b"$HOME; *\n");
        let outcome = tell(&words(&["pwd"]), folder.path(), b"", Duration::from_secs(10));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains(&*folder.path().to_string_lossy()));
    }

    #[test]
    fn who_is_left_lives_on_and_who_fails_at_once_is_told() {
        let timeout = Duration::from_millis(300);
        let sh = Path::new("/bin/sh");
        let run = |line: &str| {
            leave(sh, &["-c".as_ref(), line.as_ref()], timeout).map_err(|error| error.to_string())
        };
        let started = Instant::now();
        assert_eq!(run("sleep 20"), Ok(()));
        assert!(started.elapsed() < Duration::from_secs(15));
        assert_eq!(run("exit 0"), Ok(()));
        assert!(leave(sh, &["-c".as_ref(), "exit 3".as_ref()], Duration::from_secs(20)).is_err());
        assert!(leave(Path::new("/no/such"), &[], timeout).is_err());
    }

    #[test]
    fn a_program_that_does_not_read_what_it_is_told_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = tell(&words(&["true"]), folder.path(), &vec![0; 1_000_000], Duration::from_secs(10));
        assert!(outcome.succeeded(), "{outcome:?}");
    }

    #[test]
    fn a_program_that_is_told_something_is_ended_at_its_deadline_and_one_that_is_missing_is_named_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let hangs = words(&["sh", "-c", "sleep 60 & sleep 60"]);
        let outcome = tell(&hangs, folder.path(), &vec![0; 1_000_000], Duration::from_millis(200));
        assert!(outcome.timed_out && !outcome.succeeded());
        assert!(started.elapsed() < Duration::from_secs(30));
        let missing = tell(&words(&["/no/such/program"]), folder.path(), b"", Duration::from_secs(1));
        assert!(missing.trouble.is_some() && !missing.succeeded());
        assert!(tell(&[], folder.path(), b"", Duration::from_secs(1)).trouble.is_some());
    }
}
