//! Our folders in a project hide themselves from git. `.git/info/exclude` is in no clone: there a colleague's agent
//! would commit whole transcripts with `git add -A`.

use crate::Durability;
use crate::door::{Last, Refused, Spot};
use std::path::Path;

/// The file that hides a folder, itself too.
pub(crate) const FILE: &str = ".gitignore";
pub(crate) const TEXT: &[u8] = b"*\n";

/// Folders of ours in a project, by the end of their path.
const OURS: [&str; 2] = [".claude/plimsoll", ".claude/handoffs"];

/// The folder of ours in a project that this one is, or is in.
pub(crate) fn ours(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| OURS.iter().any(|ours| folder.ends_with(ours)))
}

/// Hides the folder of ours in which something new is about to be made: before it is, so that a kill between the two
/// leaves nothing in sight. A file of that name that is there is somebody's.
pub(crate) fn before_new(folder: &Path) -> Result<(), Refused> {
    let Some(ours) = ours(folder) else { return Ok(()) };
    let spot = Spot::of(&ours.join(FILE), Last::Itself, true)?;
    if spot.found().is_some() { Ok(()) } else { spot.replace(TEXT, Durability::Lazy) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lay out what is looked at")]
mod tests {
    use super::*;
    use crate::disk;

    #[test]
    fn a_folder_of_ours_hides_itself_from_its_first_file_on() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        disk::append_line(&at(".claude/plimsoll/turns/a.jsonl"), "x").unwrap();
        disk::create_new(&at(".claude/handoffs/a.md"), b"x").unwrap();
        disk::replace(&at("below/.claude/plimsoll/windows.json"), b"x", Durability::Lazy).unwrap();
        disk::replace(&at("other/plimsoll/a.json"), b"x", Durability::Lazy).unwrap();
        for hidden in [".claude/plimsoll", ".claude/handoffs", "below/.claude/plimsoll"] {
            assert_eq!(disk::read(&at(hidden).join(FILE)).unwrap().as_deref(), Some(TEXT), "{hidden}");
        }
        for other in ["", ".claude", ".claude/plimsoll/turns", "other/plimsoll"] {
            assert!(!at(other).join(FILE).exists(), "{other}");
        }
    }

    #[test]
    fn a_file_that_somebody_wrote_there_stays() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join(".claude/plimsoll");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join(FILE), "mine").unwrap();
        disk::append_line(&own.join("turns/a.jsonl"), "x").unwrap();
        assert_eq!(std::fs::read(own.join(FILE)).unwrap(), b"mine");
    }
}
