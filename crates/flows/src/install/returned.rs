//! A file that was ours in parts, given back, and the backup that was made of it.

use super::Change;
use std::path::{Path, PathBuf};

/// A file that was ours in parts, without them.
#[derive(Debug)]
pub struct Returned {
    /// The file.
    pub path: PathBuf,
    /// It goes back to the bytes it had before the installation.
    pub restored: bool,
    /// It goes, because the installation made it.
    pub file_removed: bool,
    /// A backup that stays, because the file has been changed since.
    pub backup_kept: Option<PathBuf>,
}

impl Returned {
    /// Plans the file's new text (none to remove it), and whether its backup is kept.
    pub(super) fn plan(
        (path, now): (&Path, &[u8]),
        after: Option<String>,
        (backup, kept): (&Path, Option<Vec<u8>>),
        changes: &mut Vec<Change>,
    ) -> Returned {
        let after = after.map(String::into_bytes);
        let restored = kept.is_some() && after == kept;
        let file_removed = after.is_none();
        // The file before its backup goes: what a kill between the two leaves, `drop_left_over` removes.
        changes.push(Change { path: path.to_owned(), before: Some(now.to_vec()), after });
        let mut backup_kept = None;
        match kept {
            Some(_) if !restored => backup_kept = Some(backup.to_owned()),
            Some(_) => changes.push(Change { path: backup.to_owned(), before: kept, after: None }),
            None => {}
        }
        Returned { path: path.to_owned(), restored, file_removed, backup_kept }
    }
}

/// A backup of the very file that is there was left by a removal that died before its last step.
pub(super) fn drop_left_over(backup: &Path, kept: Option<Vec<u8>>, now: &[u8], changes: &mut Vec<Change>) {
    if kept.as_deref() == Some(now) {
        changes.push(Change { path: backup.to_owned(), before: kept, after: None });
    }
}
