//! The repository in which the results of a parallel run are merged and verified. It is a repository of ours
//! with one working tree, outside of all folders that a session may write. What is verified there is what a
//! clone of the merged branch would have.

use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::git::{self, AllowedPrograms, GitWriter};
use crate::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use crate::worktree::{
    RebaseOutcome, WorktreeError, combined_output_or_failure_reason, remove_locks_in_git_folder,
};
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::text::truncate_end;
use plimsoll_store::{Durability, StoreError, disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
#[cfg(test)]
use std::time::SystemTime;

/// Allows for the checkout of a large repository, with filters.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(300);
/// Allows for the commits of one item.
const REBASE_TIMEOUT: Duration = Duration::from_secs(300);
/// The timeout for queries to our own repository.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest git-lfs pointer file; a usual one has about 130 bytes.
const MAX_POINTER_BYTES: u64 = 300;
/// The most bytes of all small files of a repository together.
const MAX_TOTAL_POINTER_BYTES: usize = 256 * 1024 * 1024;
/// The file in the git folder that records that `--setup` has run in the working tree.
const READY_MARKER_FILE: &str = "plimsoll-ready";

/// A repository of ours with a working tree.
#[derive(Debug, Clone)]
pub struct MergeRepository {
    plimsoll_repository: PlimsollRepository,
    work_tree: PathBuf,
    allowed_programs: AllowedPrograms,
}

impl MergeRepository {
    /// Opens or creates the working tree of a repository of ours. Files that an earlier process left in it
    /// are reused.
    pub fn open(
        plimsoll_repository: PlimsollRepository,
        work_tree: &Path,
        allowed_programs: AllowedPrograms,
    ) -> Result<MergeRepository, WorktreeError> {
        let merge_repository =
            MergeRepository { plimsoll_repository, work_tree: work_tree.to_owned(), allowed_programs };
        let config_error =
            |error: StoreError| WorktreeError::Refused { operation: "config", reason: error.to_string() };
        merge_repository.plimsoll_repository.set_config("core.bare", "false")?;
        disk::create_folder(work_tree).map_err(config_error)?;
        // As in the git folder of a worktree, this file proves that the working tree belongs to the
        // repository.
        let git_file_path = format!("{}\n", work_tree.join(".git").display());
        disk::replace(
            &merge_repository.plimsoll_repository.git_folder().join("gitdir"),
            git_file_path.as_bytes(),
            Durability::Lazy,
        )
        .map_err(config_error)?;
        remove_locks_in_git_folder(merge_repository.plimsoll_repository.git_folder(), work_tree);
        Ok(merge_repository)
    }

    /// Returns the repository without its working tree.
    pub fn plimsoll_repository(&self) -> &PlimsollRepository {
        &self.plimsoll_repository
    }

    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Returns whether [`MergeRepository::mark_ready`] was called for this working tree.
    pub fn is_ready(&self) -> bool {
        disk::read_text(&self.plimsoll_repository.git_folder().join(READY_MARKER_FILE))
            .ok()
            .flatten()
            .as_deref()
            == self.work_tree.to_str()
    }

    /// Records that the working tree needs no more preparation.
    pub fn mark_ready(&self) -> Result<(), StoreError> {
        let path_text = self.work_tree.to_string_lossy();
        disk::replace(
            &self.plimsoll_repository.git_folder().join(READY_MARKER_FILE),
            path_text.as_bytes(),
            Durability::Lazy,
        )
    }

    /// Removes the working tree and, if `with_repository` is true, the repository, too.
    pub fn remove(&self, with_repository: bool) -> Result<(), StoreError> {
        let _ = disk::remove_if_exists(&self.plimsoll_repository.git_folder().join(READY_MARKER_FILE));
        disk::remove_folder_and_contents(&self.work_tree)?;
        if with_repository {
            disk::remove_folder_and_contents(self.plimsoll_repository.git_folder())
        } else {
            Ok(())
        }
    }

    /// Checks out a commit. Ignored files stay, including those that `--setup` created.
    pub fn check_out_commit(&self, commit: &CommitId) -> Result<(), WorktreeError> {
        self.abort_interrupted_rebase();
        self.write_git_file()?;
        self.copy_lfs_objects(commit);
        self.run_write_command("checkout", &["checkout", "--quiet", "--force", "--detach", commit.as_str()])
    }

    /// Writes the `.git` file of the working tree. Verify commands may run git, which finds the repository
    /// through this file. Our own commands do not read it.
    fn write_git_file(&self) -> Result<(), WorktreeError> {
        let text = format!("gitdir: {}\n", self.plimsoll_repository.git_folder().display());
        let file = self.work_tree.join(".git");
        if disk::read_text(&file).ok().flatten().as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        disk::replace(&file, text.as_bytes(), Durability::Lazy)
            .map_err(|error| WorktreeError::Refused { operation: "checkout", reason: error.to_string() })
    }

    /// Rebases the commits after `base` up to `tip` onto another commit.
    pub fn rebase(
        &self,
        tip: &CommitId,
        base: &CommitId,
        new_base: &CommitId,
    ) -> Result<RebaseOutcome, WorktreeError> {
        self.check_out_commit(tip)?;
        let commit_range = format!("{base}..{tip}");
        let count_outcome = self.run_query(&["rev-list", "--count", &commit_range, "--"]);
        if !count_outcome.succeeded() {
            return Err(WorktreeError::Refused {
                operation: "rev-list",
                reason: combined_output_or_failure_reason(&count_outcome),
            });
        }
        if git::trimmed_stdout(&count_outcome) == "0" {
            return Ok(RebaseOutcome::NothingToRebase);
        }
        let arguments = [
            "rebase",
            "--quiet",
            "--no-autostash",
            "--no-autosquash",
            "--onto",
            new_base.as_str(),
            base.as_str(),
        ];
        let outcome = self.run_writer(&arguments, REBASE_TIMEOUT);
        if outcome.succeeded() {
            let new_tip = self.head_commit()?;
            return Ok(if new_tip == *new_base {
                RebaseOutcome::NothingToRebase
            } else {
                RebaseOutcome::Rebased(new_tip)
            });
        }
        let conflicting_files = self.conflicting_files();
        self.abort_interrupted_rebase();
        if outcome.timed_out {
            return Err(WorktreeError::TimedOut("rebase"));
        }
        // A failure without conflicts is one that no session can repair in its branch.
        if conflicting_files.is_empty() {
            return Err(WorktreeError::Refused {
                operation: "rebase",
                reason: combined_output_or_failure_reason(&outcome),
            });
        }
        Ok(RebaseOutcome::Conflict {
            conflicting_files,
            message: combined_output_or_failure_reason(&outcome),
        })
    }

    /// Returns the files with conflicts. Git lists the stages of each file, with the path after a tab.
    fn conflicting_files(&self) -> Vec<String> {
        let outcome = self.run_query(&["ls-files", "--unmerged", "-z"]);
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let mut files: Vec<String> =
            output.split('\0').filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect();
        files.dedup();
        files
    }

    /// Aborts a rebase that a conflict, a timeout or a killed process has left unfinished. A failure is ignored, because
    /// the next rebase then fails and reports it.
    fn abort_interrupted_rebase(&self) {
        let git_folder = self.plimsoll_repository.git_folder();
        if ["rebase-merge", "rebase-apply"].iter().any(|name| disk::exists(&git_folder.join(name))) {
            let _ = self.run_writer(&["rebase", "--abort"], REBASE_TIMEOUT);
        }
    }

    /// Returns the commit that is checked out.
    pub fn head_commit(&self) -> Result<CommitId, WorktreeError> {
        let outcome = self.run_query(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        CommitId::parse(&git::trimmed_stdout(&outcome))
            .map_err(|error| WorktreeError::Refused { operation: "rev-parse", reason: error.to_string() })
    }

    /// Commits one file as it is in the working tree. Returns the new commit.
    pub fn commit_file(&self, file: &RepoPath, message: &str) -> Result<CommitId, WorktreeError> {
        let pathspec = file.to_literal_pathspec();
        self.run_write_command("commit", &["commit", "--quiet", "-m", message, "--only", "--", &pathspec])?;
        self.head_commit()
    }

    /// Adds one file as it is in the working tree to the commit that is checked out, and replaces the
    /// message. Returns the new commit.
    pub fn amend_with_file(&self, file: &RepoPath, message: &str) -> Result<CommitId, WorktreeError> {
        let pathspec = file.to_literal_pathspec();
        let arguments = [
            "commit",
            "--quiet",
            "--amend",
            "--cleanup=whitespace",
            "-m",
            message,
            "--only",
            "--",
            &pathspec,
        ];
        self.run_write_command("commit", &arguments)?;
        self.head_commit()
    }

    /// Returns the files that differ between two commits.
    pub fn changed_files(&self, base: &CommitId, end: &CommitId) -> Vec<String> {
        let arguments = ["diff", "--name-only", "-z", "--no-renames", base.as_str(), end.as_str(), "--"];
        let output = self.run_query(&arguments).stdout;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Returns the message of the commit that is checked out.
    pub fn head_message(&self) -> String {
        git::trimmed_stdout(&self.run_query(&[
            "log",
            "-n1",
            "--no-color",
            "--no-show-signature",
            "--format=%B",
            "HEAD",
            "--",
        ]))
    }

    /// Returns the tree of a commit.
    pub fn tree_of_commit(&self, commit: &CommitId) -> Result<CommitId, WorktreeError> {
        let outcome = self.run_query(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")]);
        CommitId::parse(&git::trimmed_stdout(&outcome))
            .map_err(|error| WorktreeError::Refused { operation: "rev-parse", reason: error.to_string() })
    }

    /// Gives a commit another message. Returns the new commit. Its tree is the same, whatever a verify
    /// command has staged.
    pub fn reword_commit(&self, commit: &CommitId, message: &str) -> Result<CommitId, WorktreeError> {
        if self.head_commit()? != *commit {
            self.check_out_commit(commit)?;
        }
        let arguments = [
            "commit",
            "--quiet",
            "--amend",
            "--only",
            "--allow-empty",
            "--cleanup=whitespace",
            "-m",
            message,
        ];
        self.run_write_command("commit", &arguments)?;
        let reworded = self.head_commit()?;
        if self.tree_of_commit(&reworded)? != self.tree_of_commit(commit)? {
            let reason = format!("the commit {reworded} has other files than {commit}");
            return Err(WorktreeError::Refused { operation: "commit", reason });
        }
        Ok(reworded)
    }

    /// Returns whether `commit` is `tip` or an ancestor of it. Returns false if a commit does not exist.
    pub fn history_contains(&self, tip: &CommitId, commit: &CommitId) -> bool {
        self.plimsoll_repository.history_contains(tip, commit)
    }

    /// Returns the differences between two commits as text, at most `max_chars` characters. `files` limits
    /// the files; if it is empty, all files are compared.
    pub fn diff_text(&self, base: &CommitId, end: &CommitId, files: &[String], max_chars: usize) -> String {
        let arguments = ["diff", "--no-color", base.as_str(), end.as_str(), "--"];
        let pathspecs: Vec<String> = files.iter().map(|file| format!(":(literal){file}")).collect();
        let arguments: Vec<&str> =
            arguments.into_iter().chain(pathspecs.iter().map(String::as_str)).collect();
        truncate_end(&String::from_utf8_lossy(&self.run_query(&arguments).stdout), max_chars)
    }

    /// Copies the git-lfs contents that a commit needs from the clone to our own folder, from which a
    /// checkout reads them. Each content is compared with its id. A pointer whose content the clone lacks
    /// stays a pointer.
    fn copy_lfs_objects(&self, commit: &CommitId) {
        let lfs_attribute_search = self.plimsoll_repository.run_offline_git(&[
            "grep",
            "--quiet",
            "--fixed-strings",
            "filter=lfs",
            commit.as_str(),
            "--",
            ":(glob)**/.gitattributes",
        ]);
        if !lfs_attribute_search.succeeded() {
            return;
        }
        for id in self.lfs_object_ids(commit) {
            let object_path: PathBuf = ["lfs", "objects", &id[..2], &id[2..4], &id].iter().collect();
            let target = self.plimsoll_repository.git_folder().join(&object_path);
            if disk::exists(&target) {
                continue;
            }
            let bytes =
                disk::read(&self.plimsoll_repository.clone_git_folder().join(&object_path)).ok().flatten();
            if let Some(bytes) = bytes.filter(|bytes| sha256_hex(&[bytes]) == id) {
                let _ = disk::replace(&target, &bytes, Durability::Lazy);
            }
        }
    }

    /// Returns the ids of the contents that the git-lfs pointers of a commit name.
    fn lfs_object_ids(&self, commit: &CommitId) -> BTreeSet<String> {
        let outcome =
            self.plimsoll_repository.run_offline_git(&["ls-tree", "-r", "-l", "-z", commit.as_str()]);
        let is_small = |fields: &Vec<&str>| {
            fields
                .get(3)
                .and_then(|size| size.parse::<u64>().ok())
                .is_some_and(|size| size <= MAX_POINTER_BYTES)
        };
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        // Each entry has the form `100644 blob ID    SIZE`, a tab, the path.
        let entries = output.split('\0').filter_map(|entry| entry.split_once('\t'));
        let blobs = entries.map(|(entry, _)| entry.split_whitespace().collect::<Vec<_>>()).filter(is_small);
        let blob_ids: Vec<String> =
            blobs.filter_map(|fields| fields.get(2).map(|id| (*id).to_owned())).collect();
        let input = Some((blob_ids.join("\n") + "\n").into_bytes());
        let command = git::offline_plimsoll_repository_command(
            Some(self.plimsoll_repository.git_folder()),
            self.plimsoll_repository.git_folder(),
            &["cat-file", "--batch"],
        );
        let options = ChildOptions {
            input,
            max_output_bytes: MAX_TOTAL_POINTER_BYTES,
            ..ChildOptions::with_timeout(QUERY_TIMEOUT)
        };
        let contents = String::from_utf8_lossy(&child::run(command, options).stdout).into_owned();
        let pointers = contents.lines().filter_map(|line| line.strip_prefix("oid sha256:"));
        let is_object_id = |id: &&str| id.len() == 64 && CommitId::parse(id).is_ok();
        pointers.filter(is_object_id).map(str::to_owned).collect()
    }

    fn run_write_command(&self, operation: &'static str, arguments: &[&str]) -> Result<(), WorktreeError> {
        let outcome = self.run_writer(arguments, CHECKOUT_TIMEOUT);
        match () {
            () if outcome.succeeded() => Ok(()),
            () if outcome.timed_out => Err(WorktreeError::TimedOut(operation)),
            () => {
                Err(WorktreeError::Refused { operation, reason: combined_output_or_failure_reason(&outcome) })
            }
        }
    }

    fn run_writer(&self, arguments: &[&str], timeout: Duration) -> CommandOutcome {
        // The git folder of a linked worktree, or a separate git folder, does not show where the project's
        // files are.
        let writable_folders = [
            self.work_tree.as_path(),
            self.plimsoll_repository.clone_git_folder(),
            self.plimsoll_repository.clone_root(),
        ];
        match GitWriter::for_plimsoll_repository(
            self.plimsoll_repository.git_folder(),
            &self.work_tree,
            &writable_folders,
            self.allowed_programs,
        ) {
            Ok(writer) => writer.run(arguments, timeout),
            Err(outcome) => git::not_started_outcome(&outcome),
        }
    }

    fn run_query(&self, arguments: &[&str]) -> CommandOutcome {
        let command = git::plimsoll_repository_read_only_command(
            self.plimsoll_repository.git_folder(),
            &self.work_tree,
            arguments,
        );
        child::run(command, ChildOptions::with_timeout(QUERY_TIMEOUT))
    }
}

impl From<PlimsollRepositoryError> for WorktreeError {
    fn from(error: PlimsollRepositoryError) -> WorktreeError {
        WorktreeError::Refused { operation: "fetch", reason: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::tests::{add_worktree, branch, commit_change, create_repository, run_shell};
    use crate::worktree::{move_or_create_branch_if_at_expected_tip, tip_of_branch};

    /// Creates a repository with a first commit, and a repository of ours that is copied from it.
    fn create_merge_repository() -> (tempfile::TempDir, PathBuf, MergeRepository, CommitId) {
        let (folder, repository) = create_repository();
        let first_commit = git::head_commit(&repository).unwrap();
        let merge_repository = open_merge_repository(&folder, &repository);
        merge_repository.check_out_commit(&first_commit).unwrap();
        (folder, repository, merge_repository, first_commit)
    }

    fn open_merge_repository(folder: &tempfile::TempDir, repository: &Path) -> MergeRepository {
        let plimsoll_repository =
            PlimsollRepository::open_or_copy_from_clone(repository, &folder.path().join("merge.git"))
                .unwrap();
        MergeRepository::open(
            plimsoll_repository,
            &folder.path().join("merge"),
            AllowedPrograms::TrustedDrivers,
        )
        .unwrap()
    }

    /// Commits a change in a separate worktree, and fetches the commit into the merge repository.
    fn commit_in_worktree(
        stage: &(tempfile::TempDir, PathBuf, MergeRepository, CommitId),
        name: &str,
        change: &str,
    ) -> CommitId {
        let (folder, repository, merge, first_commit) = stage;
        let worktree = folder.path().join(name);
        if !worktree.exists() {
            add_worktree(repository, &worktree, &format!("p/{name}/1"), first_commit).unwrap();
        }
        let new_commit = commit_change(&worktree, change);
        merge.plimsoll_repository().fetch_and_verify_commit_from_clone(&new_commit).unwrap();
        new_commit
    }

    fn expect_rebased(rebased: Result<RebaseOutcome, WorktreeError>) -> CommitId {
        match rebased {
            Ok(RebaseOutcome::Rebased(tip)) => tip,
            result => panic!("{result:?}"),
        }
    }

    fn read_file(merge_repository: &MergeRepository, file: &str) -> String {
        std::fs::read_to_string(merge_repository.work_tree().join(file)).unwrap()
    }

    #[test]
    fn two_branches_are_merged_in_turn_and_the_users_files_stay() {
        let stage = create_merge_repository();
        let first_branch_commit = commit_in_worktree(&stage, "one", "sed -i 1s/1/one/ a.txt");
        let second_branch_commit = commit_in_worktree(&stage, "two", "sed -i 5s/5/five/ a.txt");
        let (_folder, repository, merge, first_commit) = &stage;
        std::fs::write(repository.join("a.txt"), "the user's\n").unwrap();
        let first_rebased = expect_rebased(merge.rebase(&first_branch_commit, first_commit, first_commit));
        let second_rebased =
            expect_rebased(merge.rebase(&second_branch_commit, first_commit, &first_rebased));
        assert_eq!(read_file(merge, "a.txt"), "one\n2\n3\n4\nfive\n");
        let target = branch("plimsoll/p");
        assert!(
            !move_or_create_branch_if_at_expected_tip(repository, &target, None, &second_rebased),
            "the clone does not have it yet"
        );
        merge.plimsoll_repository().transfer_commit_to_clone_without_reference(&second_rebased).unwrap();
        assert!(move_or_create_branch_if_at_expected_tip(repository, &target, None, &first_rebased));
        assert!(
            !move_or_create_branch_if_at_expected_tip(repository, &target, None, &second_rebased),
            "it is there by now"
        );
        assert!(
            !move_or_create_branch_if_at_expected_tip(
                repository,
                &target,
                Some(first_commit),
                &second_rebased
            ),
            "it has moved"
        );
        assert!(move_or_create_branch_if_at_expected_tip(
            repository,
            &target,
            Some(&first_rebased),
            &second_rebased
        ));
        assert_eq!(tip_of_branch(repository, &target), Some(second_rebased.clone()));
        assert!(
            merge.history_contains(&second_rebased, &first_rebased)
                && !merge.history_contains(&first_rebased, &second_rebased)
        );
        assert_eq!(
            merge.rebase(&first_rebased, first_commit, &second_rebased).unwrap(),
            RebaseOutcome::NothingToRebase,
            "it is in already"
        );
        assert_eq!(
            merge.rebase(&first_rebased, &first_rebased, &second_rebased).unwrap(),
            RebaseOutcome::NothingToRebase,
            "it has nothing"
        );
        assert_eq!(std::fs::read_to_string(repository.join("a.txt")).unwrap(), "the user's\n");
        assert_eq!(git::head_commit(repository).as_ref(), Some(first_commit));
        merge.plimsoll_repository().verify_clone_objects_written_since(SystemTime::UNIX_EPOCH).unwrap();
        merge.remove(true).unwrap();
        assert!(!merge.work_tree().exists() && !merge.plimsoll_repository().git_folder().exists());
    }

    #[test]
    fn a_conflict_names_its_files_and_leaves_nothing_behind() {
        let stage = create_merge_repository();
        commit_in_worktree(&stage, "one", "sed -i 1s/1/one/ a.txt");
        let tip = commit_in_worktree(&stage, "one", "sed -i 2s/2/two/ a.txt");
        let new_base = commit_in_worktree(&stage, "tip", "sed -i 2s/2/zwei/ a.txt");
        let (folder, repository, merge, first_commit) = &stage;
        let conflict = merge.rebase(&tip, first_commit, &new_base).unwrap();
        assert!(
            matches!(&conflict, RebaseOutcome::Conflict { conflicting_files: files, message: words } if files == &["a.txt"] && words.contains("a.txt")),
            "{conflict:?}"
        );
        // A rebase that was killed does not disturb the next one.
        let command_line = format!("git checkout -q {tip} && git rebase -q --onto {new_base} {first_commit}");
        let interrupted_rebase =
            crate::run_user_shell_command(&command_line, merge.work_tree(), Duration::from_secs(20));
        assert!(!interrupted_rebase.succeeded());
        std::fs::write(merge.plimsoll_repository().git_folder().join("index.lock"), "half").unwrap();
        let merge = open_merge_repository(folder, repository);
        assert_eq!(merge.rebase(&tip, first_commit, &new_base).unwrap(), conflict);
        let status = crate::run_user_shell_command(
            "git status --porcelain",
            merge.work_tree(),
            Duration::from_secs(20),
        );
        assert!(status.stdout.is_empty(), "{status:?}");
    }

    /// Everything that a session can write into the clone's `.git`, and how it could change the merge.
    #[test]
    fn files_that_a_session_writes_into_the_clone_do_not_change_the_merge() {
        let stage = create_merge_repository();
        let safe = commit_in_worktree(&stage, "safe", "printf 'SAFE\\n' > code.txt");
        let evil = commit_in_worktree(&stage, "evil", "printf 'EVIL\\n' > code.txt");
        let (_folder, repository, merge, first_commit) = &stage;
        // Replaced objects.
        run_shell(
            repository,
            &format!(
                "git replace {evil}:code.txt {safe}:code.txt 2>/dev/null || git replace $(git rev-parse {evil}:code.txt) $(git rev-parse {safe}:code.txt)"
            ),
        );
        expect_rebased(merge.rebase(&evil, first_commit, first_commit));
        assert_eq!(read_file(merge, "code.txt"), "EVIL\n");
        // Attributes outside of the commit, recorded resolutions, and a merge driver.
        run_shell(
            repository,
            "echo '* merge=union' > .git/info/attributes; mkdir -p .git/rr-cache; git config rerere.enabled true; git config merge.union.driver true",
        );
        let left_commit = commit_in_worktree(&stage, "left", "sed -i 3s/3/left/ a.txt");
        let right_commit = commit_in_worktree(&stage, "right", "sed -i 3s/3/right/ a.txt");
        let left_rebased = expect_rebased(merge.rebase(&left_commit, first_commit, first_commit));
        let merged = merge.rebase(&right_commit, first_commit, &left_rebased).unwrap();
        assert!(
            matches!(&merged, RebaseOutcome::Conflict { conflicting_files: files, .. } if files == &["a.txt"]),
            "{merged:?}"
        );
        // A history that is cut off by grafts and a shallow file.
        let cut_off_commit = commit_in_worktree(&stage, "whole", "echo more >> a.txt");
        run_shell(
            repository,
            &format!("echo {cut_off_commit} > .git/info/grafts; echo {cut_off_commit} > .git/shallow"),
        );
        let later_commit = commit_in_worktree(&stage, "whole", "echo most >> a.txt");
        assert!(merge.history_contains(&later_commit, first_commit), "its parents are there");
        run_shell(repository, "rm .git/info/grafts .git/shallow");
    }

    #[test]
    fn an_object_with_another_content_is_detected_and_not_merged() {
        let started_at = SystemTime::now() - Duration::from_secs(2);
        let stage = create_merge_repository();
        let (folder, repository, merge, first_commit) = &stage;
        let worktree = folder.path().join("one");
        add_worktree(repository, &worktree, "p/one/1", first_commit).unwrap();
        let new_commit = commit_change(&worktree, "echo new > new.txt");
        merge.plimsoll_repository().verify_clone_objects_written_since(started_at).unwrap();
        // Stores the content of another object under the id of the new file.
        let replace_object = |target: &str, source: &str| {
            let object_path = |id: &str| format!(".git/objects/{}/{}", &id[..2], &id[2..]);
            let object_id = |name: &str| {
                let outcome = crate::run_user_shell_command(
                    &format!("git rev-parse {name}"),
                    repository,
                    Duration::from_secs(20),
                );
                String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
            };
            let (target_path, source_path) =
                (object_path(&object_id(target)), object_path(&object_id(source)));
            run_shell(repository, &format!("rm -f {target_path} && cp {source_path} {target_path}"));
        };
        replace_object(&format!("{new_commit}:new.txt"), &format!("{first_commit}:a.txt"));
        let result = merge.plimsoll_repository().fetch_and_verify_commit_from_clone(&new_commit);
        assert!(matches!(&result, Err(PlimsollRepositoryError::BadCommit { .. })), "{result:?}");
        let result = merge.plimsoll_repository().verify_clone_objects_written_since(started_at);
        assert!(matches!(&result, Err(PlimsollRepositoryError::DamagedObjects(_))), "{result:?}");
    }

    #[test]
    fn a_multi_pack_index_with_a_wrong_offset_is_detected() {
        let started_at = SystemTime::now() - Duration::from_secs(2);
        let stage = create_merge_repository();
        commit_in_worktree(&stage, "one", "echo new > new.txt");
        let (_folder, repository, merge, _first) = &stage;
        run_shell(repository, "git -c core.multiPackIndex=true repack -qad && git multi-pack-index write");
        merge.plimsoll_repository().verify_clone_objects_written_since(started_at).unwrap();
        // The last bytes of the index are offsets of objects, and its checksum. No offset in this small pack
        // contains this byte.
        run_shell(
            repository,
            "f=.git/objects/pack/multi-pack-index; chmod +w $f; s=$(stat -c %s $f); printf '\\377' | dd of=$f bs=1 seek=$((s-22)) conv=notrunc 2>/dev/null",
        );
        let result = merge.plimsoll_repository().verify_clone_objects_written_since(started_at);
        assert!(matches!(&result, Err(PlimsollRepositoryError::DamagedObjects(_))), "{result:?}");
    }

    #[test]
    fn moving_a_symbolic_branch_does_not_move_its_target() {
        let stage = create_merge_repository();
        let new_commit = commit_in_worktree(&stage, "one", "echo new > new.txt");
        let (_folder, repository, merge, first_commit) = &stage;
        run_shell(repository, "git symbolic-ref refs/heads/plimsoll/p refs/heads/main");
        merge.plimsoll_repository().transfer_commit_to_clone_without_reference(&new_commit).unwrap();
        move_or_create_branch_if_at_expected_tip(
            repository,
            &branch("plimsoll/p"),
            Some(first_commit),
            &new_commit,
        );
        assert_eq!(git::object_id_of_revision(repository, "refs/heads/main").as_ref(), Some(first_commit));
    }

    #[test]
    fn no_hook_or_filter_of_the_project_runs_and_git_lfs_works() {
        let (folder, repository) = create_repository();
        let log = folder.path().join("ran");
        // A program outside of the project that stores contents as git-lfs does.
        let program = folder.path().join("git-lfs");
        let script = "#!/bin/sh\nstore=$(git rev-parse --git-common-dir)/lfs/objects\nif [ $1 = clean ]; then t=$(mktemp); cat > $t; if grep -q ^oid $t; then cat $t; exit; fi; \
            o=$(sha256sum $t | cut -c1-64); mkdir -p $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4); \
            cp $t $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4)/$o; \
            printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $o $(wc -c < $t); \
            else p=$(cat); o=$(echo \"$p\" | sed -n 's/^oid sha256://p'); \
            cat $store/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4)/$o 2>/dev/null || echo \"$p\"; fi\n";
        std::fs::write(&program, script).unwrap();
        run_shell(folder.path(), "chmod +x git-lfs");
        run_shell(
            &repository,
            &format!(
                "git config filter.lfs.clean '{0} clean'; git config filter.lfs.smudge '{0} smudge'; git config filter.lfs.required true; \
                 git config filter.own.smudge 'sh tools/smudge.sh'; mkdir tools; printf 'touch {1}; cat\\n' > tools/smudge.sh; \
                 printf '*.bin filter=lfs\\n*.own filter=own\\n' > .gitattributes; printf 'large\\n' > a.bin; echo own > b.own; \
                 for hook in pre-rebase post-checkout pre-commit reference-transaction; do \
                 printf '#!/bin/sh\\ntouch {1}; exit 1\\n' > .git/hooks/$hook; done; \
                 git add -A && git commit -qm Large && chmod +x .git/hooks/*; rm -f {1}",
                program.display(),
                log.display()
            ),
        );
        let first_commit = git::head_commit(&repository).unwrap();
        let merge = open_merge_repository(&folder, &repository);
        merge.check_out_commit(&first_commit).unwrap();
        assert_eq!(
            (read_file(&merge, "a.bin"), read_file(&merge, "b.own")),
            ("large\n".to_owned(), "own\n".to_owned())
        );
        // A content that does not match its id is not copied.
        let worktree = folder.path().join("one");
        add_worktree(&repository, &worktree, "p/one/1", &first_commit).unwrap();
        run_shell(&worktree, "echo larger > a.bin && git -c core.hooksPath=/dev/null commit -qam Larger");
        run_shell(&repository, "for file in .git/lfs/objects/*/*/*; do echo EVIL > $file; done");
        let larger = git::head_commit(&worktree).unwrap();
        merge.plimsoll_repository().fetch_and_verify_commit_from_clone(&larger).unwrap();
        expect_rebased(
            merge.rebase(&larger, &git::parent_commit(&worktree, &larger).unwrap(), &first_commit).map(
                |rebased| match rebased {
                    // The commit already begins at the tip of the target.
                    RebaseOutcome::NothingToRebase => RebaseOutcome::Rebased(larger.clone()),
                    outcome => outcome,
                },
            ),
        );
        assert!(
            read_file(&merge, "a.bin").starts_with("version https://git-lfs"),
            "{}",
            read_file(&merge, "a.bin")
        );
        assert!(!log.exists(), "a hook or a filter of the project ran");
    }

    #[test]
    fn no_program_of_a_project_with_a_separate_git_folder_runs() {
        let (folder, repository) = create_repository();
        let log = folder.path().join("ran");
        run_shell(&repository, "mkdir tools; echo '*.own filter=own' > .gitattributes; echo own > b.own");
        std::fs::write(
            repository.join("tools/smudge.sh"),
            format!("#!/bin/sh\necho $0 >> {}\ncat\n", log.display()),
        )
        .unwrap();
        run_shell(&repository, "chmod +x tools/smudge.sh; git add -A; git commit -qm Tools");
        run_shell(&repository, "git worktree add -q ../linked");
        run_shell(folder.path(), "git clone -q --separate-git-dir apart.git 'main tree' apart 2>&1");
        for name in ["linked", "apart"] {
            let project = folder.path().join(name);
            let program = project.join("tools/smudge.sh").display().to_string();
            run_shell(
                &project,
                &format!("git config filter.own.smudge {program}; git config filter.own.required true"),
            );
            let plimsoll_repository = PlimsollRepository::open_or_copy_from_clone(
                &project,
                &folder.path().join(format!("{name}.merge.git")),
            )
            .unwrap();
            let tree = folder.path().join(format!("{name}.merge"));
            let merge =
                MergeRepository::open(plimsoll_repository, &tree, AllowedPrograms::TrustedDrivers).unwrap();
            merge.check_out_commit(&git::head_commit(&project).unwrap()).unwrap();
            assert_eq!(read_file(&merge, "b.own"), "own\n", "{name}");
            assert!(!log.exists(), "{name}: a filter of the project ran");
        }
    }

    #[test]
    fn the_diff_of_a_file_is_found_even_if_its_name_is_pathspec_magic() {
        let stage = create_merge_repository();
        let (_folder, _repository, merge, first_commit) = &stage;
        let tip = commit_in_worktree(&stage, "one", "echo magic > ':!a.txt'; echo other > b.txt");
        let difference = merge.diff_text(first_commit, &tip, &[":!a.txt".to_owned()], 10_000);
        assert!(difference.contains("+magic") && !difference.contains("+other"), "{difference}");
    }

    #[test]
    fn an_interrupted_copy_is_redone_and_settings_are_copied() {
        let (folder, repository) = create_repository();
        run_shell(
            &repository,
            "git config core.autocrlf input; git config include.path ../included; git config core.fsmonitor ./x",
        );
        run_shell(
            &repository,
            "git config -f included user.name Evil; mkdir -p .git/git-crypt/keys/default; echo key > .git/git-crypt/keys/default/0",
        );
        std::fs::create_dir_all(folder.path().join("merge.draft/objects")).unwrap();
        let merge = open_merge_repository(&folder, &repository);
        let read_setting = |name: &str| {
            git::trimmed_stdout(&merge.plimsoll_repository().run_offline_git(&["config", "--local", name]))
        };
        assert_eq!(
            (read_setting("core.autocrlf"), read_setting("user.name"), read_setting("core.fsmonitor")),
            ("input".into(), "T".into(), String::new())
        );
        let key = merge.plimsoll_repository().git_folder().join("git-crypt/keys/default/0");
        assert_eq!(std::fs::read_to_string(key).unwrap(), "key\n");
        assert!(!merge.plimsoll_repository().git_folder().join("objects/info/alternates").exists());
        assert!(!merge.is_ready());
        merge.mark_ready().unwrap();
        assert!(open_merge_repository(&folder, &repository).is_ready());
    }

    #[test]
    fn the_git_file_of_the_working_tree_is_not_trusted() {
        let stage = create_merge_repository();
        let tip = commit_in_worktree(&stage, "one", "echo new > new.txt");
        let (folder, _, merge, first_commit) = &stage;
        let other_repository = folder.path().join("other");
        std::fs::create_dir(&other_repository).unwrap();
        run_shell(&other_repository, "git init -q .");
        std::fs::write(
            merge.work_tree().join(".git"),
            format!("gitdir: {}/.git\n", other_repository.display()),
        )
        .unwrap();
        expect_rebased(merge.rebase(&tip, first_commit, first_commit).map(|rebased| match rebased {
            RebaseOutcome::NothingToRebase => RebaseOutcome::Rebased(tip.clone()),
            outcome => outcome,
        }));
        assert!(merge.work_tree().join("new.txt").exists());
        let git_file = std::fs::read_to_string(merge.work_tree().join(".git")).unwrap();
        assert!(git_file.contains("merge.git"), "{git_file}");
    }
}
