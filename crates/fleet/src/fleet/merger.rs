//! The merger's lease, its merge candidate commits, merged items, and pauses of the whole plan.

use super::{BoardChange, Fleet, LockedRows};
use crate::database_error::FleetError;
use crate::rows::read_commit;
use plimsoll_domain::board::BoardMillis;
use plimsoll_policy::workers;
use postgres::types::Type;
use std::collections::HashSet;
use std::time::Duration;

const MARK_MERGED_ACTION: &str = "count items as merged";
const READ_UNMERGED_CANDIDATE_COMMITS: &str = "
    select distinct unnest(landings) as sha from plimsoll.item where plan = $1 and stage <> 'merged' and landings <> '{}'";

impl Fleet {
    /// Acquires the merger's lease, or renews it if this merger has it. Returns its epoch, or `None` if another merger has it.
    pub fn acquire_or_renew_merger_lease(&mut self, merger_name: &str) -> Result<Option<u64>, FleetError> {
        let change =
            BoardChange { action: "become the merger", event_kind: "merger", event_detail: merger_name };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, now| {
            Ok(workers::acquire_or_renew_merger_lease(&mut partial_board.board, merger_name, now))
        })
    }

    /// Records the commit with which an item is about to be merged. The target branch may move only after this.
    pub fn record_merge_candidate_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let change =
            BoardChange { action: "write down a landing", event_kind: "landing", event_detail: commit };
        self.decide_and_write(change, LockedRows::PlanAndItem(item), |partial_board, _| {
            let index = partial_board.local_index_or_max(item);
            workers::record_merge_candidate_commit(&mut partial_board.board, merger_epoch, index, commit)
        })
    }

    /// Reads the merge candidate commits of all items that are not merged.
    pub fn read_candidate_commits_of_unmerged_items(&mut self) -> Result<Vec<String>, FleetError> {
        self.database.query_and_map(
            MARK_MERGED_ACTION,
            READ_UNMERGED_CANDIDATE_COMMITS,
            &[(&self.plan_id, Type::INT8)],
            |row| read_commit(row, "sha"),
        )
    }

    /// Marks each item as merged that has one of these commits as a merge candidate. Returns the indices of these items.
    pub fn mark_items_with_commits_as_merged(
        &mut self,
        commits_in_target: &HashSet<String>,
    ) -> Result<Vec<usize>, FleetError> {
        if commits_in_target.is_empty() {
            return Ok(Vec::new());
        }
        let change = BoardChange { action: MARK_MERGED_ACTION, event_kind: "merged", event_detail: "" };
        self.decide_and_write(change, LockedRows::PlanAndMergeCandidates, |partial_board, _| {
            let merged_indices =
                workers::mark_items_in_target_as_merged(&mut partial_board.board, |commit| {
                    commits_in_target.contains(commit)
                });
            Ok(merged_indices.into_iter().map(|index| partial_board.plan_indices[index]).collect())
        })
    }

    /// Pauses all claims for `duration` from now; an existing pause that ends later remains. Takes a duration because the clock of
    /// the machine that reached the usage limit may be wrong.
    pub fn pause_claims_for_at_least(&mut self, duration: Duration) -> Result<(), FleetError> {
        let milliseconds = BoardMillis::try_from(duration.as_millis()).unwrap_or(BoardMillis::MAX);
        let change = BoardChange { action: "pause the plan", event_kind: "paused", event_detail: "" };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, now| {
            workers::pause_claims_at_least_until(&mut partial_board.board, now.saturating_add(milliseconds));
            Ok(())
        })
    }
}
