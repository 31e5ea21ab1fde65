//! The branch of the clone on which the work of one machine comes together.

use super::{CompletionCheck, Target};
use crate::workers::error::MergeError;
use crate::workers::returned;
use crate::workers::session_notes::{carry_notes_to_shown_plan, with_shown_notes};
use crate::workers::shown_plan::shown_plan;
use crate::workers::table::Table;
use crate::workers::tree::{TreeError, Trees, Wanted};
use plimsoll_domain::board::Stage;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::text::one_line;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, TodoList};
use plimsoll_launcher::branch::check_worktrees;
use plimsoll_launcher::own_repository::{OwnRepository, OwnRepositoryError};
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree;
use plimsoll_policy::todo_list::unclear_at_end;
use plimsoll_policy::workers::Claim;
use plimsoll_store::{Project, StoreError, clock, disk};
use std::path::Path;

/// The target of one machine.
pub(in super::super) struct LocalTarget<'a> {
    table: &'a Table,
    project: &'a Project,
    run: &'a RunState,
    trees: &'a Trees,
}

impl<'a> LocalTarget<'a> {
    /// The target of the run with this record.
    pub(in super::super) fn new(
        table: &'a Table,
        project: &'a Project,
        run: &'a RunState,
        trees: &'a Trees,
    ) -> LocalTarget<'a> {
        LocalTarget { table, project, run, trees }
    }

    fn repository(&self) -> &Path {
        &self.trees.ground.repository
    }

    fn own(&self) -> &OwnRepository {
        self.trees.merge.own()
    }

    /// What of the clone's branch is not what was verified: everything was verified in a repository of ours, and the user has the
    /// clone.
    fn difference_to_clone(&self, now: &Workers) -> Option<String> {
        let branch = one_line(&now.target);
        let Some(end) = self.last_seen_tip() else { return Some(format!("the branch `{branch}` is gone")) };
        let landings = now.board.items.iter().flat_map(|row| &row.landings);
        if !landings.chain([&now.began_at]).any(|commit| commit == end.as_str()) {
            return Some(format!(
                "every item is merged, and something other than this run moved `{branch}` to {end}, which was not verified: look at it (git log {branch})"
            ));
        }
        let began = clock::moment(&self.run.at_start.started_at)?;
        let checked = self.own().check_clone_since(began.into());
        checked.err().map(|error| format!("every item is merged and verified, and {error}; see git fsck"))
    }

    /// Lines of the plan that look like items and are none. They came into the plan since the run began.
    fn unclear_lines(&self, now: &Workers) -> Option<String> {
        let plans = [
            shown_plan(self.project, now).ok(),
            disk::read(&self.project.root().join(&now.plan)).ok().flatten(),
        ];
        plans.into_iter().flatten().find_map(|plan| {
            let unclear = TodoList::parse(&String::from_utf8_lossy(&plan)).unclear;
            // The ticks of the user's own file are behind those of the run, so only the lines count here.
            unclear_at_end(&TodoList { unclear, ..TodoList::default() }, &now.plan)
        })
    }
}

impl Target for LocalTarget<'_> {
    fn fetch_tip(&self, _: &[usize], _: &dyn Fn() -> bool) -> Result<CommitId, MergeError> {
        let now = self.table.now();
        let end = worktree::end_of(self.repository(), &now.target_branch()?);
        let end = end.ok_or(MergeError::NoTarget(now.target))?;
        self.own().take(&end)?;
        Ok(end)
    }

    fn last_seen_tip(&self) -> Option<CommitId> {
        worktree::end_of(self.repository(), &self.table.now().target_branch().ok()?)
    }

    /// The record has them.
    fn landings(&self) -> Vec<(usize, CommitId)> {
        Vec::new()
    }

    fn take_work(&self, commit: &CommitId) -> Result<(), OwnRepositoryError> {
        self.own().take(commit)
    }

    fn advance(
        &self,
        from: &CommitId,
        to: &CommitId,
        _: &[(usize, &CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        let now = self.table.now();
        let branch = now.target_branch()?;
        if check_worktrees(self.repository(), &branch).is_err() {
            return Err(MergeError::CheckedOut(now.target));
        }
        self.own().give(to)?;
        Ok(worktree::move_branch(self.repository(), &branch, Some(from), to))
    }

    /// The branches of an item go with its worktree.
    fn remove_merged(&self, _: &[(usize, u64)], _: &dyn Fn() -> bool) {}

    fn fetch_earlier_work(&self, wanted: Wanted, _: &dyn Fn() -> bool) -> Result<Wanted, TreeError> {
        Ok(wanted)
    }

    /// It is on this machine.
    fn note_away(&self, _: &RemoteError) {}

    fn returned_work(&self, item: usize) -> Option<ReturnedWork> {
        returned::load(self.project, self.run, &self.table.now(), item)
    }

    fn keep_returned_work(
        &self,
        Claim { item, .. }: Claim,
        work: &ReturnedWork,
        start: Option<CommitId>,
        _: &dyn Fn() -> bool,
    ) -> Result<Option<CommitId>, MergeError> {
        if let Some(start) = &start {
            // The item's next worktree begins there.
            self.own().give(start)?;
        }
        // Before the record: whoever takes the item up next looks here.
        returned::keep(self.project, self.run, item, work)?;
        Ok(start)
    }

    fn publish_work(&self, commit: &CommitId) -> bool {
        self.own().give(commit).is_ok()
    }

    fn work_name(&self, now: &Workers, item: usize, end: &CommitId) -> String {
        match &now.board.items[item].stage {
            // Without what a session changed in the plan it is another commit.
            Stage::Offered { commit } if commit != end.as_str() => end.to_string(),
            Stage::Offered { .. }
            | Stage::Open
            | Stage::Leased { .. }
            | Stage::Merged
            | Stage::Aside { .. } => now.branch(item, now.board.items[item].epoch),
        }
    }

    fn carry_notes(&self, item: usize) -> Result<(), StoreError> {
        carry_notes_to_shown_plan(self.project, &self.table.now(), self.trees, item)
    }

    /// All notes of the shown plan come with the next item that lands.
    fn add_notes(&self, plan: Vec<u8>, _: usize) -> Result<Vec<u8>, StoreError> {
        Ok(with_shown_notes(&plan, &shown_plan(self.project, &self.table.now())?))
    }

    fn plan_with_late_notes(&self) -> Result<Option<Vec<u8>>, StoreError> {
        shown_plan(self.project, &self.table.now()).map(Some)
    }

    fn check_completed(&self) -> CompletionCheck {
        let now = self.table.now();
        let objection = self.difference_to_clone(&now).or_else(|| self.unclear_lines(&now));
        // What git shows in this clone, and in no other.
        CompletionCheck { notes: worktree::local_views(self.repository()), objection }
    }
}
