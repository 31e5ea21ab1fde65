//! The work-in-progress commit at a checkpoint: what is in the working tree, and nothing that could hurt.
//!
//! Hooks do not run, and of filters only those that are no part of the project, unless the user allows it ([`AllowedPrograms`]):
//! the session may have written what they run. Git commits exactly the chosen paths (`--only`), so what somebody has staged beside them stays staged. Files
//! that git does not follow yet are announced to the index first; if the commit fails that is taken back.

mod filters;
mod shown;

use crate::changes::{self, Change, FolderInTree};
use crate::child::{self, Terms};
use crate::git::question;
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

/// Hooks of the user may run his tests; one that hangs must not hang the checkpoint for ever.
pub const COMMIT_DEADLINE: Duration = Duration::from_secs(120);
/// Choosing what to commit is git's work of a moment.
const CHOICE_DEADLINE: Duration = Duration::from_secs(20);
/// A hook that has put changes aside needs a moment to bring them back when it is ended.
const HOOK_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Another git, often an editor's, holds the index for a moment only.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// A larger new file is hardly work, and a history never forgets it.
const LARGEST_NEW: u64 = 10 * 1024 * 1024;
/// How long all files together are searched for secrets; what has not been searched by then is left out.
const SEARCH_DEADLINE: Duration = Duration::from_secs(30);
/// Git's list of a million files is a tenth of it.
const LARGEST_INDEX: u64 = 1024 * 1024 * 1024;
/// So long may a reason be.
const LONGEST_REASON: usize = 200;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wip {
    /// Nothing to commit, or no git.
    Nothing,
    /// It is committed.
    Committed {
        /// The commit.
        id: CommitId,
        /// So many files changed in it.
        files: usize,
        /// What looks like a secret, is too big, cannot be read, is a repository of its own, was taken out of the
        /// index by somebody, or is under a filter that is missing, fails or may not run: not committed, and as it was.
        left_out: Vec<String>,
        /// The filters that were not run because they belong to the project ([`AllowedPrograms`]), and whose files are among
        /// those left out.
        forbidden_filters: Vec<String>,
    },
    /// It could not or should not be; everything is as it was.
    Refused {
        /// Why, in one line.
        why: String,
    },
}

/// Commits on the current branch what is dirty or untracked below this folder; never what git ignores, what is
/// ours (asked with paths from the folder on), what looks like a secret, or large new files. `allowed` says which hooks and
/// filters run; files under a filter that may not run are left out.
pub fn commit_wip(
    folder: &Path,
    message: &str,
    is_ours: &dyn Fn(&str) -> bool,
    allowed: AllowedPrograms,
) -> Wip {
    commit_within(folder, message, is_ours, allowed, COMMIT_DEADLINE)
}

/// Returns the files below this folder that differ from HEAD, without those that git ignores and those that are ours: after
/// [`commit_wip`] they are what it left out. None if git cannot say.
pub fn uncommitted_files(
    folder: &Path,
    is_ours: &dyn Fn(&str) -> bool,
    allowed: AllowedPrograms,
) -> Option<Vec<String>> {
    let limit = TimeLimit::within(CHOICE_DEADLINE);
    let writer = GitWriter::new(folder, allowed).ok()?;
    let changes = changes::since_head(folder, git::head(folder).as_ref(), Some(&writer), limit).ok()?;
    Some(changes.iter().map(Change::name).filter(|name| !is_ours(name)).collect())
}

fn commit_within(
    folder: &Path,
    message: &str,
    is_ours: &dyn Fn(&str) -> bool,
    allowed: AllowedPrograms,
    deadline: Duration,
) -> Wip {
    attempt(folder, message, is_ours, allowed, deadline)
        .unwrap_or_else(|why| Wip::Refused { why: in_one_line(&why.to_string()) })
}

fn attempt(
    folder: &Path,
    message: &str,
    is_ours: &dyn Fn(&str) -> bool,
    allowed: AllowedPrograms,
    deadline: Duration,
) -> Result<Wip, GitError> {
    let limit = TimeLimit::within(CHOICE_DEADLINE);
    let Some(place) = FolderInTree::of(folder, limit)? else { return Ok(Wip::Nothing) };
    refuse_if_busy(folder, &place, limit)?;
    let head = git::head(folder);
    let mut choice = Choice::default();
    let search_limit = TimeLimit::within(SEARCH_DEADLINE);
    let writer = GitWriter::new(folder, allowed);
    let mut writer = writer.map_err(|outcome| GitError::Failed(git_output::last_words(&outcome)))?;
    let filtering = (allowed != AllowedPrograms::Nothing).then_some(&writer);
    for change in changes::since_head(folder, head.as_ref(), filtering, limit)? {
        if !is_ours(&change.name()) {
            choice.consider(folder, change, search_limit);
        }
    }
    let forbidden_filters = match allowed {
        AllowedPrograms::Nothing => filters::leave_all_out(folder, head.as_ref(), &mut choice, limit)?,
        _ => filters::sift(&mut writer, &place, head.as_ref(), &mut choice, limit)?,
    };
    if choice.paths.is_empty() {
        return Ok(Wip::Nothing);
    }
    let index = IndexFile::of(folder, limit)?;
    index.wait_until_free()?;
    let id = Commit { folder, writer: &writer }.make(message, &choice, &index, head.as_ref(), deadline)?;
    Ok(Wip::Committed { id, files: choice.paths.len(), left_out: choice.left_out, forbidden_filters })
}

/// In the middle of something, a commit would end it or become a part of it.
fn refuse_if_busy(folder: &Path, place: &FolderInTree, limit: TimeLimit) -> Result<(), GitError> {
    const SIGNS: [(&str, &str); 6] = [
        // Before the next one: `git am` has that folder, too.
        ("rebase-apply/applying", "git am"),
        ("rebase-apply", "a rebase"),
        ("rebase-merge", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("BISECT_LOG", "a bisect"),
        ("sequencer", "a series of cherry-picks or reverts"),
    ];
    const REFERENCES: [(&str, &str); 2] =
        [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")];
    let own_folder = path_from(folder, &["rev-parse", "--absolute-git-dir"], limit)?;
    let sign = SIGNS.iter().find(|(sign, _)| own_folder.join(sign).exists());
    // These two are files only in the older kind of repository: git itself knows.
    let is_there = |name: &str| {
        question::answer(folder, &["rev-parse", "--verify", "--quiet", name], None, limit).is_ok()
    };
    let reference = || REFERENCES.iter().find(|(name, _)| is_there(name));
    if let Some((_, what)) = sign.or_else(reference) {
        return Err(GitError::Busy(what));
    }
    let unmerged = question::answer(&place.root, &["ls-files", "--unmerged", "-z"], None, limit)?;
    if unmerged.is_empty() { Ok(()) } else { Err(GitError::Conflicts) }
}

fn path_from(folder: &Path, question: &[&str], limit: TimeLimit) -> Result<PathBuf, GitError> {
    let answer = question::answer(folder, question, None, limit)?;
    Ok(folder.join(OsStr::from_bytes(answer.strip_suffix(b"\n").unwrap_or(&answer))))
}

/// What is to be committed, and what is passed over.
#[derive(Debug, Default)]
struct Choice {
    paths: Vec<Vec<u8>>,
    /// Those of them that git does not follow yet.
    new: Vec<Vec<u8>>,
    /// Taken out of the index though they lie on the disk: somebody's decision, not ours to undo.
    unfollowed: BTreeSet<Vec<u8>>,
    left_out: Vec<String>,
}

impl Choice {
    fn consider(&mut self, folder: &Path, change: Change, search_limit: TimeLimit) {
        let path = folder.join(OsStr::from_bytes(&change.path));
        match path.symlink_metadata() {
            Err(_) if change.is_tracked && change.mode.is_none() => self.take_unless_secret(change),
            // Staged and gone again: only the index has it, and keeps it.
            Err(_) => {}
            Ok(found) if found.is_dir() => match change.mode.as_deref() {
                Some("160000") => self.paths.push(change.path),
                _ if change.is_tracked => {} // What lies in the folder takes the file's place.
                _ => self.left_out.push(change.name()),
            },
            Ok(_) if change.is_tracked && change.mode.is_none() => {
                self.left_out.push(change.name());
                self.unfollowed.insert(change.path);
            }
            Ok(_) if self.unfollowed.contains(&change.path) => {}
            Ok(found) if found.is_symlink() => self.take_unless_secret(change),
            Ok(found) => {
                let is_too_big = !change.is_tracked && found.len() > LARGEST_NEW;
                let is_named = plimsoll_secrets::is_secret_name(&change.name());
                if is_too_big || is_named || !found.is_file() || !shown::may_be_shown(&path, search_limit) {
                    self.left_out.push(change.name());
                } else {
                    self.take_unless_secret(change);
                }
            }
        }
    }

    fn leave_out(&mut self, paths: &BTreeSet<Vec<u8>>) {
        let is_left_out = |path: &Vec<u8>| paths.contains(path);
        self.paths.retain(|path| !is_left_out(path));
        self.new.retain(|path| !is_left_out(path));
        self.left_out.extend(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()));
    }

    fn take_unless_secret(&mut self, change: Change) {
        if plimsoll_secrets::is_secret_name(&change.name()) {
            self.left_out.push(change.name());
            return;
        }
        if !change.is_tracked {
            self.new.push(change.path.clone());
        }
        self.paths.push(change.path);
    }
}

/// Two or three gits that read their paths from their input.
struct Commit<'a> {
    folder: &'a Path,
    writer: &'a GitWriter<'a>,
}

impl Commit<'_> {
    fn make(
        &self,
        message: &str,
        choice: &Choice,
        index: &IndexFile,
        before: Option<&CommitId>,
        deadline: Duration,
    ) -> Result<CommitId, GitError> {
        let untouched = index.read();
        if !choice.new.is_empty() {
            // A kill from here to the commit leaves new files announced in the index, without content; no work is lost.
            self.change_index(&["add", "--intent-to-add"], &choice.new)?;
        }
        let announced = index.read();
        let message = format!("--message={message}");
        // With nothing to commit it would show the status, also of what is in submodules.
        let arguments = ["commit", "--quiet", "--allow-empty", "--only", &message];
        let outcome = self.git(&arguments, &choice.paths, deadline);
        // A hook that runs after the commit may fail or hang, and the commit stands.
        if let Some(id) = git::head(self.folder).filter(|id| Some(id) != before) {
            return Ok(id);
        }
        if choice.new.is_empty() {
            // Then nothing had been announced.
        } else if index.read() == announced {
            index.put_back(untouched.as_deref());
        } else {
            // Another program has written it meanwhile: only what is ours is taken back.
            let _ = self.change_index(&["reset", "--quiet"], &choice.new);
        }
        Err(if outcome.timed_out {
            GitError::CommitTookTooLong(deadline)
        } else {
            GitError::Failed(git_output::last_words(&outcome))
        })
    }

    fn change_index(&self, what: &[&str], paths: &[Vec<u8>]) -> Result<(), GitError> {
        let outcome = self.git(what, paths, CHOICE_DEADLINE);
        if outcome.succeeded() { Ok(()) } else { Err(GitError::Failed(git_output::last_words(&outcome))) }
    }

    fn git(&self, arguments: &[&str], paths: &[Vec<u8>], deadline: Duration) -> crate::Outcome {
        // From its input: many thousand paths do not fit on a command line.
        let arguments = [arguments, &["--pathspec-from-file=-", "--pathspec-file-nul"]].concat();
        let command = self.writer.command(&arguments);
        let input = Some(as_pathspecs(paths));
        child::run(command, Terms { input, grace_period: HOOK_GRACE_PERIOD, ..Terms::within(deadline) })
    }
}

/// Each path says for itself that it means what it says. `GIT_LITERAL_PATHSPECS` would say so for all, and for
/// the user's hooks too: their `git diff -- '*.js'` would find nothing any more.
fn as_pathspecs(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|path| [b":(literal)", path.as_slice(), b"\0"].concat()).collect()
}

/// Git's list of what is staged.
struct IndexFile(PathBuf);

impl IndexFile {
    fn of(folder: &Path, limit: TimeLimit) -> Result<IndexFile, GitError> {
        // Asked of git: each linked worktree has an index of its own.
        path_from(folder, &["rev-parse", "--git-path", "index"], limit).map(IndexFile)
    }

    fn lock(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    fn wait_until_free(&self) -> Result<(), GitError> {
        let started = Instant::now();
        while self.lock().exists() {
            if started.elapsed() > LOCK_TIMEOUT {
                return Err(GitError::IndexLocked);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// None before the first `git add`.
    fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        disk::open(&self.0).ok()?.take(LARGEST_INDEX).read_to_end(&mut bytes).ok()?;
        ((bytes.len() as u64) < LARGEST_INDEX).then_some(bytes)
    }

    /// The way git itself replaces it: under its lock, in one step.
    fn put_back(&self, bytes: Option<&[u8]>) {
        let is_free = self.wait_until_free().is_ok();
        // A kill from here on leaves git's lock behind, as one of git itself would.
        let lock = OpenOptions::new().write(true).create_new(true).open(self.lock());
        let (true, Ok(mut lock)) = (is_free, lock) else { return };
        let permissions = std::fs::metadata(&self.0).map(|found| found.permissions());
        let written = bytes.is_some_and(|bytes| lock.write_all(bytes).is_ok());
        if let Ok(permissions) = permissions {
            let _ = lock.set_permissions(permissions);
        }
        if bytes.is_none() {
            let _ = std::fs::remove_file(&self.0);
        }
        let placed = written && std::fs::rename(self.lock(), &self.0).is_ok();
        if !placed {
            let _ = std::fs::remove_file(self.lock());
        }
    }
}

fn in_one_line(why: &str) -> String {
    text::clip(&text::one_line(&without_colours(why)), LONGEST_REASON)
}

/// Hooks like colours: an escape character, a bracket, numbers, a letter.
fn without_colours(words: &str) -> String {
    let mut parts = words.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_end = |letter: char| letter.is_ascii_alphabetic();
    parts.fold(first, |said, part| said + part.split_once(is_end).map_or("", |(_, rest)| rest))
}

#[cfg(test)]
pub(crate) mod tests;
