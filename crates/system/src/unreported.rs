//! Process information that Windows, macOS and unsupported systems do not report, or only to unsafe code.

/// Only Linux runs inside of Windows.
pub(super) fn kernel_release() -> Option<String> {
    None
}

pub(super) fn ignored_signal_mask() -> Option<u64> {
    None
}

pub(super) fn flock_holder_pid(_inode: u64) -> Option<u32> {
    None
}

#[cfg(unix)]
pub(super) fn child_exit_descriptor(_child: rustix::process::Pid) -> Option<std::os::fd::OwnedFd> {
    None
}
