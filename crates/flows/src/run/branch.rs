//! A run's own branch (`--branch`): switched to when the run begins, and checked when it is resumed. Without
//! the option a run works on whichever branch is checked out.

use crate::our_files::is_plimsoll_file;
use plimsoll_domain::RunState;
use plimsoll_launcher::branch::{
    BranchError, HeadState, branch_exists, check_not_checked_out_elsewhere, has_tracked_changes,
    head_commit_without_branch, parse_branch_name, read_head_state, switch_to_branch,
};
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_store::{Project, layout};

/// Why a run cannot be resumed on its branch.
#[derive(Debug, thiserror::Error)]
pub enum BranchMismatch {
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// Uncommitted changes that the run did not make would be carried along.
    #[error(
        "this run works on the branch `{branch}`, and {checked_out} is checked out with uncommitted changes: commit or stash them, then: git switch {branch} && plimsoll run --resume"
    )]
    Dirty {
        branch: String,
        /// The branch or commit that is checked out.
        checked_out: String,
    },
    /// Commits that no branch would reach any more.
    #[error(
        "this run works on the branch `{branch}`, and a commit is checked out that is on no branch: keep it, then go on: git branch NAME {commit} && git switch {branch} && plimsoll run --resume"
    )]
    UnreachableCommit {
        branch: String,
        /// The commit that is checked out.
        commit: String,
    },
    /// The repository is another one, so the filters that a switch would start may not be the user's.
    #[error(
        "this run works on the branch `{0}`, and the repository is not the one in which it began: nothing in it is started; if it is yours: git switch {0} && plimsoll run --resume"
    )]
    OtherRepository(String),
}

/// Returns which hooks and filters git may run in a repository that existed before the run.
pub(crate) fn allowed_programs(commit_hooks: bool) -> AllowedPrograms {
    if commit_hooks { AllowedPrograms::AllPrograms } else { AllowedPrograms::TrustedDrivers }
}

/// Checks that a run could begin on this branch, and returns the branch that is checked out.
pub fn check_run_branch_return_current(project: &Project, name: &str) -> Result<String, BranchError> {
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

/// Switches to the branch of a new run. Returns the previous branch unless it is the same.
pub fn switch_to_run_branch(
    project: &Project,
    name: &str,
    commit_hooks: bool,
) -> Result<Option<String>, BranchError> {
    let previous = check_run_branch_return_current(project, name)?;
    if previous == name {
        return Ok(None);
    }
    switch_to_branch(project.root(), &parse_branch_name(name)?, allowed_programs(commit_hooks))?;
    Ok(Some(previous))
}

/// Switches back to the branch of a run that is resumed, if another one is checked out and nothing is
/// uncommitted there. Returns a message for the user.
pub fn switch_back_to_branch_with_notice(
    project: &Project,
    run: &RunState,
) -> Result<Option<String>, BranchMismatch> {
    let Some(name) = &run.options.branch else { return Ok(None) };
    let root = project.root();
    let current_head = read_head_state(root)?;
    let is_detached = current_head == HeadState::Detached;
    let current = match current_head {
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
    switch_to_branch(root, &branch, allowed_programs(run.options.runs_commit_hooks))?;
    Ok(Some(format!("switched to the branch `{name}`, on which this run works ({current} was checked out)")))
}

/// Returns the reason not to commit work in progress now, if there is one: the run has its own branch, and
/// another one is checked out.
pub(crate) fn commit_refusal(project: &Project, run: &RunState) -> Option<String> {
    let name = run.options.branch.as_ref()?;
    match read_head_state(project.root()) {
        Ok(HeadState::Branch(current)) if current == *name => None,
        // There is nothing to commit to, and the commit itself reports that.
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
