//! The merger's lease, its merge candidate commits, merged items, and pauses of the whole plan.

use super::members::Member;
use super::{Fleet, remove_nul_characters};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{
    from_i64_or_zero, index_from_i32_or_max, index_to_i32_saturating, read_commits, to_i64_saturating,
};
use plimsoll_flows::workers::connection::RejectedItem;
use postgres::types::Type;
use postgres::{Error, Row};
use std::time::Duration;

const MARK_MERGED_ACTION: &str = "record merged items";
const ACQUIRE_MERGER_LEASE: &str = "select {fleet}.acquire_merger_lease($1, $2)";
const RENEW_MERGER_LEASE: &str = "select {fleet}.renew_merger_lease($1, $2, $3)";
const RELEASE_MERGER_LEASE: &str = "select {fleet}.release_merger_lease($1, $2, $3)";
const RECORD_LANDING: &str = "select {fleet}.record_landing($1, $2, $3, $4, $5)";
const RESTORE_LANDING: &str = "select {fleet}.restore_landing($1, $2, $3, $4)";
const REJECT_ITEM: &str = "select {fleet}.reject_item($1, $2, $3, $4, $5, $6, $7)";
const MARK_MERGED: &str = "select place from {fleet}.mark_merged($1, $2, $3, $4) as place";
const RECORD_PASSED_COMMANDS: &str = "select {fleet}.record_passed_commands($1, $2, $3)";
const PAUSE_CLAIMS: &str = "select {fleet}.pause_claims($1, $2, $3)";
const END_IF_ALL_MERGED: &str = "select {fleet}.end_if_all_merged($1, $2)";
const READ_UNMERGED_CANDIDATE_COMMITS: &str = "
    select place, landings from {fleet}.item where stage <> 'merged' and landings <> '{}' order by place";
const READ_COMMITS_OF_MERGED_ITEMS: &str = "
    select place, landings from {fleet}.item where stage = 'merged' and place = any ($1) order by place";

impl Fleet {
    /// Acquires the merger's lease, or renews it if the member has it. Returns its epoch, or `None` if another member has it.
    pub fn acquire_or_renew_merger_lease(&mut self, member: &Member) -> Result<Option<u64>, FleetError> {
        let parameters: [Parameter<'_>; 2] = member.parameters();
        let epoch: Option<i64> = self.query_value("become the merger", ACQUIRE_MERGER_LEASE, &parameters)?;
        Ok(epoch.map(from_i64_or_zero))
    }

    /// Renews the merger's lease. Fails if another member has acquired it.
    pub(super) fn renew_current_merger_lease(
        &mut self,
        member: &Member,
        merger_epoch: u64,
    ) -> Result<(), FleetError> {
        self.change_merger_lease("renew the merger's lease", RENEW_MERGER_LEASE, member, merger_epoch)
    }

    /// Ends the merger's lease, so that another member can acquire it at once.
    pub(super) fn release_merger_lease(
        &mut self,
        member: &Member,
        merger_epoch: u64,
    ) -> Result<(), FleetError> {
        self.change_merger_lease("let another be the merger", RELEASE_MERGER_LEASE, member, merger_epoch)
    }

    fn change_merger_lease(
        &mut self,
        action: &'static str,
        statement: &str,
        member: &Member,
        merger_epoch: u64,
    ) -> Result<(), FleetError> {
        let epoch = to_i64_saturating(merger_epoch);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 3] = [name, token, (&epoch, Type::INT8)];
        self.query_unless_stale_epoch(action, statement, &parameters)
    }

    /// Records the commit with which an item is about to be merged. The target branch may move only after this.
    pub fn record_merge_candidate_commit(
        &mut self,
        member: &Member,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let (epoch, place) = (to_i64_saturating(merger_epoch), index_to_i32_saturating(item));
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 5] =
            [name, token, (&epoch, Type::INT8), (&place, Type::INT4), (&commit, Type::TEXT)];
        self.query_unless_stale_epoch("write down a landing", RECORD_LANDING, &parameters)
    }

    /// Records a commit with which an item was merged, if the database has lost it.
    pub fn restore_merge_candidate_commit(
        &mut self,
        member: &Member,
        item: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let place = index_to_i32_saturating(item);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 4] = [name, token, (&place, Type::INT4), (&commit, Type::TEXT)];
        self.query("write down what has landed", RESTORE_LANDING, &parameters).map(drop)
    }

    /// Reopens an item whose work was rejected, with a note for its next session. After too many tries the item is set aside.
    pub fn reopen_or_set_aside_rejected_item(
        &mut self,
        member: &Member,
        rejected_item: &RejectedItem,
    ) -> Result<(), FleetError> {
        let (epoch, place) =
            (to_i64_saturating(rejected_item.merger_epoch), index_to_i32_saturating(rejected_item.item));
        let note = remove_nul_characters(&rejected_item.next_session_note);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 7] = [
            name,
            token,
            (&epoch, Type::INT8),
            (&place, Type::INT4),
            (&note, Type::TEXT),
            (&rejected_item.start_commit_id, Type::TEXT),
            (&rejected_item.base_commit_id, Type::TEXT),
        ];
        self.query_unless_stale_epoch("give an item back", REJECT_ITEM, &parameters)
    }

    /// Reads the merge candidate commits of all items that are not merged.
    pub fn read_candidate_commits_of_unmerged_items(
        &mut self,
    ) -> Result<Vec<(usize, Vec<String>)>, FleetError> {
        self.query_and_map(
            MARK_MERGED_ACTION,
            READ_UNMERGED_CANDIDATE_COMMITS,
            &[],
            item_and_commits_from_row,
        )
    }

    /// Reads the merge candidate commits of those of these items that are recorded as merged.
    pub fn read_candidate_commits_of_merged_items(
        &mut self,
        items: &[usize],
    ) -> Result<Vec<(usize, Vec<String>)>, FleetError> {
        let places: Vec<i32> = items.iter().map(|item| index_to_i32_saturating(*item)).collect();
        let parameters: [Parameter<'_>; 1] = [(&places, Type::INT4_ARRAY)];
        self.query_and_map(
            "look at merged items",
            READ_COMMITS_OF_MERGED_ITEMS,
            &parameters,
            item_and_commits_from_row,
        )
    }

    /// Marks each of these items as merged that has the commit beside it as a merge candidate. Returns the indices of the items that
    /// were not marked before.
    pub fn mark_items_with_commits_as_merged(
        &mut self,
        member: &Member,
        items_with_commits: &[(usize, String)],
    ) -> Result<Vec<usize>, FleetError> {
        if items_with_commits.is_empty() {
            return Ok(Vec::new());
        }
        let (places, commits): (Vec<i32>, Vec<&String>) =
            items_with_commits.iter().map(|(item, commit)| (index_to_i32_saturating(*item), commit)).unzip();
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 4] =
            [name, token, (&places, Type::INT4_ARRAY), (&commits, Type::TEXT_ARRAY)];
        self.query_and_map(MARK_MERGED_ACTION, MARK_MERGED, &parameters, |row| {
            Ok(index_from_i32_or_max(row.try_get("place")?))
        })
    }

    /// Adds verify commands of the plan that have passed on the target branch.
    pub(super) fn record_passed_commands(
        &mut self,
        member: &Member,
        commands: &[String],
    ) -> Result<(), FleetError> {
        let commands: Vec<String> = commands.iter().map(|command| remove_nul_characters(command)).collect();
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 3] = [name, token, (&commands, Type::TEXT_ARRAY)];
        self.query("keep what has passed", RECORD_PASSED_COMMANDS, &parameters).map(drop)
    }

    /// Pauses all claims for `duration` from now, at most for a day; an existing pause that ends later remains. Takes a duration
    /// because the clock of the machine that reached the usage limit may be wrong.
    pub fn pause_claims_for_at_least(
        &mut self,
        member: &Member,
        duration: Duration,
    ) -> Result<(), FleetError> {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 3] = [name, token, (&milliseconds, Type::INT8)];
        self.query("pause the plan", PAUSE_CLAIMS, &parameters).map(drop)
    }

    pub(super) fn end_if_all_merged(&mut self, member: &Member) -> Result<(), FleetError> {
        self.query("end the fleet", END_IF_ALL_MERGED, &member.parameters()).map(drop)
    }
}

fn item_and_commits_from_row(row: &Row) -> Result<(usize, Vec<String>), Error> {
    Ok((index_from_i32_or_max(row.try_get("place")?), read_commits(row, "landings")?))
}
