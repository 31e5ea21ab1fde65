//! Plimsoll's own repository, a bare copy of the user's clone. Whatever sessions write into the clone's `.git`
//! (references, objects, attributes, grafts, replacements) has no effect on it: it stores its own objects, and
//! each commit that it fetches from the clone is verified.
//!
//! It is copied from the clone before the first session, file by file, because a copy takes a fraction of the
//! time of a fetch. Later commits are fetched with `git fetch`, which recomputes each object's id and runs git's
//! checks (`fsckObjects`).

mod commit_rewrite;

use crate::child::{self, ChildOptions};
use crate::git::{self, AllowedPrograms, ChangeSummary, GitWriter, offline_plimsoll_repository_command};
use crate::{CommandOutcome, git_output};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_store::layout::{find_git_folder, shared_git_folder};
use plimsoll_store::{Durability, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The timeout for copying a large repository, and for repacking it if it uses alternates.
const COPY_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The timeout for a fetch between two repositories on this machine.
const FETCH_TIMEOUT: Duration = Duration::from_secs(300);
/// The timeout for queries to our own repository.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum length of git's message in an error.
const MAX_REASON_CHARS: usize = 500;
/// The fetch command without tags, submodules and `FETCH_HEAD`; the repository and the refspecs follow it.
const FETCH_ARGUMENTS: [&str; 6] =
    ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--"];
/// The maximum size of a list of commits. A commit id has 41 or 65 bytes with its line break, so the list can have a
/// million of them.
const MAX_COMMIT_LIST_BYTES: usize = 65 * 1024 * 1024;
/// The maximum size of a file that is read from a commit.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
/// The maximum size of a diff stat; lines beyond it are dropped.
const MAX_DIFF_STAT_BYTES: usize = 8 * 1024;
/// Before a repository of at least this many bytes is copied, the user is informed.
pub const LARGE_REPOSITORY_BYTES: u64 = 1 << 30;

/// Prefixes of clone settings that affect the content of files and commits, and the programs that filter and sign
/// them. They are copied only from the clone's `.git/config`, which the sandbox protects, not from included files.
const COPIED_SETTING_PREFIXES: &[&str] = &[
    "user.",
    "author.",
    "committer.",
    "i18n.",
    "filter.",
    "merge.",
    "diff.",
    "gpg.",
    "lfs.",
    "commit.gpgsign",
];
const COPIED_SETTINGS: &[&str] = &[
    "core.autocrlf",
    "core.checkroundtripencoding",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.safecrlf",
    "core.symlinks",
    "core.whitespace",
];

/// The error of an operation on our own repository.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlimsollRepositoryError {
    /// The clone could not be copied.
    #[error("cannot copy the repository to {}: {reason}", folder.display())]
    CopyFailed {
        /// The folder of the copy.
        folder: PathBuf,
        /// Git's message.
        reason: String,
    },
    /// The disk could not be read or written.
    #[error("cannot write our own repository: {0}")]
    WriteFailed(String),
    /// A commit is missing, or its objects do not match their ids.
    #[error("the commit {commit} cannot be taken over: {reason}")]
    BadCommit {
        commit: CommitId,
        /// Git's message.
        reason: String,
    },
    /// The commits between two commits could not be listed.
    #[error("cannot list the commits from {start} to {tip}: {reason}")]
    CannotListCommits {
        start: CommitId,
        tip: CommitId,
        /// Git's message.
        reason: String,
    },
    /// A file of a commit could not be read.
    #[error("cannot read {} in the commit {commit}: {reason}", to_safe_single_line(.file.as_str()))]
    CannotReadFile {
        commit: CommitId,
        file: RepoPath,
        /// Git's message.
        reason: String,
    },
    /// A commit could not be transferred to the clone.
    #[error("the clone cannot take over the commit {commit}: {reason}")]
    TransferFailed {
        commit: CommitId,
        /// Git's message.
        reason: String,
    },
    /// The clone has objects that do not match their ids.
    #[error("the clone's git objects were damaged during the run: {0}")]
    DamagedObjects(String),
}

impl From<StoreError> for PlimsollRepositoryError {
    fn from(error: StoreError) -> PlimsollRepositoryError {
        PlimsollRepositoryError::WriteFailed(error.to_string())
    }
}

/// Plimsoll's own copy of the user's clone.
#[derive(Debug, Clone)]
pub struct PlimsollRepository {
    /// The clone's working tree.
    clone_root: PathBuf,
    /// The git folder that all worktrees of the clone share.
    clone_git_folder: PathBuf,
    git_folder: PathBuf,
}

impl PlimsollRepository {
    /// Opens the repository in `git_folder`, or creates it as a copy of the clone if it does not exist.
    pub fn open_or_copy_from_clone(
        clone_root: &Path,
        git_folder: &Path,
    ) -> Result<PlimsollRepository, PlimsollRepositoryError> {
        let worktree_git_folder = find_git_folder(clone_root).unwrap_or_else(|| clone_root.join(".git"));
        let clone_git_folder = disk::canonicalize_or_keep(
            &shared_git_folder(&worktree_git_folder).unwrap_or(worktree_git_folder),
        );
        let plimsoll_repository = PlimsollRepository {
            clone_root: clone_root.to_owned(),
            clone_git_folder,
            git_folder: git_folder.to_owned(),
        };
        if !disk::exists(&git_folder.join("HEAD")) {
            plimsoll_repository.copy_from_clone_via_temporary_folder()?;
        }
        Ok(plimsoll_repository)
    }

    pub fn git_folder(&self) -> &Path {
        &self.git_folder
    }

    /// Returns the clone's working tree.
    pub(crate) fn clone_root(&self) -> &Path {
        &self.clone_root
    }

    /// Returns the git folder that all worktrees of the clone share.
    pub(crate) fn clone_git_folder(&self) -> &Path {
        &self.clone_git_folder
    }

    /// Copies the clone's objects, branches, settings and git-crypt keys into a temporary folder, which is
    /// renamed at the end. If the process is killed, the next copy removes the temporary folder.
    fn copy_from_clone_via_temporary_folder(&self) -> Result<(), PlimsollRepositoryError> {
        let temporary_folder = self.git_folder.with_extension("draft");
        disk::remove_folder_and_contents(&temporary_folder)?;
        if let Some(parent) = self.git_folder.parent() {
            disk::create_folder(parent)?;
        }
        let (source, target) = (self.clone_git_folder.to_string_lossy(), temporary_folder.to_string_lossy());
        // No hard links and no alternates: a program that modifies the clone's objects must not modify ours.
        let arguments = [
            "clone",
            "--quiet",
            "--bare",
            "--no-hardlinks",
            "--dissociate",
            "--no-tags",
            "--template=",
            "--",
            &*source,
            &*target,
        ];
        let parent = temporary_folder.parent().unwrap_or(&self.clone_root);
        let outcome = child::run(
            offline_plimsoll_repository_command(None, parent, &arguments),
            ChildOptions::with_timeout(COPY_TIMEOUT),
        );
        if !outcome.succeeded() {
            return Err(self.copy_error(&outcome));
        }
        let temporary_repository =
            PlimsollRepository { git_folder: temporary_folder.clone(), ..self.clone() };
        // These files are caches, and a session of an earlier run may have tampered with them.
        for name in ["pack/multi-pack-index", "info/commit-graph"] {
            disk::remove_if_exists(&temporary_folder.join("objects").join(name))?;
        }
        for name in ["pack/multi-pack-index.d", "info/commit-graphs"] {
            disk::remove_folder_and_contents(&temporary_folder.join("objects").join(name))?;
        }
        temporary_repository.copy_selected_settings_and_configure_lfs()?;
        temporary_repository.copy_git_crypt_keys()?;
        Ok(disk::rename(&temporary_folder, &self.git_folder)?)
    }

    fn copy_error(&self, outcome: &CommandOutcome) -> PlimsollRepositoryError {
        PlimsollRepositoryError::CopyFailed {
            folder: self.git_folder.clone(),
            reason: error_message(outcome),
        }
    }

    fn copy_selected_settings_and_configure_lfs(&self) -> Result<(), PlimsollRepositoryError> {
        let config_file = self.clone_git_folder.join("config");
        let config_path = config_file.to_string_lossy();
        let outcome = self.run_offline_git(&["config", "--file", &config_path, "--null", "--list"]);
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let should_copy = |key: &str| {
            COPIED_SETTINGS.contains(&key)
                || COPIED_SETTING_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        };
        let settings =
            output.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
        for (key, value) in settings.filter(|(key, _)| should_copy(key)) {
            self.set_config(key, value)?;
        }
        // The clone may use a folder elsewhere for git-lfs contents.
        self.set_config("lfs.storage", "lfs")?;
        // If the content of a git-lfs pointer is missing, the pointer file is checked out.
        self.set_config("lfs.skipdownloaderrors", "true")
    }

    /// Writes a setting of this repository.
    pub(crate) fn set_config(&self, key: &str, value: &str) -> Result<(), PlimsollRepositoryError> {
        let outcome = self.run_offline_git(&["config", "--local", "--replace-all", key, value]);
        if outcome.succeeded() { Ok(()) } else { Err(self.copy_error(&outcome)) }
    }

    /// Copies the git-crypt keys from the clone's git folder.
    fn copy_git_crypt_keys(&self) -> Result<(), StoreError> {
        let keys_folder = self.clone_git_folder.join("git-crypt/keys");
        for name in disk::list_names(&keys_folder) {
            for file in disk::list_names(&keys_folder.join(&name)) {
                let key_path = Path::new("git-crypt/keys").join(&name).join(&file);
                if let Some(bytes) = disk::read(&self.clone_git_folder.join(&key_path))? {
                    disk::replace(&self.git_folder.join(&key_path), &bytes, Durability::Lazy)?;
                }
            }
            // Older versions of git-crypt store a single key in a file.
            if let Some(bytes) = disk::read(&keys_folder.join(&name)).ok().flatten() {
                disk::replace(&self.git_folder.join("git-crypt/keys").join(&name), &bytes, Durability::Lazy)?;
            }
        }
        Ok(())
    }

    /// Returns whether the repository has a commit.
    pub fn has_commit(&self, commit: &CommitId) -> bool {
        self.run_offline_git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).succeeded()
    }

    /// Returns whether `commit` is `tip` or an ancestor of it. Returns false if a commit does not exist.
    pub fn history_contains(&self, tip: &CommitId, commit: &CommitId) -> bool {
        self.run_offline_git(&["merge-base", "--is-ancestor", commit.as_str(), tip.as_str()]).succeeded()
    }

    /// Returns the content of a file in a commit, or `None` if the commit has no such file. Fails if git does, or if the file is larger
    /// than [`MAX_FILE_BYTES`].
    pub fn read_file_in_commit(
        &self,
        commit: &CommitId,
        file: &RepoPath,
    ) -> Result<Option<Vec<u8>>, PlimsollRepositoryError> {
        let read_error = |reason: String| PlimsollRepositoryError::CannotReadFile {
            commit: commit.clone(),
            file: file.clone(),
            reason,
        };
        let listing = self.run_offline_git(&["ls-tree", "-z", commit.as_str(), "--", file.as_str()]);
        if !listing.succeeded() {
            return Err(read_error(error_message(&listing)));
        }
        if listing.stdout.is_empty() {
            return Ok(None);
        }
        let blob = format!("{commit}:{}", file.as_str());
        let arguments = ["cat-file", "blob", &blob];
        let command =
            offline_plimsoll_repository_command(Some(&self.git_folder), &self.git_folder, &arguments);
        let options =
            ChildOptions { max_output_bytes: MAX_FILE_BYTES, ..ChildOptions::with_timeout(QUERY_TIMEOUT) };
        let outcome = child::run(command, options);
        if !outcome.succeeded() {
            return Err(read_error(error_message(&outcome)));
        }
        // Output beyond the maximum is discarded. A part of the file must not look like the whole one.
        if outcome.stdout.len() >= MAX_FILE_BYTES {
            return Err(read_error(format!("it has {MAX_FILE_BYTES} bytes or more")));
        }
        Ok(Some(outcome.stdout))
    }

    /// Returns `start`, if `tip` contains it, and the commits that `tip` contains and `start` does not. It needs two
    /// processes, however many commits there are. Fails if git does, for example because a commit does not exist.
    pub fn list_start_and_later_commits(
        &self,
        start: &CommitId,
        tip: &CommitId,
    ) -> Result<BTreeSet<CommitId>, PlimsollRepositoryError> {
        let list_error = |reason: String| PlimsollRepositoryError::CannotListCommits {
            start: start.clone(),
            tip: tip.clone(),
            reason,
        };
        let commit_range = format!("{start}..{tip}");
        let arguments = ["rev-list", &commit_range, "--"];
        let command =
            offline_plimsoll_repository_command(Some(&self.git_folder), &self.git_folder, &arguments);
        let max_output_bytes = MAX_COMMIT_LIST_BYTES;
        let outcome = child::run(
            command,
            ChildOptions { max_output_bytes, ..ChildOptions::with_timeout(QUERY_TIMEOUT) },
        );
        if !outcome.succeeded() {
            return Err(list_error(error_message(&outcome)));
        }
        // Output beyond the maximum is discarded. A part of the list must not look like the whole one.
        if outcome.stdout.len() >= MAX_COMMIT_LIST_BYTES {
            return Err(list_error(format!("the list has {MAX_COMMIT_LIST_BYTES} bytes or more")));
        }
        let mut commits = String::from_utf8_lossy(&outcome.stdout)
            .lines()
            .map(CommitId::parse)
            .collect::<Result<BTreeSet<CommitId>, _>>()
            .map_err(|error| list_error(error.to_string()))?;
        if self.history_contains(tip, start) {
            commits.insert(start.clone());
        }
        Ok(commits)
    }

    /// Returns whether `target` contains every change of `commit` except changes to `ignored_files`, either as the
    /// same commits or as other commits with the same changes.
    pub fn target_contains_all_changes_of_commit(
        &self,
        target: &CommitId,
        commit: &CommitId,
        ignored_files: &[RepoPath],
    ) -> bool {
        let merge_base_outcome = self.run_offline_git(&["merge-base", target.as_str(), commit.as_str()]);
        let base = CommitId::parse(&git::trimmed_stdout(&merge_base_outcome)).ok();
        // A commit of the target may also tick an item in the plan, so both sides are compared without these
        // files.
        let rewrite_without_ignored_files = |tip: &CommitId| {
            self.rewrite_commits_without_changes_to_files(base.as_ref()?, tip, ignored_files).ok()
        };
        let Some((rewritten_target, rewritten_commit)) =
            rewrite_without_ignored_files(target).zip(rewrite_without_ignored_files(commit))
        else {
            return false;
        };
        let outcome = self.run_offline_git(&["cherry", rewritten_target.as_str(), rewritten_commit.as_str()]);
        outcome.succeeded()
            && !String::from_utf8_lossy(&outcome.stdout).lines().any(|line| line.starts_with('+'))
    }

    /// Fetches a commit and its missing objects from the clone unless it was fetched before. Git recomputes the id
    /// of each fetched object and checks it (`fsckObjects`).
    pub fn fetch_and_verify_commit_from_clone(
        &self,
        commit: &CommitId,
    ) -> Result<(), PlimsollRepositoryError> {
        let reference = format!("refs/plimsoll/taken/{commit}");
        if self.reference_is_commit(&reference, commit) {
            return Ok(());
        }
        let source = self.clone_git_folder.to_string_lossy();
        let refspec = format!("+{commit}:{reference}");
        let settings = ["-c", "fetch.fsckObjects=true"];
        let arguments = [&settings[..], &FETCH_ARGUMENTS, &[&*source, &refspec]].concat();
        let command =
            offline_plimsoll_repository_command(Some(&self.git_folder), &self.git_folder, &arguments);
        let outcome = child::run(command, ChildOptions::with_timeout(FETCH_TIMEOUT));
        if outcome.succeeded() && self.reference_is_commit(&reference, commit) {
            return Ok(());
        }
        Err(PlimsollRepositoryError::BadCommit { commit: commit.clone(), reason: error_message(&outcome) })
    }

    fn reference_is_commit(&self, reference: &str, commit: &CommitId) -> bool {
        let outcome =
            self.run_offline_git(&["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")]);
        outcome.succeeded() && git::trimmed_stdout(&outcome) == commit.as_str()
    }

    /// Empties `folder` and writes the files of a commit into it. No filter runs: filtered files are written as
    /// they are stored.
    pub fn export_unfiltered_files_to_emptied_folder(
        &self,
        commit: &CommitId,
        folder: &Path,
    ) -> Result<(), PlimsollRepositoryError> {
        let bad_commit_error =
            |reason: String| PlimsollRepositoryError::BadCommit { commit: commit.clone(), reason };
        let emptying_result =
            disk::remove_folder_and_contents(folder).and_then(|()| disk::create_folder(folder));
        emptying_result.map_err(|error| bad_commit_error(error.to_string()))?;
        let driver_settings = git::read_settings_disabling_all_drivers(&self.git_folder, folder);
        let driver_settings = driver_settings.map_err(|outcome| bad_commit_error(error_message(&outcome)))?;
        let setting_arguments = driver_settings
            .iter()
            .flat_map(|setting| ["-c".to_owned(), setting.to_string_lossy().into_owned()]);
        let read_tree_arguments = ["read-tree", "--reset", "-u", commit.as_str()].map(str::to_owned);
        let arguments: Vec<String> = setting_arguments.chain(read_tree_arguments).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = offline_plimsoll_repository_command(Some(&self.git_folder), folder, &arguments);
        let index = folder.with_extension("index");
        command.env("GIT_WORK_TREE", folder).env("GIT_INDEX_FILE", &index).env("GIT_ATTR_NOSYSTEM", "1");
        let outcome = child::run(command, ChildOptions::with_timeout(FETCH_TIMEOUT));
        let _ = disk::remove_if_exists(&index);
        if outcome.succeeded() { Ok(()) } else { Err(bad_commit_error(error_message(&outcome))) }
    }

    /// Returns the changes between two commits below `subfolder`, without paths that match a pattern in
    /// `excluded_patterns`. If `base` is `None`, the changes are relative to an empty tree. The diff has at most
    /// `max_diff_bytes` bytes. Returns `None` if git fails.
    pub fn summarize_changes_between(
        &self,
        base: Option<&CommitId>,
        commit: &CommitId,
        subfolder: &Path,
        excluded_patterns: &[&str],
        max_diff_bytes: usize,
    ) -> Option<ChangeSummary> {
        let base = match base {
            Some(base) => base.to_string(),
            None => git::trimmed_stdout(
                &self.run_offline_git_with_input(&["hash-object", "-t", "tree", "--stdin"], Some(Vec::new())),
            ),
        };
        let subfolder = subfolder.to_string_lossy();
        let relative_option = if subfolder.is_empty() {
            "--no-relative".to_owned()
        } else {
            format!("--relative={subfolder}/")
        };
        let path_prefix = if subfolder.is_empty() { String::new() } else { format!("{subfolder}/") };
        let excluded_pathspecs: Vec<String> =
            excluded_patterns.iter().map(|pattern| format!(":(exclude){path_prefix}{pattern}")).collect();
        let run_diff = |option: &str, max_bytes: usize| {
            let options = [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                &relative_option,
                option,
                &base,
                commit.as_str(),
                "--",
                ".",
            ];
            let arguments: Vec<&str> =
                options.into_iter().chain(excluded_pathspecs.iter().map(String::as_str)).collect();
            let command =
                offline_plimsoll_repository_command(Some(&self.git_folder), &self.git_folder, &arguments);
            // One byte more than the limit, to detect that the output is longer.
            let outcome = child::run(
                command,
                ChildOptions { max_output_bytes: max_bytes + 1, ..ChildOptions::with_timeout(QUERY_TIMEOUT) },
            );
            outcome.succeeded().then(|| git::truncate_to_whole_lines(outcome.stdout, max_bytes))
        };
        let (diff_stat, _) = run_diff("--stat=100", MAX_DIFF_STAT_BYTES)?;
        let (diff, is_truncated) = run_diff("--patch", max_diff_bytes)?;
        Some(ChangeSummary { diff_stat, diff, is_truncated, untracked_files: Vec::new() })
    }

    /// Transfers a commit to the clone without creating a reference to it.
    pub fn transfer_commit_to_clone_without_reference(
        &self,
        commit: &CommitId,
    ) -> Result<(), PlimsollRepositoryError> {
        let source = self.git_folder.to_string_lossy();
        let settings = ["-c", "protocol.file.allow=always", "-c", "protocol.version=2"];
        let arguments = [&settings[..], &FETCH_ARGUMENTS, &[&*source, commit.as_str()]].concat();
        let outcome = git::run_write_command(
            &self.clone_root,
            AllowedPrograms::TrustedDrivers,
            &arguments,
            FETCH_TIMEOUT,
        );
        if outcome.succeeded() {
            return Ok(());
        }
        Err(PlimsollRepositoryError::TransferFailed {
            commit: commit.clone(),
            reason: error_message(&outcome),
        })
    }

    /// Transfers a commit to the clone and points a reference of the clone to it, so that `git gc` keeps the commit
    /// and the user can find it. `reference` begins with `refs/`.
    pub fn transfer_commit_and_set_clone_reference(
        &self,
        reference: &str,
        commit: &CommitId,
    ) -> Result<(), PlimsollRepositoryError> {
        if git::object_id_of_revision(&self.clone_root, reference).as_ref() == Some(commit) {
            return Ok(());
        }
        self.transfer_commit_to_clone_without_reference(commit)?;
        let arguments = ["update-ref", "--no-deref", reference, commit.as_str()];
        let outcome = git::run_write_command(
            &self.clone_root,
            AllowedPrograms::TrustedDrivers,
            &arguments,
            QUERY_TIMEOUT,
        );
        if outcome.succeeded() {
            return Ok(());
        }
        Err(PlimsollRepositoryError::TransferFailed {
            commit: commit.clone(),
            reason: error_message(&outcome),
        })
    }

    /// Verifies the ids of the objects that were written into the clone since `start_time`. A session can replace
    /// an object with the content of another object: git reads it without an error, but cloning the clone fails.
    ///
    /// The objects are packed, and `git verify-pack` recomputes their ids: git offers no other way to verify only
    /// some objects. New files are recognized by their ctime, which a session cannot set.
    pub fn verify_clone_objects_written_since(
        &self,
        start_time: SystemTime,
    ) -> Result<(), PlimsollRepositoryError> {
        let objects_folder = self.clone_git_folder.join("objects");
        let is_changed_since_start =
            |path: &Path| disk::changed_at(path).is_some_and(|changed_at| changed_at >= start_time);
        let mut loose_objects = Vec::new();
        for folder in disk::list_names(&objects_folder).into_iter().filter(|name| name.len() == 2) {
            let names = disk::list_names(&objects_folder.join(&folder)).into_iter();
            let new_names =
                names.filter(|name| is_changed_since_start(&objects_folder.join(&folder).join(name)));
            loose_objects.extend(
                new_names.map(|name| format!("{folder}{name}")).filter(|id| CommitId::parse(id).is_ok()),
            );
        }
        self.verify_loose_objects_by_packing_them(&loose_objects)?;
        let packs_folder = objects_folder.join("pack");
        for name in disk::list_names(&packs_folder).into_iter().filter(|name| name.ends_with(".idx")) {
            if is_changed_since_start(&packs_folder.join(&name))
                || is_changed_since_start(&packs_folder.join(name.replace(".idx", ".pack")))
            {
                self.verify_pack(&packs_folder.join(&name))?;
            }
        }
        let multi_pack_index = packs_folder.join("multi-pack-index");
        if is_changed_since_start(&multi_pack_index)
            || is_changed_since_start(&packs_folder.join("multi-pack-index.d"))
        {
            let arguments = ["-c", "core.multiPackIndex=true", "multi-pack-index", "verify"];
            let outcome = git::run_write_command(
                &self.clone_root,
                AllowedPrograms::TrustedDrivers,
                &arguments,
                FETCH_TIMEOUT,
            );
            if !outcome.succeeded() {
                return Err(PlimsollRepositoryError::DamagedObjects(error_message(&outcome)));
            }
        }
        Ok(())
    }

    fn verify_loose_objects_by_packing_them(&self, ids: &[String]) -> Result<(), PlimsollRepositoryError> {
        if ids.is_empty() {
            return Ok(());
        }
        let scratch_folder = self.git_folder.join("plimsoll-check");
        let _ = disk::remove_folder_and_contents(&scratch_folder);
        disk::create_folder(&scratch_folder)
            .map_err(|error| PlimsollRepositoryError::DamagedObjects(error.to_string()))?;
        let pack_prefix = scratch_folder.join("pack");
        let writer = GitWriter::new(&self.clone_root, AllowedPrograms::TrustedDrivers);
        let outcome = match &writer {
            Ok(writer) => {
                let pack_prefix = pack_prefix.to_string_lossy();
                let command = writer.command(&["pack-objects", "--quiet", "--window=0", &pack_prefix]);
                let input = Some((ids.join("\n") + "\n").into_bytes());
                child::run(command, ChildOptions { input, ..ChildOptions::with_timeout(FETCH_TIMEOUT) })
            }
            Err(outcome) => outcome.clone(),
        };
        let result = if outcome.succeeded() {
            let mut index_names =
                disk::list_names(&scratch_folder).into_iter().filter(|name| name.ends_with(".idx"));
            index_names.try_for_each(|name| self.verify_pack(&scratch_folder.join(name)))
        } else {
            Err(PlimsollRepositoryError::DamagedObjects(error_message(&outcome)))
        };
        let _ = disk::remove_folder_and_contents(&scratch_folder);
        result
    }

    fn verify_pack(&self, index_file: &Path) -> Result<(), PlimsollRepositoryError> {
        let outcome = self.run_offline_git(&["verify-pack", &index_file.to_string_lossy()]);
        if outcome.succeeded() {
            Ok(())
        } else {
            Err(PlimsollRepositoryError::DamagedObjects(error_message(&outcome)))
        }
    }

    /// Runs a git command in this repository that needs no working tree and no network.
    pub(crate) fn run_offline_git(&self, arguments: &[&str]) -> CommandOutcome {
        self.run_offline_git_with_input(arguments, None)
    }

    pub(crate) fn run_offline_git_with_input(
        &self,
        arguments: &[&str],
        input: Option<Vec<u8>>,
    ) -> CommandOutcome {
        let command =
            offline_plimsoll_repository_command(Some(&self.git_folder), &self.git_folder, arguments);
        child::run(command, ChildOptions { input, ..ChildOptions::with_timeout(QUERY_TIMEOUT) })
    }
}

/// Returns the size of a clone's objects in bytes; `None` if git fails.
pub fn size_of_clone_objects_in_bytes(clone_root: &Path) -> Option<u64> {
    let outcome = git::run_query(clone_root, &["count-objects", "-v"]);
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let parse_value =
        |name: &str| output.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((parse_value("size:")? + parse_value("size-pack:")?) * 1_024)
}

/// Returns whether a clone lacks objects that git would fetch when they are needed.
pub fn is_partial_clone(clone_root: &Path) -> bool {
    let arguments =
        ["config", "--get-regexp", r"^extensions\.partialclone$|^remote\..*\.(promisor|partialclonefilter)$"];
    git::run_query(clone_root, &arguments).succeeded()
}

pub(crate) fn error_message(outcome: &CommandOutcome) -> String {
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let message = if errors.trim().is_empty() {
        git_output::fatal_message_or_last_output_line(outcome)
    } else {
        errors.into_owned()
    };
    truncate_end(&to_safe_single_line(message.trim()), MAX_REASON_CHARS)
}
