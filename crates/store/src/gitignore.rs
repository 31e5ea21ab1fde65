//! Hides our folders in a project from git with a `.gitignore` inside them. `.git/info/exclude` is not part
//! of a clone: there a colleague's agent would commit whole transcripts with `git add -A`.

use crate::Durability;
use crate::safe_open::{FinalLink, FolderEntry, OpenError};
use std::path::Path;

/// The file that makes git ignore a folder and everything in it, including itself.
pub(crate) const GITIGNORE_NAME: &str = ".gitignore";
pub(crate) const GITIGNORE_TEXT: &[u8] = b"*\n";

/// Our folders in a project, by the end of their path.
const PLIMSOLL_FOLDERS: [&str; 2] = [".claude/plimsoll", ".claude/handoffs"];

/// Returns our folder that contains this folder, or is this folder.
pub(crate) fn plimsoll_folder_containing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| PLIMSOLL_FOLDERS.iter().any(|path_end| folder.ends_with(path_end)))
}

/// Hides our folder from git before something new is created in it, so that a kill in between leaves nothing
/// visible. An existing `.gitignore` is kept, because somebody else wrote it.
pub(crate) fn add_gitignore_to_plimsoll_folder_if_missing(folder: &Path) -> Result<(), OpenError> {
    let Some(plimsoll_folder) = plimsoll_folder_containing(folder) else { return Ok(()) };
    let entry = FolderEntry::for_path(&plimsoll_folder.join(GITIGNORE_NAME), FinalLink::NoFollow, true)?;
    if entry.metadata().is_some() {
        Ok(())
    } else {
        entry.replace_file_keeping_mode(GITIGNORE_TEXT, Durability::Lazy)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lay out what is looked at")]
mod tests {
    use super::*;
    use crate::disk;

    #[test]
    fn our_folders_are_hidden_from_git_before_their_first_file() {
        let root = tempfile::tempdir().unwrap();
        let path_of = |path: &str| root.path().join(path);
        disk::append_line(&path_of(".claude/plimsoll/turns/a.jsonl"), "x").unwrap();
        disk::create_new(&path_of(".claude/handoffs/a.md"), b"x").unwrap();
        disk::replace(&path_of("below/.claude/plimsoll/windows.json"), b"x", Durability::Lazy).unwrap();
        disk::replace(&path_of("other/plimsoll/a.json"), b"x", Durability::Lazy).unwrap();
        for hidden in [".claude/plimsoll", ".claude/handoffs", "below/.claude/plimsoll"] {
            assert_eq!(
                disk::read(&path_of(hidden).join(GITIGNORE_NAME)).unwrap().as_deref(),
                Some(GITIGNORE_TEXT),
                "{hidden}"
            );
        }
        for other in ["", ".claude", ".claude/plimsoll/turns", "other/plimsoll"] {
            assert!(!path_of(other).join(GITIGNORE_NAME).exists(), "{other}");
        }
    }

    #[test]
    fn an_existing_gitignore_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join(".claude/plimsoll");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join(GITIGNORE_NAME), "mine").unwrap();
        disk::append_line(&own.join("turns/a.jsonl"), "x").unwrap();
        assert_eq!(std::fs::read(own.join(GITIGNORE_NAME)).unwrap(), b"mine");
    }
}
