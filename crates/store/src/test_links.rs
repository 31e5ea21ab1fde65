//! Symbolic links for the unit tests, on every system.
#![cfg_attr(windows, expect(clippy::disallowed_methods, reason = "the target of a link is inspected"))]

use std::io;
use std::path::Path;

/// Creates a symbolic link. Windows distinguishes links to files and to folders.
pub(crate) fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(target, link)
    }
    #[cfg(windows)]
    {
        let (target, link) = (target.as_ref(), link.as_ref());
        if link.with_file_name("").join(target).is_dir() {
            std::os::windows::fs::symlink_dir(target, link)
        } else {
            std::os::windows::fs::symlink_file(target, link)
        }
    }
}
