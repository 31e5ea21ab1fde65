//! Processes: which are alive, which is which, and ending our own.

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// The permanent identity of a process: pids are reused, a pid with its start time is not.
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
    // Field 22 of proc(5)'s `stat`; the state, its field 3, is the first here.
    let started = fields.get(19)?.parse().ok()?;
    (!is_zombie).then_some(Identity { pid, started })
}

/// What a running process writes to as its standard output, also where that file has no name any more.
pub fn output_of(pid: u32) -> std::path::PathBuf {
    format!("/proc/{pid}/fd/1").into()
}

/// True while exactly this process lives.
pub fn is_alive(known: Identity) -> bool {
    identity(known.pid) == Some(known)
}

/// True while any process has this pid.
pub fn has_pid(pid: u32) -> bool {
    // A process that has ended and was not waited for still takes signals; it has no identity.
    to_pid(pid).is_some_and(|pid| test_kill_process(pid).is_ok()) && identity(pid).is_some()
}

/// The process that was started with this word among its arguments and this setting in its environment.
/// A client whose `plimsoll run` died before it could note the pid is found so.
pub fn find(argument: &str, setting: &str) -> Option<Identity> {
    let found = others().filter(|pid| holds(*pid, "cmdline", argument) && holds(*pid, "environ", setting));
    // The client's own children may carry the same words: the oldest is the client.
    found.filter_map(identity).min_by_key(|found| (found.started, found.pid))
}

/// Every process but this one.
fn others() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
}

fn holds(pid: u32, file: &str, word: &str) -> bool {
    let bytes = std::fs::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
    bytes.split(|byte| *byte == 0).any(|entry| entry == word.as_bytes())
}

/// The processes that were started inside a session and outlived it: both settings are in their environment.
pub fn left_behind(settings: [&str; 2]) -> Vec<Identity> {
    let found = others().filter(|pid| settings.iter().all(|setting| holds(*pid, "environ", setting)));
    found.filter_map(identity).collect()
}

/// What a running process was started as, for people; empty if that cannot be seen.
pub fn command_of(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
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
