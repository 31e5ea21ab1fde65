//! Files for targets whose readers need a path. They are in memory where the machine offers it, and each thread keeps its
//! folder for all inputs, because creating and removing a folder takes longer than reading the files in it.

use std::path::Path;
use tempfile::TempDir;

/// Creates a temporary folder, in shared memory if possible.
pub(crate) fn temp_folder() -> TempDir {
    let shared_memory = TempDir::new_in("/dev/shm");
    shared_memory.or_else(|_| TempDir::new()).expect("a temporary folder")
}

/// Writes a file and creates its folders if they are missing.
pub(crate) fn write_creating_folders(path: &Path, bytes: &[u8]) {
    if std::fs::write(path, bytes).is_err() {
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}
