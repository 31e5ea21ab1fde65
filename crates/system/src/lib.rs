//! RULE: this crate is the only one that knows the operating system: which processes exist and how they were started, how
//! they are waited for and ended ([`child_output`], [`process_control`]), which process holds a lock, the id of the current
//! boot, and how files are opened ([`files`]). Each system has one submodule; all define the same names, and no caller
//! depends on which one is used.
//!
//! If a system does not provide the state of a process, the process is reported as unknown, never as ended, so that callers
//! leave it alone.

pub mod child_output;
pub mod file_metadata;
pub mod files;
pub mod paths;
pub mod process_control;
#[cfg(feature = "signals")]
pub mod signals;
pub mod standard_streams;
pub mod user_environment;

#[cfg(all(feature = "macos-answers", not(debug_assertions)))]
compile_error!("`macos-answers` is only for tests: it hides what Linux reports");

#[cfg(all(target_os = "linux", feature = "macos-answers"))]
#[expect(dead_code, reason = "macOS does not report everything that Linux does")]
mod linux;
#[cfg(all(target_os = "linux", feature = "macos-answers"))]
#[path = "macos_answers.rs"]
mod platform;
#[cfg(all(target_os = "linux", not(feature = "macos-answers")))]
#[path = "linux.rs"]
mod platform;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows.rs"]
mod platform;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
#[path = "untold.rs"]
mod platform;

#[cfg(unix)]
mod posix;
#[cfg(any(target_os = "macos", windows))]
mod process_strings;
#[cfg(any(not(target_os = "linux"), feature = "macos-answers"))]
mod unreported;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The unique identity of a process: a pid may be reused, but not together with its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// The start time in a unit that depends on the system: clock ticks since boot, microseconds since 1970, or 100 ns since
    /// 1601.
    pub start_time: u64,
}

/// Whether a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessLiveness {
    Alive,
    /// The process has ended. Its pid may have been reused.
    Ended,
    /// A process with this pid exists, but the system does not show whether it is the same process.
    Unknown,
}

impl ProcessLiveness {
    /// Returns true if the process is certainly alive. Check this before ending a process or treating it as one of ours.
    pub fn is_alive(self) -> bool {
        self == ProcessLiveness::Alive
    }

    /// Returns true if the process has certainly ended. Check this before taking over files that a process has left.
    pub fn has_ended(self) -> bool {
        self == ProcessLiveness::Ended
    }
}

/// The result of looking up a pid.
#[cfg_attr(
    not(any(target_os = "linux", windows, test)),
    expect(dead_code, reason = "macOS does not report zombies")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessLookup {
    /// The process is running and started at this time.
    Started(u64),
    /// The process has ended, and its parent has not waited for it.
    Zombie,
    /// The system shows no process with this pid, but may hide one.
    NotShown,
}

/// Returns the identity of a running process, or `None` if it has ended or is not visible.
pub fn process_identity(pid: u32) -> Option<ProcessIdentity> {
    match platform::look_up_process(pid) {
        ProcessLookup::Started(start_time) => Some(ProcessIdentity { pid, start_time }),
        ProcessLookup::Zombie | ProcessLookup::NotShown => None,
    }
}

/// Returns whether this process is alive. Another process with a reused pid does not count.
pub fn liveness_of_process(identity: ProcessIdentity) -> ProcessLiveness {
    liveness_from_lookup(platform::look_up_process(identity.pid), Some(identity.start_time), || {
        is_pid_in_use(identity.pid)
    })
}

/// Returns whether any process with this pid is alive.
pub fn liveness_of_pid(pid: u32) -> ProcessLiveness {
    liveness_from_lookup(platform::look_up_process(pid), None, || is_pid_in_use(pid))
}

fn liveness_from_lookup(
    lookup: ProcessLookup,
    expected_start_time: Option<u64>,
    pid_exists: impl Fn() -> bool,
) -> ProcessLiveness {
    match lookup {
        ProcessLookup::Started(start_time)
            if expected_start_time.is_none_or(|expected| expected == start_time) =>
        {
            ProcessLiveness::Alive
        }
        ProcessLookup::Started(_) | ProcessLookup::Zombie => ProcessLiveness::Ended,
        ProcessLookup::NotShown if pid_exists() => ProcessLiveness::Unknown,
        ProcessLookup::NotShown => ProcessLiveness::Ended,
    }
}

/// Returns true in the Windows Subsystem for Linux (WSL).
pub fn is_wsl() -> bool {
    platform::kernel_release().is_some_and(|release| is_wsl_release(&release))
}

/// Recognizes the kernels of both versions: `4.4.0-19041-Microsoft` and `5.15.153.1-microsoft-standard-WSL2`.
fn is_wsl_release(release: &str) -> bool {
    release.to_lowercase().contains("microsoft")
}

/// Returns true if a process of any user has this pid.
fn is_pid_in_use(pid: u32) -> bool {
    platform::is_pid_in_use(pid)
}

/// Returns the pids of all processes that the system shows, except this one.
pub fn other_process_ids() -> Vec<u32> {
    platform::all_process_ids().into_iter().filter(|pid| *pid != std::process::id()).collect()
}

/// Returns the pids of all processes that descend from a process, each after its parent. A process whose parent has ended
/// no longer descends from it.
pub fn descendant_process_ids(pid: u32) -> Vec<u32> {
    descendants_by_parent(&platform::process_and_parent_ids(), pid)
}

fn descendants_by_parent(process_and_parent_ids: &[(u32, u32)], root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut next_parent = 0;
    while let Some(&parent) = family.get(next_parent) {
        let children = process_and_parent_ids.iter().filter(|(_, parent_id)| *parent_id == parent);
        // Processes may end and start while the list is made, so it could contain a circle.
        let new_children: Vec<u32> =
            children.map(|(pid, _)| *pid).filter(|pid| !family.contains(pid)).collect();
        family.extend(new_children);
        next_parent += 1;
    }
    family.split_off(1)
}

/// Returns true if a process was started with this argument. Returns false if its arguments cannot be read.
pub fn was_started_with_argument(pid: u32, argument: &str) -> bool {
    platform::process_arguments(pid).iter().any(|process_argument| process_argument == argument.as_bytes())
}

/// Returns true if a process was started with this entry (`NAME=value`) in its environment. Returns false if the environment
/// cannot be read.
pub fn was_started_with_variable(pid: u32, variable: &str) -> bool {
    platform::process_environment(pid).iter().any(|entry| entry == variable.as_bytes())
}

/// Returns the command line of a running process, for display. Empty if it cannot be read.
pub fn command_line_text(pid: u32) -> String {
    let arguments = platform::process_arguments(pid);
    let argument_texts =
        arguments.iter().map(|argument| String::from_utf8_lossy(argument)).filter(|text| !text.is_empty());
    argument_texts.collect::<Vec<_>>().join(" ")
}

/// Returns a path that opens the standard output of a running process, on Linux even if its file has been deleted. Returns
/// `None` if the system provides no such path.
pub fn standard_output_path(pid: u32) -> Option<PathBuf> {
    platform::standard_output_path(pid)
}

/// A running process whose working directory the system shows.
struct ProcessWithFolder {
    pid: u32,
    program: String,
    working_folder: PathBuf,
}

/// Returns true if a process of this name has its working directory in or below a folder, or `None` if the system does not
/// show the working directories of processes. `folder` must be a path without links, because the system reports such paths.
pub fn is_running_in_folder(program: &str, folder: &Path) -> Option<bool> {
    is_running_in_or_below_folder_if_list_complete(
        &platform::processes_with_working_folder(),
        std::process::id(),
        program,
        folder,
    )
}

/// A list without this process is not complete: `/proc` is not mounted, for example.
fn is_running_in_or_below_folder_if_list_complete(
    processes: &[ProcessWithFolder],
    own_pid: u32,
    program: &str,
    folder: &Path,
) -> Option<bool> {
    let is_match = |process: &ProcessWithFolder| {
        process.program == program && process.working_folder.starts_with(folder)
    };
    let is_list_complete = processes.iter().any(|process| process.pid == own_pid);
    is_list_complete.then(|| processes.iter().any(is_match))
}

/// Returns the signals that this process ignores, one bit each, or `None` if the system does not report them. Signals that
/// were ignored at start-up stay ignored until the program handles them.
pub fn ignored_signal_mask() -> Option<u64> {
    platform::ignored_signal_mask()
}

/// True if the system reports which process holds a lock.
pub const SHOWS_LOCK_HOLDERS: bool = IS_LINUX;

/// True if [`standard_output_path`] returns a path that opens even a file that has been deleted.
pub const OPENS_DELETED_OUTPUT: bool = IS_LINUX;

/// True in a program for Windows.
pub const IS_WINDOWS: bool = cfg!(windows);

const IS_LINUX: bool = cfg!(all(target_os = "linux", not(feature = "macos-answers")));

/// Returns the pid of the process that holds an `flock` on a file with this inode. Returns `None` if there is none, or if the
/// system does not report locks.
pub fn flock_holder_pid(inode: u64) -> Option<u32> {
    platform::flock_holder_pid(inode)
}

/// Returns an id that changes with every boot of the system, or `None` if the system has none.
pub fn boot_id() -> Option<String> {
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    BOOT_ID.get_or_init(platform::boot_id).clone()
}

#[cfg(test)]
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the tests start what they look at")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Returns a command that runs this program as a process that sleeps, and starts another one before if `has_child` is
    /// true.
    fn sleeping_process(has_child: bool) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::sleeps_only_in_a_process_of_another_test"]);
        command.env("PLIMSOLL_TEST_HAS_CHILD", if has_child { "1" } else { "0" });
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    #[test]
    fn sleeps_only_in_a_process_of_another_test() {
        let Some(has_child) = std::env::var_os("PLIMSOLL_TEST_HAS_CHILD") else { return };
        let child = (has_child == "1").then(|| sleeping_process(false).spawn().unwrap());
        std::thread::sleep(std::time::Duration::from_secs(60));
        drop(child);
    }

    #[test]
    fn the_kernels_of_wsl_are_recognized() {
        for (release, expected) in [
            ("4.4.0-19041-Microsoft", true),
            ("5.15.153.1-microsoft-standard-WSL2", true),
            ("6.1.0-18-amd64", false),
            ("6.8.0-1021-azure", false),
        ] {
            assert_eq!(is_wsl_release(release), expected, "{release}");
        }
    }

    #[test]
    fn a_hidden_process_is_unknown_and_never_gone() {
        let table = [
            (ProcessLookup::Started(7), Some(7), true, ProcessLiveness::Alive),
            (ProcessLookup::Started(7), None, true, ProcessLiveness::Alive),
            // Another process has the pid by now.
            (ProcessLookup::Started(8), Some(7), true, ProcessLiveness::Ended),
            (ProcessLookup::Zombie, Some(7), true, ProcessLiveness::Ended),
            (ProcessLookup::NotShown, Some(7), true, ProcessLiveness::Unknown),
            (ProcessLookup::NotShown, None, true, ProcessLiveness::Unknown),
            (ProcessLookup::NotShown, Some(7), false, ProcessLiveness::Ended),
        ];
        for (lookup, started, pid_exists, expected) in table {
            assert_eq!(
                liveness_from_lookup(lookup, started, || pid_exists),
                expected,
                "{lookup:?} {started:?}"
            );
        }
    }

    #[test]
    fn a_process_is_alive_until_it_ends_and_identified_by_its_start() {
        let mut child = sleeping_process(false).spawn().unwrap();
        if let Some(process) = process_identity(child.id()) {
            assert_eq!(
                (liveness_of_process(process), liveness_of_pid(child.id())),
                (ProcessLiveness::Alive, ProcessLiveness::Alive)
            );
            assert_eq!(
                liveness_of_process(ProcessIdentity { start_time: process.start_time + 1, ..process }),
                ProcessLiveness::Ended
            );
        } else {
            assert_eq!(liveness_of_pid(child.id()), ProcessLiveness::Unknown);
        }
        child.kill().unwrap();
        // A zombie still accepts signals, but is gone where the system shows its state.
        assert!(!liveness_of_pid(child.id()).has_ended() || process_identity(child.id()).is_none());
        child.wait().unwrap();
        assert_eq!(liveness_of_pid(child.id()), ProcessLiveness::Ended);
    }

    #[test]
    fn a_process_is_shown_with_its_arguments_and_environment() {
        let mut child = sleeping_process(false).args(["--skip", "größe"]).spawn().unwrap();
        let started_at = std::time::Instant::now();
        // The arguments of a process become visible only a moment after its start.
        while !was_started_with_argument(child.id(), "größe") && started_at.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        let has_variable = |variable| was_started_with_variable(child.id(), variable);
        let results = (
            [was_started_with_argument(child.id(), "größe"), was_started_with_argument(child.id(), "gr")],
            [has_variable("PLIMSOLL_TEST_HAS_CHILD=0"), has_variable("PLIMSOLL_TEST_HAS_CHILD=1")],
            command_line_text(child.id()).ends_with(" --skip größe"),
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let are_reported = cfg!(any(target_os = "linux", target_os = "macos", windows));
        assert_eq!(results, ([are_reported, false], [are_reported, false], are_reported));
    }

    #[test]
    fn only_the_process_with_the_start_time_is_killed() {
        let mut child = sleeping_process(false).spawn().unwrap();
        let process =
            process_identity(child.id()).unwrap_or(ProcessIdentity { pid: child.id(), start_time: 1 });
        // Elsewhere the caller checks that the process is alive.
        if cfg!(windows) {
            let older_process = ProcessIdentity { start_time: process.start_time - 1, ..process };
            assert!(!process_control::send_signal(older_process, process_control::EndSignal::Kill));
        }
        assert!(child.try_wait().unwrap().is_none());
        assert!(process_control::send_signal(process, process_control::EndSignal::Kill));
        assert!(!child.wait().unwrap().success());
        assert!(!process_control::send_signal(process, process_control::EndSignal::Kill));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_runs_in_its_folder_until_it_ends() {
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").current_dir("/usr/share").spawn().unwrap();
        let is_running = |program, folder| is_running_in_folder(program, Path::new(folder));
        // The kernel sets the name of a process at the end of `execve`, after `spawn` has returned.
        let started_at = std::time::Instant::now();
        while is_running("sleep", "/usr/share") == Some(false) && started_at.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        let results = [
            is_running("sleep", "/usr/share"),
            is_running("sleep", "/usr"),
            is_running("sleep", "/usr/sha"),
            is_running("slee", "/usr"),
        ];
        child.kill().unwrap();
        child.wait().unwrap();
        if results[0].is_some() {
            assert_eq!(results, [Some(true), Some(true), Some(false), Some(false)]);
            assert_eq!(is_running("sleep", "/usr/share"), Some(false));
        }
    }

    #[test]
    fn a_list_of_processes_without_this_one_says_nothing() {
        let process = |pid, program: &str| ProcessWithFolder {
            pid,
            program: program.to_owned(),
            working_folder: "/project/sub".into(),
        };
        let table = [
            (vec![], None),
            (vec![process(8, "git")], None),
            (vec![process(7, "plimsoll")], Some(false)),
            (vec![process(7, "plimsoll"), process(8, "git")], Some(true)),
        ];
        for (processes, expected) in table {
            assert_eq!(
                is_running_in_or_below_folder_if_list_complete(&processes, 7, "git", Path::new("/project")),
                expected
            );
        }
    }

    #[test]
    fn descendants_are_found_through_living_parents_only() {
        let table = [
            (vec![], vec![]),
            // 14 was started by 12, which has ended: 1 is its parent now.
            (vec![(11, 10), (13, 11), (12, 10), (14, 1), (20, 2)], vec![11, 12, 13]),
            (vec![(13, 11), (11, 10)], vec![11, 13]),
            (vec![(11, 12), (12, 11), (11, 10)], vec![11, 12]),
        ];
        for (process_and_parent_ids, expected) in table {
            assert_eq!(descendants_by_parent(&process_and_parent_ids, 10), expected);
        }
    }

    #[test]
    fn a_child_of_a_child_is_a_descendant_and_ended_with_its_group() {
        let mut command = sleeping_process(true);
        let mut child = process_control::set_new_process_group(&mut command).spawn().unwrap();
        let started_at = std::time::Instant::now();
        let has_two = || {
            let descendants = descendant_process_ids(std::process::id());
            descendants.contains(&child.id()) && descendant_process_ids(child.id()).len() == 1
        };
        while !has_two() && started_at.elapsed() < std::time::Duration::from_secs(10) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let grandchildren = descendant_process_ids(child.id());
        let grace_period = std::time::Duration::from_secs(10);
        process_control::terminate_child_group_then_kill_if_alive(&mut child, grace_period);
        assert_eq!(grandchildren.len(), 1);
        assert!(liveness_of_pid(child.id()).has_ended());
        while !liveness_of_pid(grandchildren[0]).has_ended() && started_at.elapsed() < grace_period * 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(liveness_of_pid(grandchildren[0]).has_ended());
    }

    // Without an id every batch of a session waits for the disk.
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    #[test]
    fn the_boot_has_an_id_that_stays() {
        let id = platform::boot_id().unwrap();
        assert!(id.len() > 16, "{id}");
        assert_eq!(platform::boot_id(), Some(id));
    }

    #[test]
    fn this_process_and_one_of_another_user_are_alive() {
        assert!(!liveness_of_pid(std::process::id()).has_ended());
        // The first process of the system belongs to another user unless the test runs as root.
        let first_process = other_process_ids().into_iter().filter(|pid| *pid > 0).min().unwrap_or(1);
        assert!(!liveness_of_pid(first_process).has_ended());
    }
}
