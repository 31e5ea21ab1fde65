//! macOS: libproc reports when a process of the user's own began and what it writes to. What a process was started with
//! (`KERN_PROCARGS2`), which locks it holds and when it ends cannot be asked without unsafe code: unknown.

use super::Look;
use proc_pidinfo::{Fd, Pid as ProcPid, ProcBSDInfo, VnodeFdInfoWithPath, proc_pidfdinfo, proc_pidinfo};
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// `SZOMB` of <sys/proc.h>: it has ended and was not waited for.
const ZOMBIE: u32 = 5;

pub(super) fn look(pid: u32) -> Look {
    match proc_pidinfo::<ProcBSDInfo>(ProcPid(pid)) {
        Ok(Some(info)) if info.pbi_status == ZOMBIE => Look::Ended,
        Ok(Some(info)) => Look::Began(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec),
        // Gone, or another user's.
        Ok(None) | Err(_) => Look::Nothing,
    }
}

pub(super) fn processes() -> Vec<u32> {
    Vec::new()
}

pub(super) fn arguments(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn environment(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn output_of(pid: u32) -> Option<PathBuf> {
    let output = proc_pidfdinfo::<VnodeFdInfoWithPath>(ProcPid(pid), Fd(1)).ok()??;
    output.path().ok().map(PathBuf::from)
}

pub(super) fn at_work(_program: &str) -> Option<Vec<PathBuf>> {
    None
}

pub(super) fn ignored_signals() -> u64 {
    0
}

pub(super) fn lock_holder(_inode: u64) -> Option<u32> {
    None
}

pub(super) fn end_of_child(_child: Pid) -> Option<OwnedFd> {
    None
}

pub(super) fn boot() -> Option<String> {
    None
}
