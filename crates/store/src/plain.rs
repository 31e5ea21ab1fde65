//! What the door itself needs of the disk, for paths that lie below no root.
#![expect(clippy::disallowed_methods, reason = "part of the door to the disk")]

use plimsoll_system::files::{has_no_link, mode_bits};
use rustix::fs::RawMode;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How much a loss would hurt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut may bring the old file back.
    Lazy,
    /// On the disk before we continue: checkpoints and verdicts.
    Durable,
}

/// How the name of a file ends that is not in its place yet; a kill may leave one behind.
pub const DRAFT: &str = ".plimsoll-draft";

/// A folder and those above it, by the path alone.
pub(crate) fn make_plain_folder(folder: &Path, mode: RawMode) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(mode_bits(mode)).create(folder)
}

/// Where a link leads; the path itself if it is none.
pub fn resolve_link(path: &Path) -> PathBuf {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_symlink() => {
            fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
        }
        _ => path.to_owned(),
    }
}

/// Returns the text of a link, wherever it leads; `None` if the path is no link.
pub fn link_target(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// The path with every link resolved; the path itself if it leads nowhere.
pub fn canonical(path: &Path) -> PathBuf {
    // Mostly it is so already. The standard library would ask libc, which looks at each part and wants memory of its own for it.
    if is_spelled_out(path) && has_no_link(path) {
        return path.to_owned();
    }
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// True for an absolute path in which each part is a name.
fn is_spelled_out(path: &Path) -> bool {
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let below = path.as_os_str().as_bytes().strip_prefix(b"/");
    below.is_some_and(|below| below.split(|byte| *byte == b'/').all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_resolved_as_the_standard_library_does_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("broken")).unwrap();
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
            assert_eq!(canonical(&path), fs::canonicalize(&path).unwrap(), "{}", path.display());
        }
        for path in ["missing", "broken", "a/file/b", "link/missing"] {
            assert_eq!(canonical(&root.join(path)), root.join(path));
        }
        assert_eq!(canonical(Path::new("/")), Path::new("/"));
        assert_eq!(canonical(Path::new(".")), fs::canonicalize(".").unwrap());
    }
}
