//! What the door itself needs of the disk, for paths that lie below no root.
#![expect(clippy::disallowed_methods, reason = "part of the door to the disk")]

use plimsoll_system::files::mode_bits;
use rustix::fs::RawMode;
use std::fs;
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

/// The path with every link resolved; the path itself if it leads nowhere.
pub fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
