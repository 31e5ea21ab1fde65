//! The git remote of the current clone. Data that git fetches goes into a temporary folder, which is deleted when the command ends.

use crate::fleet::shared_plan::SharedPlan;
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_flows::workers::RemoteTarget;
use plimsoll_flows::workers::repository_copy::copy_and_print_messages_if_large;
use plimsoll_launcher::remote_repository::{PushLease, ReferenceUpdate, Remote, RemoteError};
use plimsoll_store::{environment, layout};
use plimsoll_terminal::console::print_notice;
use std::path::Path;
use tempfile::TempDir;

/// A remote of the current clone, with a temporary copy of the clone for the data that git fetches.
pub(super) struct CloneRemote {
    remote: Remote,
    _temporary_folder: TempDir,
}

/// An error while opening or using the remote.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloneRemoteError {
    #[error("cannot make a temporary folder: {0}")]
    NoTempFolder(#[from] std::io::Error),
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// The reference of a fetched branch, in the temporary folder only.
const FETCHED_REFERENCE: &str = "refs/plimsoll/seen";

impl CloneRemote {
    /// Opens the remote with this name of the repository of the current folder. Returns `None` outside a repository.
    pub(super) fn open_in_current_folder(name: &str) -> Option<Result<CloneRemote, CloneRemoteError>> {
        let current_folder = environment::current_dir();
        let (repository, _) = layout::find_repository(&current_folder)?;
        Some(CloneRemote::open_with_temporary_copy(repository, name))
    }

    /// Opens the remote with this name. Copies the clone's objects into a temporary folder.
    pub(super) fn open_with_temporary_copy(
        repository: &Path,
        name: &str,
    ) -> Result<CloneRemote, CloneRemoteError> {
        let temporary_folder = tempfile::tempdir()?;
        let git_folder = temporary_folder.path().join("remote.git");
        let remote =
            copy_and_print_messages_if_large(repository, true, &mut |text| print_notice(&text), || {
                Remote::open(repository, name, &git_folder)
            })?;
        Ok(CloneRemote { remote, _temporary_folder: temporary_folder })
    }

    /// Returns the remote's address without credentials.
    pub(super) fn address(&self) -> String {
        self.remote.address_without_credentials()
    }

    /// Fetches a branch and returns its last commit, or `None` if the remote has no such branch.
    pub(super) fn fetch_branch_tip(&self, branch: &BranchName) -> Result<Option<CommitId>, CloneRemoteError> {
        match self.remote.fetch_with_object_checks_and_prune(
            &[&format!("+refs/heads/{branch}:{FETCHED_REFERENCE}")],
            &|| false,
        ) {
            Ok(()) => Ok(self.remote.object_of_local_reference(FETCHED_REFERENCE)),
            Err(RemoteError::ReferenceMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if `commit` is `tip` or one of its ancestors. Only looks at commits that were fetched or are in the clone.
    pub(super) fn contains_commit(&self, tip: &CommitId, commit: &CommitId) -> bool {
        self.remote.plimsoll_repository().history_contains(tip, commit)
    }

    /// Fetches a fleet's target branch and returns those of the items that it does not contain. `items` have the commits with which
    /// they may have been merged.
    pub(super) fn find_items_missing_from_branch(
        &self,
        fleet_name: &str,
        plan: &SharedPlan,
        items: &[(usize, Vec<String>)],
    ) -> Result<Vec<usize>, CloneRemoteError> {
        // The instance matters only for texts beside the branch, which are not used here.
        let target = RemoteTarget::new(self.remote.clone(), fleet_name, "", &plan.target_branch)
            .with_plan(plan.plan_on_target());
        Ok(target.find_items_missing_from_target(&plan.start_commit, items, &|| false)?)
    }

    /// Returns true if the remote has branches below `name/`.
    pub(super) fn has_branches_below(&self, name: &str) -> Result<bool, CloneRemoteError> {
        const FETCHED_NAMESPACE: &str = "refs/plimsoll/below";
        self.remote.fetch_with_object_checks_and_prune(
            &[&format!("+refs/heads/{name}/*:{FETCHED_NAMESPACE}/*")],
            &|| false,
        )?;
        Ok(!self.remote.local_references_below(FETCHED_NAMESPACE).is_empty())
    }

    /// Creates a branch on the remote. Fails if it exists.
    pub(super) fn create_branch(
        &self,
        branch: &BranchName,
        commit: &CommitId,
    ) -> Result<(), CloneRemoteError> {
        let reference = branch.full_ref_name();
        let update =
            ReferenceUpdate { new_object: Some(commit), reference: &reference, lease: PushLease::Absent };
        Ok(self.remote.push_references_with_leases(&[update], &|| false)?)
    }

    /// Checks with a dry run that the branch may be pushed, whether or not it exists. The remote's hooks do not run, so
    /// they may still refuse a real push.
    pub(super) fn dry_run_push_to_branch(
        &self,
        branch: &BranchName,
        commit: &CommitId,
    ) -> Result<(), CloneRemoteError> {
        let reference = branch.full_ref_name();
        let update =
            ReferenceUpdate { new_object: Some(commit), reference: &reference, lease: PushLease::AnyValue };
        Ok(self.remote.check_push_by_forced_dry_run(update)?)
    }
}
