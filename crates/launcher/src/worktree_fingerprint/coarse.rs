//! Where a look into every file would take too long: what git calls changed, by size and modification time.
//! Outside git the same of every file.

use crate::changes::FolderInTree;
use crate::git::question;
use crate::git_output::names;
use crate::time_limit::TimeLimit;
use crate::worktree_fingerprint::{Content, DEADLINE, by_time, mode_on_disk};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A name and two numbers of each: even so many take no more than a moment.
const MOST_FILES: usize = 1_000_000;
/// It compares with no digest of the other kind.
const MARK: &str = "by-time:";

/// The working tree as a digest; none if not even that could be found out in time.
pub(super) fn tree(folder: &Path, is_ours: &dyn Fn(&str) -> bool) -> Option<String> {
    let limit = TimeLimit::within(DEADLINE);
    let mut content = Content { is_ours, limit, most: MOST_FILES, reads: false, files: BTreeMap::new() };
    match FolderInTree::of(folder, limit).ok()? {
        Some(place) if !content.is_ignored(folder, &place) => content.add_status(folder, &place)?,
        _ => content.add_folder(folder, b"")?,
    }
    Some(format!("{MARK}{}", content.digest()))
}

impl Content<'_> {
    /// Each entry is two letters, a space and the path from the root. The letters say what is staged, which is no
    /// work.
    fn add_status(&mut self, folder: &Path, place: &FolderInTree) -> Option<()> {
        let how = ["--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty"];
        let question = [&["status"], &how[..], &["--", "."]].concat();
        for entry in names(&question::answer(folder, &question, None, self.limit).ok()?) {
            // `--porcelain` names paths from the root, whatever folder it is asked in.
            let path = entry.get(3..)?.strip_prefix(place.prefix.as_slice())?;
            let on_disk = folder.join(OsStr::from_bytes(path));
            match on_disk.symlink_metadata() {
                Ok(found) if found.is_dir() => self.add_inner(&on_disk, path)?,
                Ok(found) => self.note(path.to_owned(), by_time(mode_on_disk(&found), &found))?,
                Err(_) => self.note(path.to_owned(), b"gone".to_vec())?,
            }
        }
        self.add_submodules(folder)
    }

    /// Git is not asked whether something has changed in them.
    fn add_submodules(&mut self, folder: &Path) -> Option<()> {
        let question = ["ls-files", "--stage", "-z", "--", "."];
        for entry in names(&question::answer(folder, &question, None, self.limit).ok()?) {
            if let Some(rest) = entry.strip_prefix(b"160000 ") {
                let tabulator = rest.iter().position(|byte| *byte == b'\t')?;
                let path = &rest[tabulator + 1..];
                self.add_inner(&folder.join(OsStr::from_bytes(path)), path)?;
            }
        }
        Some(())
    }
}
