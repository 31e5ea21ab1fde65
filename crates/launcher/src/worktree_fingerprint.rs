//! The fingerprint of a project: HEAD, and a digest of the content of its working tree.
//!
//! The digest covers what a commit of all files would contain, so neither staging nor committing changes it. It
//! is computed from the blob ids of HEAD, with those of changed files replaced by ids of their current content.
//! Nothing is written to disk.

mod coarse_digest;

use crate::changes::{self, ChangedPath, FolderInWorkingTree, quote_path_as_input_line};
use crate::git;
use crate::git::list_query;
use crate::git_output::split_nul_terminated;
use crate::time_limit::TimeLimit;
use plimsoll_domain::digest::to_hex;
use plimsoll_domain::git_names::CommitId;
use plimsoll_store::disk;
use plimsoll_store::disk::SKIPPED_FOLDERS;
use plimsoll_system::file_metadata::{is_executable_by_owner, modification_time};
use plimsoll_system::paths::{bytes_with_slashes, os_str_from_bytes};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// The timeout for a fingerprint. It is computed between sessions, where a delay of a few seconds is acceptable.
const FINGERPRINT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of files whose contents are hashed. A larger project gets a digest of sizes and times.
const MAX_HASHED_FILES: usize = 50_000;
/// The maximum size of a file that is hashed. A larger file is represented by its size and modification time.
const MAX_HASHED_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The state of a project. If two fingerprints are equal, nothing has changed in between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeFingerprint {
    /// The commit of HEAD; `None` outside git and before the first commit.
    pub head: Option<String>,
    /// A digest of the working tree without Plimsoll's files and ignored files. It covers the contents, or sizes
    /// and times if reading the contents would take too long. `None` if neither could be computed in time.
    pub tree_digest: Option<String>,
}

/// Computes the fingerprint of the project in this folder. It covers only files below the folder, without files
/// for which `is_plimsoll_file` returns true (paths are relative to the folder).
///
/// A file over 16 MiB that differs from HEAD is represented by its size and modification time, so committing it
/// changes the digest.
pub fn compute_fingerprint(folder: &Path, is_plimsoll_file: &dyn Fn(&str) -> bool) -> WorktreeFingerprint {
    compute_content_or_coarse_fingerprint(folder, is_plimsoll_file, MAX_HASHED_FILES)
}

fn compute_content_or_coarse_fingerprint(
    folder: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    max_hashed_files: usize,
) -> WorktreeFingerprint {
    let content_fingerprint = content_fingerprint_within_limits(folder, is_plimsoll_file, max_hashed_files);
    WorktreeFingerprint {
        tree_digest: content_fingerprint
            .tree_digest
            .or_else(|| coarse_digest::tree_digest_by_size_and_time(folder, is_plimsoll_file)),
        ..content_fingerprint
    }
}

fn content_fingerprint_within_limits(
    folder: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    max_files: usize,
) -> WorktreeFingerprint {
    let limit = TimeLimit::from_now(FINGERPRINT_TIMEOUT);
    let mut contents = FileContents {
        is_plimsoll_file,
        limit,
        max_files,
        reads_file_contents: true,
        content_by_path: BTreeMap::new(),
    };
    match FolderInWorkingTree::locate(folder, limit) {
        Ok(Some(folder_in_tree)) => {
            let head = git::head_commit(folder);
            let is_complete =
                contents.add_working_tree_files(folder, &folder_in_tree, head.as_ref()).is_some();
            WorktreeFingerprint {
                head: head.map(String::from),
                tree_digest: is_complete.then(|| contents.digest_of_paths_and_contents()),
            }
        }
        Ok(None) => WorktreeFingerprint {
            head: None,
            tree_digest: contents
                .add_disk_files_below_folder(folder, b"")
                .map(|()| contents.digest_of_paths_and_contents()),
        },
        Err(_) => WorktreeFingerprint::default(),
    }
}

/// The kind and content id of each file. Methods return `None` if the time limit or the file limit is
/// exceeded, or git fails.
struct FileContents<'a> {
    is_plimsoll_file: &'a dyn Fn(&str) -> bool,
    limit: TimeLimit,
    /// The maximum number of files.
    max_files: usize,
    /// False if files are represented only by size and modification time.
    reads_file_contents: bool,
    content_by_path: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A file whose content git has not hashed yet.
struct UnhashedFile {
    relative_path: Vec<u8>,
    path_from_root: Vec<u8>,
    mode: String,
}

impl FileContents<'_> {
    fn add_working_tree_files(
        &mut self,
        folder: &Path,
        folder_in_tree: &FolderInWorkingTree,
        head: Option<&CommitId>,
    ) -> Option<()> {
        if let Some(head) = head {
            self.add_files_of_head_commit(folder, head)?;
        }
        self.apply_changes_since_head(folder, folder_in_tree, head)?;
        self.replace_filtered_files_by_disk_content(folder)?;
        if self.content_by_path.is_empty() && self.is_ignored_folder(folder, folder_in_tree) {
            self.add_disk_files_below_folder(folder, b"")
        } else {
            Some(())
        }
    }

    /// Returns whether the project is in an ignored folder of a larger repository. In that case git does not list
    /// its files.
    fn is_ignored_folder(&self, folder: &Path, folder_in_tree: &FolderInWorkingTree) -> bool {
        let arguments = ["check-ignore", "-q", "--", "."];
        !folder_in_tree.prefix.is_empty()
            && list_query::run_query_for_complete_output(folder, &arguments, None, self.limit).is_ok()
    }

    fn add_files_of_head_commit(&mut self, folder: &Path, head: &CommitId) -> Option<()> {
        let output = list_query::run_query_for_complete_output(
            folder,
            &["ls-tree", "-r", "-z", head.as_str()],
            None,
            self.limit,
        )
        .ok()?;
        for entry in split_nul_terminated(&output) {
            // Each entry has the form `100644 blob <id>`, a tab, the path.
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            let (object_info, path) = (&entry[..tab], &entry[tab + 1..]);
            let mode = object_info.get(..6)?;
            let id = object_info.rsplit(|byte| *byte == b' ').next()?;
            if mode == b"160000" {
                self.add_nested_repository_files_from_disk(&folder.join(os_str_from_bytes(path)), path)?;
                continue;
            }
            let is_link = mode == b"120000";
            let link_content =
                if is_link { symlink_content(&folder.join(os_str_from_bytes(path))) } else { None };
            self.add_content(path.to_owned(), link_content.unwrap_or_else(|| [mode, b" ", id].concat()))?;
        }
        Some(())
    }

    /// Adds the current content of the files that differ from HEAD, and removes deleted files.
    fn apply_changes_since_head(
        &mut self,
        folder: &Path,
        folder_in_tree: &FolderInWorkingTree,
        head: Option<&CommitId>,
    ) -> Option<()> {
        let mut unhashed_files = Vec::new();
        for change in changes::changes_since_head_with_untracked(folder, head, None, self.limit).ok()? {
            let relative_path = change.path.clone();
            let path = folder.join(os_str_from_bytes(&change.path));
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => {
                    self.add_content(relative_path, symlink_content(&path)?)?;
                }
                Ok(metadata) if metadata.is_dir() && is_nested_repository(&change) => {
                    self.add_nested_repository_files_from_disk(&path, &relative_path)?;
                }
                Ok(metadata) if metadata.is_file() => {
                    let mode = git_mode_of_change(&change, &metadata);
                    if can_be_hashed(&path, &metadata) {
                        let path_from_root = [folder_in_tree.prefix.as_slice(), &change.path].concat();
                        unhashed_files.push(UnhashedFile { relative_path, path_from_root, mode });
                    } else {
                        self.add_content(relative_path, size_and_time_content(&mode, &metadata))?;
                    }
                }
                // The path was deleted or is no longer a file.
                _ => {
                    self.content_by_path.remove(&relative_path);
                }
            }
        }
        self.add_files_hashed_by_git(folder_in_tree, unhashed_files)
    }

    /// Adds every file of a repository inside this one. Git is not run there, because it would read that
    /// repository's settings, which the agent may have written.
    fn add_nested_repository_files_from_disk(&mut self, folder: &Path, relative_path: &[u8]) -> Option<()> {
        let relative_path = relative_path.strip_suffix(b"/").unwrap_or(relative_path);
        self.add_content(relative_path.to_owned(), b"160000".to_vec())?;
        if folder.is_symlink() {
            Some(())
        } else {
            self.add_disk_files_below_folder(folder, &[relative_path, b"/"].concat())
        }
    }

    /// Replaces the content of files that have a filter with their content on disk. Filters are not run to find out
    /// what git would commit. Using the content on disk in all cases keeps the digest stable when git refreshes
    /// its index.
    fn replace_filtered_files_by_disk_content(&mut self, folder: &Path) -> Option<()> {
        if !git::has_configured_filters(folder, self.limit).ok()? {
            return Some(());
        }
        let paths = &mut self.content_by_path.keys().map(Vec::as_slice);
        for (relative_path, _) in list_query::query_filters_of_paths(folder, paths, self.limit).ok()? {
            self.add_disk_file_or_symlink(&folder.join(os_str_from_bytes(&relative_path)), relative_path)?;
        }
        Some(())
    }

    /// Adds files by the ids that git computes, because the content that git would commit may differ from the
    /// content on disk (line endings).
    fn add_files_hashed_by_git(
        &mut self,
        folder_in_tree: &FolderInWorkingTree,
        unhashed_files: Vec<UnhashedFile>,
    ) -> Option<()> {
        if unhashed_files.is_empty() {
            return Some(());
        }
        let paths: Vec<u8> =
            unhashed_files.iter().flat_map(|file| quote_path_as_input_line(&file.path_from_root)).collect();
        let hash_objects = |options: &[&str]| {
            let arguments = [&["hash-object", "--stdin-paths"], options].concat();
            list_query::run_query_for_complete_output(
                &folder_in_tree.root,
                &arguments,
                Some(paths.clone()),
                self.limit,
            )
        };
        // Hashing fails if a configured filter is not installed.
        let ids = hash_objects(&[]).or_else(|_| hash_objects(&["--no-filters"])).ok()?;
        let ids: Vec<&[u8]> = ids.split(|byte| *byte == b'\n').filter(|id| !id.is_empty()).collect();
        if ids.len() != unhashed_files.len() {
            return None;
        }
        for (file, id) in unhashed_files.into_iter().zip(ids) {
            self.add_content(file.relative_path, [file.mode.as_bytes(), b" ", id].concat())?;
        }
        Some(())
    }

    /// Adds every file below a folder without running git. Each path begins with `path_prefix`. Ignore rules do not
    /// apply, but caches and folders of version control systems are skipped.
    fn add_disk_files_below_folder(&mut self, root: &Path, path_prefix: &[u8]) -> Option<()> {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
                if !is_folder {
                    let relative_path = bytes_with_slashes(path.strip_prefix(root).ok()?);
                    // In a submodule, `.git` is a file.
                    if *relative_path != *b".git" {
                        self.add_disk_file_or_symlink(&path, [path_prefix, &relative_path].concat())?;
                    }
                } else if !SKIPPED_FOLDERS.iter().any(|skipped_name| entry.file_name() == *skipped_name) {
                    folders.push(path);
                }
                self.require_within_limits()?;
            }
        }
        Some(())
    }

    /// Adds a file with its content on disk, or a symbolic link. Ignores anything else.
    fn add_disk_file_or_symlink(&mut self, path: &Path, relative_path: Vec<u8>) -> Option<()> {
        let Ok(metadata) = path.symlink_metadata() else { return Some(()) };
        if metadata.is_symlink() {
            return self.add_content(relative_path, symlink_content(path)?);
        }
        if !metadata.is_file() {
            return Some(());
        }
        let mode = git_mode_on_disk(&metadata);
        if self.reads_file_contents
            && can_be_hashed(path, &metadata)
            && let Some(digest) = digest_of_file_unless_symlink(path)
        {
            return self.add_content(relative_path, format!("{mode} {digest}").into_bytes());
        }
        self.add_content(relative_path, size_and_time_content(mode, &metadata))
    }

    fn add_content(&mut self, relative_path: Vec<u8>, content: Vec<u8>) -> Option<()> {
        if !(self.is_plimsoll_file)(&String::from_utf8_lossy(&relative_path)) {
            self.content_by_path.insert(relative_path, content);
        }
        self.require_within_limits()
    }

    fn require_within_limits(&self) -> Option<()> {
        (self.content_by_path.len() <= self.max_files && !self.limit.has_passed()).then_some(())
    }

    fn digest_of_paths_and_contents(&self) -> String {
        let mut hasher = Sha256::new();
        for part in self.content_by_path.iter().flat_map(|(path, content)| [path, content]) {
            // The length is hashed, too, so that moving a byte from a path to its content changes the digest.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        to_hex(&hasher.finalize())
    }
}

/// Returns whether a changed path is a repository inside this one, tracked or untracked.
fn is_nested_repository(change: &ChangedPath) -> bool {
    change.path.ends_with(b"/") || change.mode.as_deref() == Some("160000")
}

fn git_mode_of_change(change: &ChangedPath, metadata: &Metadata) -> String {
    let tracked_mode = change.mode.as_deref().filter(|mode| *mode != "160000");
    tracked_mode.unwrap_or_else(|| git_mode_on_disk(metadata)).to_owned()
}

fn git_mode_on_disk(metadata: &Metadata) -> &'static str {
    // Git stores one bit of a mode: whether the owner may run the file.
    if is_executable_by_owner(metadata) { "100755" } else { "100644" }
}

/// Returns whether a file is small enough to be hashed, and readable by us.
fn can_be_hashed(path: &Path, metadata: &Metadata) -> bool {
    metadata.len() <= MAX_HASHED_FILE_BYTES && disk::open_without_following_link(path).is_ok()
}

fn size_and_time_content(mode: &str, metadata: &Metadata) -> Vec<u8> {
    let mtime = modification_time(metadata);
    format!("{mode} {} bytes at {}.{}", metadata.len(), mtime.seconds, mtime.nanoseconds).into_bytes()
}

/// Returns the target path of a symbolic link as its content. Does not read the target. Returns `None` if the path
/// is not a symbolic link.
fn symlink_content(path: &Path) -> Option<Vec<u8>> {
    let target = std::fs::read_link(path).ok()?;
    Some([b"120000 leads to ", target.as_os_str().as_encoded_bytes()].concat())
}

fn digest_of_file_unless_symlink(path: &Path) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut file = disk::open_without_following_link(path).ok()?.take(MAX_HASHED_FILE_BYTES);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk).ok()? {
            0 => return Some(to_hex(&hasher.finalize())),
            count => hasher.update(&chunk[..count]),
        }
    }
}

#[cfg(test)]
mod tests;
