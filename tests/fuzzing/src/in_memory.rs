//! Files for targets whose readers need a path: in memory where the machine has such a place, and kept for all inputs of a thread,
//! because making and removing a folder takes longer than reading what is in it.

use std::path::Path;
use tempfile::TempDir;

/// A folder that a thread keeps and removes at its end.
pub(crate) fn folder() -> TempDir {
    let shared_memory = TempDir::new_in("/dev/shm");
    shared_memory.or_else(|_| TempDir::new()).expect("a temporary folder")
}

/// Replaces the content of a file, or creates it with its folders.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    if std::fs::write(path, bytes).is_err() {
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}
