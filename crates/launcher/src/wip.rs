//! The work-in-progress commit at a checkpoint: the content of the working tree, without anything harmful.
//!
//! Hooks do not run, and only filters outside of the project do, unless the user allows it
//! ([`AllowedPrograms`]): the session may have written the programs that they run. Git commits exactly the
//! chosen paths (`--only`), so other staged changes stay staged. Untracked files are announced to the index
//! first; if the commit fails, that is undone.

mod filters;
mod secret_scan;

use crate::changes::{self, ChangedPath, FolderInTree};
use crate::child::{self, ChildOptions};
use crate::git::list_query;
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text;
use plimsoll_store::disk;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The timeout for the commit: hooks of the user may run tests, but a hook that hangs must not block the
/// checkpoint forever.
pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The timeout for choosing what to commit, which git does in a moment.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// A hook that has set changes aside needs a moment to restore them when it is ended.
const HOOK_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Another git, often an editor's, holds the lock of the index only for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest new file that is committed: a larger one is hardly work, and stays in the history forever.
const MAX_NEW_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// How long all files together are searched for secrets; files that have not been searched by then are left
/// out.
const SECRET_SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest index that is read; the index of a million files has a tenth of this size.
const MAX_INDEX_BYTES: u64 = 1024 * 1024 * 1024;
/// The longest reason.
const MAX_REASON_CHARS: usize = 200;

/// The outcome of a work-in-progress commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WipCommitOutcome {
    /// There is nothing to commit, or no git.
    NothingToCommit,
    Committed {
        id: CommitId,
        /// The number of changed files in the commit.
        file_count: usize,
        /// Files that were not committed and are unchanged: they look like a secret, are too big, cannot be
        /// read, are a repository of their own, were removed from the index by somebody, or are under a
        /// filter that is missing, fails or may not run.
        excluded_files: Vec<String>,
        /// The filters that were not run because they belong to the project ([`AllowedPrograms`]). Their
        /// files are among those left out.
        forbidden_filters: Vec<String>,
    },
    /// The commit failed or must not be made; everything is unchanged.
    Refused {
        /// The reason in one line.
        reason: String,
    },
}

/// Commits the changed and untracked files below `folder` on the current branch. Left out are ignored files,
/// files for which `is_own_file` returns true (with paths relative to the folder), files that look like a
/// secret, and large new files. `allowed_programs` says which hooks and filters run; files under a filter
/// that may not run are left out.
pub fn commit_wip(
    folder: &Path,
    message: &str,
    is_own_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
) -> WipCommitOutcome {
    commit_wip_with_timeout(folder, message, is_own_file, allowed_programs, COMMIT_TIMEOUT)
}

/// Returns the files below `folder` that differ from HEAD, without ignored files and files for which
/// `is_own_file` returns true. After [`commit_wip`] these are the files that it left out. Returns `None` if
/// git fails.
pub fn uncommitted_files(
    folder: &Path,
    is_own_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
) -> Option<Vec<String>> {
    let limit = TimeLimit::from_now(SELECTION_TIMEOUT);
    let writer = GitWriter::new(folder, allowed_programs).ok()?;
    let changes =
        changes::changes_since_head(folder, git::head_commit(folder).as_ref(), Some(&writer), limit).ok()?;
    Some(changes.iter().map(ChangedPath::path_text).filter(|name| !is_own_file(name)).collect())
}

fn commit_wip_with_timeout(
    folder: &Path,
    message: &str,
    is_own_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
    timeout: Duration,
) -> WipCommitOutcome {
    try_commit_wip(folder, message, is_own_file, allowed_programs, timeout)
        .unwrap_or_else(|error| WipCommitOutcome::Refused { reason: shorten_reason(&error.to_string()) })
}

fn try_commit_wip(
    folder: &Path,
    message: &str,
    is_own_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
    timeout: Duration,
) -> Result<WipCommitOutcome, GitError> {
    let limit = TimeLimit::from_now(SELECTION_TIMEOUT);
    let Some(folder_in_tree) = FolderInTree::locate(folder, limit)? else {
        return Ok(WipCommitOutcome::NothingToCommit);
    };
    check_no_operation_or_conflict(folder, &folder_in_tree, limit)?;
    let head = git::head_commit(folder);
    let mut selection = CommitSelection::default();
    let search_limit = TimeLimit::from_now(SECRET_SEARCH_TIMEOUT);
    let writer = GitWriter::new(folder, allowed_programs);
    let mut writer = writer.map_err(|outcome| GitError::Failed(git_output::failure_reason(&outcome)))?;
    let filtering_writer = (allowed_programs != AllowedPrograms::NoPrograms).then_some(&writer);
    for change in changes::changes_since_head(folder, head.as_ref(), filtering_writer, limit)? {
        if !is_own_file(&change.path_text()) {
            selection.add_or_exclude(folder, change, search_limit);
        }
    }
    let forbidden_filters = match allowed_programs {
        AllowedPrograms::NoPrograms => {
            filters::exclude_filtered_files_and_return_filters(folder, head.as_ref(), &mut selection, limit)?
        }
        _ => filters::exclude_unusable_and_return_forbidden_filters(
            &mut writer,
            &folder_in_tree,
            head.as_ref(),
            &mut selection,
            limit,
        )?,
    };
    if selection.paths.is_empty() {
        return Ok(WipCommitOutcome::NothingToCommit);
    }
    let index = IndexFile::locate(folder, limit)?;
    index.wait_until_unlocked()?;
    let id = CommitCommands { folder, writer: &writer }.commit(
        message,
        &selection,
        &index,
        head.as_ref(),
        timeout,
    )?;
    Ok(WipCommitOutcome::Committed {
        id,
        file_count: selection.paths.len(),
        excluded_files: selection.excluded_files,
        forbidden_filters,
    })
}

/// Returns an error during a merge, rebase or the like: a commit would end it or become a part of it.
fn check_no_operation_or_conflict(
    folder: &Path,
    folder_in_tree: &FolderInTree,
    limit: TimeLimit,
) -> Result<(), GitError> {
    const OPERATION_FILES: [(&str, &str); 6] = [
        // Before `rebase-apply`: `git am` has that folder, too.
        ("rebase-apply/applying", "git am"),
        ("rebase-apply", "a rebase"),
        ("rebase-merge", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("BISECT_LOG", "a bisect"),
        ("sequencer", "a series of cherry-picks or reverts"),
    ];
    const OPERATION_REFERENCES: [(&str, &str); 2] =
        [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")];
    let git_folder = query_path(folder, &["rev-parse", "--absolute-git-dir"], limit)?;
    let operation_file = OPERATION_FILES.iter().find(|(file, _)| git_folder.join(file).exists());
    // These two are files only in the older repository format, so git is queried.
    let reference_exists = |name: &str| {
        list_query::run_list_query(folder, &["rev-parse", "--verify", "--quiet", name], None, limit).is_ok()
    };
    let find_reference = || OPERATION_REFERENCES.iter().find(|(name, _)| reference_exists(name));
    if let Some((_, operation)) = operation_file.or_else(find_reference) {
        return Err(GitError::OperationInProgress(operation));
    }
    let unmerged =
        list_query::run_list_query(&folder_in_tree.root, &["ls-files", "--unmerged", "-z"], None, limit)?;
    if unmerged.is_empty() { Ok(()) } else { Err(GitError::Conflicts) }
}

fn query_path(folder: &Path, arguments: &[&str], limit: TimeLimit) -> Result<PathBuf, GitError> {
    let output = list_query::run_list_query(folder, arguments, None, limit)?;
    Ok(folder.join(OsStr::from_bytes(output.strip_suffix(b"\n").unwrap_or(&output))))
}

/// The files that are to be committed, and those that are not.
#[derive(Debug, Default)]
struct CommitSelection {
    paths: Vec<Vec<u8>>,
    /// The paths among them that are untracked.
    untracked_paths: Vec<Vec<u8>>,
    /// Paths that were removed from the index though the files exist on disk: somebody's decision, which we
    /// do not undo.
    removed_from_index: BTreeSet<Vec<u8>>,
    excluded_files: Vec<String>,
}

impl CommitSelection {
    fn add_or_exclude(&mut self, folder: &Path, change: ChangedPath, search_limit: TimeLimit) {
        let path = folder.join(OsStr::from_bytes(&change.path));
        match path.symlink_metadata() {
            Err(_) if change.is_tracked && change.mode.is_none() => self.add_unless_secret_name(change),
            // Staged and then deleted: the file exists only in the index, and stays there.
            Err(_) => {}
            Ok(metadata) if metadata.is_dir() => match change.mode.as_deref() {
                Some("160000") => self.paths.push(change.path),
                _ if change.is_tracked => {} // What lies in the folder takes the file's place.
                _ => self.excluded_files.push(change.path_text()),
            },
            Ok(_) if change.is_tracked && change.mode.is_none() => {
                self.excluded_files.push(change.path_text());
                self.removed_from_index.insert(change.path);
            }
            Ok(_) if self.removed_from_index.contains(&change.path) => {}
            Ok(metadata) if metadata.is_symlink() => self.add_unless_secret_name(change),
            Ok(metadata) => {
                let is_too_big = !change.is_tracked && metadata.len() > MAX_NEW_FILE_BYTES;
                let has_secret_name = plimsoll_secrets::is_secret_file_name(&change.path_text());
                if is_too_big
                    || has_secret_name
                    || !metadata.is_file()
                    || !secret_scan::has_no_secret(&path, search_limit)
                {
                    self.excluded_files.push(change.path_text());
                } else {
                    self.add_unless_secret_name(change);
                }
            }
        }
    }

    fn exclude(&mut self, paths: &BTreeSet<Vec<u8>>) {
        let is_excluded = |path: &Vec<u8>| paths.contains(path);
        self.paths.retain(|path| !is_excluded(path));
        self.untracked_paths.retain(|path| !is_excluded(path));
        self.excluded_files.extend(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()));
    }

    fn add_unless_secret_name(&mut self, change: ChangedPath) {
        if plimsoll_secrets::is_secret_file_name(&change.path_text()) {
            self.excluded_files.push(change.path_text());
            return;
        }
        if !change.is_tracked {
            self.untracked_paths.push(change.path.clone());
        }
        self.paths.push(change.path);
    }
}

/// The two or three git commands of a commit, which read their paths from standard input.
struct CommitCommands<'a> {
    folder: &'a Path,
    writer: &'a GitWriter<'a>,
}

impl CommitCommands<'_> {
    fn commit(
        &self,
        message: &str,
        selection: &CommitSelection,
        index: &IndexFile,
        previous_head: Option<&CommitId>,
        timeout: Duration,
    ) -> Result<CommitId, GitError> {
        let index_before = index.read_bytes();
        if !selection.untracked_paths.is_empty() {
            // If this process is killed between here and the commit, the index lists the new files without
            // content; no work is lost.
            self.run_index_command(&["add", "--intent-to-add"], &selection.untracked_paths)?;
        }
        let index_with_intent_to_add = index.read_bytes();
        let message_option = format!("--message={message}");
        // Without `--allow-empty`, a commit of nothing would print the status, including the contents of
        // submodules.
        let arguments = ["commit", "--quiet", "--allow-empty", "--only", &message_option];
        let outcome = self.run_git(&arguments, &selection.paths, timeout);
        // A hook that runs after the commit may fail or hang although the commit exists.
        if let Some(id) = git::head_commit(self.folder).filter(|id| Some(id) != previous_head) {
            return Ok(id);
        }
        if selection.untracked_paths.is_empty() {
            // There are no intent-to-add entries to undo.
        } else if index.read_bytes() == index_with_intent_to_add {
            index.restore(index_before.as_deref());
        } else {
            // Another program has written the index since, so only our own entries are undone.
            let _ = self.run_index_command(&["reset", "--quiet"], &selection.untracked_paths);
        }
        Err(if outcome.timed_out {
            GitError::CommitTimedOut(timeout)
        } else {
            GitError::Failed(git_output::failure_reason(&outcome))
        })
    }

    fn run_index_command(&self, arguments: &[&str], paths: &[Vec<u8>]) -> Result<(), GitError> {
        let outcome = self.run_git(arguments, paths, SELECTION_TIMEOUT);
        if outcome.succeeded() { Ok(()) } else { Err(GitError::Failed(git_output::failure_reason(&outcome))) }
    }

    fn run_git(&self, arguments: &[&str], paths: &[Vec<u8>], timeout: Duration) -> crate::CommandOutcome {
        // Paths go through standard input: many thousands do not fit on a command line.
        let arguments = [arguments, &["--pathspec-from-file=-", "--pathspec-file-nul"]].concat();
        let command = self.writer.command(&arguments);
        let input = Some(to_literal_pathspecs(paths));
        child::run(
            command,
            ChildOptions { input, grace_period: HOOK_GRACE_PERIOD, ..ChildOptions::with_timeout(timeout) },
        )
    }
}

/// Marks each path as literal. `GIT_LITERAL_PATHSPECS` would do so for all paths, but also for the user's
/// hooks: their `git diff -- '*.js'` would find nothing any more.
fn to_literal_pathspecs(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|path| [b":(literal)", path.as_slice(), b"\0"].concat()).collect()
}

/// The path of git's index.
struct IndexFile(PathBuf);

impl IndexFile {
    fn locate(folder: &Path, limit: TimeLimit) -> Result<IndexFile, GitError> {
        // Git reports the path, because each linked worktree has its own index.
        query_path(folder, &["rev-parse", "--git-path", "index"], limit).map(IndexFile)
    }

    fn lock_path(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    fn wait_until_unlocked(&self) -> Result<(), GitError> {
        let started_at = Instant::now();
        while self.lock_path().exists() {
            if started_at.elapsed() > LOCK_TIMEOUT {
                return Err(GitError::IndexLocked);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the content; `None` before the first `git add`, or if the index is too large.
    fn read_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        disk::open(&self.0).ok()?.take(MAX_INDEX_BYTES).read_to_end(&mut bytes).ok()?;
        ((bytes.len() as u64) < MAX_INDEX_BYTES).then_some(bytes)
    }

    /// Restores the content as git itself replaces it: under its lock, in one step.
    fn restore(&self, bytes: Option<&[u8]>) {
        let is_unlocked = self.wait_until_unlocked().is_ok();
        // If this process is killed from here on, git's lock is left behind, as by a killed git.
        let lock_file = OpenOptions::new().write(true).create_new(true).open(self.lock_path());
        let (true, Ok(mut lock_file)) = (is_unlocked, lock_file) else { return };
        let permissions = std::fs::metadata(&self.0).map(|metadata| metadata.permissions());
        let is_written = bytes.is_some_and(|bytes| lock_file.write_all(bytes).is_ok());
        if let Ok(permissions) = permissions {
            let _ = lock_file.set_permissions(permissions);
        }
        if bytes.is_none() {
            let _ = std::fs::remove_file(&self.0);
        }
        let is_replaced = is_written && std::fs::rename(self.lock_path(), &self.0).is_ok();
        if !is_replaced {
            let _ = std::fs::remove_file(self.lock_path());
        }
    }
}

fn shorten_reason(reason: &str) -> String {
    text::truncate_end(&text::to_single_line(&strip_color_codes(reason)), MAX_REASON_CHARS)
}

/// Removes the color codes that hooks print: an escape character, a bracket, numbers, a letter.
fn strip_color_codes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_final_character = |character: char| character.is_ascii_alphabetic();
    parts.fold(first, |kept, part| kept + part.split_once(is_final_character).map_or("", |(_, rest)| rest))
}

#[cfg(test)]
pub(crate) mod tests;
