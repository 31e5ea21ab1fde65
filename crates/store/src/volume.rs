//! What the system says of a place on the disk: rights, room, kind. Nothing is written to find out.
#![expect(clippy::disallowed_methods, reason = "part of the door to the disk")]

pub use plimsoll_system::files::{identity, kind_of_file_system as kind};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Who may do what with a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// We may write it; into a folder, also read and enter it.
    pub writable: bool,
    /// The permission bits.
    pub mode: u32,
    /// It is ours.
    pub own: bool,
}

/// The permissions of the entry at a path; none if nothing is there.
pub fn rights(path: &Path) -> Option<Rights> {
    let metadata = path.metadata().ok()?;
    let wanted = if metadata.is_dir() {
        Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK
    } else {
        Access::READ_OK | Access::WRITE_OK
    };
    Some(Rights {
        writable: access(path, wanted).is_ok(),
        mode: metadata.permissions().mode() & 0o777,
        own: metadata.uid() == rustix::process::geteuid().as_raw(),
    })
}

/// True if the system refuses us to write the file or folder at a path: the mount is read-only, or its permissions do not allow
/// it.
pub fn is_read_only(path: &Path) -> bool {
    matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

/// Free bytes for us.
pub fn free_space(path: &Path) -> Option<u64> {
    fs2::available_space(path).ok()
}

/// True if two paths are on one file system.
pub fn is_same_volume(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    device(one) == device(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_our_own_is_ours_and_has_room() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(rights(folder.path()), Some(Rights { writable: true, mode: 0o750, own: true }));
        assert_eq!(rights(&folder.path().join("none")), None);
        assert!(free_space(folder.path()).is_some_and(|free| free > 0));
        assert!(kind(folder.path()).is_some());
    }
}
