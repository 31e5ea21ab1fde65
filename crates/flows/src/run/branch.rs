//! The branch of a run (`--branch`): switches to it when the run begins, and back to it when the run is
//! resumed. Without the option a run works on the branch that is checked out.

use crate::plimsoll_files::is_plimsoll_file;
use plimsoll_domain::RunState;
use plimsoll_launcher::branch::{
    BranchError, HeadState, branch_exists, check_not_checked_out_elsewhere, has_tracked_changes,
    head_commit_without_branch, parse_branch_name, read_head_state, switch_to_or_create_branch,
};
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_store::{Project, layout};

/// Why a run cannot be resumed on its branch.
#[derive(Debug, thiserror::Error)]
pub enum BranchMismatch {
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// A switch would carry along uncommitted changes that the run did not make.
    #[error(
        "this run works on the branch `{branch}`, and {checked_out} is checked out with uncommitted changes: commit or stash them, then: git switch {branch} && plimsoll run --resume"
    )]
    Dirty {
        branch: String,
        /// The branch or commit that is checked out.
        checked_out: String,
    },
    /// After a switch, the checked-out commit would not be reachable from any branch.
    #[error(
        "this run works on the branch `{branch}`, but a commit is checked out that is on no branch. Keep it, then resume: git branch NAME {commit} && git switch {branch} && plimsoll run --resume"
    )]
    UnreachableCommit {
        branch: String,
        /// The commit that is checked out.
        commit: String,
    },
    /// The repository is not the one in which the run began, so the filters that a switch would run may not
    /// be the user's.
    #[error(
        "this run works on the branch `{0}`, but this is not the repository in which it started, so nothing is started. If it is yours: git switch {0} && plimsoll run --resume"
    )]
    OtherRepository(String),
}

/// Returns which hooks and filters git may run in a repository that existed before the run.
pub(crate) fn allowed_programs(runs_commit_hooks: bool) -> AllowedPrograms {
    if runs_commit_hooks { AllowedPrograms::AllPrograms } else { AllowedPrograms::TrustedDrivers }
}

/// Checks that a run can begin on the branch `name`, and returns the branch that is checked out.
pub fn check_run_branch_and_get_current(project: &Project, name: &str) -> Result<String, BranchError> {
    let root = project.root();
    let current = match read_head_state(root)? {
        HeadState::NoRepository => return Err(BranchError::NoRepository),
        HeadState::NoCommit => return Err(BranchError::NoCommit),
        HeadState::Detached => return Err(BranchError::DetachedHead),
        HeadState::Branch(current) => current,
    };
    let branch = parse_branch_name(name)?;
    if current != name {
        check_not_checked_out_elsewhere(root, &branch)?;
    }
    Ok(current)
}

/// Switches to the branch of a new run. Returns the previous branch; `None` if the branch was already checked
/// out.
pub fn switch_to_run_branch_and_get_previous(
    project: &Project,
    name: &str,
    runs_commit_hooks: bool,
) -> Result<Option<String>, BranchError> {
    let previous = check_run_branch_and_get_current(project, name)?;
    if previous == name {
        return Ok(None);
    }
    switch_to_or_create_branch(
        project.root(),
        &parse_branch_name(name)?,
        allowed_programs(runs_commit_hooks),
    )?;
    Ok(Some(previous))
}

/// Switches back to the branch of a run that is resumed. Returns a notice for the user, or `None` if the run
/// has no branch or it is already checked out. Returns an error if a switch would carry along or lose work.
pub fn switch_back_to_run_branch_with_notice(
    project: &Project,
    run: &RunState,
) -> Result<Option<String>, BranchMismatch> {
    let Some(name) = &run.options.branch else { return Ok(None) };
    let root = project.root();
    let head_state = read_head_state(root)?;
    let is_detached = head_state == HeadState::Detached;
    let current = match head_state {
        HeadState::NoRepository => return Err(BranchError::NoRepository.into()),
        HeadState::NoCommit => return Err(BranchError::BranchMissing(name.clone()).into()),
        HeadState::Detached => "a commit without a branch".to_owned(),
        HeadState::Branch(current_branch) if current_branch == *name => return Ok(None),
        HeadState::Branch(current_branch) => format!("`{current_branch}`"),
    };
    if run
        .project_at_start
        .git_folder_id_at_start
        .as_ref()
        .is_some_and(|id| *id != layout::repository_identity(root))
    {
        return Err(BranchMismatch::OtherRepository(name.clone()));
    }
    let branch = parse_branch_name(name)?;
    if !branch_exists(root, &branch) {
        return Err(BranchError::BranchMissing(name.clone()).into());
    }
    check_not_checked_out_elsewhere(root, &branch)?;
    if has_tracked_changes(root, &is_plimsoll_file)? {
        return Err(BranchMismatch::Dirty { branch: name.clone(), checked_out: current });
    }
    if let (true, Some(commit)) = (is_detached, head_commit_without_branch(root)) {
        return Err(BranchMismatch::UnreachableCommit { branch: name.clone(), commit: commit.into() });
    }
    switch_to_or_create_branch(root, &branch, allowed_programs(run.options.runs_commit_hooks))?;
    Ok(Some(format!("switched to the branch `{name}`, on which this run works ({current} was checked out)")))
}

/// Returns the reason not to commit work in progress now: the run has its own branch, and that branch is not
/// checked out. Returns `None` if it may be committed.
pub(crate) fn reason_not_to_commit_on_current_branch(project: &Project, run: &RunState) -> Option<String> {
    let name = run.options.branch.as_ref()?;
    match read_head_state(project.root()) {
        Ok(HeadState::Branch(current)) if current == *name => None,
        // The commit itself reports that there is no repository.
        Ok(HeadState::NoRepository) => None,
        Ok(HeadState::Branch(current)) => {
            Some(format!("`{current}` is checked out, and this run commits only to `{name}`"))
        }
        Ok(HeadState::NoCommit | HeadState::Detached) => {
            Some(format!("`{name}` is not checked out, and this run commits only to it"))
        }
        Err(error) => Some(error.to_string()),
    }
}
