//! File operations on Linux.

use super::FileSystemKind;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, ResolveFlags, Stat, StatxFlags, statfs, statx};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const SEARCH_FOLDER_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(super) const INSPECT_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Set to false once the kernel has reported that it does not support `openat2`.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

pub(super) fn open_beneath_without_links(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    if !HAS_OPENAT2.load(Ordering::Relaxed) {
        return None;
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(folder, path, flags, mode, resolve) {
        // Linux has `openat2` since 5.6. It is not tried again in this process.
        Err(Errno::NOSYS) => {
            HAS_OPENAT2.store(false, Ordering::Relaxed);
            None
        }
        // A link, a concurrent change or a seccomp filter. The caller's walk of the path finds out which.
        Err(Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::PERM) => None,
        result => Some(result),
    }
}

pub(super) fn exists_without_links(path: &Path) -> bool {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    HAS_OPENAT2.load(Ordering::Relaxed)
        && rustix::fs::openat2(CWD, path, INSPECT_FLAGS, Mode::empty(), resolve).is_ok()
}

pub(super) fn set_openat2_enabled(is_enabled: bool) {
    HAS_OPENAT2.store(is_enabled, Ordering::Relaxed);
}

pub(super) fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

pub(super) fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

pub(super) fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::syncfs(folder)
}

pub(super) fn folder_identity_by_inode_and_creation_time(path: &Path) -> Option<String> {
    let requested_fields = StatxFlags::INO | StatxFlags::BTIME;
    let stat = statx(CWD, path, AtFlags::empty(), requested_fields).ok()?;
    // The creation time is 0 if the file system does not record it.
    let created_at = stat.stx_btime;
    let device = format!("{}:{}", stat.stx_dev_major, stat.stx_dev_minor);
    Some(super::format_identity(&device, stat.stx_ino, (created_at.tv_sec, created_at.tv_nsec)))
}

pub(super) fn to_std_mode(mode: RawMode) -> u32 {
    mode
}

pub(super) fn to_raw_mode(mode: u32) -> RawMode {
    mode
}

/// The width of the field depends on the architecture.
#[cfg_attr(
    target_pointer_width = "64",
    expect(clippy::useless_conversion, reason = "the type is narrower elsewhere")
)]
pub(super) fn hard_link_count(stat: &Stat) -> u64 {
    stat.st_nlink.into()
}

pub(super) fn device_number(stat: &Stat) -> u64 {
    stat.st_dev
}

pub(super) fn file_system_kind(path: &Path) -> Option<FileSystemKind> {
    // The field's width and sign depend on the architecture.
    statfs(path).ok().map(|stat| super::kind_from_linux_number(stat.f_type as u32))
}
