//! File operations on macOS and other Unix systems.
#![expect(clippy::disallowed_methods, reason = "no contents are read here: the system describes a folder")]

use super::FileSystemKind;
use rustix::fs::{Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

pub(super) const SEARCH_FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(super) const INSPECT_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// These systems have no such call, so the caller always walks the path.
pub(super) fn open_beneath_without_links(
    _folder: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
    _mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    None
}

pub(super) fn exists_without_links(_path: &Path) -> bool {
    false
}

pub(super) fn set_openat2_enabled(_is_enabled: bool) {}

pub(super) fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    sync_all(file)
}

/// On macOS only `F_FULLFSYNC` waits until the disk has stored the data. Uses `fsync` if the file system does not
/// support it.
pub(super) fn sync_all(file: BorrowedFd<'_>) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::fcntl_fullfsync(file) {
        Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOTTY) => {}
        result => return result,
    }
    rustix::fs::fsync(file)
}

/// `sync` only starts writing, so the folder is synced as well.
pub(super) fn sync_volume(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::sync();
    sync_all(folder)
}

pub(super) fn folder_identity_by_inode_and_creation_time(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let created_at =
        metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let created_at = (i64::try_from(created_at.as_secs()).unwrap_or_default(), created_at.subsec_nanos());
    Some(super::format_identity(&metadata.dev().to_string(), metadata.ino(), created_at))
}

#[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "the type is narrower on macOS"))]
pub(super) fn to_std_mode(mode: RawMode) -> u32 {
    mode.into()
}

pub(super) fn to_raw_mode(mode: u32) -> RawMode {
    mode as RawMode
}

/// The width of the field depends on the system.
#[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "the type is narrower on macOS"))]
pub(super) fn hard_link_count(stat: &Stat) -> u64 {
    stat.st_nlink.into()
}

/// Converts the signed number as the standard library does.
#[cfg_attr(target_os = "linux", expect(clippy::unnecessary_cast, reason = "the type is signed on macOS"))]
pub(super) fn device_number(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

#[cfg(target_vendor = "apple")]
pub(super) fn file_system_kind(path: &Path) -> Option<FileSystemKind> {
    let stat = rustix::fs::statfs(path).ok()?;
    let name = stat.f_fstypename.map(|character| character as u8);
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Some(super::kind_from_macos_name(&name[..length]))
}

/// On Linux with the answers of macOS: the same kinds, which Linux reports by number.
#[cfg(target_os = "linux")]
pub(super) fn file_system_kind(path: &Path) -> Option<FileSystemKind> {
    let stat = rustix::fs::statfs(path).ok()?;
    Some(super::kind_from_linux_number(stat.f_type as u32))
}

#[cfg(not(any(target_vendor = "apple", target_os = "linux")))]
pub(super) fn file_system_kind(_path: &Path) -> Option<FileSystemKind> {
    None
}
