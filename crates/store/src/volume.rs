//! Properties of a location on disk: permissions, free space, file system type. Determined without writing
//! anything.
#![expect(clippy::disallowed_methods, reason = "part of the door to the disk")]

pub use plimsoll_system::files::{
    FileSystemKind, file_system_kind, folder_identity_by_inode_and_creation_time,
};
pub use plimsoll_system::is_wsl;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Access rights to a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRights {
    /// True if we may read and write it; for a folder, also enter it.
    pub is_writable: bool,
    pub mode: u32,
    /// True if our effective user owns it.
    pub is_owned_by_current_user: bool,
}

/// Returns whether the current user may write and owns the file or folder at a path, and its mode.
/// Follows links. Returns `None` if nothing exists at the path.
pub fn writability_mode_and_ownership(path: &Path) -> Option<AccessRights> {
    let metadata = path.metadata().ok()?;
    let required_access = if metadata.is_dir() {
        Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK
    } else {
        Access::READ_OK | Access::WRITE_OK
    };
    Some(AccessRights {
        is_writable: access(path, required_access).is_ok(),
        mode: metadata.permissions().mode() & 0o777,
        is_owned_by_current_user: metadata.uid() == rustix::process::geteuid().as_raw(),
    })
}

/// Returns true if the system refuses to let us write the file or folder: the mount is read-only, or the
/// permissions do not allow it.
pub fn is_write_refused(path: &Path) -> bool {
    matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

/// Returns the number of bytes available to us.
pub fn available_bytes(path: &Path) -> Option<u64> {
    fs2::available_space(path).ok()
}

/// Returns true if two paths are on the same file system.
pub fn is_same_volume(left: &Path, right: &Path) -> bool {
    let device_number = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    device_number(left) == device_number(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_folder_is_writable_owned_and_has_free_space() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(
            writability_mode_and_ownership(folder.path()),
            Some(AccessRights { is_writable: true, mode: 0o750, is_owned_by_current_user: true })
        );
        assert_eq!(writability_mode_and_ownership(&folder.path().join("none")), None);
        assert!(available_bytes(folder.path()).is_some_and(|free| free > 0));
        assert!(file_system_kind(folder.path()).is_some());
    }
}
