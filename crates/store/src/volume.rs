//! Properties of a location on disk: permissions, free space, file system type. Determined without writing
//! anything.

use plimsoll_system::files::metadata;
pub use plimsoll_system::files::{
    AccessRights, FileSystemKind, access_rights, file_system_kind,
    folder_identity_by_inode_and_creation_time, is_write_refused,
};
pub use plimsoll_system::is_wsl;
use std::path::Path;

/// Returns the number of bytes available to us.
pub fn available_bytes(path: &Path) -> Option<u64> {
    fs2::available_space(path).ok()
}

/// Returns true if two paths are on the same file system.
pub fn is_same_volume(left: &Path, right: &Path) -> bool {
    let device_number = |path: &Path| metadata(path).ok().map(|metadata| metadata.identity().device);
    device_number(left) == device_number(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_folder_is_writable_owned_and_has_free_space() {
        let folder = tempfile::tempdir().unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
        }
        assert_eq!(
            access_rights(folder.path()),
            Some(AccessRights {
                is_writable: true,
                mode: if cfg!(windows) { 0 } else { 0o750 },
                is_owned_by_current_user: true
            })
        );
        assert_eq!(access_rights(&folder.path().join("none")), None);
        assert!(available_bytes(folder.path()).is_some_and(|free| free > 0));
        assert!(file_system_kind(folder.path()).is_some());
    }
}
