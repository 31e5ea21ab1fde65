//! Finds running processes, and ends those that we started.

use plimsoll_system::{
    descendant_process_ids, other_process_ids, was_started_with_argument, was_started_with_variable,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::process::Child;
use std::time::{Duration, Instant};

pub use plimsoll_system::{
    ProcessIdentity, ProcessLiveness, command_line_text, ignored_signal_mask, liveness_of_pid,
    liveness_of_process, process_identity, standard_output_path,
};

/// Returns true if this process is alive. A later process with the same pid does not count.
pub fn is_alive(identity: ProcessIdentity) -> bool {
    liveness_of_process(identity).is_alive()
}

/// Returns the oldest process that was started with `argument` among its arguments and `variable` (`NAME=value`)
/// in its environment. This finds a client whose `plimsoll run` died before it recorded the pid.
pub fn find_oldest_process_by_argument_and_env(argument: &str, variable: &str) -> Option<ProcessIdentity> {
    let is_match =
        |pid: &u32| was_started_with_argument(*pid, argument) && was_started_with_variable(*pid, variable);
    // Children of the client may have the same argument and variable, but the client is older.
    let processes = other_process_ids().into_iter().filter(is_match).filter_map(process_identity);
    processes.min_by_key(|process| (process.start_time, process.pid))
}

/// Returns the processes that were started with both variables (`NAME=value`) in their environment. After a
/// session ends, these are its surviving processes.
pub fn find_processes_with_both_variables(variables: [&str; 2]) -> Vec<ProcessIdentity> {
    let is_match = |pid: &u32| variables.iter().all(|variable| was_started_with_variable(*pid, variable));
    other_process_ids().into_iter().filter(is_match).filter_map(process_identity).collect()
}

/// Returns all processes that descend from a process.
pub(crate) fn descendants(pid: u32) -> Vec<ProcessIdentity> {
    descendant_process_ids(pid).into_iter().filter_map(process_identity).collect()
}

/// Waits for the remaining processes of a dead session to exit, then ends them, because two sessions must not
/// work on the same files. Waits one grace period without a signal, sends SIGTERM during a second one, and
/// SIGKILL during a third.
pub fn wait_then_end_processes_with_both_variables(variables: [&str; 2], grace_period: Duration) {
    wait_then_end_processes(&|| find_processes_with_both_variables(variables), grace_period);
}

/// Waits for those of the listed processes that are still alive to exit, then ends them in the same way.
pub(crate) fn wait_then_end_listed_processes(processes: &[ProcessIdentity], grace_period: Duration) {
    let alive_processes = || processes.iter().copied().filter(|process| is_alive(*process)).collect();
    wait_then_end_processes(&alive_processes, grace_period);
}

fn wait_then_end_processes(find_processes: &dyn Fn() -> Vec<ProcessIdentity>, grace_period: Duration) {
    let started_at = Instant::now();
    while started_at.elapsed() < grace_period * 3 {
        let matching_processes = find_processes();
        let signal = match started_at.elapsed() {
            _ if matching_processes.is_empty() => return,
            elapsed if elapsed < grace_period => None,
            elapsed if elapsed < grace_period * 2 => Some(Signal::TERM),
            _ => Some(Signal::KILL),
        };
        // Liveness is checked again because a pid may have been reused since the list was read.
        for process in matching_processes.into_iter().filter(|process| is_alive(*process)) {
            if let (Some(signal), Some(pid)) = (signal, to_pid(process.pid)) {
                let _ = kill_process(pid, signal);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends SIGINT to a process that we started, as Ctrl-C does, or SIGTERM if `immediately` is true, as a system
/// shutdown does. Returns false if the process has already ended.
pub fn request_end(identity: ProcessIdentity, immediately: bool) -> bool {
    let signal = if immediately { Signal::TERM } else { Signal::INT };
    is_alive(identity) && to_pid(identity.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Ends a process group: sends SIGTERM, waits until the leader exits or the grace period ends, then sends SIGKILL.
/// Only for groups whose leader we started or verified.
pub fn terminate_then_kill_process_group(leader: u32, grace_period: Duration) {
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

/// Ends a child of ours and its process group: sends SIGTERM, and SIGKILL if a process of the group is still
/// alive after the grace period.
pub(crate) fn terminate_child_group_then_kill_if_alive(child: &mut Child, grace_period: Duration) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Returns a command that runs this program as a process that sleeps: macOS shows the environment of no program of its
    /// own, such as `sleep`.
    fn sleeping_process() -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::tests::sleeps_only_in_a_process_of_another_test"]);
        command.env("PLIMSOLL_TEST_SLEEP", "60").stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    #[test]
    fn sleeps_only_in_a_process_of_another_test() {
        if std::env::var_os("PLIMSOLL_TEST_SLEEP").is_some() {
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    #[test]
    fn processes_of_a_dead_session_are_ended_and_no_others() {
        // The same test may run in another process on this machine.
        let run_id = format!("left-{}", std::process::id());
        let start_sleep = |session: &str| {
            let mut command = sleeping_process();
            command.env("PLIMSOLL_RUN_ID", &run_id).env("CLAUDE_CODE_SESSION_ID", session);
            command.spawn().unwrap()
        };
        let (mut own_child, mut other_child) = (start_sleep("s1"), start_sleep("s2"));
        let run_variable = format!("PLIMSOLL_RUN_ID={run_id}");
        let variables = [run_variable.as_str(), "CLAUDE_CODE_SESSION_ID=s1"];
        assert_eq!(find_processes_with_both_variables(variables).len(), 1);
        wait_then_end_processes_with_both_variables(variables, Duration::from_millis(100));
        assert!(find_processes_with_both_variables(variables).is_empty());
        assert!(own_child.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(other_child.try_wait().unwrap().is_none(), "of another session");
        other_child.kill().unwrap();
        other_child.wait().unwrap();
    }

    #[test]
    fn a_process_is_found_by_argument_and_environment_together() {
        // Unique, so that no process left by an earlier test matches.
        let argument = format!("argument-{}", std::process::id());
        let mut child =
            sleeping_process().args(["--skip", &argument]).env("PLIMSOLL_RUN_ID", "find-me").spawn().unwrap();
        let find_pid = |argument: &str, variable: &str| {
            find_oldest_process_by_argument_and_env(argument, variable).map(|process| process.pid)
        };
        // The arguments of a process become visible only a moment after its start.
        let started_at = Instant::now();
        while find_pid(&argument, "PLIMSOLL_RUN_ID=find-me").is_none()
            && started_at.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(find_pid(&argument, "PLIMSOLL_RUN_ID=find-me"), Some(child.id()));
        assert_eq!(find_pid(&argument, "PLIMSOLL_RUN_ID=other"), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
