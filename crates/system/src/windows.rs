//! Process information on Windows. A process is identified by its creation time in units of 100 ns, because Windows soon
//! reuses pids. Times and lists come from winsafe, which only calls the system. Arguments and environment have to be read
//! from the memory of a process, as sysinfo does; its start times are in seconds.
//!
//! Processes of other users cannot be opened. Windows does not report which process holds a lock, and has no signals that a
//! process could ignore. Working directories are not reported, because a list without other users' processes is not complete.

pub(super) use super::process_strings::{process_arguments, process_environment};
pub(super) use super::unreported::{flock_holder_pid, ignored_signal_mask, kernel_release};
use super::{ProcessIdentity, ProcessLookup, ProcessWithFolder};
use std::path::PathBuf;
use winsafe::co::{ERROR, KEY, PROCESS, REG_OPTION, TH32CS, WAIT};
use winsafe::{FILETIME, HKEY, HPROCESS, HPROCESSLIST, SysResult};

pub(super) fn look_up_process(pid: u32) -> ProcessLookup {
    let access = PROCESS::QUERY_LIMITED_INFORMATION | PROCESS::SYNCHRONIZE;
    let lookup = HPROCESS::OpenProcess(access, false, pid).and_then(|process| query_open_process(&process));
    lookup.unwrap_or(ProcessLookup::NotShown)
}

/// A process that has ended can be opened as long as another process, such as its parent, has a handle of it.
fn query_open_process(process: &HPROCESS) -> SysResult<ProcessLookup> {
    if process.WaitForSingleObject(Some(0))? == WAIT::OBJECT_0 {
        return Ok(ProcessLookup::Zombie);
    }
    let (creation_time, ..) = process.GetProcessTimes()?;
    Ok(ProcessLookup::Started(creation_time.into()))
}

/// Any other error than this one, such as a denied access, means that a process has the pid.
pub(super) fn is_pid_in_use(pid: u32) -> bool {
    let result = HPROCESS::OpenProcess(PROCESS::QUERY_LIMITED_INFORMATION, false, pid);
    !matches!(result, Err(ERROR::INVALID_PARAMETER))
}

/// Kills a process. Returns false if it has ended or belongs to another user. The identity is checked with the handle that
/// is used to kill it, so no other process with the same pid can be killed.
pub(super) fn kill_process(identity: ProcessIdentity) -> bool {
    /// The exit code of a process that was killed, as with [`std::process::Child::kill`].
    const KILLED_EXIT_CODE: u32 = 1;
    let access = PROCESS::QUERY_LIMITED_INFORMATION | PROCESS::SYNCHRONIZE | PROCESS::TERMINATE;
    let kill_if_same = || -> SysResult<bool> {
        let process = HPROCESS::OpenProcess(access, false, identity.pid)?;
        if query_open_process(&process)? != ProcessLookup::Started(identity.start_time) {
            return Ok(false);
        }
        process.TerminateProcess(KILLED_EXIT_CODE)?;
        Ok(true)
    };
    kill_if_same().unwrap_or(false)
}

pub(super) fn all_process_ids() -> Vec<u32> {
    all_process_and_parent_ids().into_iter().map(|(pid, _)| pid).collect()
}

/// Lists each process with the pid that its parent had, which another process may have by now.
fn all_process_and_parent_ids() -> Vec<(u32, u32)> {
    let Ok(mut list) = HPROCESSLIST::CreateToolhelp32Snapshot(TH32CS::SNAPPROCESS, None) else {
        return Vec::new();
    };
    let entries = list.iter_processes().map_while(Result::ok);
    entries.map(|entry| (entry.th32ProcessID, entry.th32ParentProcessID)).collect()
}

/// Leaves out a process whose parent is younger, because that one only has the parent's pid, and processes whose creation
/// time is not known.
pub(super) fn process_and_parent_ids() -> Vec<(u32, u32)> {
    let creation_time = |pid: u32| match look_up_process(pid) {
        ProcessLookup::Started(creation_time) => Some(creation_time),
        ProcessLookup::Zombie | ProcessLookup::NotShown => None,
    };
    let is_child = |(pid, parent): &(u32, u32)| {
        let creation_times = creation_time(*parent).zip(creation_time(*pid));
        creation_times.is_some_and(|(parent_time, child_time)| parent_time <= child_time)
    };
    all_process_and_parent_ids().into_iter().filter(is_child).collect()
}

pub(super) fn standard_output_path(_pid: u32) -> Option<PathBuf> {
    None
}

pub(super) fn processes_with_working_folder() -> Vec<ProcessWithFolder> {
    Vec::new()
}

/// Returns the time at which the system wrote a part of the registry that it never stores, but creates anew at each boot.
/// `PrefetchParameters\BootId` is not used, because it stays the same where prefetching is turned off.
pub(super) fn boot_id() -> Option<String> {
    let key = HKEY::LOCAL_MACHINE.RegOpenKeyEx(
        Some(r"HARDWARE\DESCRIPTION\System"),
        REG_OPTION::default(),
        KEY::QUERY_VALUE,
    );
    let mut written_at = FILETIME::default();
    key.ok()?.RegQueryInfoKey(None, None, None, None, None, None, None, None, Some(&mut written_at)).ok()?;
    Some(u64::from(written_at).to_string())
}
