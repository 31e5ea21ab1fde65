//! Process information on an unsupported system. Everything is unknown, so a process counts as gone only if
//! no process has its pid.

use super::ProcessLookup;
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub(super) fn look_up_process(_pid: u32) -> ProcessLookup {
    ProcessLookup::NotShown
}

pub(super) fn all_process_ids() -> Vec<u32> {
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

pub(super) fn working_folders_of_program(_program: &str) -> Option<Vec<PathBuf>> {
    None
}

pub(super) fn ignored_signal_mask() -> u64 {
    0
}

pub(super) fn flock_holder_pid(_inode: u64) -> Option<u32> {
    None
}

pub(super) fn child_exit_descriptor(_child: Pid) -> Option<OwnedFd> {
    None
}

pub(super) fn boot_id() -> Option<String> {
    None
}
