//! What of files and folders differs from system to system: what is opened to walk from, the walk in one call, how a volume is put
//! on the disk, and by what a folder is known. One file for each system, with the same names in it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod posix;

#[cfg(target_os = "linux")]
use linux as own;
#[cfg(not(target_os = "linux"))]
use posix as own;

use rustix::fs::{Mode, OFlags, RawMode, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// How a folder is opened that is only walked from, or written into; where the system knows it, without the right to list it.
pub const SEARCH: OFlags = own::SEARCH;
/// How anything is opened that is only looked at, by [`open_beneath`].
pub const LOOK: OFlags = own::LOOK;

/// Opens a path below a folder in one call, through no link and not out of the folder. None where the system has no such call, or
/// the call does not decide it: then the caller walks, step by step.
pub fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    own::open_beneath(folder, path, flags, mode)
}

/// True if something is at an absolute path and no part of the path is a link. False also where the system does not tell in one call.
pub fn has_no_link(path: &Path) -> bool {
    own::has_no_link(path)
}

/// Whether [`open_beneath`] may be asked: a test walks as on a system without the call.
pub fn set_has_one_call(has: bool) {
    own::set_has_one_call(has);
}

/// Puts the contents of a file on the disk.
///
/// On macOS that is `F_FULLFSYNC`, as in the standard library (`os_fsync` and `os_datasync` of `library/std/src/sys/fs/unix.rs`):
/// `fsync` alone leaves them in the disk's own memory. A share over SMB may not know it, and gets `fsync`.
///
/// # Errors
/// What the system says.
pub fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| own::sync_data(file))
}

/// Puts a file on the disk with all that is known of it, such as its times.
///
/// # Errors
/// What the system says.
pub fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| own::sync_all(file))
}

/// Puts all that was written to the volume of a folder on the disk.
///
/// # Errors
/// What the system says.
pub fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    own::sync_volume(folder)
}

/// What the file system knows a folder by: another one at its path has another, also where its number is given again. It stays the same
/// when the system starts again.
pub fn identity(path: &Path) -> Option<String> {
    own::identity(path)
}

/// Btrfs, overlays and NFS get other device numbers when they are mounted again, so a device counts only where the file system keeps no
/// moment of birth (seconds and nanoseconds, else 0).
fn identity_of(device: &str, inode: u64, born: (i64, u32)) -> String {
    let device = if born == (0, 0) { device } else { "" };
    format!("{device}:{inode}:{}.{}", born.0, born.1)
}

/// A mode as the standard library has it: the system's own type is narrower on some.
pub fn mode_bits(mode: RawMode) -> u32 {
    own::mode_bits(mode)
}

/// The device of a file as the standard library has it: signed on some systems.
pub fn device_of(stat: &Stat) -> u64 {
    own::device_of(stat)
}

/// The system's number of a file system's kind; none where its numbers mean nothing to us.
pub fn kind_of_file_system(path: &Path) -> Option<u64> {
    own::kind_of_file_system(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_the_same_one_under_another_device_number() {
        let born = (1_700_000_000, 5);
        assert_eq!(identity_of("0:45", 7, born), identity_of("0:46", 7, born));
        assert_ne!(identity_of("0:45", 7, born), identity_of("0:45", 8, born));
        assert_ne!(identity_of("0:45", 7, born), identity_of("0:45", 7, (1_700_000_000, 6)));
        // Without a moment of birth nothing else tells two volumes apart.
        assert_ne!(identity_of("0:45", 7, (0, 0)), identity_of("0:46", 7, (0, 0)));
    }
}
