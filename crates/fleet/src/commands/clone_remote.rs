//! The git remote of the current clone. Data that git fetches goes into a temporary folder, which is deleted when the command ends.

use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_flows::workers::repository_copy::copy_with_announcement;
use plimsoll_launcher::remote_repository::{PushLease, ReferenceUpdate, Remote, RemoteError};
use plimsoll_terminal::console::print_error;
use std::path::Path;
use tempfile::TempDir;

/// A remote of a clone.
pub(super) struct CloneRemote {
    remote: Remote,
    _folder: TempDir,
}

/// An error while opening or using the remote.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloneError {
    #[error("cannot make a temporary folder: {0}")]
    NoTempFolder(#[from] std::io::Error),
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// The reference of a fetched branch, in the temporary folder only.
const FETCHED_REFERENCE: &str = "refs/plimsoll/seen";

impl CloneRemote {
    /// Opens the remote with this name.
    pub(super) fn open(repository: &Path, name: &str) -> Result<CloneRemote, CloneError> {
        let folder = tempfile::tempdir()?;
        let git_folder = folder.path().join("remote.git");
        let remote = copy_with_announcement(repository, true, &mut |text| print_error(&text), || {
            Remote::open(repository, name, &git_folder)
        })?;
        Ok(CloneRemote { remote, _folder: folder })
    }

    /// Returns the remote's address without credentials.
    pub(super) fn address(&self) -> String {
        self.remote.address_without_credentials()
    }

    /// Fetches a branch and returns its last commit, or `None` if the remote has no such branch.
    pub(super) fn fetch_branch_tip(&self, branch: &BranchName) -> Result<Option<CommitId>, CloneError> {
        match self.remote.fetch(&[&format!("+refs/heads/{branch}:{FETCHED_REFERENCE}")], &|| false) {
            Ok(()) => Ok(self.remote.object_of_reference(FETCHED_REFERENCE)),
            Err(RemoteError::ReferenceMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if `commit` is `end` or one of its ancestors. Only commits that are known here count.
    pub(super) fn contains_commit(&self, tip: &CommitId, commit: &CommitId) -> bool {
        self.remote.own_repository().history_contains(tip, commit)
    }

    /// Returns true if the remote has branches below `name/`.
    pub(super) fn has_branches_below(&self, name: &str) -> Result<bool, CloneError> {
        const FETCHED_NAMESPACE: &str = "refs/plimsoll/below";
        self.remote.fetch(&[&format!("+refs/heads/{name}/*:{FETCHED_NAMESPACE}/*")], &|| false)?;
        Ok(!self.remote.references_below(FETCHED_NAMESPACE).is_empty())
    }

    /// Creates a branch on the remote. Fails if it exists.
    pub(super) fn create_branch(&self, branch: &BranchName, commit: &CommitId) -> Result<(), CloneError> {
        let reference = branch.full_ref_name();
        let push =
            ReferenceUpdate { new_object: Some(commit), reference: &reference, lease: PushLease::Absent };
        Ok(self.remote.push_references(&[push], &|| false)?)
    }

    /// Checks with a dry run that a branch could be created. The remote's hooks do not run, so they may still refuse.
    pub(super) fn check_can_create_branch(
        &self,
        branch: &BranchName,
        commit: &CommitId,
    ) -> Result<(), CloneError> {
        let reference = branch.full_ref_name();
        let push =
            ReferenceUpdate { new_object: Some(commit), reference: &reference, lease: PushLease::AnyValue };
        Ok(self.remote.check_push(push)?)
    }
}
