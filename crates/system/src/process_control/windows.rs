//! Windows ends a process at once and without its descendants, so these are listed before it is ended.
#![expect(clippy::disallowed_types, reason = "`launcher` passes its commands here")]

use super::EndSignal;
use crate::{ProcessIdentity, descendant_process_ids, process_identity};
use std::io::{self, Write};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

pub(super) const CAN_TERMINATE_GRACEFULLY: bool = false;

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C does not reach the process.
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

pub(super) fn set_new_process_group(command: &mut Command) -> &mut Command {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP)
}

pub(super) fn send_signal(identity: ProcessIdentity, signal: EndSignal) -> bool {
    match signal {
        // Sending Ctrl-C to another process needs its console, which no safe library attaches to.
        EndSignal::Interrupt => false,
        EndSignal::Terminate | EndSignal::Kill => crate::platform::kill_process(identity),
    }
}

/// Needs no grace period, because no process can react.
pub(super) fn terminate_then_kill_process_group(leader: u32, _grace_period: Duration) {
    let Some(leader) = process_identity(leader) else { return };
    kill_with_descendants(leader);
}

pub(super) fn terminate_child_group_then_kill_if_alive(child: &mut Child, _grace_period: Duration) {
    // The child's handle keeps its pid from being reused.
    if let Some(leader) = process_identity(child.id()) {
        kill_with_descendants(leader);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Kills the leader first, so that it starts no further processes.
fn kill_with_descendants(leader: ProcessIdentity) {
    let descendants: Vec<ProcessIdentity> =
        descendant_process_ids(leader.pid).into_iter().filter_map(process_identity).collect();
    for process in [leader].into_iter().chain(descendants) {
        crate::platform::kill_process(process);
    }
}

/// Windows has no signals: a killed process has the exit code that its killer chose.
pub(super) fn exit_signal(_status: ExitStatus) -> Option<i32> {
    None
}

pub(super) fn replace_process(command: &mut Command) -> io::Error {
    exit_as_child(command.spawn())
}

pub(super) fn replace_process_with_input(command: &mut Command, input: &[u8]) -> io::Error {
    let mut spawn_result = command.stdin(Stdio::piped()).spawn();
    if let Ok(child) = &mut spawn_result
        && let Some(mut stdin) = child.stdin.take()
    {
        // A write error is ignored: a program may close its input early.
        let _ = stdin.write_all(input);
    }
    exit_as_child(spawn_result)
}

/// Waits for the child and exits with its exit code. Returns only on failure.
#[expect(clippy::exit, reason = "the caller would end now if it could have been replaced")]
fn exit_as_child(spawn_result: io::Result<Child>) -> io::Error {
    match spawn_result.and_then(|mut child| child.wait()) {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
