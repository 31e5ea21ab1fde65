//! Process information on macOS. libproc reports the start time and the standard output of a process, sysinfo its
//! arguments, environment and working directory, and sysctl the boot.
//!
//! The kernel reports all of this only for processes of the same user. It leaves out the environment of Apple's own
//! programs, such as `/bin/sleep`, and does not report which process holds a lock, which signals a process ignores, or
//! that a process has ended and waits for its parent.

pub(super) use super::posix::is_pid_in_use;
pub(super) use super::process_strings::{process_arguments, process_environment};
pub(super) use super::unreported::{
    child_exit_descriptor, flock_holder_pid, ignored_signal_mask, kernel_release,
};
use super::{ProcessLookup, ProcessWithFolder};
use proc_pidinfo::{Fd, Pid as ProcPid, ProcBSDInfo, VnodeFdInfoWithPath, proc_pidfdinfo, proc_pidinfo};
use std::path::PathBuf;
use sysctl::{Ctl, Sysctl};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

pub(super) fn look_up_process(pid: u32) -> ProcessLookup {
    match proc_pidinfo::<ProcBSDInfo>(ProcPid(pid)) {
        Ok(Some(info)) => ProcessLookup::Started(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec),
        // It belongs to another user, or has ended. A zombie is not shown either.
        Ok(None) | Err(_) => ProcessLookup::NotShown,
    }
}

/// Returns all processes that the system shows, with the requested details.
fn list_processes(details: ProcessRefreshKind) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, details);
    system
}

pub(super) fn all_process_ids() -> Vec<u32> {
    let system = list_processes(ProcessRefreshKind::nothing());
    system.processes().keys().map(|pid| pid.as_u32()).collect()
}

pub(super) fn process_and_parent_ids() -> Vec<(u32, u32)> {
    let system = list_processes(ProcessRefreshKind::nothing());
    let processes = system.processes().values();
    processes.filter_map(|process| Some((process.pid().as_u32(), process.parent()?.as_u32()))).collect()
}

pub(super) fn standard_output_path(pid: u32) -> Option<PathBuf> {
    let output = proc_pidfdinfo::<VnodeFdInfoWithPath>(ProcPid(pid), Fd(1)).ok()??;
    output.path().ok().map(PathBuf::from)
}

pub(super) fn processes_with_working_folder() -> Vec<ProcessWithFolder> {
    let details = ProcessRefreshKind::nothing().with_cwd(UpdateKind::Always);
    let system = list_processes(details);
    let processes = system.processes().values().filter_map(|process| {
        Some(ProcessWithFolder {
            pid: process.pid().as_u32(),
            program: process.name().to_str()?.to_owned(),
            working_folder: process.cwd()?.to_owned(),
        })
    });
    processes.collect()
}

/// Reads the UUID that the kernel chooses at each boot. The time of the boot would not do: it changes when the clock is set.
pub(super) fn boot_id() -> Option<String> {
    let boot_uuid = Ctl::new("kern.bootsessionuuid").ok()?.value_string().ok()?;
    let id = boot_uuid.trim_end_matches('\0').trim();
    (!id.is_empty()).then(|| id.to_owned())
}
