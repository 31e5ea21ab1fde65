//! Makes sure that the work which a board offers for merging is in the repository in which results are merged.

use super::{OfferedWork, REPLICA_GRACE_PERIOD, RemoteTarget};
use plimsoll_domain::git_names::CommitId;
use plimsoll_launcher::plimsoll_repository::PlimsollRepositoryError;
use plimsoll_launcher::remote_repository::RemoteError;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// When commits that the board offers were first missing from the remote.
#[derive(Debug, Default)]
pub(super) struct MissingWork(Mutex<BTreeMap<CommitId, Instant>>);

impl MissingWork {
    /// Returns whether the work that ends at this commit can be merged. Work that is missing is waited for, because
    /// a git host may answer a fetch from a replica that does not have the last push yet. After that, it is
    /// unavailable, so that the item does not wait forever.
    pub(super) fn record_and_classify(
        &self,
        commit: &CommitId,
        is_available: bool,
        now: Instant,
    ) -> OfferedWork {
        let mut missing_since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_available {
            missing_since.remove(commit);
            return OfferedWork::Available;
        }
        let first_missing_at = *missing_since.entry(commit.clone()).or_insert(now);
        if now.saturating_duration_since(first_missing_at) < REPLICA_GRACE_PERIOD {
            return OfferedWork::NotYet;
        }
        // If the same commit is offered again, it is waited for again.
        missing_since.remove(commit);
        OfferedWork::Unavailable(PlimsollRepositoryError::BadCommit {
            commit: commit.clone(),
            reason: "no branch of the item on the remote has it".to_owned(),
        })
    }
}

impl RemoteTarget {
    /// Returns true if our own repository has the offered commit of an item. If it does not, fetches the item's
    /// branches first, because the item may have been offered since the last fetch.
    pub(super) fn fetch_work_if_missing(
        &self,
        item: usize,
        commit: &CommitId,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<bool, RemoteError> {
        if self.merge_repository().has_commit(commit) {
            return Ok(true);
        }
        self.fetch_target_and_items(&[item], should_cancel)?;
        Ok(self.merge_repository().has_commit(commit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::git_names::BranchName;
    use plimsoll_launcher::remote_repository::Remote;
    use std::path::Path;
    use std::time::Duration;

    fn run_shell(folder: &Path, command_line: &str) -> String {
        let outcome =
            plimsoll_launcher::run_user_shell_command(command_line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{command_line}: {outcome:?}");
        String::from_utf8(outcome.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn work_that_was_offered_after_the_fetch_of_a_round_is_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        run_shell(
            folder.path(),
            "git init -q --bare -b main bare.git && git clone -q bare.git clone 2>&1 && cd clone && \
             git checkout -q -b main && git config user.name T && git config user.email t@example.invalid && \
             git commit -q --allow-empty -m First && git push -q origin main && git clone -q ../bare.git ../other",
        );
        let clone = folder.path().join("clone");
        let remote = Remote::open(&clone, "origin", &folder.path().join("own.git")).unwrap();
        let target = RemoteTarget::new(remote, "night", "1", &BranchName::parse("main").unwrap());
        // The fetch of the round; the other machine pushes its work after it.
        target.fetch_target_items_and_landings(&[2], &|| false).unwrap();
        let other = folder.path().join("other");
        let commit_text = run_shell(
            &other,
            "git -c user.name=T -c user.email=t@example.invalid commit -q --allow-empty -m Work && git rev-parse HEAD",
        );
        let commit = CommitId::parse(&commit_text).unwrap();
        assert_eq!(target.fetch_work_if_missing(2, &commit, &|| false), Ok(false));
        run_shell(&other, "git push -q origin HEAD:refs/heads/plimsoll-items/night/3/1");
        assert_eq!(target.fetch_work_if_missing(1, &commit, &|| false), Ok(false), "another item");
        assert_eq!(target.fetch_work_if_missing(2, &commit, &|| false), Ok(true));
        // A commit that is in the local repository is found without the remote.
        run_shell(folder.path(), "mv bare.git gone.git");
        assert_eq!(target.fetch_work_if_missing(2, &commit, &|| false), Ok(true));
        let absent_commit = CommitId::parse(&format!("{:040x}", 1)).unwrap();
        let result = target.fetch_work_if_missing(2, &absent_commit, &|| false);
        assert!(matches!(result, Err(RemoteError::Unreachable(_))), "{result:?}");
    }

    #[test]
    fn missing_work_is_waited_for_and_then_sent_back() {
        let (began_at, missing_work) = (Instant::now(), MissingWork::default());
        let commits = [1, 2].map(|number| CommitId::parse(&format!("{number:040x}")).unwrap());
        let unavailable = |commit: &CommitId| {
            OfferedWork::Unavailable(PlimsollRepositoryError::BadCommit {
                commit: commit.clone(),
                reason: "no branch of the item on the remote has it".to_owned(),
            })
        };
        for (second, commit, is_available, expected) in [
            (0, &commits[0], false, OfferedWork::NotYet),
            (29, &commits[0], false, OfferedWork::NotYet),
            (29, &commits[1], false, OfferedWork::NotYet),
            (30, &commits[0], false, unavailable(&commits[0])),
            (31, &commits[0], false, OfferedWork::NotYet),
            (61, &commits[0], false, unavailable(&commits[0])),
            // Work that has come and is missing again is waited for again.
            (58, &commits[1], true, OfferedWork::Available),
            (59, &commits[1], false, OfferedWork::NotYet),
            (89, &commits[1], false, unavailable(&commits[1])),
        ] {
            let now = began_at + Duration::from_secs(second);
            assert_eq!(missing_work.record_and_classify(commit, is_available, now), expected, "{second}");
        }
    }
}
