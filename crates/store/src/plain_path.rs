//! Operations on paths that are not below a registered root, and types that the disk module shares.

use plimsoll_system::files::{canonicalize, exists_without_links, is_absolute_and_normalized};
use std::fs;
use std::path::{Path, PathBuf};

/// Whether a write must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut may bring the old content back.
    Lazy,
    /// Synced to the disk before the call returns; for checkpoints and verdicts.
    Durable,
}

/// The suffix of a file that is not in its final place yet. A killed process may leave such a file behind.
pub const TEMPORARY_FILE_SUFFIX: &str = ".plimsoll-draft";

/// Returns the fully resolved target if the path itself is a symbolic link, else the path unchanged.
pub fn canonicalize_if_link(path: &Path) -> PathBuf {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_symlink() => {
            canonicalize(path).unwrap_or_else(|_| path.to_owned())
        }
        _ => path.to_owned(),
    }
}

/// Returns the stored target of a symbolic link, without resolving it. Returns `None` if the path is not a
/// link.
pub fn read_link_target(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// Returns the path with every link resolved, or the path unchanged if it cannot be resolved.
pub fn canonicalize_or_keep(path: &Path) -> PathBuf {
    // Usually the path is canonical already, and this check is cheaper: `fs::canonicalize` calls libc, which
    // inspects each component and allocates memory.
    if is_absolute_and_normalized(path) && exists_without_links(path) {
        return path.to_owned();
    }
    canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the files")]
mod tests {
    use super::*;
    use crate::test_links::symlink;

    #[test]
    fn a_normalized_path_has_no_empty_or_dot_component() {
        #[cfg(windows)]
        let table = [
            (r"C:\a", true),
            (r"C:\a\b.c\..d", true),
            (r"C:/a/b", true),
            (r"\\?\C:\a", true),
            (r"\\server\share\a", true),
            (r"C:\", false),
            (r"C:\a\", false),
            (r"C:\a\\b", false),
            (r"C:\a\.\b", false),
            (r"C:\a\..\b", false),
            (r"C:a", false),
            (r"\a", false),
            ("/a", false),
            ("", false),
        ];
        #[cfg(unix)]
        let table = [
            ("/a", true),
            ("/a/b.c/..d", true),
            ("/", false),
            ("/a/", false),
            ("//a", false),
            ("/a//b", false),
            ("/a/./b", false),
            ("/a/.", false),
            ("/./a", false),
            ("/a/../b", false),
            ("/..", false),
            ("a/b", false),
            ("", false),
        ];
        for (path, expected) in table {
            assert_eq!(is_absolute_and_normalized(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_resolved_like_the_standard_library_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        for path in [
            "",
            "a",
            "a/",
            "a/b",
            "a//b",
            "a/./b",
            "a/..",
            "a/../a/b",
            "a/file",
            "link",
            "link/b",
            "link/../a",
        ] {
            let path = root.join(path);
            assert_eq!(canonicalize_or_keep(&path), canonicalize(&path).unwrap(), "{}", path.display());
        }
        for path in ["missing", "broken", "a/file/b", "link/missing"] {
            assert_eq!(canonicalize_or_keep(&root.join(path)), root.join(path));
        }
        assert_eq!(canonicalize_or_keep(Path::new("/")), Path::new("/"));
        assert_eq!(canonicalize_or_keep(Path::new(".")), canonicalize(Path::new(".")).unwrap());
    }
}
