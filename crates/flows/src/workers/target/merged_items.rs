//! Finds out which items the target branch of a fleet contains.
//!
//! An item is there if the branch has one of the commits with which it may have been merged, and if the plan on the branch does not
//! show it as open. A commit alone would not do: a member of the fleet could name the commit of another item. The plan on the branch
//! is changed by mergers only, because they drop such changes of an item's work.

use super::RemoteTarget;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::plan_edit::read_item_ticks;
use plimsoll_launcher::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use plimsoll_launcher::remote_repository::RemoteError;
use std::collections::BTreeSet;

/// The plan of a fleet on its target branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOnTarget {
    /// From the repository's root.
    pub file: RepoPath,
    /// The texts of all items.
    pub item_texts: Vec<String>,
}

/// The commits of a target branch, and the items that its plan shows as open.
#[derive(Debug, Default)]
pub(in super::super) struct TargetContents {
    /// The commits of the branch since the run began, and the one at which it began.
    commits: BTreeSet<CommitId>,
    /// The items that the plan on the branch shows as open.
    unticked_items: BTreeSet<usize>,
}

impl TargetContents {
    /// Reads the branch with this last commit.
    pub(in super::super) fn read(
        repository: &PlimsollRepository,
        start_commit: &CommitId,
        target_tip: &CommitId,
        plan: Option<&PlanOnTarget>,
    ) -> Result<TargetContents, PlimsollRepositoryError> {
        let commits = repository.list_start_and_later_commits(start_commit, target_tip)?;
        let Some(plan) = plan else { return Ok(TargetContents { commits, ..TargetContents::default() }) };
        let plan_text = repository.read_file_in_commit(target_tip, &plan.file)?.unwrap_or_default();
        Ok(TargetContents { commits, unticked_items: unticked_items(&plan_text, &plan.item_texts) })
    }

    /// Returns true if the branch has this commit, and its plan does not show the item as open. The commit may come from a database.
    pub(in super::super) fn contains_item(&self, item: usize, commit: &str) -> bool {
        CommitId::parse(commit).is_ok_and(|commit| self.commits.contains(&commit))
            && !self.unticked_items.contains(&item)
    }

    /// Returns the items that the branch does not contain with any of their commits. An item without commits, which was done when the
    /// fleet was created, is missing only if the plan shows it as open.
    fn missing_items(&self, items: &[(usize, Vec<String>)]) -> Vec<usize> {
        let is_missing = |(item, commits): &&(usize, Vec<String>)| match commits.as_slice() {
            [] => self.unticked_items.contains(item),
            commits => !commits.iter().any(|commit| self.contains_item(*item, commit)),
        };
        items.iter().filter(is_missing).map(|(item, _)| *item).collect()
    }
}

/// Returns the items whose line in the plan is not ticked. An item without a line, which somebody has removed, is not one of them.
fn unticked_items(plan_text: &[u8], item_texts: &[String]) -> BTreeSet<usize> {
    let item_texts: Vec<&str> = item_texts.iter().map(String::as_str).collect();
    let ticks = read_item_ticks(plan_text, &item_texts).into_iter().enumerate();
    ticks.filter(|(_, tick)| *tick == Some(false)).map(|(item, _)| item).collect()
}

impl RemoteTarget {
    /// Fetches the target and returns those of the items that it does not contain. `items` have the commits with
    /// which they may have been merged, as [`BoardConnection::read_merge_commits_of_merged_items`] returns them. Commits from before `start_commit`, at which the fleet began, do not count.
    ///
    /// [`BoardConnection::read_merge_commits_of_merged_items`]: crate::workers::connection::BoardConnection::read_merge_commits_of_merged_items
    pub fn find_items_missing_from_target(
        &self,
        start_commit: &CommitId,
        items: &[(usize, Vec<String>)],
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<Vec<usize>, RemoteError> {
        // Without a plan, an item without commits is believed.
        if items.is_empty() || self.plan().is_none() && items.iter().all(|(_, commits)| commits.is_empty()) {
            return Ok(Vec::new());
        }
        let target_tip = self.fetch_target_for_check(should_cancel)?;
        Ok(self.read_contents(start_commit, &target_tip)?.missing_items(items))
    }

    /// Reads what the target says about items, at this fetched commit.
    pub(super) fn read_contents(
        &self,
        start_commit: &CommitId,
        target_tip: &CommitId,
    ) -> Result<TargetContents, PlimsollRepositoryError> {
        TargetContents::read(self.merge_repository(), start_commit, target_tip, self.plan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_missing_unless_the_target_has_one_of_its_commits() {
        let commit_id = |number: usize| format!("{number:040x}");
        let commits = [1, 2].map(|number| CommitId::parse(&commit_id(number)).unwrap()).into();
        let contents = TargetContents { commits, unticked_items: [3].into() };
        let option = || "--all".to_owned();
        for (commits, is_missing) in [
            (vec![], false),
            (vec![commit_id(1)], false),
            (vec![commit_id(3)], true),
            (vec![commit_id(3), commit_id(2)], false),
            (vec![commit_id(3), commit_id(4)], true),
            (vec![commit_id(1)[..39].to_owned()], true),
            (vec![commit_id(1).to_uppercase() + "\n"], true),
            (vec![String::new()], true),
            (vec![option()], true),
            (vec![option(), commit_id(2)], false),
        ] {
            let items = [(4, commits.clone()), (7, vec![commit_id(9)]), (8, vec![commit_id(2)])];
            let expected = if is_missing { vec![4, 7] } else { vec![7] };
            assert_eq!(contents.missing_items(&items), expected, "{commits:?}");
            // The plan shows item 3 as open, so nothing counts for it.
            assert_eq!(contents.missing_items(&[(3, commits.clone())]), [3], "{commits:?}");
        }
        let nothing = TargetContents::default();
        assert_eq!(nothing.missing_items(&[(1, vec![commit_id(1)])]), [1]);
    }

    #[test]
    fn only_an_item_with_a_line_that_is_not_ticked_is_open() {
        let plan =
            b"# Plan\n- [x] one\n- [ ] two\n  - [x] a step\n- [x] twice\n- [ ] twice\n```\n- [ ] code\n```\n";
        let texts = ["one", "two", "twice", "twice", "twice", "gone", "code", "a step"].map(str::to_owned);
        assert_eq!(unticked_items(plan, &texts), [1, 3].into());
        assert_eq!(unticked_items(b"", &texts), BTreeSet::new());
    }
}
