//! Restores a file that our installation changed, and removes its backup.

use super::FileChange;
use std::path::{Path, PathBuf};

/// A file without the parts that our installation added.
#[derive(Debug)]
pub struct RestoredFile {
    pub path: PathBuf,
    /// True if the file becomes identical to its backup from before the installation.
    pub is_original: bool,
    /// True if the file is removed because the installation created it.
    pub is_removed: bool,
    /// A backup that is kept because the restored text differs from it.
    pub kept_backup: Option<PathBuf>,
}

impl RestoredFile {
    /// Plans the file's new text (`None` removes the file), and the removal of the backup if the text is equal to
    /// it.
    pub(super) fn plan_text_and_backup_removal_if_original(
        (path, current_bytes): (&Path, &[u8]),
        new_text: Option<String>,
        (backup_path, backup_bytes): (&Path, Option<Vec<u8>>),
        changes: &mut Vec<FileChange>,
    ) -> RestoredFile {
        let new_bytes = new_text.map(String::into_bytes);
        let is_original = backup_bytes.is_some() && new_bytes == backup_bytes;
        let is_removed = new_bytes.is_none();
        // The file is written before its backup is removed. If a kill in between leaves the backup,
        // `plan_redundant_backup_removal` removes it the next time.
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

/// Plans the removal of a backup that is equal to the current file: a killed uninstallation has left it.
pub(super) fn plan_redundant_backup_removal(
    backup_path: &Path,
    backup_bytes: Option<Vec<u8>>,
    current_bytes: &[u8],
    changes: &mut Vec<FileChange>,
) {
    if backup_bytes.as_deref() == Some(current_bytes) {
        changes.push(FileChange { path: backup_path.to_owned(), before: backup_bytes, after: None });
    }
}
