//! Starting the client for one iteration. Its output goes to a file, so that it lives on unharmed when we die.

use crate::Outcome;
use crate::child::{self, Terms};
use crate::process::{self, Identity};
use crate::search_path::new_command;
use plimsoll_domain::Exit;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How to start it.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The client.
    pub program: &'a Path,
    /// All its arguments.
    pub arguments: &'a [String],
    /// The project.
    pub folder: &'a Path,
    /// What it finds in its environment beside ours.
    pub environment: &'a [(String, String)],
    /// Variables of ours that it must not find there.
    pub without: &'a [&'a str],
    /// Its prompt.
    pub stdin: File,
    /// Where its stream goes.
    pub stdout: File,
    /// Where its complaints go.
    pub stderr: File,
}

/// A client that we started, or one of ours that outlived the `run` that did.
#[derive(Debug)]
pub enum Client {
    /// Our child.
    Started(Child, Option<Identity>),
    /// A verified orphan.
    Adopted(Identity),
}

/// The client could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {}: {source}", program.display())]
pub struct NotStarted {
    program: PathBuf,
    source: io::Error,
}

/// Starts the client.
pub fn start(launch: Launch<'_>) -> Result<Client, NotStarted> {
    spawn(new_command(launch.program), launch)
}

/// Starts a run of ours in the client's place. It gets our PATH as it is, because it may be told to verify with the project's own
/// programs.
pub fn start_child_run(launch: Launch<'_>) -> Result<Client, NotStarted> {
    spawn(Command::new(launch.program), launch)
}

fn spawn(mut command: Command, launch: Launch<'_>) -> Result<Client, NotStarted> {
    command
        .args(launch.arguments)
        .current_dir(launch.folder)
        .envs(launch.environment.iter().cloned())
        .stdin(Stdio::from(launch.stdin))
        .stdout(Stdio::from(launch.stdout))
        .stderr(Stdio::from(launch.stderr))
        // A group of its own: Ctrl-C at our terminal must not reach it, and it outlives us.
        .process_group(0);
    for name in launch.without {
        command.env_remove(name);
    }
    let child =
        command.spawn().map_err(|source| NotStarted { program: launch.program.to_owned(), source })?;
    // Certain to be it: until we wait for a child its pid goes to no other process.
    let known = process::identity(child.id());
    Ok(Client::Started(child, known))
}

impl Client {
    /// Who it is.
    pub fn identity(&self) -> Option<Identity> {
        match self {
            Client::Started(_, known) => *known,
            Client::Adopted(known) => Some(*known),
        }
    }

    /// How it ended; none while it lives.
    pub fn ended(&mut self) -> Option<Exit> {
        match self {
            Client::Started(child, _) => match child.try_wait() {
                Ok(Some(status)) => Some(Exit { code: status.code(), signal: status.signal() }),
                Ok(None) => None,
                Err(_) => Some(Exit::default()),
            },
            // Not our child: how it ended the system tells only its parent.
            Client::Adopted(known) => process::life(*known).is_gone().then(Exit::default),
        }
    }

    /// Ends it and its group: asks first.
    pub fn end(&mut self, grace_period: Duration) {
        let leader = match self {
            Client::Started(child, _) => child.id(),
            Client::Adopted(known) if process::is_alive(*known) => known.pid,
            Client::Adopted(_) => return,
        };
        if let Client::Started(child, _) = self {
            // Once it has been reaped, its pid may belong to another process.
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
        }
        process::end_group(leader, grace_period);
        if let Client::Started(child, _) = self {
            let _ = child.wait();
        }
    }
}

/// One question to the client, whose answer is waited for.
pub struct Query<'a> {
    /// The client.
    pub program: &'a Path,
    /// All its arguments.
    pub arguments: &'a [String],
    /// The project.
    pub folder: &'a Path,
    /// Variables that it finds beside ours.
    pub environment: &'a [(String, String)],
    /// Variables that it must not find in its environment.
    pub without: &'a [&'a str],
    /// Its prompt.
    pub input: &'a [u8],
    /// When it is ended.
    pub deadline: Duration,
    /// Asked a few times a second whether anybody still waits for it.
    pub give_up: &'a dyn Fn() -> bool,
}

/// Asks the client, and ends it with its whole group if it is late or nobody waits any more.
// Killed itself, this program leaves a client that ends with its answer.
pub fn ask(query: &Query<'_>) -> Outcome {
    let mut command = new_command(query.program);
    command.args(query.arguments).current_dir(query.folder).envs(query.environment.iter().cloned());
    for name in query.without {
        command.env_remove(name);
    }
    let input = Some(query.input.to_owned());
    let terms = Terms {
        input,
        give_up: query.give_up,
        // It writes its transcript and starts its SessionEnd hooks.
        grace_period: Duration::from_secs(5),
        ..Terms::within(query.deadline)
    };
    child::run(command, terms)
}
