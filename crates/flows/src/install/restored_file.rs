//! A file that our installation changed, restored, and its backup.

use super::FileChange;
use std::path::{Path, PathBuf};

/// A file without the parts that our installation added.
#[derive(Debug)]
pub struct RestoredFile {
    pub path: PathBuf,
    /// True if the file gets back its bytes from before the installation.
    pub is_original: bool,
    /// True if the file is removed because the installation created it.
    pub is_removed: bool,
    /// A backup that is kept because the file has been changed since.
    pub kept_backup: Option<PathBuf>,
}

impl RestoredFile {
    /// Plans the file's new text (`None` removes the file). Removes the backup if the text is the original.
    pub(super) fn plan_text_and_remove_restored_backup(
        (path, current_bytes): (&Path, &[u8]),
        new_text: Option<String>,
        (backup_path, backup_bytes): (&Path, Option<Vec<u8>>),
        changes: &mut Vec<FileChange>,
    ) -> RestoredFile {
        let new_bytes = new_text.map(String::into_bytes);
        let is_original = backup_bytes.is_some() && new_bytes == backup_bytes;
        let is_removed = new_bytes.is_none();
        // The file before its backup is removed: `plan_stale_backup_removal` deletes what a kill between the
        // two leaves.
        changes.push(FileChange {
            path: path.to_owned(),
            before: Some(current_bytes.to_vec()),
            after: new_bytes,
        });
        let mut kept_backup = None;
        match backup_bytes {
            Some(_) if !is_original => kept_backup = Some(backup_path.to_owned()),
            Some(_) => {
                changes.push(FileChange { path: backup_path.to_owned(), before: backup_bytes, after: None });
            }
            None => {}
        }
        RestoredFile { path: path.to_owned(), is_original, is_removed, kept_backup }
    }
}

/// Plans to remove a backup that equals the current file: it was left by a removal that died before its last
/// step.
pub(super) fn plan_stale_backup_removal(
    backup_path: &Path,
    backup_bytes: Option<Vec<u8>>,
    current_bytes: &[u8],
    changes: &mut Vec<FileChange>,
) {
    if backup_bytes.as_deref() == Some(current_bytes) {
        changes.push(FileChange { path: backup_path.to_owned(), before: backup_bytes, after: None });
    }
}
