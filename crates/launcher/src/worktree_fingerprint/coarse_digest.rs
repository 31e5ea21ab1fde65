//! A digest of sizes and modification times, used if hashing every file would take too long. It covers the files
//! that git lists as changed, or all files outside a git repository.

use crate::changes::FolderInWorkingTree;
use crate::git::list_query;
use crate::git_output::split_nul_terminated;
use crate::time_limit::TimeLimit;
use crate::worktree_fingerprint::{
    FINGERPRINT_TIMEOUT, FileContents, git_mode_on_disk, size_and_time_content,
};
use plimsoll_system::paths::os_str_from_bytes;
use std::collections::BTreeMap;
use std::path::Path;

/// The maximum number of files. Only metadata is read for each, so even this many take little time.
const MAX_FILES: usize = 1_000_000;
/// The prefix of these digests, which distinguishes them from digests of contents.
const COARSE_DIGEST_PREFIX: &str = "by-time:";

/// Returns a digest of sizes and modification times in the working tree. Returns `None` if the time or file limit
/// is exceeded, or git fails.
pub(super) fn tree_digest_by_size_and_time(
    folder: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let limit = TimeLimit::from_now(FINGERPRINT_TIMEOUT);
    let mut contents = FileContents {
        is_plimsoll_file,
        limit,
        max_files: MAX_FILES,
        reads_file_contents: false,
        content_by_path: BTreeMap::new(),
    };
    match FolderInWorkingTree::locate(folder, limit).ok()? {
        Some(folder_in_tree) if !contents.is_ignored_folder(folder, &folder_in_tree) => {
            contents.add_sizes_of_changed_and_submodule_files(folder, &folder_in_tree)?;
        }
        _ => contents.add_disk_files_below_folder(folder, b"")?,
    }
    Some(format!("{COARSE_DIGEST_PREFIX}{}", contents.digest_of_paths_and_contents()))
}

impl FileContents<'_> {
    /// Adds the files that `git status` lists, and all files of submodules. Each entry is a two-character status
    /// code, a space and the path from the root. The code is ignored, because staging a file is not a change of
    /// its content.
    fn add_sizes_of_changed_and_submodule_files(
        &mut self,
        folder: &Path,
        folder_in_tree: &FolderInWorkingTree,
    ) -> Option<()> {
        let options =
            ["--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty"];
        let arguments = [&["status"], &options[..], &["--", "."]].concat();
        for entry in split_nul_terminated(
            &list_query::run_query_for_complete_output(folder, &arguments, None, self.limit).ok()?,
        ) {
            // `--porcelain` lists paths relative to the root, even if the current folder is a subfolder.
            let path = entry.get(3..)?.strip_prefix(folder_in_tree.prefix.as_slice())?;
            let disk_path = folder.join(os_str_from_bytes(path));
            match disk_path.symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => {
                    self.add_nested_repository_files_from_disk(&disk_path, path)?;
                }
                Ok(metadata) => self.add_content(
                    path.to_owned(),
                    size_and_time_content(git_mode_on_disk(&metadata), &metadata),
                )?,
                Err(_) => self.add_content(path.to_owned(), b"gone".to_vec())?,
            }
        }
        self.add_files_of_all_submodules(folder)
    }

    /// Adds the files of all submodules, because `git status` was told not to look for changes in them.
    fn add_files_of_all_submodules(&mut self, folder: &Path) -> Option<()> {
        let arguments = ["ls-files", "--stage", "-z", "--", "."];
        for entry in split_nul_terminated(
            &list_query::run_query_for_complete_output(folder, &arguments, None, self.limit).ok()?,
        ) {
            if let Some(id_and_path) = entry.strip_prefix(b"160000 ") {
                let tab = id_and_path.iter().position(|byte| *byte == b'\t')?;
                let path = &id_and_path[tab + 1..];
                self.add_nested_repository_files_from_disk(&folder.join(os_str_from_bytes(path)), path)?;
            }
        }
        Some(())
    }
}
