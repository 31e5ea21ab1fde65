//! Starts the client for one iteration. Its output goes to a file, so that it survives our death.

use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::process::{self, ProcessIdentity};
use crate::search_path::command_with_absolute_search_path;
use plimsoll_domain::ProcessExit;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The parameters for starting a client.
#[derive(Debug)]
pub struct ClientLaunch<'a> {
    /// The path of the client.
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// The project folder.
    pub folder: &'a Path,
    /// Variables added to our environment.
    pub environment: &'a [(String, String)],
    /// Variables removed from our environment.
    pub removed_variables: &'a [&'a str],
    /// The prompt.
    pub stdin: File,
    /// The file for its stream of events.
    pub stdout: File,
    /// The file for its error output.
    pub stderr: File,
}

/// A client that we started, or one that outlived the `run` that started it.
#[derive(Debug)]
pub enum LaunchedClient {
    /// A child of ours, with its identity if it could be read.
    Started(Child, Option<ProcessIdentity>),
    /// A verified orphan.
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
    spawn_in_own_group(command_with_absolute_search_path(launch.program), launch)
}

/// Starts a run of ours in place of the client. It gets our PATH unchanged, because its verify commands may
/// be programs of the project's own.
pub fn start_child_run(launch: ClientLaunch<'_>) -> Result<LaunchedClient, ClientStartError> {
    spawn_in_own_group(Command::new(launch.program), launch)
}

fn spawn_in_own_group(
    mut command: Command,
    launch: ClientLaunch<'_>,
) -> Result<LaunchedClient, ClientStartError> {
    command
        .args(launch.arguments)
        .current_dir(launch.folder)
        .envs(launch.environment.iter().cloned())
        .stdin(Stdio::from(launch.stdin))
        .stdout(Stdio::from(launch.stdout))
        .stderr(Stdio::from(launch.stderr))
        // Its own group: Ctrl-C at our terminal must not reach it, and it outlives us.
        .process_group(0);
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

    /// Returns how the client ended; `None` while it lives.
    pub fn exit_if_ended(&mut self) -> Option<ProcessExit> {
        match self {
            LaunchedClient::Started(child, _) => match child.try_wait() {
                Ok(Some(status)) => Some(ProcessExit { code: status.code(), signal: status.signal() }),
                Ok(None) => None,
                Err(_) => Some(ProcessExit::default()),
            },
            // An orphan is not our child: the system reports its exit status only to its parent.
            LaunchedClient::Adopted(identity) => {
                process::liveness_of_process(*identity).is_gone().then(ProcessExit::default)
            }
        }
    }

    /// Ends the client and its process group: SIGTERM first, SIGKILL after the grace period.
    pub fn terminate(&mut self, grace_period: Duration) {
        let leader = match self {
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
        process::end_group(leader, grace_period);
        if let LaunchedClient::Started(child, _) = self {
            let _ = child.wait();
        }
    }
}

/// One client run whose response is waited for.
pub struct ClientQuery<'a> {
    /// The path of the client.
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// The project folder.
    pub folder: &'a Path,
    /// Variables added to our environment.
    pub environment: &'a [(String, String)],
    /// Variables removed from our environment.
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
pub fn run_client_query(query: &ClientQuery<'_>) -> CommandOutcome {
    let mut command = command_with_absolute_search_path(query.program);
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
