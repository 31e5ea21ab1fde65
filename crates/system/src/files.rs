//! Files and folders. Callers name neither the system nor its error codes: each system has one submodule, and all of them
//! define the same names.
//!
//! A [`Folder`] is an open folder. A name is looked up in that folder even if its path leads elsewhere by now, and no link
//! is followed unless the function says so.
#![expect(clippy::disallowed_types, reason = "`store` opens files by this module")]

#[cfg(all(target_os = "linux", not(feature = "macos-answers")))]
mod linux;
#[cfg(all(unix, any(not(target_os = "linux"), feature = "macos-answers")))]
mod posix;
#[cfg(any(windows, test))]
mod retry;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(any(windows, test))]
mod windows_paths;

#[cfg(all(target_os = "linux", not(feature = "macos-answers")))]
use linux as platform;
#[cfg(all(unix, any(not(target_os = "linux"), feature = "macos-answers")))]
use posix as platform;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as platform;
#[cfg(windows)]
use windows as system;

pub use system::{
    Folder, FolderEntries, FolderEntry, Metadata, access_rights, canonicalize, create_folder_and_parents,
    current_user_id, file_metadata, file_size_limit, file_too_large_error, is_absolute_and_normalized,
    is_executable, is_folder_or_special_file_error, is_write_refused, link_metadata, metadata,
    missing_file_error, not_a_folder_error, open_file, read_at, read_range, read_stdin, relative_path_below,
    set_mode, split_relative_path, strip_folder, sync_all, sync_data, too_many_links_error, write_to_stdout,
};

use std::fs::File;
use std::io;
use std::path::Path;

/// False on Windows, where only some users may create symbolic links.
pub const CAN_CREATE_LINKS: bool = cfg!(unix);

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    Regular,
    Folder,
    /// A symbolic link, and on Windows also a junction.
    Link,
    Pipe,
    Socket,
    Device,
    /// Another type, or one that the file system does not report.
    Unknown,
}

/// The device and the inode of a file, which it keeps when it is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// Seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanoseconds: u32,
}

/// How a file is opened. A new file is accessible to the owner only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    create: bool,
    create_new: bool,
    follow_link: bool,
}

impl OpenOptions {
    pub const READ: OpenOptions = OpenOptions {
        read: true,
        write: false,
        append: false,
        create: false,
        create_new: false,
        follow_link: true,
    };
    pub const WRITE: OpenOptions = OpenOptions { read: false, write: true, ..OpenOptions::READ };
    pub const READ_WRITE: OpenOptions = OpenOptions { write: true, ..OpenOptions::READ };

    /// Each write goes to the end of the file.
    #[must_use]
    pub const fn append(self) -> OpenOptions {
        OpenOptions { append: true, ..self }
    }

    /// Creates the file if it is missing.
    #[must_use]
    pub const fn create(self) -> OpenOptions {
        OpenOptions { create: true, ..self }
    }

    /// Creates the file; an error if the name is taken.
    #[must_use]
    pub const fn create_new(self) -> OpenOptions {
        OpenOptions { create: true, create_new: true, ..self }
    }

    /// Refuses a link in the last part of the path.
    #[must_use]
    pub const fn no_follow(self) -> OpenOptions {
        OpenOptions { follow_link: false, ..self }
    }

    /// Returns true if the file is opened for writing.
    pub const fn writes(self) -> bool {
        self.write
    }

    /// Returns true if the file is always new.
    pub const fn creates_new(self) -> bool {
        self.create_new
    }
}

/// The rights of this process to a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRights {
    /// True if we may read and write it; for a folder, also enter it.
    pub is_writable: bool,
    /// The permission bits of Unix; 0 where the system has none.
    pub mode: u32,
    /// True if our effective user owns it, or if the system does not report the owner.
    pub is_owned_by_current_user: bool,
}

/// Returns true if an absolute path exists and no component of it is a link. Also returns false if the system has no call
/// to check this.
pub fn exists_without_links(path: &Path) -> bool {
    platform::exists_without_links(path)
}

/// Sets whether paths below a folder are opened with `openat2`. Tests turn it off to walk paths as on a system without
/// that call.
pub fn set_openat2_enabled(is_enabled: bool) {
    platform::set_openat2_enabled(is_enabled);
}

/// Fills the buffer from an offset of a file.
///
/// # Errors
/// The error of the system call, or [`io::ErrorKind::UnexpectedEof`] if the file ends before that.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_at(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
