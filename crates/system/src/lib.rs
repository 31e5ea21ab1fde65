//! RULE: what only the operating system can tell: which processes there are and what they were started with, who holds a lock,
//! which start of the system this is; and how it opens files ([`files`]). One file for each system, with the same names in it; no
//! caller knows which is at work.
//!
//! What a system does not tell is unknown, and never taken for gone: who decides by it leaves things alone.

pub mod files;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod own;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod own;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[path = "untold.rs"]
mod own;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The permanent identity of a process: pids are reused, a pid with its start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// When it began, in a measure of the system's own: ticks since boot, or microseconds since 1970.
    pub started: u64,
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Alive,
    /// It has ended; its pid may belong to another by now.
    Gone,
    /// There is a process with its pid, and the system does not tell whether it is this one.
    Unknown,
}

impl Life {
    /// Whoever ends a process, or takes it for his own, must know this.
    pub fn is_alive(self) -> bool {
        self == Life::Alive
    }

    /// Whoever takes over what a process has left must know this.
    pub fn is_gone(self) -> bool {
        self == Life::Gone
    }
}

/// What a look at a pid has found.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    expect(dead_code, reason = "a system that tells nothing has only one of them")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A process that began then.
    Began(u64),
    /// One that has ended and was not waited for.
    Ended,
    /// The system shows none; it may hide it.
    Nothing,
}

/// The identity of a running process; none if it is gone, or not to be had.
pub fn identity(pid: u32) -> Option<Identity> {
    match own::look(pid) {
        Look::Began(started) => Some(Identity { pid, started }),
        Look::Ended | Look::Nothing => None,
    }
}

/// Does exactly this process live?
pub fn life(known: Identity) -> Life {
    of_look(own::look(known.pid), Some(known.started), || has_process(known.pid))
}

/// Does any process have this pid?
pub fn life_of(pid: u32) -> Life {
    of_look(own::look(pid), None, || has_process(pid))
}

fn of_look(look: Look, started: Option<u64>, has_process: impl Fn() -> bool) -> Life {
    match look {
        Look::Began(began) if started.is_none_or(|started| started == began) => Life::Alive,
        Look::Began(_) | Look::Ended => Life::Gone,
        Look::Nothing if has_process() => Life::Unknown,
        Look::Nothing => Life::Gone,
    }
}

/// True if there is a process with this pid, whoever's it is.
fn has_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Every process that the system shows, but this one.
pub fn others() -> Vec<u32> {
    own::processes().into_iter().filter(|pid| *pid != std::process::id()).collect()
}

/// True if a process is seen to have been started with this word among its arguments.
pub fn has_argument(pid: u32, word: &str) -> bool {
    own::arguments(pid).iter().any(|argument| argument == word.as_bytes())
}

/// True if a process is seen to have been started with this setting (`NAME=value`) in its environment.
pub fn has_setting(pid: u32, setting: &str) -> bool {
    own::environment(pid).iter().any(|entry| entry == setting.as_bytes())
}

/// What a running process was started as, for people; empty if that cannot be seen.
pub fn command_of(pid: u32) -> String {
    let words = own::arguments(pid);
    let words = words.iter().map(|word| String::from_utf8_lossy(word)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// What a running process writes to as its standard output, also where that file has no name any more; none where that
/// cannot be opened.
pub fn output_of(pid: u32) -> Option<PathBuf> {
    own::output_of(pid)
}

/// True if a process of this name works in a folder, or below it; none where the system does not tell. The folder is named as the
/// system names it: without links.
pub fn is_at_work(program: &str, folder: &Path) -> Option<bool> {
    let processes = own::at_work(program)?;
    Some(processes.iter().any(|place| place.starts_with(folder)))
}

/// The signals that were ignored when this process was started, one bit each; none if the system does not report it.
pub fn ignored_signals() -> u64 {
    own::ignored_signals()
}

/// The process that holds an `flock` on a file with this inode, if the system tells.
pub fn lock_holder(inode: u64) -> Option<u32> {
    own::lock_holder(inode)
}

/// A descriptor of a child of ours that can be read from once it has ended; none where the system has no such thing.
pub fn end_of_child(child: Pid) -> Option<OwnedFd> {
    own::end_of_child(child)
}

/// A name that changes with every start of the system; none where the system has none.
pub fn boot() -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(own::boot).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_hides_is_unknown_and_never_gone() {
        let table = [
            (Look::Began(7), Some(7), true, Life::Alive),
            (Look::Began(7), None, true, Life::Alive),
            // Another process has its pid by now.
            (Look::Began(8), Some(7), true, Life::Gone),
            (Look::Ended, Some(7), true, Life::Gone),
            (Look::Nothing, Some(7), true, Life::Unknown),
            (Look::Nothing, None, true, Life::Unknown),
            (Look::Nothing, Some(7), false, Life::Gone),
        ];
        for (look, started, has_process, expected) in table {
            assert_eq!(of_look(look, started, || has_process), expected, "{look:?} {started:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_types, reason = "the test starts what it looks at")]
    fn a_process_is_known_by_pid_and_start_and_gone_when_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        if let Some(known) = identity(child.id()) {
            assert_eq!((life(known), life_of(child.id())), (Life::Alive, Life::Alive));
            assert_eq!(life(Identity { started: known.started + 1, ..known }), Life::Gone);
        } else {
            assert_eq!(life_of(child.id()), Life::Unknown);
        }
        child.kill().unwrap();
        // Ended, and not waited for: it takes signals, and is gone all the same where the system tells.
        assert!(!life_of(child.id()).is_gone() || identity(child.id()).is_none());
        child.wait().unwrap();
        assert_eq!(life_of(child.id()), Life::Gone);
    }

    #[test]
    #[expect(clippy::disallowed_types, reason = "the test starts what it looks at")]
    fn a_process_is_at_work_where_it_was_started_until_it_ends() {
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").current_dir("/usr/share").spawn().unwrap();
        let ask = |program, folder| is_at_work(program, Path::new(folder));
        let seen =
            [ask("sleep", "/usr/share"), ask("sleep", "/usr"), ask("sleep", "/usr/sha"), ask("slee", "/usr")];
        child.kill().unwrap();
        child.wait().unwrap();
        if seen[0].is_some() {
            assert_eq!(seen, [Some(true), Some(true), Some(false), Some(false)]);
            assert_eq!(ask("sleep", "/usr/share"), Some(false));
        }
    }

    #[test]
    fn this_process_and_that_of_another_user_live() {
        assert!(!life_of(std::process::id()).is_gone());
        // The first process is everybody's.
        assert!(!life_of(1).is_gone());
    }
}
