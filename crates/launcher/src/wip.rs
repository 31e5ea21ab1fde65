//! The work-in-progress commit at a checkpoint: the changes in the working tree, without files that look like a
//! secret and other files that should not be committed.
//!
//! Unless the user allows it ([`AllowedPrograms`]), git runs no hooks and only filters outside the project,
//! because the session may have written the programs that they run. Git commits exactly the selected paths
//! (`--only`), so other staged changes stay staged. Untracked files are added to the index first
//! (`--intent-to-add`); if the commit fails, that is undone.

mod filters;
mod secret_scan;

use crate::changes::{self, ChangedPath, FolderInWorkingTree};
use crate::child::{self, ChildOptions};
use crate::git::list_query;
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text;
use plimsoll_store::disk;
use plimsoll_system::paths::os_str_from_bytes;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The timeout for the commit: hooks of the user may run tests, but a hook that hangs must not block the
/// checkpoint forever.
pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The timeout for selecting the files to commit, which usually takes less than a second.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// The grace period for hooks: a hook that has stashed changes needs time to restore them when it is ended.
const HOOK_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How long to wait for the index lock. Another git process, often an editor's, holds it only briefly.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum size of a new file. A larger file is rarely the session's work, and cannot easily be removed from
/// the history.
const MAX_NEW_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// The time limit for searching all files for secrets; files that have not been searched by then are excluded.
const SECRET_SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of an index that is read; the index of a million files is a tenth of this size.
const MAX_INDEX_BYTES: u64 = 1024 * 1024 * 1024;
/// The maximum length of the reason in [`WipCommitOutcome::Refused`].
const MAX_REASON_CHARS: usize = 200;

/// The outcome of a work-in-progress commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WipCommitOutcome {
    /// There is nothing to commit, or the folder is not in a git repository.
    NothingToCommit,
    Committed {
        id: CommitId,
        /// The number of changed files in the commit.
        file_count: usize,
        /// Files that were not committed: they look like a secret, are too large, cannot be read, are nested
        /// repositories, were removed from the index although they exist, or have a filter that is missing, fails
        /// or may not run. These files are not modified.
        excluded_files: Vec<String>,
        /// The filters that were not run because they belong to the project ([`AllowedPrograms`]). Their files
        /// are in `excluded_files`.
        forbidden_filters: Vec<String>,
    },
    /// The commit failed or was not attempted; nothing has changed.
    Refused {
        /// The reason in one line.
        reason: String,
    },
}

/// Commits the changed and untracked files below `folder` on the current branch. Excludes ignored files, files for
/// which `is_plimsoll_file` returns true (with paths relative to the folder), files that look like a secret, and
/// large new files. `allowed_programs` determines which hooks and filters run; files with a filter that may not
/// run are excluded.
pub fn commit_wip(
    folder: &Path,
    message: &str,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
) -> WipCommitOutcome {
    commit_wip_with_timeout(folder, message, is_plimsoll_file, allowed_programs, COMMIT_TIMEOUT)
}

/// Returns the files below `folder` that differ from HEAD, without ignored files and files for which
/// `is_plimsoll_file` returns true. After [`commit_wip`] these are the files that it excluded. Returns `None` if
/// git fails.
pub fn uncommitted_files(
    folder: &Path,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
) -> Option<Vec<String>> {
    let limit = TimeLimit::from_now(SELECTION_TIMEOUT);
    let writer = GitWriter::new(folder, allowed_programs).ok()?;
    let changes = changes::changes_since_head_with_untracked(
        folder,
        git::head_commit(folder).as_ref(),
        Some(&writer),
        limit,
    )
    .ok()?;
    Some(changes.iter().map(ChangedPath::path_text).filter(|name| !is_plimsoll_file(name)).collect())
}

fn commit_wip_with_timeout(
    folder: &Path,
    message: &str,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
    timeout: Duration,
) -> WipCommitOutcome {
    try_commit_wip(folder, message, is_plimsoll_file, allowed_programs, timeout)
        .unwrap_or_else(|error| WipCommitOutcome::Refused { reason: shorten_reason(&error.to_string()) })
}

fn try_commit_wip(
    folder: &Path,
    message: &str,
    is_plimsoll_file: &dyn Fn(&str) -> bool,
    allowed_programs: AllowedPrograms,
    timeout: Duration,
) -> Result<WipCommitOutcome, GitError> {
    let limit = TimeLimit::from_now(SELECTION_TIMEOUT);
    let Some(folder_in_tree) = FolderInWorkingTree::locate(folder, limit)? else {
        return Ok(WipCommitOutcome::NothingToCommit);
    };
    require_no_git_operation_or_conflict(folder, &folder_in_tree, limit)?;
    let head = git::head_commit(folder);
    let mut selection = CommitSelection::default();
    let secret_search_limit = TimeLimit::from_now(SECRET_SEARCH_TIMEOUT);
    let writer = GitWriter::new(folder, allowed_programs);
    let mut writer = writer
        .map_err(|outcome| GitError::Failed(git_output::fatal_message_or_last_output_line(&outcome)))?;
    let filtering_writer = (allowed_programs != AllowedPrograms::NoPrograms).then_some(&writer);
    for change in changes::changes_since_head_with_untracked(folder, head.as_ref(), filtering_writer, limit)?
    {
        if !is_plimsoll_file(&change.path_text()) {
            selection.add_change_or_exclude_unsafe_file(folder, change, secret_search_limit);
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
    index.wait_for_unlock_or_timeout_error()?;
    let id = CommitCommands { folder, writer: &writer }.commit_or_undo_intent_to_add(
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

/// Returns an error if a merge, rebase or similar operation is in progress, because a commit would end it or
/// become part of it. Also returns an error if there are unmerged files.
fn require_no_git_operation_or_conflict(
    folder: &Path,
    folder_in_tree: &FolderInWorkingTree,
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
    // These two references are files only in the older repository format, so git is queried.
    let reference_exists = |name: &str| {
        list_query::run_query_for_complete_output(
            folder,
            &["rev-parse", "--verify", "--quiet", name],
            None,
            limit,
        )
        .is_ok()
    };
    let find_operation_reference = || OPERATION_REFERENCES.iter().find(|(name, _)| reference_exists(name));
    if let Some((_, operation)) = operation_file.or_else(find_operation_reference) {
        return Err(GitError::OperationInProgress(operation));
    }
    let unmerged_files = list_query::run_query_for_complete_output(
        &folder_in_tree.root,
        &["ls-files", "--unmerged", "-z"],
        None,
        limit,
    )?;
    if unmerged_files.is_empty() { Ok(()) } else { Err(GitError::Conflicts) }
}

fn query_path(folder: &Path, arguments: &[&str], limit: TimeLimit) -> Result<PathBuf, GitError> {
    let output = list_query::run_query_for_complete_output(folder, arguments, None, limit)?;
    Ok(folder.join(os_str_from_bytes(output.strip_suffix(b"\n").unwrap_or(&output))))
}

/// The files to commit, and those that are excluded.
#[derive(Debug, Default)]
struct CommitSelection {
    paths: Vec<Vec<u8>>,
    /// The untracked paths in `paths`.
    untracked_paths: Vec<Vec<u8>>,
    /// Paths that were removed from the index although the files exist on disk. The removal was deliberate, so it
    /// is not undone.
    removed_from_index: BTreeSet<Vec<u8>>,
    excluded_files: Vec<String>,
}

impl CommitSelection {
    fn add_change_or_exclude_unsafe_file(
        &mut self,
        folder: &Path,
        change: ChangedPath,
        secret_search_limit: TimeLimit,
    ) {
        let path = folder.join(os_str_from_bytes(&change.path));
        match path.symlink_metadata() {
            Err(_) if change.is_tracked && change.mode.is_none() => {
                self.add_or_exclude_if_secret_name(change);
            }
            // The file was staged and then deleted: it exists only in the index, which is left as it is.
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
            Ok(metadata) if metadata.is_symlink() => self.add_or_exclude_if_secret_name(change),
            Ok(metadata) => {
                let is_too_big = !change.is_tracked && metadata.len() > MAX_NEW_FILE_BYTES;
                let has_secret_name = plimsoll_secrets::is_secret_file_name(&change.path_text());
                if is_too_big
                    || has_secret_name
                    || !metadata.is_file()
                    || !secret_scan::can_be_read_and_has_no_secret(&path, secret_search_limit)
                {
                    self.excluded_files.push(change.path_text());
                } else {
                    self.add_or_exclude_if_secret_name(change);
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

    fn add_or_exclude_if_secret_name(&mut self, change: ChangedPath) {
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
    fn commit_or_undo_intent_to_add(
        &self,
        message: &str,
        selection: &CommitSelection,
        index: &IndexFile,
        previous_head: Option<&CommitId>,
        timeout: Duration,
    ) -> Result<CommitId, GitError> {
        let index_before = index.read_bytes();
        if !selection.untracked_paths.is_empty() {
            // If this process is killed before the commit, the index lists the new files without content, but no
            // work is lost.
            self.run_index_command(&["add", "--intent-to-add"], &selection.untracked_paths)?;
        }
        let index_with_intent_to_add = index.read_bytes();
        let message_option = format!("--message={message}");
        // Without `--allow-empty`, git would print the status for an empty commit, including the changes in
        // submodules.
        let arguments = ["commit", "--quiet", "--allow-empty", "--only", &message_option];
        let outcome = self.run_git_with_pathspecs_on_stdin(&arguments, &selection.paths, timeout);
        // A hook that runs after the commit may fail or hang although the commit exists.
        if let Some(id) = git::head_commit(self.folder).filter(|id| Some(id) != previous_head) {
            return Ok(id);
        }
        if selection.untracked_paths.is_empty() {
            // There are no intent-to-add entries to undo.
        } else if index.read_bytes() == index_with_intent_to_add {
            index.restore_or_remove_under_lock(index_before.as_deref());
        } else {
            // Another program has written the index in the meantime, so only our entries are removed.
            let _ = self.run_index_command(&["reset", "--quiet"], &selection.untracked_paths);
        }
        Err(if outcome.timed_out {
            GitError::CommitTimedOut(timeout)
        } else {
            GitError::Failed(git_output::fatal_message_or_last_output_line(&outcome))
        })
    }

    fn run_index_command(&self, arguments: &[&str], paths: &[Vec<u8>]) -> Result<(), GitError> {
        let outcome = self.run_git_with_pathspecs_on_stdin(arguments, paths, SELECTION_TIMEOUT);
        if outcome.succeeded() {
            Ok(())
        } else {
            Err(GitError::Failed(git_output::fatal_message_or_last_output_line(&outcome)))
        }
    }

    fn run_git_with_pathspecs_on_stdin(
        &self,
        arguments: &[&str],
        paths: &[Vec<u8>],
        timeout: Duration,
    ) -> crate::CommandOutcome {
        // Paths are passed on standard input because thousands of them may not fit on a command line.
        let arguments = [arguments, &["--pathspec-from-file=-", "--pathspec-file-nul"]].concat();
        let command = self.writer.command(&arguments);
        let input = Some(to_literal_pathspecs(paths));
        child::run(
            command,
            ChildOptions { input, grace_period: HOOK_GRACE_PERIOD, ..ChildOptions::with_timeout(timeout) },
        )
    }
}

/// Marks each path as literal. `GIT_LITERAL_PATHSPECS` would also affect the user's hooks: their
/// `git diff -- '*.js'` would no longer find any file.
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

    fn wait_for_unlock_or_timeout_error(&self) -> Result<(), GitError> {
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

    /// Replaces the index with these bytes, or removes it if `None`, as git does: under its lock, by a rename. Does
    /// nothing if the lock is not available.
    fn restore_or_remove_under_lock(&self, bytes: Option<&[u8]>) {
        let is_unlocked = self.wait_for_unlock_or_timeout_error().is_ok();
        // If this process is killed after this point, the lock remains, as it does after a killed git process.
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
    text::truncate_end(&text::to_safe_single_line(&strip_ansi_control_sequences(reason)), MAX_REASON_CHARS)
}

/// Removes the color codes that hooks print: an escape character, a bracket, parameters, and a letter.
fn strip_ansi_control_sequences(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let text_before_first_code = parts.next().unwrap_or_default().to_owned();
    let is_final_character = |character: char| character.is_ascii_alphabetic();
    parts.fold(text_before_first_code, |kept_text, part| {
        kept_text + part.split_once(is_final_character).map_or("", |(_, text_after_code)| text_after_code)
    })
}

#[cfg(test)]
pub(crate) mod tests;
