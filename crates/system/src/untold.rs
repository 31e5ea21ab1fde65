//! Process information on an unsupported Unix system. Everything is unknown, so a process counts as gone only if
//! no process has its pid.

pub(super) use super::posix::is_pid_in_use;
pub(super) use super::unreported::{
    child_exit_descriptor, flock_holder_pid, ignored_signal_mask, kernel_release,
};
use super::{ProcessLookup, ProcessWithFolder};
use std::path::PathBuf;

pub(super) fn look_up_process(_pid: u32) -> ProcessLookup {
    ProcessLookup::NotShown
}

pub(super) fn all_process_ids() -> Vec<u32> {
    Vec::new()
}

pub(super) fn process_and_parent_ids() -> Vec<(u32, u32)> {
    Vec::new()
}

pub(super) fn process_arguments(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn process_environment(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn standard_output_path(_pid: u32) -> Option<PathBuf> {
    None
}

pub(super) fn processes_with_working_folder() -> Vec<ProcessWithFolder> {
    Vec::new()
}

pub(super) fn boot_id() -> Option<String> {
    None
}
