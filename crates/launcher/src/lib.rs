//! RULE: the only crate that starts other programs and signals them.
//!
//! It starts the client ([`client`]), git ([`git`]) and the user's own commands, finds processes in `/proc`
//! ([`process`]), and works with the tree through git ([`worktree_fingerprint`], [`wip`], [`branch`]). Every
//! child has its own process group, no standard input unless the caller passes input, and a timeout. Its output
//! and exit code are a [`CommandOutcome`], not an error. Only processes that we started (or verified as ours by pid and
//! start time) are ever signaled. User text never goes through a shell, except command lines that the user
//! configures as such (`--verify`).
//!
//! Limits: a child that leaves its process group outlives its timeout (a session's own children are found by
//! their environment). Git runs no program that a repository names, so its output can lack what a filter or a
//! file system monitor would add. If git is too slow, the result is "unknown", never "unchanged".
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
pub mod plimsoll_repository;
pub mod process;
pub mod remote_repository;
mod search_path;
mod time_limit;
pub mod wip;
pub mod worktree;
pub mod worktree_fingerprint;

use child::ChildOptions;
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::workers::DATABASE_URL_VARIABLE;
use plimsoll_store::environment;
use plimsoll_system::paths::{program_name, shell_path};
use plimsoll_system::process_control::{
    exit_signal, replace_process, replace_process_with_input, set_new_process_group,
};
use search_path::command_with_only_absolute_path_entries;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The result of running a child process.
#[derive(Debug, Clone, Default)]
pub struct CommandOutcome {
    /// The exit code; `None` if a signal ended the child or it could not be started.
    pub exit_code: Option<i32>,
    /// True if the child was ended at its timeout.
    pub timed_out: bool,
    /// True if the child was ended because the caller canceled it.
    pub was_canceled: bool,
    /// Standard output, at most [`MAX_OUTPUT_BYTES`] bytes.
    pub stdout: Vec<u8>,
    /// Standard error, at most [`MAX_OUTPUT_BYTES`] bytes.
    pub stderr: Vec<u8>,
    /// The reason why the child could not be started.
    pub start_error: Option<String>,
}

/// The maximum number of output bytes kept per stream; further output is read and discarded.
pub const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

impl CommandOutcome {
    /// Returns true if the child exited with code 0 and was neither canceled nor ended at its timeout.
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out && !self.was_canceled
    }
}

/// Returns the shell for command lines.
fn posix_shell() -> Cow<'static, Path> {
    shell_path(git::git_path, environment::find_program)
}

/// Runs a user's command line with `sh -c` in `folder`. Only absolute entries of the PATH are searched for
/// programs. The whole process group is ended at the timeout.
pub fn run_user_shell_command(command_line: &str, folder: &Path, timeout: Duration) -> CommandOutcome {
    let mut command = command_with_only_absolute_path_entries(&*posix_shell());
    command.arg("-c").arg(command_line).current_dir(folder).env_remove(DATABASE_URL_VARIABLE);
    child::run(command, ChildOptions::with_timeout(timeout))
}

/// Runs a command line with `sh -c` in `folder`. It may start the project's programs, so relative entries of
/// the PATH are searched, too. The command is ended early when `should_cancel`, which is called a few times a
/// second, returns true.
pub fn run_project_shell_command(
    command_line: &str,
    folder: &Path,
    timeout: Duration,
    should_cancel: &dyn Fn() -> bool,
) -> CommandOutcome {
    run_project_shell_command_with_added_env(command_line, folder, &[], timeout, should_cancel)
}

/// Runs a command line as [`run_project_shell_command`] does, with `added_variables` added to our environment.
pub fn run_project_shell_command_with_added_env(
    command_line: &str,
    folder: &Path,
    added_variables: &[(&str, String)],
    timeout: Duration,
    should_cancel: &dyn Fn() -> bool,
) -> CommandOutcome {
    let mut command = Command::new(&*posix_shell());
    command.arg("-c").arg(command_line).current_dir(folder).envs(added_variables.iter().cloned());
    // The command may run code that sessions wrote, so it does not get the address of the database.
    command.env_remove(DATABASE_URL_VARIABLE);
    child::run(command, ChildOptions { should_cancel, ..ChildOptions::with_timeout(timeout) })
}

/// A bubblewrap sandbox for the user's command lines.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The path of bubblewrap.
    pub program: PathBuf,
    /// The arguments before the command.
    pub arguments: Vec<OsString>,
    /// The complete environment of the command.
    pub environment: Vec<(String, String)>,
}

/// Runs a command line in a sandbox, with the sandbox's environment and `added_variables`. It is ended early
/// when `should_cancel` returns true. When this returns, everything that the command started has ended,
/// including children that left its process group.
pub fn run_shell_command_in_sandbox(
    command_line: &str,
    sandbox: &Sandbox,
    added_variables: &[(&str, String)],
    timeout: Duration,
    should_cancel: &dyn Fn() -> bool,
) -> CommandOutcome {
    let mut command = Command::new(&sandbox.program);
    command.args(&sandbox.arguments).args(["--", "sh", "-c", command_line]);
    command.env_clear().envs(sandbox.environment.iter().cloned()).envs(added_variables.iter().cloned());
    child::run(command, ChildOptions { should_cancel, ..ChildOptions::with_timeout(timeout) })
}

/// Runs a program with our standard streams and no environment variables other than `environment`. Returns its
/// exit code; `None` if a signal ended it.
pub fn run_with_exact_environment(
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

/// Runs a program with `input` on its standard input, our other streams, and our environment with some
/// variables set or removed. It stays in our process group and has no timeout, so a signal to our group ends
/// it, too. Returns its exit code as a shell would: 128 plus the signal if a signal ended it.
pub fn run_with_stdin_and_return_shell_exit_code(
    arguments: &[String],
    input: &[u8],
    environment_changes: &[(&'static str, Option<String>)],
) -> std::io::Result<u8> {
    let mut command = command_with_only_absolute_path_entries(arguments.first().map_or("", String::as_str));
    command.args(arguments.get(1..).unwrap_or_default()).stdin(Stdio::piped());
    for (name, value) in environment_changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A write error is ignored: a program may close its input early.
        let _ = stdin.write_all(input);
    }
    let status = child.wait()?;
    let exit_code = status.code().or(exit_signal(status).map(|signal| 128 + signal));
    Ok(exit_code.and_then(|exit_code| u8::try_from(exit_code).ok()).unwrap_or(1))
}

/// Returns the client's version as it prints it: `2.1.329 (Claude Code)`.
pub fn query_client_version(program: &Path) -> Option<String> {
    let mut command = command_with_only_absolute_path_entries(program);
    command.arg("--version");
    let outcome = run_without_stdin(command, Duration::from_secs(15));
    let version = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    (outcome.succeeded() && !version.is_empty()).then_some(version)
}

/// Returns the build that a Plimsoll program reports when it is run with these arguments. Returns `None` if it
/// reports a program name other than its file name.
pub fn query_own_program_build(program: &Path, arguments: &[&str]) -> Option<BuildInfo> {
    query_build_info_if_program_name_matches(Command::new(program), program, arguments)
}

/// Returns the build that a Plimsoll program reports, as [`query_own_program_build`] does, with an empty PATH.
pub fn query_own_program_build_without_path(program: &Path, arguments: &[&str]) -> Option<BuildInfo> {
    let mut command = Command::new(program);
    command.env("PATH", "");
    query_build_info_if_program_name_matches(command, program, arguments)
}

fn query_build_info_if_program_name_matches(
    mut command: Command,
    program: &Path,
    arguments: &[&str],
) -> Option<BuildInfo> {
    command.args(arguments);
    let outcome = run_without_stdin(command, Duration::from_secs(5));
    let build_info =
        BuildInfo::from_json(&String::from_utf8_lossy(&outcome.stdout)).filter(|_| outcome.succeeded())?;
    (program_name(program) == build_info.program).then_some(build_info)
}

/// Runs a program with `input` on its standard input. No shell is used: the first argument is the program,
/// and each argument reaches it unchanged. The whole process group is ended at the timeout. It is not an
/// error if the program does not read its input.
pub fn run_program_with_stdin(
    arguments: &[String],
    folder: &Path,
    input: &[u8],
    timeout: Duration,
) -> CommandOutcome {
    match build_command_unless_arguments_empty(folder, arguments) {
        Ok(command) => child::run(
            command,
            ChildOptions { input: Some(input.to_owned()), ..ChildOptions::with_timeout(timeout) },
        ),
        Err(outcome) => outcome,
    }
}

/// A command that runs one of Plimsoll's helper programs.
#[derive(Debug)]
pub struct HelperCommand<'a> {
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// The working directory.
    pub folder: &'a Path,
    /// The standard input; nothing if `None`.
    pub input: Option<&'a [u8]>,
    /// Variables added to our environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// The time after which its process group is ended.
    pub timeout: Duration,
    /// The maximum number of output bytes kept per stream; further output is read and discarded.
    pub max_output_bytes: usize,
}

/// Runs one of Plimsoll's helper programs. After its timeout it has only 50 ms to exit before it is killed, so a
/// kill must not lose data.
pub fn run_helper_with_short_grace_period(helper_command: &HelperCommand<'_>) -> CommandOutcome {
    let mut command = Command::new(helper_command.program);
    command
        .args(helper_command.arguments)
        .current_dir(helper_command.folder)
        .envs(helper_command.environment.iter().copied());
    let grace_period = Duration::from_millis(50);
    child::run(
        command,
        ChildOptions {
            input: helper_command.input.map(<[u8]>::to_owned),
            grace_period,
            max_output_bytes: helper_command.max_output_bytes,
            ..ChildOptions::with_timeout(helper_command.timeout)
        },
    )
}

/// A running Plimsoll helper program that receives input while we work. Writes go to its standard input; its
/// output is discarded. We do not wait for it to exit: it exits when its input ends, even after our own exit.
#[derive(Debug)]
pub struct BackgroundHelper(std::process::Child);

/// Starts a background helper in its own process group. Ctrl-C at our terminal must not reach it, because it
/// reports that we ended.
pub fn start_background_helper_with_piped_stdin(
    program: &Path,
    arguments: &[String],
    folder: &Path,
) -> std::io::Result<BackgroundHelper> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(BackgroundHelper(set_new_process_group(&mut command).spawn()?))
}

impl Write for BackgroundHelper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let broken_pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.0.stdin.as_mut().ok_or_else(broken_pipe)?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Replaces this process with another program (`exec`), keeping the streams, environment and working
/// directory. Returns only on failure.
pub fn exec_program(program: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> std::io::Error {
    replace_process(Command::new(program).args(arguments))
}

/// Runs status line programs in parallel without a shell, with `input` on the standard input of each. The status
/// line waits for them, so a program is killed soon after its timeout.
pub fn run_status_line_programs_in_parallel(
    arguments_and_timeouts: &[(&[String], Duration)],
    folder: &Path,
    input: &[u8],
) -> Vec<CommandOutcome> {
    // Usually there is no program, and the status line is drawn after each response, so threads are started
    // only for two or more programs.
    if let [] | [_] = arguments_and_timeouts {
        return arguments_and_timeouts
            .iter()
            .map(|(arguments, timeout)| run_status_line_program(arguments, folder, input, *timeout))
            .collect();
    }
    std::thread::scope(|scope| {
        let spawn_thread = |&(arguments, timeout)| {
            scope.spawn(move || run_status_line_program(arguments, folder, input, timeout))
        };
        let threads: Vec<_> = arguments_and_timeouts.iter().map(spawn_thread).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn run_status_line_program(
    arguments: &[String],
    folder: &Path,
    input: &[u8],
    timeout: Duration,
) -> CommandOutcome {
    match build_command_unless_arguments_empty(folder, arguments) {
        Ok(command) => run_with_short_grace_and_output_limit(command, Some(input), timeout),
        Err(outcome) => outcome,
    }
}

/// Returns the command for a user's program and its arguments. Returns an outcome with a start error if
/// `arguments` is empty.
fn build_command_unless_arguments_empty(
    folder: &Path,
    arguments: &[String],
) -> Result<Command, CommandOutcome> {
    let Some((program, arguments)) = arguments.split_first() else {
        return Err(CommandOutcome {
            start_error: Some("no program is named".into()),
            ..CommandOutcome::default()
        });
    };
    let mut command = command_with_only_absolute_path_entries(program);
    command.args(arguments).current_dir(folder);
    Ok(command)
}

/// Starts a user's program without a shell in its own process group and does not wait for it to exit. Its
/// output is discarded. Returns an error if it cannot be started or fails within `watch_period`.
pub fn start_detached_and_watch_for_failure(
    program: &Path,
    arguments: &[&std::ffi::OsStr],
    watch_period: Duration,
) -> std::io::Result<()> {
    let mut command = command_with_only_absolute_path_entries(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = set_new_process_group(&mut command).spawn()?;
    let started_at = std::time::Instant::now();
    while started_at.elapsed() < watch_period {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(std::io::Error::other(format!("it ended with {status}"))),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

fn run_with_short_grace_and_output_limit(
    command: Command,
    input: Option<&[u8]>,
    timeout: Duration,
) -> CommandOutcome {
    // The client kills a status line that is still running at its next trigger (2.1.329), so programs have no
    // time to clean up.
    let grace_period = Duration::from_millis(20);
    let max_output_bytes = 1024 * 1024;
    child::run(
        command,
        ChildOptions {
            input: input.map(<[u8]>::to_owned),
            grace_period,
            max_output_bytes,
            ..ChildOptions::with_timeout(timeout)
        },
    )
}

/// Replaces this process with another program (`exec`) that reads `input` from its standard input, so that
/// signals to this process reach the program. Returns only on failure.
pub fn exec_with_stdin_using_shell_for_one_argument(arguments: &[String], input: &[u8]) -> std::io::Error {
    let (program, arguments) = match arguments {
        // A single argument is a user's command line, so the shell runs it.
        [command_line] => (posix_shell(), vec!["-c".to_owned(), command_line.clone()]),
        [program, arguments @ ..] => (Cow::Borrowed(Path::new(program)), arguments.to_vec()),
        [] => return std::io::Error::other("no program is named"),
    };
    let mut command = command_with_only_absolute_path_entries(&*program);
    replace_process_with_input(command.args(arguments), input)
}

/// Runs a command with no standard input and collects its output.
fn run_without_stdin(command: Command, timeout: Duration) -> CommandOutcome {
    child::run(command, ChildOptions::with_timeout(timeout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn to_strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_line_runs_in_its_folder_and_its_output_is_collected() {
        let folder = tempfile::tempdir().unwrap();
        let outcome =
            run_user_shell_command("pwd; echo oops >&2; exit 3", folder.path(), Duration::from_secs(10));
        assert_eq!(outcome.exit_code, Some(3));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains(&*folder.path().to_string_lossy()));
        assert_eq!(outcome.stderr, b"oops\n");
    }

    #[test]
    fn a_hanging_command_is_ended_with_everything_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let started_at = Instant::now();
        let outcome =
            run_user_shell_command("sleep 60 & sleep 60", folder.path(), Duration::from_millis(200));
        assert!(outcome.timed_out && !outcome.succeeded());
        assert!(started_at.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn output_is_complete_although_a_daemon_keeps_the_pipe_open() {
        let folder = tempfile::tempdir().unwrap();
        let started_at = Instant::now();
        let outcome = run_user_shell_command(
            "echo said; echo oops >&2; sleep 30 &",
            folder.path(),
            Duration::from_secs(20),
        );
        assert!(outcome.succeeded());
        assert_eq!((outcome.stdout.as_slice(), outcome.stderr.as_slice()), (&b"said\n"[..], &b"oops\n"[..]));
        assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
    }

    #[test]
    fn a_status_line_program_does_not_wait_for_a_daemon_holding_the_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = to_strings(&["sh", "-c", "echo said; sleep 9 &"]);
        let is_quick = || {
            let started_at = Instant::now();
            let outcome = run_status_line_program(&arguments, folder.path(), b"", Duration::from_millis(100));
            assert!(outcome.timed_out || outcome.stdout == b"said\n", "{outcome:?}");
            // Other commands wait half a second for each of the two streams.
            started_at.elapsed() < Duration::from_millis(900)
        };
        assert!((0..5).any(|_| is_quick()));
    }

    #[test]
    fn output_before_the_timeout_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let outcome =
            run_user_shell_command("echo said; sleep 30", folder.path(), Duration::from_millis(300));
        assert!(outcome.timed_out);
        assert_eq!(outcome.stdout, b"said\n");
    }

    #[test]
    fn output_above_the_limit_is_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let outcome =
            run_user_shell_command("head -c 9000000 /dev/zero", folder.path(), Duration::from_secs(20));
        assert!(outcome.succeeded());
        assert_eq!(outcome.stdout.len(), MAX_OUTPUT_BYTES);
    }

    #[test]
    fn a_program_gets_every_input_byte_and_its_arguments_without_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let input = vec![b'x'; 300_000];
        let outcome =
            run_program_with_stdin(&to_strings(&["cat"]), folder.path(), &input, Duration::from_secs(10));
        assert!(outcome.succeeded());
        assert_eq!(outcome.stdout, input);
        let outcome = run_program_with_stdin(
            &to_strings(&["echo", "$HOME; *"]),
            folder.path(),
            b"",
            Duration::from_secs(10),
        );
        assert_eq!(outcome.stdout, b"$HOME; *\n");
        let outcome =
            run_program_with_stdin(&to_strings(&["pwd"]), folder.path(), b"", Duration::from_secs(10));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains(&*folder.path().to_string_lossy()));
    }

    #[test]
    fn a_detached_program_lives_on_and_an_early_failure_is_an_error() {
        let timeout = Duration::from_millis(300);
        let sh = Path::new("/bin/sh");
        let run = |line: &str| {
            start_detached_and_watch_for_failure(sh, &["-c".as_ref(), line.as_ref()], timeout)
                .map_err(|error| error.to_string())
        };
        let started_at = Instant::now();
        assert_eq!(run("sleep 20"), Ok(()));
        assert!(started_at.elapsed() < Duration::from_secs(15));
        assert_eq!(run("exit 0"), Ok(()));
        assert!(
            start_detached_and_watch_for_failure(
                sh,
                &["-c".as_ref(), "exit 3".as_ref()],
                Duration::from_secs(20)
            )
            .is_err()
        );
        assert!(start_detached_and_watch_for_failure(Path::new("/no/such"), &[], timeout).is_err());
    }

    #[test]
    fn a_program_that_does_not_read_its_input_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = run_program_with_stdin(
            &to_strings(&["true"]),
            folder.path(),
            &vec![0; 1_000_000],
            Duration::from_secs(10),
        );
        assert!(outcome.succeeded(), "{outcome:?}");
    }

    #[test]
    fn a_hanging_program_is_ended_and_a_missing_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let started_at = Instant::now();
        let hanging_program = to_strings(&["sh", "-c", "sleep 60 & sleep 60"]);
        let outcome = run_program_with_stdin(
            &hanging_program,
            folder.path(),
            &vec![0; 1_000_000],
            Duration::from_millis(200),
        );
        assert!(outcome.timed_out && !outcome.succeeded());
        assert!(started_at.elapsed() < Duration::from_secs(30));
        let outcome_of_missing_program = run_program_with_stdin(
            &to_strings(&["/no/such/program"]),
            folder.path(),
            b"",
            Duration::from_secs(1),
        );
        assert!(outcome_of_missing_program.start_error.is_some() && !outcome_of_missing_program.succeeded());
        assert!(
            run_program_with_stdin(&[], folder.path(), b"", Duration::from_secs(1)).start_error.is_some()
        );
    }
}
