//! Linux.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, ResolveFlags, Stat, StatxFlags, statfs, statx};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// False once the kernel has said that it does not know the call.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

pub(super) fn open_beneath(
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
        // Linux has it since 5.6: asked once, for the rest of the process.
        Err(Errno::NOSYS) => {
            HAS_OPENAT2.store(false, Ordering::Relaxed);
            None
        }
        // A link, a change meanwhile, a filter of system calls: the walk finds out.
        Err(Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::PERM) => None,
        answer => Some(answer),
    }
}

pub(super) fn has_no_link(path: &Path) -> bool {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    HAS_OPENAT2.load(Ordering::Relaxed)
        && rustix::fs::openat2(CWD, path, LOOK, Mode::empty(), resolve).is_ok()
}

pub(super) fn set_has_one_call(has: bool) {
    HAS_OPENAT2.store(has, Ordering::Relaxed);
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

pub(super) fn identity(path: &Path) -> Option<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
    // Not every file system keeps the moment of birth; then it is 0 here.
    let born = found.stx_btime;
    let device = format!("{}:{}", found.stx_dev_major, found.stx_dev_minor);
    Some(super::identity_of(&device, found.stx_ino, (born.tv_sec, born.tv_nsec)))
}

pub(super) fn mode_bits(mode: RawMode) -> u32 {
    mode
}

pub(super) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev
}

pub(super) fn kind_of_file_system(path: &Path) -> Option<u64> {
    // The field is narrower on some computers, and signed on others.
    statfs(path).ok().map(|found| u64::from(found.f_type as u32))
}
