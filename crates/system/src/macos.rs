//! Process information on macOS. libproc reports the start time and the standard output of a process of the same user. The
//! arguments and environment of a process (`KERN_PROCARGS2`), its locks and its end cannot be queried without unsafe code,
//! so they are unknown.

use super::ProcessLookup;
use proc_pidinfo::{Fd, Pid as ProcPid, ProcBSDInfo, VnodeFdInfoWithPath, proc_pidfdinfo, proc_pidinfo};
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// `SZOMB` of <sys/proc.h>: the process has ended, and its parent has not waited for it.
const ZOMBIE_STATUS: u32 = 5;

pub(super) fn look_up_process(pid: u32) -> ProcessLookup {
    match proc_pidinfo::<ProcBSDInfo>(ProcPid(pid)) {
        Ok(Some(info)) if info.pbi_status == ZOMBIE_STATUS => ProcessLookup::Zombie,
        Ok(Some(info)) => ProcessLookup::Started(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec),
        // The process has ended or belongs to another user.
        Ok(None) | Err(_) => ProcessLookup::NotShown,
    }
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

pub(super) fn standard_output_path(pid: u32) -> Option<PathBuf> {
    let output = proc_pidfdinfo::<VnodeFdInfoWithPath>(ProcPid(pid), Fd(1)).ok()??;
    output.path().ok().map(PathBuf::from)
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
