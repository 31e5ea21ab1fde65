//! Starts processes so that they can be ended as a group, and ends them.
//!
//! A process group is what Unix calls so. On Windows it is a process and its descendants, which cannot be asked to end:
//! they are ended at once.
#![expect(clippy::disallowed_types, reason = "`launcher` passes its commands here")]

#[cfg_attr(unix, path = "process_control/unix.rs")]
#[cfg_attr(windows, path = "process_control/windows.rs")]
mod platform;

use crate::ProcessIdentity;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// True where processes can be asked to end, as unattended runs have to ask the sessions that they end.
pub const CAN_TERMINATE_GRACEFULLY: bool = platform::CAN_TERMINATE_GRACEFULLY;

/// How a process is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// As Ctrl-C does (SIGINT). Not supported on Windows.
    Interrupt,
    /// As a system shutdown does (SIGTERM). On Windows like [`EndSignal::Kill`].
    Terminate,
    /// The process cannot react (SIGKILL).
    Kill,
}

/// Starts the command's process in a process group of its own, which Ctrl-C at the terminal does not reach.
pub fn set_new_process_group(command: &mut Command) -> &mut Command {
    platform::set_new_process_group(command)
}

/// Sends a signal to a process, whose liveness the caller has just checked. Returns false if it could not be sent.
pub fn send_signal(identity: ProcessIdentity, signal: EndSignal) -> bool {
    platform::send_signal(identity, signal)
}

/// Ends a process group: asks it to end, waits until the leader exits or the grace period ends, then kills it. Only for
/// groups whose leader we started or verified.
pub fn terminate_then_kill_process_group(leader: u32, grace_period: Duration) {
    platform::terminate_then_kill_process_group(leader, grace_period);
}

/// Ends a child and its process group: asks it to end, and kills it if a process of the group is still alive after the
/// grace period.
pub fn terminate_child_group_then_kill_if_alive(child: &mut Child, grace_period: Duration) {
    platform::terminate_child_group_then_kill_if_alive(child, grace_period);
}

/// Returns the number of the signal that ended a process.
pub fn exit_signal(status: ExitStatus) -> Option<i32> {
    platform::exit_signal(status)
}

/// Replaces this process with another program (`exec`). Where the system cannot do so, waits for the program and exits
/// with its exit code. Returns only on failure.
pub fn replace_process(command: &mut Command) -> io::Error {
    platform::replace_process(command)
}

/// Replaces this process with another program, as [`replace_process`] does, that reads `input` from its standard input.
/// Fails above 64 KiB if the process is really replaced: nothing could write the rest.
pub fn replace_process_with_input(command: &mut Command, input: &[u8]) -> io::Error {
    platform::replace_process_with_input(command, input)
}
