//! The arguments and the environment of a process, as sysinfo reads them on macOS and Windows.

use std::ffi::OsString;
use sysinfo::{Process, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

pub(super) fn process_arguments(pid: u32) -> Vec<Vec<u8>> {
    let details = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    strings_of_process(pid, details, Process::cmd)
}

pub(super) fn process_environment(pid: u32) -> Vec<Vec<u8>> {
    let details = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    strings_of_process(pid, details, Process::environ)
}

/// Returns the strings of one process that `select` reads, on Windows as UTF-8. Empty if the process is not shown.
fn strings_of_process(
    pid: u32,
    details: ProcessRefreshKind,
    select: impl Fn(&Process) -> &[OsString],
) -> Vec<Vec<u8>> {
    let pid = sysinfo::Pid::from_u32(pid);
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, details);
    let strings = system.process(pid).map(select).unwrap_or_default();
    strings.iter().map(|string| string.as_encoded_bytes().to_vec()).collect()
}
