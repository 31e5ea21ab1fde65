//! The merger's operations, commits that have landed, and pauses of the whole plan.

use super::{BoardChange, Fleet, LockedRows};
use crate::database_fault::FleetError;
use crate::rows::read_commit;
use plimsoll_domain::board::BoardMillis;
use plimsoll_policy::workers;
use postgres::types::Type;
use std::collections::HashSet;
use std::time::Duration;

const MARK_MERGED_ACTION: &str = "count items as merged";
const READ_UNMERGED_LANDINGS: &str = "
    select distinct unnest(landings) as sha from plimsoll.item where plan = $1 and stage <> 'merged' and landings <> '{}'";

impl Fleet {
    /// Acquires the merger's lease. Returns its epoch, or `None` if somebody else holds it.
    pub fn acquire_merger_lease(&mut self, merger_name: &str) -> Result<Option<u64>, FleetError> {
        let change =
            BoardChange { action: "become the merger", event_kind: "merger", event_detail: merger_name };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, now| {
            Ok(workers::acquire_merger_lease(&mut partial_board.board, merger_name, now))
        })
    }

    /// Records the commit by which an offered item is about to land. The target branch may move only after this.
    pub fn record_landing_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let change =
            BoardChange { action: "write down a landing", event_kind: "landing", event_detail: commit };
        self.decide_and_write(change, LockedRows::PlanAndItem(item), |partial_board, _| {
            let index = partial_board.index_in_part_or_max(item);
            workers::record_landing_commit(&mut partial_board.board, merger_epoch, index, commit)
        })
    }

    /// Returns the recorded landing commits of all items that are not merged.
    pub fn unmerged_landing_commits(&mut self) -> Result<Vec<String>, FleetError> {
        self.database.query_and_map(
            MARK_MERGED_ACTION,
            READ_UNMERGED_LANDINGS,
            &[(&self.plan_id, Type::INT8)],
            |row| read_commit(row, "sha"),
        )
    }

    /// Marks each item as merged that has one of these landing commits. Returns the indices of these items.
    pub fn mark_landed_items_merged(
        &mut self,
        landed_commits: &HashSet<String>,
    ) -> Result<Vec<usize>, FleetError> {
        if landed_commits.is_empty() {
            return Ok(Vec::new());
        }
        let change = BoardChange { action: MARK_MERGED_ACTION, event_kind: "merged", event_detail: "" };
        self.decide_and_write(change, LockedRows::PlanAndLandings, |partial_board, _| {
            let merged_indices = workers::mark_landed_items_merged(&mut partial_board.board, |commit| {
                landed_commits.contains(commit)
            });
            Ok(merged_indices.into_iter().map(|index| partial_board.plan_indices[index]).collect())
        })
    }

    /// Pauses the plan for a time from now. Takes a duration because the clock of the machine that reached the limit may be
    /// wrong. A later end wins.
    pub fn pause_for(&mut self, duration: Duration) -> Result<(), FleetError> {
        let milliseconds = BoardMillis::try_from(duration.as_millis()).unwrap_or(BoardMillis::MAX);
        let change = BoardChange { action: "pause the plan", event_kind: "paused", event_detail: "" };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, now| {
            workers::pause_board_until(&mut partial_board.board, now.saturating_add(milliseconds));
            Ok(())
        })
    }
}
