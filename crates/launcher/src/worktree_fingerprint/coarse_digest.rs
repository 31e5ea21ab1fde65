//! The fallback if hashing every file would take too long: sizes and modification times of the files that git
//! lists as changed. Outside git, of all files.

use crate::changes::FolderInTree;
use crate::git::list_query;
use crate::git_output::split_nul_terminated;
use crate::time_limit::TimeLimit;
use crate::worktree_fingerprint::{
    FINGERPRINT_TIMEOUT, FileContents, git_mode_on_disk, size_and_time_content,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most files: for each, only a name and two numbers are read, so even this many take only a moment.
const MAX_FILES: usize = 1_000_000;
/// The prefix of these digests, so that none equals a digest of contents.
const COARSE_DIGEST_PREFIX: &str = "by-time:";

/// Returns a digest of the working tree by sizes and times; `None` if even that takes too long.
pub(super) fn coarse_tree_digest(folder: &Path, is_own_file: &dyn Fn(&str) -> bool) -> Option<String> {
    let limit = TimeLimit::from_now(FINGERPRINT_TIMEOUT);
    let mut contents = FileContents {
        is_own_file,
        limit,
        max_files: MAX_FILES,
        reads_files: false,
        content_by_path: BTreeMap::new(),
    };
    match FolderInTree::locate(folder, limit).ok()? {
        Some(folder_in_tree) if !contents.is_ignored_folder(folder, &folder_in_tree) => {
            contents.add_files_of_status(folder, &folder_in_tree)?;
        }
        _ => contents.add_folder_without_git(folder, b"")?,
    }
    Some(format!("{COARSE_DIGEST_PREFIX}{}", contents.digest()))
}

impl FileContents<'_> {
    /// Adds the files that `git status` lists. Each entry is two letters, a space and the path from the root.
    /// The letters are ignored, because they tell what is staged, which is no change of the work.
    fn add_files_of_status(&mut self, folder: &Path, folder_in_tree: &FolderInTree) -> Option<()> {
        let options =
            ["--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty"];
        let arguments = [&["status"], &options[..], &["--", "."]].concat();
        for entry in
            split_nul_terminated(&list_query::run_list_query(folder, &arguments, None, self.limit).ok()?)
        {
            // `--porcelain` lists paths relative to the root, whatever the current folder.
            let path = entry.get(3..)?.strip_prefix(folder_in_tree.prefix.as_slice())?;
            let disk_path = folder.join(OsStr::from_bytes(path));
            match disk_path.symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => self.add_nested_repository(&disk_path, path)?,
                Ok(metadata) => self.add_content(
                    path.to_owned(),
                    size_and_time_content(git_mode_on_disk(&metadata), &metadata),
                )?,
                Err(_) => self.add_content(path.to_owned(), b"gone".to_vec())?,
            }
        }
        self.add_submodules(folder)
    }

    /// Adds the files of all submodules: git does not check whether something has changed in them.
    fn add_submodules(&mut self, folder: &Path) -> Option<()> {
        let arguments = ["ls-files", "--stage", "-z", "--", "."];
        for entry in
            split_nul_terminated(&list_query::run_list_query(folder, &arguments, None, self.limit).ok()?)
        {
            if let Some(id_and_path) = entry.strip_prefix(b"160000 ") {
                let tab = id_and_path.iter().position(|byte| *byte == b'\t')?;
                let path = &id_and_path[tab + 1..];
                self.add_nested_repository(&folder.join(OsStr::from_bytes(path)), path)?;
            }
        }
        Some(())
    }
}
