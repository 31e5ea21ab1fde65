//! A run's own branch (`--branch`): switched to when the run begins, looked for when it is resumed. Without the option a run
//! works on whichever branch is checked out.

use crate::our_files::is_ours;
use plimsoll_domain::RunState;
use plimsoll_launcher::branch::{
    BranchError, Head, check_worktrees, commit_of_no_branch, exists, has_changes, head, parse_name, switch,
};
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_store::{Project, layout};

/// Why a run cannot be resumed on its branch.
#[derive(Debug, thiserror::Error)]
pub enum OtherBranch {
    /// Git.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// Work that the run did not do would come along.
    #[error(
        "this run works on the branch `{branch}`, and {now} is checked out with uncommitted changes: commit or stash them, then: git switch {branch} && plimsoll run --resume"
    )]
    Dirty {
        /// The run's branch.
        branch: String,
        /// What is checked out.
        now: String,
    },
    /// Commits that nothing would name any more.
    #[error(
        "this run works on the branch `{branch}`, and a commit is checked out that is on no branch: keep it, then go on: git branch NAME {commit} && git switch {branch} && plimsoll run --resume"
    )]
    Unnamed {
        /// The run's branch.
        branch: String,
        /// What is checked out.
        commit: String,
    },
    /// The filters that a switch starts are not the user's.
    #[error(
        "this run works on the branch `{0}`, and the repository is not the one in which it began: nothing in it is started; if it is yours: git switch {0} && plimsoll run --resume"
    )]
    OtherRepository(String),
}

/// What git may run in a repository that was there before the run.
pub(crate) fn allowed_programs(commit_hooks: bool) -> AllowedPrograms {
    if commit_hooks { AllowedPrograms::All } else { AllowedPrograms::TrustedDrivers }
}

/// Could a run begin on this branch? Answers with the branch that is checked out.
pub fn check(project: &Project, name: &str) -> Result<String, BranchError> {
    let root = project.root();
    let now = match head(root)? {
        Head::NoRepository => return Err(BranchError::NoRepository),
        Head::NoCommit => return Err(BranchError::NoCommit),
        Head::Detached => return Err(BranchError::Detached),
        Head::Branch(now) => now,
    };
    let branch = parse_name(name)?;
    if now != name {
        check_worktrees(root, &branch)?;
    }
    Ok(now)
}

/// Switches to the branch of a new run. Answers with the branch before, unless it is the same.
pub fn enter(project: &Project, name: &str, commit_hooks: bool) -> Result<Option<String>, BranchError> {
    let before = check(project, name)?;
    if before == name {
        return Ok(None);
    }
    switch(project.root(), &parse_name(name)?, allowed_programs(commit_hooks))?;
    Ok(Some(before))
}

/// Switches back to the branch of a run that is resumed, if another one is checked out and nothing is uncommitted there.
/// Answers with what to tell the user.
pub fn return_to(project: &Project, run: &RunState) -> Result<Option<String>, OtherBranch> {
    let Some(name) = &run.options.branch else { return Ok(None) };
    let root = project.root();
    let checked_out = head(root)?;
    let is_detached = checked_out == Head::Detached;
    let now = match checked_out {
        Head::NoRepository => return Err(BranchError::NoRepository.into()),
        Head::NoCommit => return Err(BranchError::Gone(name.clone()).into()),
        Head::Detached => "a commit without a branch".to_owned(),
        Head::Branch(now) if now == *name => return Ok(None),
        Head::Branch(now) => format!("`{now}`"),
    };
    if run.at_start.repository_at_start.as_ref().is_some_and(|id| *id != layout::repository_identity(root)) {
        return Err(OtherBranch::OtherRepository(name.clone()));
    }
    let branch = parse_name(name)?;
    if !exists(root, &branch) {
        return Err(BranchError::Gone(name.clone()).into());
    }
    check_worktrees(root, &branch)?;
    if has_changes(root, &is_ours)? {
        return Err(OtherBranch::Dirty { branch: name.clone(), now });
    }
    if let (true, Some(commit)) = (is_detached, commit_of_no_branch(root)) {
        return Err(OtherBranch::Unnamed { branch: name.clone(), commit: commit.into() });
    }
    switch(root, &branch, allowed_programs(run.options.commit_hooks))?;
    Ok(Some(format!("switched to the branch `{name}`, on which this run works ({now} was checked out)")))
}

/// Why work in progress must not be committed now: the run has a branch of its own, and another one is checked out.
pub(crate) fn refusal(project: &Project, run: &RunState) -> Option<String> {
    let name = run.options.branch.as_ref()?;
    match head(project.root()) {
        Ok(Head::Branch(now)) if now == *name => None,
        // Then there is nothing to commit to, and the commit says so itself.
        Ok(Head::NoRepository) => None,
        Ok(Head::Branch(now)) => {
            Some(format!("`{now}` is checked out, and this run commits only to `{name}`"))
        }
        Ok(Head::NoCommit | Head::Detached) => {
            Some(format!("`{name}` is not checked out, and this run commits only to it"))
        }
        Err(error) => Some(error.to_string()),
    }
}
