//! Worktrees of a parallel run: one folder for each worker, and branches that are moved only from an expected
//! commit. Results are merged elsewhere ([`crate::merge_repository`]).
//!
//! Only [`fast_forward_checked_out_branch`] and the removal of stale locks modify the folder that the user works
//! in. A killed process may leave a worktree folder, which [`force_remove_worktree`] removes, and branches.

mod stale_locks;

pub(crate) use stale_locks::remove_locks_in_git_folder;
pub use stale_locks::{remove_and_return_unused_git_locks_since, wait_for_git_and_remove_locks};

use crate::git::list_query;
use crate::git::{self, AllowedPrograms};
use crate::git_output;
use crate::plimsoll_repository::is_partial_clone;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::text::truncate_start;
use plimsoll_store::{Durability, StoreError, disk, layout};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;

/// The timeout for git commands; it allows for the checkout of a large repository with filters.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(300);
/// A file of a worktree that git creates before it writes its content. While the file is empty, other git
/// commands fail with an error message that contains this path in every language.
const INCOMPLETE_WORKTREE_FILE: &str = "/commondir";
/// The maximum number of attempts while another git process is creating a worktree, and the pause between them.
const MAX_ATTEMPTS: u32 = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum length of git's message. Its end is kept, because conflicts are reported in the last lines.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// The error of a git operation on a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorktreeError {
    /// Git or a hook refuses the operation.
    #[error("git {operation}: {reason}")]
    Refused {
        /// The git command.
        operation: &'static str,
        /// Git's message.
        reason: String,
    },
    /// The operation was ended at its timeout.
    #[error("git {0} took too long")]
    TimedOut(&'static str),
}

/// The failure of a git command.
#[derive(Debug)]
struct CommandFailure {
    error: WorktreeError,
    /// True if another git process was creating a worktree at the same time, so a retry may succeed.
    is_retryable: bool,
}

impl From<CommandFailure> for WorktreeError {
    fn from(failure: CommandFailure) -> WorktreeError {
        failure.error
    }
}

/// The outcome of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebaseOutcome {
    /// The commits were rebased; this is the new tip.
    Rebased(CommitId),
    /// There was nothing to rebase: the branch has no commits, or the new base contains all of them.
    NothingToRebase,
    /// There were conflicts; the folder is unchanged.
    Conflict {
        conflicting_files: Vec<String>,
        /// Git's message.
        message: String,
    },
}

/// Creates a worktree in `folder` on a new branch that begins at `commit`. If the branch already exists at that
/// commit, it is reused: a killed process may have created only the branch. If the branch is at another commit,
/// it may contain work, so git returns an error.
pub fn create_worktree_on_new_or_unmoved_branch(
    repository: &Path,
    folder: &Path,
    branch: &BranchName,
    commit: &CommitId,
    allowed_programs: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let path = folder.to_string_lossy();
    let (branch_name, commit_id) = (branch.as_str(), commit.as_str());
    retry_while_worktree_incomplete(|| {
        let branch_exists_at_commit = tip_of_branch(repository, branch).as_ref() == Some(commit);
        let arguments: &[&str] = if branch_exists_at_commit {
            &["worktree", "add", "--quiet", &path, branch_name]
        } else {
            &["worktree", "add", "--quiet", "--no-track", "-b", branch_name, &path, commit_id]
        };
        run_git_with_allowed_programs(repository, "worktree add", arguments, allowed_programs)
    })
}

/// Removes a worktree with all its files, even if it is locked or incomplete. Its branch is kept.
pub fn force_remove_worktree(repository: &Path, folder: &Path) -> Result<(), WorktreeError> {
    let path = folder.to_string_lossy();
    // `--force` twice also removes a locked worktree. Git refuses to remove a folder that is not a worktree.
    let arguments = ["worktree", "remove", "--force", "--force", &path];
    let result = retry_while_worktree_incomplete(|| {
        run_git_with_trusted_drivers(repository, "worktree remove", &arguments)
    });
    disk::forget_open_folders(folder);
    if result.is_ok() || disk::exists(folder) {
        return result;
    }
    remove_worktree_metadata(repository, folder);
    Ok(())
}

/// Removes git's administrative files of a worktree whose folder no longer exists. `git worktree prune` would
/// also affect the user's other worktrees and follow symbolic links.
fn remove_worktree_metadata(repository: &Path, folder: &Path) {
    let Some(common_git_folder) =
        layout::find_git_folder(repository).and_then(|git_folder| layout::shared_git_folder(&git_folder))
    else {
        return;
    };
    let worktrees_folder = common_git_folder.join("worktrees");
    if disk::is_link(&worktrees_folder) {
        return;
    }
    let git_file = folder.join(".git");
    for name in disk::list_names(&worktrees_folder) {
        let metadata_folder = worktrees_folder.join(name);
        let linked_git_file =
            disk::read_text(&metadata_folder.join("gitdir")).ok().flatten().unwrap_or_default();
        let belongs_to_worktree = disk::is_folder_and_not_link(&metadata_folder)
            && disk::canonicalize_or_keep(Path::new(linked_git_file.trim()))
                == disk::canonicalize_or_keep(&git_file);
        if belongs_to_worktree {
            let _ = disk::remove_folder_and_contents(&metadata_folder);
        }
    }
}

/// Retries an operation while another git process is creating a worktree: for an operation on one worktree, git
/// reads all of them, and fails if one is incomplete.
fn retry_while_worktree_incomplete(
    mut operation: impl FnMut() -> Result<(), CommandFailure>,
) -> Result<(), WorktreeError> {
    for _ in 1..MAX_ATTEMPTS {
        match operation() {
            Err(failure) if failure.is_retryable => sleep(RETRY_INTERVAL),
            result => return result.map_err(WorktreeError::from),
        }
    }
    Ok(operation()?)
}

/// Moves a branch to `new_tip` if its tip is `expected_tip`. If `expected_tip` is `None`, creates the branch if it
/// does not exist. Returns false if the tip differs or git fails. (To git, an empty old value means that the
/// branch must not exist, with hashes of any length.)
pub fn move_or_create_branch_if_at_expected_tip(
    repository: &Path,
    branch: &BranchName,
    expected_tip: Option<&CommitId>,
    new_tip: &CommitId,
) -> bool {
    let old_value = expected_tip.map_or("", CommitId::as_str);
    let arguments = [
        "update-ref",
        "--no-deref",
        "-m",
        "plimsoll: landed",
        &branch.full_ref_name(),
        new_tip.as_str(),
        old_value,
    ];
    let outcome =
        git::run_write_command(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_TIMEOUT);
    outcome.succeeded()
}

/// Returns the commit at the tip of a branch.
pub fn tip_of_branch(repository: &Path, branch: &BranchName) -> Option<CommitId> {
    git::object_id_of_revision(repository, &branch.full_ref_name())
}

/// Returns true if `commit` is `tip` or an ancestor of it. Returns false if a commit does not exist.
pub fn history_contains(repository: &Path, tip: &CommitId, commit: &CommitId) -> bool {
    git::run_query(repository, &["merge-base", "--is-ancestor", commit.as_str(), tip.as_str()]).succeeded()
}

/// The plan files in a worktree. A session's changes to them must not prevent git from switching branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFiles {
    /// The session's copy of the user's plan, if the plan is in the repository.
    pub plan: Option<RepoPath>,
    /// The plan of the item's run, which Plimsoll does not commit.
    pub item_plan: RepoPath,
}

impl PlanFiles {
    /// Returns all plan files.
    pub fn all_paths(&self) -> Vec<RepoPath> {
        self.plan.iter().chain([&self.item_plan]).cloned().collect()
    }
}

/// Switches an existing worktree to a new branch at `start_commit`; ignored files are kept. Does nothing if the
/// branch exists at another commit, because it contains work. If HEAD is `start_commit` or a descendant of it, the
/// branch begins at HEAD. Before other files change, the plan files are restored; the caller has already saved
/// their changes elsewhere.
pub fn create_or_switch_to_branch_unless_moved(
    folder: &Path,
    branch: &BranchName,
    start_commit: &CommitId,
    plan_files: &PlanFiles,
    allowed_programs: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let head_outcome = git::run_query(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    if git::trimmed_stdout(&head_outcome) == branch.full_ref_name() {
        return Ok(());
    }
    match tip_of_branch(folder, branch) {
        Some(tip) if tip == *start_commit => {
            let arguments = ["switch", "--quiet", "--no-guess", branch.as_str()];
            restore_plan_files_switch_and_keep_item_plan(folder, &arguments, plan_files, allowed_programs)
        }
        Some(_) => Ok(()),
        None => {
            let mut arguments = vec!["switch", "--quiet", "--no-track", "--create", branch.as_str()];
            // A client that outlives its run may still commit. Without a start point, git uses the current tip.
            // With the tip that we read earlier, the worktree would lose commits made in the meantime.
            if git::is_head_or_ancestor(folder, start_commit) {
                return Ok(run_git_with_allowed_programs(folder, "switch", &arguments, allowed_programs)?);
            }
            arguments.push(start_commit.as_str());
            restore_plan_files_switch_and_keep_item_plan(folder, &arguments, plan_files, allowed_programs)
        }
    }
}

/// Restores the plan files and switches. The item's plan keeps its content, whether or not a session has committed
/// it. If this process is killed before the item's plan is written again, nothing is lost: the plan is created
/// again, and its notes are saved elsewhere.
fn restore_plan_files_switch_and_keep_item_plan(
    folder: &Path,
    arguments: &[&str],
    plan_files: &PlanFiles,
    allowed_programs: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let item_plan_path = folder.join(plan_files.item_plan.as_str());
    let item_plan_content = disk::read(&item_plan_path).ok().flatten();
    if is_in_head(folder, &plan_files.item_plan) || is_in_index(folder, &plan_files.item_plan) {
        restore_from_head_or_remove(folder, &plan_files.item_plan, allowed_programs)?;
    }
    if let Some(plan) = &plan_files.plan {
        restore_from_head_or_remove(folder, plan, allowed_programs)?;
    }
    run_git_with_allowed_programs(folder, "switch", arguments, allowed_programs)?;
    if let Some(item_plan_content) = item_plan_content.filter(|_| !disk::exists(&item_plan_path)) {
        let switch_error =
            |error: StoreError| WorktreeError::Refused { operation: "switch", reason: error.to_string() };
        disk::replace(&item_plan_path, &item_plan_content, Durability::Lazy).map_err(switch_error)?;
    }
    Ok(())
}

/// Restores a file from HEAD. If HEAD lacks the file, removes it, because the target commit may contain it.
fn restore_from_head_or_remove(
    folder: &Path,
    file: &RepoPath,
    allowed_programs: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let pathspec = file.to_literal_pathspec();
    if is_in_head(folder, file) {
        // Also restores a file that a session marked as `skip-worktree`, which `switch` would not overwrite.
        let arguments = ["checkout", "--quiet", "--ignore-skip-worktree-bits", "HEAD", "--", &pathspec];
        return Ok(run_git_with_allowed_programs(folder, "checkout", &arguments, allowed_programs)?);
    }
    if is_in_index(folder, file) {
        run_git_with_allowed_programs(
            folder,
            "rm",
            &["rm", "--quiet", "--force", "--cached", "-r", "--", &pathspec],
            allowed_programs,
        )?;
    }
    // Removal fails for a folder, for example. That matters only if the target commit has a file there, and
    // then git reports it.
    let _ = disk::remove_if_exists(&folder.join(file.as_str()));
    Ok(())
}

fn is_in_head(folder: &Path, file: &RepoPath) -> bool {
    git::run_query(folder, &["cat-file", "-e", &format!("HEAD:{}", file.as_str())]).succeeded()
}

fn is_in_index(folder: &Path, file: &RepoPath) -> bool {
    !git::tracked_files_at_or_below(folder, std::slice::from_ref(file)).is_empty()
}

/// Removes a branch if its tip is `expected_tip`.
pub fn remove_branch_if_at_expected_tip(repository: &Path, branch: &BranchName, expected_tip: &CommitId) {
    let arguments = ["update-ref", "--no-deref", "-d", &branch.full_ref_name(), expected_tip.as_str()];
    let _ = git::run_write_command(repository, AllowedPrograms::TrustedDrivers, &arguments, CHECKOUT_TIMEOUT);
}

/// Returns warnings about local data (replaced objects, grafts, a shallow history, alternates) that makes git show
/// a different history or different contents here than in a fresh clone. Only the latter were verified.
pub fn history_override_warnings(repository: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if !git::trimmed_stdout(&git::run_query(repository, &["for-each-ref", "--count=1", "refs/replace"]))
        .is_empty()
    {
        warnings.push(
            "objects of this clone are replaced, so git shows others than were verified: git replace --list names them, git replace -d ID removes one"
                .to_owned(),
        );
    }
    let common_git_folder =
        layout::find_git_folder(repository).and_then(|git_folder| layout::shared_git_folder(&git_folder));
    for name in ["info/grafts", "shallow", "objects/info/alternates"] {
        if common_git_folder.as_ref().is_some_and(|common_git_folder| {
            disk::file_size(&common_git_folder.join(name)).is_some_and(|size| size > 0)
        }) {
            warnings.push(format!(".git/{name} changes what git shows in this clone; a clone of it has another history or fewer objects"));
        }
    }
    warnings
}

/// Fast-forwards the checked-out branch and its files to a commit. Git refuses if that would overwrite a local
/// change.
pub fn fast_forward_checked_out_branch(
    folder: &Path,
    commit: &CommitId,
    allowed_programs: AllowedPrograms,
) -> Result<(), WorktreeError> {
    let arguments = ["merge", "--quiet", "--ff-only", "--no-autostash", commit.as_str()];
    Ok(run_git_with_allowed_programs(folder, "merge", &arguments, allowed_programs)?)
}

/// The reason why a repository cannot be used with worktrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeObstacle {
    /// The repository is a shallow clone, which lacks a part of the history.
    ShallowClone,
    /// The repository has submodules, which git does not check out in new worktrees.
    Submodules,
    /// The repository is a partial clone: git fetches objects only when needed, so they cannot be copied.
    PartialClone,
}

/// Returns the first reason why this repository cannot be used with worktrees.
pub fn worktree_obstacle(repository: &Path) -> Option<WorktreeObstacle> {
    let outcome = git::run_query(repository, &["rev-parse", "--is-shallow-repository"]);
    if git::trimmed_stdout(&outcome) == "true" {
        return Some(WorktreeObstacle::ShallowClone);
    }
    if is_partial_clone(repository) {
        return Some(WorktreeObstacle::PartialClone);
    }
    let has_submodules = git::is_tracked(repository, ".gitmodules");
    has_submodules.then_some(WorktreeObstacle::Submodules)
}

/// Returns the ignored files below a folder that match the patterns in a file, as paths relative to the
/// folder.
pub fn ignored_files_matching_patterns_in_file(folder: &Path, patterns_file: &Path) -> Vec<String> {
    let option = format!("--exclude-from={}", patterns_file.display());
    let list_outcome = git::run_query(folder, &["ls-files", "-z", "--others", "--ignored", &option]);
    if !list_outcome.succeeded() || list_outcome.stdout.is_empty() {
        return Vec::new();
    }
    let limit = TimeLimit::from_now(CHECKOUT_TIMEOUT);
    let output = list_query::run_query_for_complete_output(
        folder,
        &["check-ignore", "-z", "--stdin"],
        Some(list_outcome.stdout),
        limit,
    );
    let output = output.unwrap_or_default();
    git_output::split_nul_terminated(&output).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn run_git_with_trusted_drivers(
    folder: &Path,
    operation: &'static str,
    arguments: &[&str],
) -> Result<(), CommandFailure> {
    run_git_with_allowed_programs(folder, operation, arguments, AllowedPrograms::TrustedDrivers)
}

fn run_git_with_allowed_programs(
    folder: &Path,
    operation: &'static str,
    arguments: &[&str],
    allowed_programs: AllowedPrograms,
) -> Result<(), CommandFailure> {
    let outcome = git::run_write_command(folder, allowed_programs, arguments, CHECKOUT_TIMEOUT);
    if outcome.succeeded() {
        return Ok(());
    }
    if outcome.timed_out {
        return Err(CommandFailure { error: WorktreeError::TimedOut(operation), is_retryable: false });
    }
    let reason = combined_output_or_failure_reason(&outcome);
    let is_retryable = reason.contains(INCOMPLETE_WORKTREE_FILE);
    Err(CommandFailure { error: WorktreeError::Refused { operation, reason }, is_retryable })
}

pub(crate) fn combined_output_or_failure_reason(outcome: &crate::CommandOutcome) -> String {
    let output =
        format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    let message = if output.trim().is_empty() {
        git_output::fatal_message_or_last_output_line(outcome)
    } else {
        output
    };
    truncate_start(message.trim(), MAX_MESSAGE_CHARS)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A commit id that exists in no repository.
    const MISSING_COMMIT: &str = "0000000000000000000000000000000000000000";

    pub(crate) fn branch(name: &str) -> BranchName {
        BranchName::parse(name).unwrap()
    }

    /// Adds a worktree on a branch with the arguments that a run uses.
    pub(crate) fn add_worktree(
        repository: &Path,
        folder: &Path,
        name: &str,
        commit: &CommitId,
    ) -> Result<(), WorktreeError> {
        create_worktree_on_new_or_unmoved_branch(
            repository,
            folder,
            &branch(name),
            commit,
            AllowedPrograms::TrustedDrivers,
        )
    }

    pub(crate) fn run_shell(folder: &Path, command_line: &str) {
        let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{command_line}: {outcome:?}");
    }

    /// Creates a repository with a first commit in a folder that has room for worktrees.
    pub(crate) fn create_repository() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("main tree");
        std::fs::create_dir(&repository).unwrap();
        run_shell(
            &repository,
            "git init -q -b main && git config user.name T && git config user.email t@example.invalid && \
             printf '1\\n2\\n3\\n4\\n5\\n' > a.txt && git add -A && git commit -qm First",
        );
        (folder, repository)
    }

    pub(crate) fn commit_change(folder: &Path, change: &str) -> CommitId {
        run_shell(
            folder,
            &format!("{change} && git add -A && git commit -qm '{}'", change.replace('\'', "")),
        );
        git::head_commit(folder).unwrap()
    }

    #[test]
    fn a_partial_or_shallow_clone_cannot_be_used_with_worktrees() {
        let (folder, repository) = create_repository();
        assert_eq!(worktree_obstacle(&repository), None);
        run_shell(
            &repository,
            "git config uploadpack.allowFilter true; git commit -q --allow-empty -m Second; \
             git clone -q --no-local --filter=blob:none . ../partial; git clone -q --no-local --depth=1 . ../shallow",
        );
        assert_eq!(worktree_obstacle(&folder.path().join("partial")), Some(WorktreeObstacle::PartialClone));
        assert_eq!(worktree_obstacle(&folder.path().join("shallow")), Some(WorktreeObstacle::ShallowClone));
    }

    #[test]
    fn an_incomplete_worktree_is_removed_and_created_again() {
        let (folder, repository) = create_repository();
        let first_commit = git::head_commit(&repository).unwrap();
        let worktree = folder.path().join("one");
        add_worktree(&repository, &worktree, "p/1/1", &first_commit).unwrap();
        let result = add_worktree(&repository, &worktree, "p/1/2", &first_commit);
        assert!(matches!(result, Err(WorktreeError::Refused { .. })), "{result:?}");
        run_shell(&repository, "git worktree lock ../one");
        std::fs::remove_dir_all(&worktree).unwrap();
        force_remove_worktree(&repository, &worktree).unwrap();
        add_worktree(&repository, &worktree, "p/1/2", &first_commit).unwrap();
        assert!(worktree.join("a.txt").exists());
        let result = add_worktree(
            &repository,
            &folder.path().join("two"),
            "p/1/9",
            &CommitId::parse(MISSING_COMMIT).unwrap(),
        );
        assert!(matches!(result, Err(WorktreeError::Refused { .. })), "{result:?}");
    }

    #[test]
    fn an_operation_waits_while_another_git_creates_a_worktree() {
        let (folder, repository) = create_repository();
        let first_commit = git::head_commit(&repository).unwrap();
        let worktree = folder.path().join("one");
        add_worktree(&repository, &worktree, "p/1/1", &first_commit).unwrap();
        let other_metadata = repository.join(".git/worktrees/other");
        std::fs::create_dir(&other_metadata).unwrap();
        std::fs::copy(repository.join(".git/worktrees/one/HEAD"), other_metadata.join("HEAD")).unwrap();
        let other_git_file = folder.path().join("other/.git");
        std::fs::write(other_metadata.join("gitdir"), format!("{}\n", other_git_file.display())).unwrap();
        std::fs::write(other_metadata.join("commondir"), "").unwrap();
        let arguments = ["worktree", "remove", "--force", "--force", &worktree.to_string_lossy()];
        let result = run_git_with_trusted_drivers(&repository, "worktree remove", &arguments);
        assert!(matches!(&result, Err(failure) if failure.is_retryable), "{result:?}");
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| force_remove_worktree(&repository, &worktree));
            sleep(RETRY_INTERVAL * 3);
            std::fs::write(other_metadata.join("commondir"), "../..\n").unwrap();
            removal.join().unwrap().unwrap();
        });
        assert!(!worktree.exists());
    }

    #[test]
    fn a_new_branch_includes_commits_made_after_its_start_was_read() {
        let (folder, repository) = create_repository();
        let first_commit = git::head_commit(&repository).unwrap();
        let worktree = folder.path().join("one");
        add_worktree(&repository, &worktree, "p/1/1", &first_commit).unwrap();
        let later = commit_change(&worktree, "sed -i 1s/1/one/ a.txt");
        run_shell(&worktree, "sed -i 2s/2/two/ a.txt");
        switch_worktree(&worktree, "p/1/2", &first_commit);
        assert_eq!(
            (git::head_commit(&worktree), tip_of_branch(&worktree, &branch("p/1/2"))),
            (Some(later.clone()), Some(later))
        );
        let text = std::fs::read_to_string(worktree.join("a.txt")).unwrap();
        assert!(text.starts_with("one\ntwo\n"), "{text}");
        // Rebased work begins at its new base.
        run_shell(&worktree, "git checkout --quiet a.txt");
        let tip = commit_change(&repository, "sed -i 5s/5/five/ a.txt");
        switch_worktree(&worktree, "p/1/3", &tip);
        assert_eq!(git::head_commit(&worktree), Some(tip));
    }

    fn switch_worktree(worktree: &Path, name: &str, commit: &CommitId) {
        let repo_path = |name: &str| RepoPath::parse(name).unwrap();
        let plan_files =
            PlanFiles { plan: Some(repo_path("docs/[plan].md")), item_plan: repo_path("item.md") };
        create_or_switch_to_branch_unless_moved(
            worktree,
            &branch(name),
            commit,
            &plan_files,
            AllowedPrograms::TrustedDrivers,
        )
        .unwrap();
    }

    #[test]
    fn a_worktree_can_be_switched_whatever_a_session_does_with_the_plan() {
        let (folder, repository) = create_repository();
        let first_commit =
            commit_change(&repository, "mkdir docs; echo plan > 'docs/[plan].md'; echo p > docs/p.md");
        let tip = commit_change(&repository, "echo more >> 'docs/[plan].md'; echo other > docs/p.md");
        let commit_item_plan =
            "echo own > item.md; git add -f item.md; git commit -qm Own; echo more >> item.md;";
        for (number, edit) in [
            "git rm -q --cached item.md",
            "git rm -q --cached item.md; git commit -qm Untracked; git add -f item.md",
            "echo mine >> docs/[[]plan].md",
            "echo mine >> docs/[[]plan].md; git add -A",
            "git update-index --skip-worktree 'docs/[plan].md'; echo mine >> docs/[[]plan].md",
            "git update-index --assume-unchanged 'docs/[plan].md'; echo mine >> docs/[[]plan].md",
            "rm docs/[[]plan].md",
            "git rm -q --cached 'docs/[plan].md'",
            "git rm -q --cached 'docs/[plan].md'; git commit -qm Gone",
            "git rm -q 'docs/[plan].md'; git commit -qm Gone; echo mine > docs/[[]plan].md; git add -A",
            "git mv 'docs/[plan].md' plan.md; git commit -qm Moved; ln -s ../a.txt docs/[[]plan].md",
        ]
        .into_iter()
        .enumerate()
        {
            let worktree = folder.path().join(number.to_string());
            add_worktree(&repository, &worktree, &format!("p/{number}/1"), &first_commit).unwrap();
            run_shell(&worktree, &format!("{commit_item_plan} {edit}"));
            switch_worktree(&worktree, &format!("p/{number}/2"), &tip);
            let read = |name: &str| std::fs::read_to_string(worktree.join(name)).unwrap();
            assert_eq!(git::head_commit(&worktree).as_ref(), Some(&tip), "{edit}");
            assert_eq!(read("item.md"), "own\nmore\n", "{edit}");
            // A change that a session hides from git stays hidden; it does not prevent the switch.
            let is_hidden = edit.contains("skip-worktree");
            assert!(is_hidden || read("docs/[plan].md") == "plan\nmore\n", "{edit}");
            assert_eq!(read("docs/p.md"), "other\n", "{edit}");
        }
    }
}
