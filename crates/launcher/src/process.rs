//! Finds running processes, and ends those that we started.

use plimsoll_system::process_control::{EndSignal, send_signal};
use plimsoll_system::{
    descendant_process_ids, other_process_ids, was_started_with_argument, was_started_with_variable,
};
use std::time::{Duration, Instant};

pub use plimsoll_system::process_control::terminate_then_kill_process_group;
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
            elapsed if elapsed < grace_period * 2 => Some(EndSignal::Terminate),
            _ => Some(EndSignal::Kill),
        };
        // Liveness is checked again because a pid may have been reused since the list was read.
        for process in matching_processes.into_iter().filter(|process| is_alive(*process)) {
            if let Some(signal) = signal {
                send_signal(process, signal);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends SIGINT to a process that we started, as Ctrl-C does, or SIGTERM if `immediately` is true, as a system
/// shutdown does. Returns false if the process has already ended, or if the system has no such signal.
pub fn request_end(identity: ProcessIdentity, immediately: bool) -> bool {
    let signal = if immediately { EndSignal::Terminate } else { EndSignal::Interrupt };
    is_alive(identity) && send_signal(identity, signal)
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
