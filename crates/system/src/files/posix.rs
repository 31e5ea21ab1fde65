//! macOS, and what any other Unix has.

use rustix::fs::{Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

pub(super) const SEARCH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(super) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// There is no such call: every path is walked.
pub(super) fn open_beneath(
    _folder: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
    _mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    None
}

pub(super) fn has_no_link(_path: &Path) -> bool {
    false
}

pub(super) fn set_has_one_call(_has: bool) {}

pub(super) fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    sync_all(file)
}

/// On macOS only `F_FULLFSYNC` waits until the disk itself has it. What is no disk may not know it.
pub(super) fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::fcntl_fullfsync(file) {
        Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOTTY) => {}
        synced => return synced,
    }
    rustix::fs::fsync(file)
}

/// `sync` only begins to write.
pub(super) fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::sync();
    sync_all(folder)
}

pub(super) fn identity(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    let born = found.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let born = (i64::try_from(born.as_secs()).unwrap_or_default(), born.subsec_nanos());
    Some(super::identity_of(&found.dev().to_string(), found.ino(), born))
}

pub(super) fn mode_bits(mode: RawMode) -> u32 {
    mode.into()
}

/// As the standard library makes it of the signed number.
pub(super) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

pub(super) fn kind_of_file_system(_path: &Path) -> Option<u64> {
    None
}
