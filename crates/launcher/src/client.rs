//! Starts the client for one iteration. Its output goes to a file, so that it outlives this process.

use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::process::{self, ProcessIdentity};
use crate::search_path::command_with_only_absolute_path_entries;
use plimsoll_domain::ProcessExit;
use plimsoll_system::process_control::{exit_signal, set_new_process_group};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a descendant of an ended client may take to exit, before SIGTERM and again before SIGKILL.
const DESCENDANT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The parameters for starting a client.
#[derive(Debug)]
pub struct ClientLaunch<'a> {
    /// The path of the client.
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// The project folder.
    pub folder: &'a Path,
    /// Variables added to the inherited environment.
    pub environment: &'a [(String, String)],
    /// Variables removed from the inherited environment.
    pub removed_variables: &'a [&'a str],
    /// The prompt.
    pub stdin: File,
    /// The file for its stream of events.
    pub stdout: File,
    /// The file for its error output.
    pub stderr: File,
}

/// A client that this process started, or one that outlived the `run` that started it.
#[derive(Debug)]
pub enum LaunchedClient {
    /// A child of this process, with its identity if it could be read.
    Started(Child, Option<ProcessIdentity>),
    /// A running client that an earlier process started and whose identity was verified.
    Adopted(ProcessIdentity),
}

/// The error if the client could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {}: {source}", program.display())]
pub struct ClientStartError {
    program: PathBuf,
    source: io::Error,
}

pub fn start_client(launch: ClientLaunch<'_>) -> Result<LaunchedClient, ClientStartError> {
    spawn_in_new_process_group(command_with_only_absolute_path_entries(launch.program), launch)
}

/// Starts a Plimsoll run instead of the client. It inherits PATH unchanged, because its verify commands may be
/// programs in the project.
pub fn start_child_run(launch: ClientLaunch<'_>) -> Result<LaunchedClient, ClientStartError> {
    spawn_in_new_process_group(Command::new(launch.program), launch)
}

fn spawn_in_new_process_group(
    mut command: Command,
    launch: ClientLaunch<'_>,
) -> Result<LaunchedClient, ClientStartError> {
    command
        .args(launch.arguments)
        .current_dir(launch.folder)
        .envs(launch.environment.iter().cloned())
        .stdin(Stdio::from(launch.stdin))
        .stdout(Stdio::from(launch.stdout))
        .stderr(Stdio::from(launch.stderr));
    // Ctrl-C in this terminal must not reach the client, which may outlive this process.
    set_new_process_group(&mut command);
    for name in launch.removed_variables {
        command.env_remove(name);
    }
    let child =
        command.spawn().map_err(|source| ClientStartError { program: launch.program.to_owned(), source })?;
    // This is certainly our child: a pid is not reused before its parent waits for it.
    let identity = process::process_identity(child.id());
    Ok(LaunchedClient::Started(child, identity))
}

impl LaunchedClient {
    pub fn identity(&self) -> Option<ProcessIdentity> {
        match self {
            LaunchedClient::Started(_, identity) => *identity,
            LaunchedClient::Adopted(identity) => Some(*identity),
        }
    }

    /// Returns the exit status of the client; `None` while it runs.
    pub fn exit_if_ended(&mut self) -> Option<ProcessExit> {
        match self {
            LaunchedClient::Started(child, _) => match child.try_wait() {
                Ok(Some(status)) => Some(ProcessExit { code: status.code(), signal: exit_signal(status) }),
                Ok(None) => None,
                Err(_) => Some(ProcessExit::default()),
            },
            // An orphan is not our child: the system reports its exit status only to its parent.
            LaunchedClient::Adopted(identity) => {
                process::liveness_of_process(*identity).has_ended().then(ProcessExit::default)
            }
        }
    }

    /// Ends the client and its process group: SIGTERM first, SIGKILL after the grace period. Then ends its descendants,
    /// such as a running tool: tools have process groups of their own, and a killed client does not end them.
    pub fn terminate_with_descendants(&mut self, grace_period: Duration) {
        let leader_pid = match self {
            LaunchedClient::Started(child, _) => child.id(),
            LaunchedClient::Adopted(identity) if process::is_alive(*identity) => identity.pid,
            LaunchedClient::Adopted(_) => return,
        };
        if let LaunchedClient::Started(child, _) = self {
            // After it has been reaped, its pid may belong to another process.
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
        }
        // Listed while the client is alive: its descendants cannot be told from other processes after it has ended.
        let descendants = process::descendants(leader_pid);
        process::terminate_then_kill_process_group(leader_pid, grace_period);
        if let LaunchedClient::Started(child, _) = self {
            let _ = child.wait();
        }
        process::wait_then_end_listed_processes(&descendants, DESCENDANT_GRACE_PERIOD);
    }
}

/// The parameters for running a client until it has responded.
pub struct ClientQuery<'a> {
    /// The path of the client.
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// The project folder.
    pub folder: &'a Path,
    /// Variables added to the inherited environment.
    pub environment: &'a [(String, String)],
    /// Variables removed from the inherited environment.
    pub removed_variables: &'a [&'a str],
    /// The prompt.
    pub input: &'a [u8],
    /// The time after which it is ended.
    pub timeout: Duration,
    /// Called a few times a second; the client is ended once this returns true.
    pub should_cancel: &'a dyn Fn() -> bool,
}

/// Runs the client and returns its response. Ends it with its whole process group at the timeout or if the
/// query is canceled.
// If this program is killed, the client lives on until it has written its response.
pub fn run_client_with_timeout_and_cancel(query: &ClientQuery<'_>) -> CommandOutcome {
    let mut command = command_with_only_absolute_path_entries(query.program);
    command.args(query.arguments).current_dir(query.folder).envs(query.environment.iter().cloned());
    for name in query.removed_variables {
        command.env_remove(name);
    }
    let input = Some(query.input.to_owned());
    let options = ChildOptions {
        input,
        should_cancel: query.should_cancel,
        // After SIGTERM the client writes its transcript and starts its SessionEnd hooks.
        grace_period: Duration::from_secs(5),
        ..ChildOptions::with_timeout(query.timeout)
    };
    child::run(command, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_client_that_must_be_killed_is_ended_with_its_tools() {
        // The tool is in a process group of its own, and the client ignores SIGTERM.
        let script = "trap '' TERM; set -m; sleep 60 & wait; sleep 60";
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        let child = set_new_process_group(&mut command).spawn().unwrap();
        let pid = child.id();
        let started_at = Instant::now();
        while process::descendants(pid).is_empty() && started_at.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let tools = process::descendants(pid);
        assert_eq!(tools.len(), 1);
        let mut client = LaunchedClient::Started(child, process::process_identity(pid));
        client.terminate_with_descendants(Duration::from_millis(100));
        assert!(process::liveness_of_pid(pid).has_ended());
        assert!(tools.iter().all(|tool| !process::is_alive(*tool)), "{tools:?}");
    }
}
