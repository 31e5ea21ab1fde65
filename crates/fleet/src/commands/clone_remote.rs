//! The git remote of the clone in which a command runs. What git needs to speak to it lies in a folder that goes with the command.

use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_flows::workers::repository_copy::announce_copy;
use plimsoll_launcher::remote_repository::{Lease, Push, Remote, RemoteError};
use plimsoll_terminal::console::say_error;
use std::path::Path;
use tempfile::TempDir;

/// A remote of a clone.
pub(super) struct CloneRemote {
    remote: Remote,
    _folder: TempDir,
}

/// Why the remote is not known, or does not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloneError {
    #[error("cannot make a temporary folder: {0}")]
    NoFolder(#[from] std::io::Error),
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Where a branch that was looked up is noted, in that folder alone.
const SEEN: &str = "refs/plimsoll/seen";

impl CloneRemote {
    /// The remote of this name.
    pub(super) fn open(repository: &Path, name: &str) -> Result<CloneRemote, CloneError> {
        let folder = tempfile::tempdir()?;
        let git_folder = folder.path().join("remote.git");
        let remote = announce_copy(repository, true, &mut |words| say_error(&words), || {
            Remote::open(repository, name, &git_folder)
        })?;
        Ok(CloneRemote { remote, _folder: folder })
    }

    /// Its address, without what lets somebody in.
    pub(super) fn address(&self) -> String {
        self.remote.address()
    }

    /// The end of a branch there, whose commits are here from now on; none if there is no such branch.
    pub(super) fn tip(&self, branch: &BranchName) -> Result<Option<CommitId>, CloneError> {
        match self.remote.fetch(&[&format!("+refs/heads/{branch}:{SEEN}")], &|| false) {
            Ok(()) => Ok(self.remote.seen(SEEN)),
            Err(RemoteError::Gone(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a commit is among those before another one, as far as both are known here.
    pub(super) fn contains(&self, end: &CommitId, commit: &CommitId) -> bool {
        self.remote.own().contains(end, commit)
    }

    /// True if there are branches below a name.
    pub(super) fn has_below(&self, name: &str) -> Result<bool, CloneError> {
        const BELOW: &str = "refs/plimsoll/below";
        self.remote.fetch(&[&format!("+refs/heads/{name}/*:{BELOW}/*")], &|| false)?;
        Ok(!self.remote.below(BELOW).is_empty())
    }

    /// Makes a branch there, where there is none.
    pub(super) fn make(&self, branch: &BranchName, commit: &CommitId) -> Result<(), CloneError> {
        let reference = branch.reference();
        let push = Push { object: Some(commit), reference: &reference, lease: Lease::Absent };
        Ok(self.remote.push(&[push], &|| false)?)
    }

    /// Goes as far as making a branch would, and makes none. What hooks there would say is not known then.
    pub(super) fn may_make(&self, branch: &BranchName, commit: &CommitId) -> Result<(), CloneError> {
        let reference = branch.reference();
        let push = Push { object: Some(commit), reference: &reference, lease: Lease::Any };
        Ok(self.remote.may_push(push)?)
    }
}
