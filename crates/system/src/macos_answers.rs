//! Process information on Linux, limited to what macOS reports, for tests. `macos.rs` lists what is missing there.

pub(super) use super::linux::is_pid_in_use;
pub(super) use super::unreported::{
    child_exit_descriptor, flock_holder_pid, ignored_signal_mask, kernel_release,
};
use super::{ProcessLookup, ProcessWithFolder, linux};
use std::path::{Path, PathBuf};

/// Like libproc, does not show a zombie.
pub(super) fn look_up_process(pid: u32) -> ProcessLookup {
    match linux::look_up_process(pid) {
        ProcessLookup::Zombie => ProcessLookup::NotShown,
        lookup => lookup,
    }
}

pub(super) fn all_process_ids() -> Vec<u32> {
    linux::all_process_ids()
}

pub(super) fn process_and_parent_ids() -> Vec<(u32, u32)> {
    linux::process_and_parent_ids()
}

/// Like sysinfo, leaves out empty arguments.
pub(super) fn process_arguments(pid: u32) -> Vec<Vec<u8>> {
    let arguments = linux::process_arguments(pid);
    arguments.into_iter().filter(|argument| !argument.is_empty()).collect()
}

/// Leaves out the environment of the system's own programs. Node.js is not one of them on a Mac.
pub(super) fn process_environment(pid: u32) -> Vec<Vec<u8>> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let system_folders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"].map(Path::new);
    let is_system_program =
        program.parent().is_some_and(|folder| system_folders.contains(&folder)) && !program.ends_with("node");
    if is_system_program { Vec::new() } else { linux::process_environment(pid) }
}

/// Like libproc, returns the path of a file and nothing for a pipe.
pub(super) fn standard_output_path(pid: u32) -> Option<PathBuf> {
    let target = std::fs::read_link(linux::standard_output_path(pid)?).ok()?;
    target.is_absolute().then_some(target)
}

pub(super) fn processes_with_working_folder() -> Vec<ProcessWithFolder> {
    linux::processes_with_working_folder()
}

pub(super) fn boot_id() -> Option<String> {
    linux::boot_id()
}
