//! Processes: who is alive, who is who, and ending what is ours.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
use std::path::Path;
use std::time::{Duration, Instant};

/// A process named for ever: pids come back, a pid with its start time does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// When it began, in the system's own ticks since boot.
    pub started: u64,
}

/// The identity of a running process.
pub fn identity(pid: u32) -> Option<Identity> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets: fields are counted behind its last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let is_zombie = fields.first() == Some(&"Z");
    let started = fields.get(19)?.parse().ok()?;
    (!is_zombie).then_some(Identity { pid, started })
}

/// True while exactly this process lives.
pub fn is_alive(known: Identity) -> bool {
    identity(known.pid) == Some(known)
}

/// True while any process has this pid.
pub fn has_pid(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| test_kill_process(pid).is_ok()) && identity(pid).is_some()
}

/// Our own process id.
pub fn own_pid() -> u32 {
    std::process::id()
}

/// The process that was started with this word among its arguments and this setting in its environment.
/// A client whose `plimsoll run` died before it could note the pid is found so.
pub fn find(argument: &str, setting: &str) -> Option<Identity> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        *pid != own_pid() && holds(*pid, "cmdline", argument) && holds(*pid, "environ", setting)
    })
    // The client's own children may carry the same words: the oldest is the client.
    .filter_map(identity)
    .min_by_key(|found| (found.started, found.pid))
}

fn holds(pid: u32, file: &str, word: &str) -> bool {
    let bytes = std::fs::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
    bytes.split(|byte| *byte == 0).any(|entry| entry == word.as_bytes())
}

/// Asks a group to end, waits, and ends it. Only for groups whose leader we started or verified.
pub fn end_group(leader: u32, patience: Duration) {
    let Some(pid) = to_pid(leader) else { return };
    let started = Instant::now();
    if kill_process_group(pid, Signal::TERM).is_err() {
        return;
    }
    while started.elapsed() < patience {
        if identity(leader).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(pid, Signal::KILL);
}

fn to_pid(pid: u32) -> Option<Pid> {
    // 0 and 1 are never ours.
    Pid::from_raw(i32::try_from(pid).ok().filter(|pid| *pid > 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_pid_and_start_and_gone_when_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let known = identity(child.id()).unwrap();
        assert!(is_alive(known));
        assert!(!is_alive(Identity { started: known.started + 1, ..known }));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(known));
    }

    #[test]
    fn a_process_is_found_by_argument_and_environment_together() {
        let mut child = std::process::Command::new("sleep")
            .arg("61.25")
            .env("PLIMSOLL_RUN_ID", "find-me")
            .spawn()
            .unwrap();
        let find_it = |argument, setting| find(argument, setting).map(|found| found.pid);
        assert_eq!(find_it("61.25", "PLIMSOLL_RUN_ID=find-me"), Some(child.id()));
        assert_eq!(find_it("61.25", "PLIMSOLL_RUN_ID=other"), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
