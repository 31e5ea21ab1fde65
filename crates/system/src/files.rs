//! File and folder operations that differ between operating systems: opening folders, opening a path below a
//! folder in one call, syncing a volume, identifying a folder. Each system has one submodule, with the same
//! names in it.

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

/// Flags for opening a folder that is only searched or written into; where the system supports it, without
/// permission to list it.
pub const SEARCH_FOLDER_FLAGS: OFlags = own::SEARCH_FOLDER_FLAGS;
/// Flags for [`open_beneath`] to open anything that is only inspected.
pub const INSPECT_FLAGS: OFlags = own::INSPECT_FLAGS;

/// Opens a path below a folder in one call, following no link and never leaving the folder. Returns `None` if
/// the system has no such call or the call cannot decide; the caller then walks the path component by
/// component.
pub fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    own::open_beneath(folder, path, flags, mode)
}

/// Returns true if an absolute path exists and no component of it is a link. Returns false also if the system
/// cannot tell in one call.
pub fn exists_and_has_no_link(path: &Path) -> bool {
    own::exists_and_has_no_link(path)
}

/// Sets whether [`open_beneath`] may use the system call. Tests turn it off to walk paths as on a system
/// without it.
pub fn set_one_call_enabled(is_enabled: bool) {
    own::set_one_call_enabled(is_enabled);
}

/// Syncs the contents of a file to the disk.
///
/// On macOS this is `F_FULLFSYNC`, as in the standard library (`os_fsync` and `os_datasync` of
/// `library/std/src/sys/fs/unix.rs`): `fsync` alone leaves the contents in the disk's own cache. An SMB share
/// may not support it, and gets `fsync`.
///
/// # Errors
/// The error of the system call.
pub fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| own::sync_data(file))
}

/// Syncs a file to the disk with its metadata, such as its times.
///
/// # Errors
/// The error of the system call.
pub fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| own::sync_all(file))
}

/// Syncs everything that was written to the volume of a folder to the disk.
///
/// # Errors
/// The error of the system call.
pub fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    own::sync_volume(folder)
}

/// Returns an identity of a folder that is stable across restarts. Another folder at the same path has
/// another identity, even if its inode number is used again.
pub fn folder_identity(path: &Path) -> Option<String> {
    own::folder_identity(path)
}

/// Formats an identity. `created_at` is in seconds and nanoseconds, or 0 if the file system does not keep it.
/// Only then is the device included, because Btrfs, overlays and NFS get other device numbers when they are
/// mounted again.
fn format_identity(device: &str, inode: u64, created_at: (i64, u32)) -> String {
    let device = if created_at == (0, 0) { device } else { "" };
    format!("{device}:{inode}:{}.{}", created_at.0, created_at.1)
}

/// Converts a mode to the type of the standard library; some systems use a narrower type.
pub fn to_std_mode(mode: RawMode) -> u32 {
    own::to_std_mode(mode)
}

/// Returns the device number in the type of the standard library; some systems use a signed type.
pub fn device_number(stat: &Stat) -> u64 {
    own::device_number(stat)
}

/// Returns the system's number for a file system type, or `None` where these numbers have no meaning for us.
pub fn file_system_type(path: &Path) -> Option<u64> {
    own::file_system_type(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_identity_under_another_device_number() {
        let created_at = (1_700_000_000, 5);
        assert_eq!(format_identity("0:45", 7, created_at), format_identity("0:46", 7, created_at));
        assert_ne!(format_identity("0:45", 7, created_at), format_identity("0:45", 8, created_at));
        assert_ne!(format_identity("0:45", 7, created_at), format_identity("0:45", 7, (1_700_000_000, 6)));
        // Without a creation time nothing else distinguishes two volumes.
        assert_ne!(format_identity("0:45", 7, (0, 0)), format_identity("0:46", 7, (0, 0)));
    }
}
