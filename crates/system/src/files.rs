//! File and folder operations that differ between operating systems: opening folders, opening a path below a folder in one
//! call, syncing a volume, identifying a folder. Each system has one submodule; all define the same names.

#[cfg(all(target_os = "linux", not(feature = "macos-answers")))]
mod linux;
#[cfg(any(not(target_os = "linux"), feature = "macos-answers"))]
mod posix;

#[cfg(all(target_os = "linux", not(feature = "macos-answers")))]
use linux as platform;
#[cfg(any(not(target_os = "linux"), feature = "macos-answers"))]
use posix as platform;

use rustix::fs::{Mode, OFlags, RawMode, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// Flags for opening a folder to access or create entries in it. Where the system supports it, this needs no permission
/// to list the folder.
pub const SEARCH_FOLDER_FLAGS: OFlags = platform::SEARCH_FOLDER_FLAGS;
/// Flags for [`open_beneath_without_links`] to open a file of any type only to inspect it.
pub const INSPECT_FLAGS: OFlags = platform::INSPECT_FLAGS;

/// Opens a path below a folder in one system call that follows no links and never leaves the folder. Returns `None` if the
/// system has no such call, or if the path may contain a link or the call was blocked. The caller then walks the path
/// component by component.
pub fn open_beneath_without_links(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    platform::open_beneath_without_links(folder, path, flags, mode)
}

/// Returns true if an absolute path exists and no component of it is a link. Also returns false if the system has no call
/// to check this.
pub fn exists_without_links(path: &Path) -> bool {
    platform::exists_without_links(path)
}

/// Sets whether [`open_beneath_without_links`] uses `openat2`. Tests turn it off to walk paths as on a system without that
/// call.
pub fn set_openat2_enabled(is_enabled: bool) {
    platform::set_openat2_enabled(is_enabled);
}

/// Syncs the contents of a file to the disk.
///
/// On macOS this is `F_FULLFSYNC`, as in the standard library (`os_fsync` and `os_datasync` of
/// `library/std/src/sys/fs/unix.rs`), because `fsync` alone leaves the contents in the disk's cache. Falls back to `fsync`
/// where `F_FULLFSYNC` is not supported, such as on an SMB share.
///
/// # Errors
/// The error of the system call.
pub fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| platform::sync_data(file))
}

/// Syncs a file to the disk with its metadata, such as its times.
///
/// # Errors
/// The error of the system call.
pub fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| platform::sync_all(file))
}

/// Syncs all data written to the volume of a folder to the disk.
///
/// # Errors
/// The error of the system call.
pub fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    platform::sync_volume(folder)
}

/// Returns an identity of a folder that is stable across restarts, from its inode and creation time. Another folder at the
/// same path has another identity, even if its inode number is reused. The device is used only without a creation time.
pub fn folder_identity_by_inode_and_creation_time(path: &Path) -> Option<String> {
    platform::folder_identity_by_inode_and_creation_time(path)
}

/// Formats an identity. `created_at` is in seconds and nanoseconds, or 0 if the file system does not record it. The device
/// is included only if `created_at` is 0, because Btrfs, overlays and NFS get other device numbers at each mount.
fn format_identity(device: &str, inode: u64, created_at: (i64, u32)) -> String {
    let device = if created_at == (0, 0) { device } else { "" };
    format!("{device}:{inode}:{}.{}", created_at.0, created_at.1)
}

/// Converts a mode to the type of the standard library; some systems use a narrower type.
pub fn to_std_mode(mode: RawMode) -> u32 {
    platform::to_std_mode(mode)
}

/// Returns the device number in the type of the standard library; some systems use a signed type.
pub fn device_number(stat: &Stat) -> u64 {
    platform::device_number(stat)
}

/// The kind of a file system, as far as callers distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystemKind {
    /// A file system in memory, which is empty after a restart.
    Memory,
    /// A network file system, with the name of its protocol.
    Network(&'static str),
    /// A file system in user space.
    Fuse,
    Other,
}

/// Returns the kind of the file system that contains a path, or `None` if the system does not report it.
pub fn file_system_kind(path: &Path) -> Option<FileSystemKind> {
    platform::file_system_kind(path)
}

/// Maps the number that Linux reports (`f_type` of statfs(2)).
#[cfg(target_os = "linux")]
fn kind_from_linux_number(number: u32) -> FileSystemKind {
    match number {
        0x0102_1994 => FileSystemKind::Memory,
        0x6969 => FileSystemKind::Network("NFS"),
        0xFF53_4D42 | 0x517B | 0xFE53_4D42 => FileSystemKind::Network("SMB"),
        0x0102_1997 => FileSystemKind::Network("9p"),
        0x6573_5546 => FileSystemKind::Fuse,
        _ => FileSystemKind::Other,
    }
}

/// Maps the name that macOS reports (`f_fstypename` of statfs(2)).
#[cfg(any(target_vendor = "apple", test))]
fn kind_from_macos_name(name: &[u8]) -> FileSystemKind {
    match name {
        b"tmpfs" => FileSystemKind::Memory,
        b"nfs" => FileSystemKind::Network("NFS"),
        b"smbfs" => FileSystemKind::Network("SMB"),
        b"afpfs" => FileSystemKind::Network("AFP"),
        b"webdav" => FileSystemKind::Network("WebDAV"),
        b"macfuse" | b"osxfuse" | b"fuse-t" => FileSystemKind::Fuse,
        _ => FileSystemKind::Other,
    }
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

    #[test]
    fn the_kind_of_a_file_system_is_recognized_by_its_name() {
        let table = [
            ("tmpfs", FileSystemKind::Memory),
            ("nfs", FileSystemKind::Network("NFS")),
            ("smbfs", FileSystemKind::Network("SMB")),
            ("macfuse", FileSystemKind::Fuse),
            ("apfs", FileSystemKind::Other),
        ];
        for (name, kind) in table {
            assert_eq!(kind_from_macos_name(name.as_bytes()), kind, "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kind_of_a_file_system_is_recognized_by_its_number() {
        let table = [
            (0x0102_1994, FileSystemKind::Memory),
            (0x6969, FileSystemKind::Network("NFS")),
            (0xFF53_4D42, FileSystemKind::Network("SMB")),
            (0x6573_5546, FileSystemKind::Fuse),
            (0xEF53, FileSystemKind::Other),
        ];
        for (number, kind) in table {
            assert_eq!(kind_from_linux_number(number), kind, "{number:x}");
        }
    }

    #[test]
    fn the_kind_of_a_mounted_file_system_is_reported() {
        assert!(file_system_kind(&std::env::temp_dir()).is_some());
        #[cfg(target_os = "linux")]
        if file_system_kind(Path::new("/dev/shm")).is_some() {
            assert_eq!(file_system_kind(Path::new("/dev/shm")), Some(FileSystemKind::Memory));
        }
    }
}
