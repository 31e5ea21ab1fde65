//! Process groups and signals.
#![expect(clippy::disallowed_types, reason = "`launcher` passes its commands here")]

use super::EndSignal;
use crate::{ProcessIdentity, process_identity};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(super) const CAN_TERMINATE_GRACEFULLY: bool = true;

pub(super) fn set_new_process_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

pub(super) fn send_signal(identity: ProcessIdentity, signal: EndSignal) -> bool {
    let signal = match signal {
        EndSignal::Interrupt => Signal::INT,
        EndSignal::Terminate => Signal::TERM,
        EndSignal::Kill => Signal::KILL,
    };
    to_pid(identity.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

pub(super) fn terminate_then_kill_process_group(leader: u32, grace_period: Duration) {
    let Some(pid) = to_pid(leader) else { return };
    let started_at = Instant::now();
    // SIGTERM first: it also stops the client's Bash tool, which keeps working after a SIGKILL (2.1.329).
    if kill_process_group(pid, Signal::TERM).is_err() {
        return;
    }
    while started_at.elapsed() < grace_period {
        if process_identity(leader).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(pid, Signal::KILL);
}

pub(super) fn terminate_child_group_then_kill_if_alive(child: &mut Child, grace_period: Duration) {
    let Some(group) = to_pid(child.id()) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let started_at = Instant::now();
    let mut is_group_empty = false;
    while !is_group_empty && started_at.elapsed() < grace_period {
        std::thread::sleep(Duration::from_millis(10));
        let is_reaped = !matches!(child.try_wait(), Ok(None));
        is_group_empty = is_reaped && test_kill_process_group(group).is_err();
    }
    // The group's id is not reused while one of its processes is alive, so this cannot kill other processes.
    if !is_group_empty {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    // 0 and 1 are never processes that we started.
    Pid::from_raw(i32::try_from(pid).ok().filter(|pid| *pid > 1)?)
}

pub(super) fn exit_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(super) fn replace_process(command: &mut Command) -> io::Error {
    command.exec()
}

pub(super) fn replace_process_with_input(command: &mut Command, input: &[u8]) -> io::Error {
    match create_filled_pipe_within_capacity(input) {
        Ok(stdin) => command.stdin(stdin).exec(),
        Err(error) => error,
    }
}

/// Creates a pipe that contains exactly these bytes. Fails above 64 KiB, the capacity of a pipe, because nothing
/// reads from it while we write.
fn create_filled_pipe_within_capacity(input: &[u8]) -> io::Result<Stdio> {
    if input.len() > 64 * 1024 {
        return Err(io::Error::other(format!("{} bytes are too many to hand on", input.len())));
    }
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(input)?;
    Ok(reader.into())
}
