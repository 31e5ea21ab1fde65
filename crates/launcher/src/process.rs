//! Processes: which are alive, which is which, and ending our own.

use plimsoll_system::{has_argument, has_setting, others};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::process::Child;
use std::time::{Duration, Instant};

pub use plimsoll_system::{Identity, Life, command_of, identity, ignored_signals, life, life_of, output_of};

/// True while exactly this process is seen to live.
pub fn is_alive(known: Identity) -> bool {
    life(known).is_alive()
}

/// The process that was started with this word among its arguments and this setting in its environment.
/// A client whose `plimsoll run` died before it could note the pid is found so.
pub fn find(argument: &str, setting: &str) -> Option<Identity> {
    let is_it = |pid: &u32| has_argument(*pid, argument) && has_setting(*pid, setting);
    // The client's own children may carry the same words: the oldest is the client.
    let found = others().into_iter().filter(is_it).filter_map(identity);
    found.min_by_key(|found| (found.started, found.pid))
}

/// The processes that were started inside a session and outlived it: both settings are in their environment.
pub fn left_behind(settings: [&str; 2]) -> Vec<Identity> {
    let is_it = |pid: &u32| settings.iter().all(|setting| has_setting(*pid, setting));
    others().into_iter().filter(is_it).filter_map(identity).collect()
}

/// Lets the processes that a dead session left behind finish what they are writing, then ends them: two
/// sessions must not work on the same files.
pub fn end_left_behind(settings: [&str; 2], grace_period: Duration) {
    let started = Instant::now();
    while started.elapsed() < grace_period * 3 {
        let left = left_behind(settings);
        let signal = match started.elapsed() {
            _ if left.is_empty() => return,
            elapsed if elapsed < grace_period => None,
            elapsed if elapsed < grace_period * 2 => Some(Signal::TERM),
            _ => Some(Signal::KILL),
        };
        // Looked at once more: since the list was made a pid may have gone to another process.
        for process in left.into_iter().filter(|process| is_alive(*process)) {
            if let (Some(signal), Some(pid)) = (signal, to_pid(process.pid)) {
                let _ = kill_process(pid, signal);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks a process of ours to end: as Ctrl-C does, or at once, as a system that shuts down does. False if it has ended.
pub fn ask_to_end(known: Identity, at_once: bool) -> bool {
    let signal = if at_once { Signal::TERM } else { Signal::INT };
    is_alive(known) && to_pid(known.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Asks a group to end, waits, and ends it. Only for groups whose leader we started or verified.
pub fn end_group(leader: u32, grace_period: Duration) {
    let Some(pid) = to_pid(leader) else { return };
    let started = Instant::now();
    // SIGTERM first: it stops the Bash tool that a client runs, while after a SIGKILL the tool works on (2.1.329).
    if kill_process_group(pid, Signal::TERM).is_err() {
        return;
    }
    while started.elapsed() < grace_period {
        if identity(leader).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(pid, Signal::KILL);
}

/// Ends a child of ours and its group: asks first, and gives all of them this long to tidy up behind themselves.
pub(crate) fn end_child(child: &mut Child, grace_period: Duration) {
    let Some(group) = to_pid(child.id()) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let started = Instant::now();
    let mut is_empty = false;
    while !is_empty && started.elapsed() < grace_period {
        std::thread::sleep(Duration::from_millis(10));
        let is_reaped = !matches!(child.try_wait(), Ok(None));
        is_empty = is_reaped && test_kill_process_group(group).is_err();
    }
    // While a process of the group lives, its id is not reused.
    if !is_empty {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    // 0 and 1 are never ours.
    Pid::from_raw(i32::try_from(pid).ok().filter(|pid| *pid > 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_session_left_behind_is_ended_and_nobody_else() {
        // The same test may be at work elsewhere on the machine.
        let run = format!("left-{}", std::process::id());
        let sleeper = |session: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").env("PLIMSOLL_RUN_ID", &run).env("CLAUDE_CODE_SESSION_ID", session);
            command.spawn().unwrap()
        };
        let (mut ours, mut theirs) = (sleeper("s1"), sleeper("s2"));
        let belongs = format!("PLIMSOLL_RUN_ID={run}");
        let settings = [belongs.as_str(), "CLAUDE_CODE_SESSION_ID=s1"];
        assert_eq!(left_behind(settings).len(), 1);
        end_left_behind(settings, Duration::from_millis(100));
        assert!(left_behind(settings).is_empty());
        assert!(ours.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(theirs.try_wait().unwrap().is_none(), "of another session");
        theirs.kill().unwrap();
        theirs.wait().unwrap();
    }

    #[test]
    fn a_process_is_found_by_argument_and_environment_together() {
        // Unlike any that an earlier test may have left.
        let word = format!("61.{}", std::process::id());
        let mut child =
            std::process::Command::new("sleep").arg(&word).env("PLIMSOLL_RUN_ID", "find-me").spawn().unwrap();
        let find_it = |argument: &str, setting: &str| find(argument, setting).map(|found| found.pid);
        // A process shows its words only a moment after it has been started.
        let started = Instant::now();
        while find_it(&word, "PLIMSOLL_RUN_ID=find-me").is_none()
            && started.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(find_it(&word, "PLIMSOLL_RUN_ID=find-me"), Some(child.id()));
        assert_eq!(find_it(&word, "PLIMSOLL_RUN_ID=other"), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
