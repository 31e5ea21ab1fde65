//! Connects `flows::workers`, which does not depend on a database, to a fleet's board.

use super::members::WorkerReport;
use super::reconnecting_fleet::ReconnectingFleet;
use super::{BoardChange, Fleet, LockedRows, remove_nul_characters};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{
    from_i64_or_zero, index_to_i32_saturating, item_from_row, plan_state_from_row, read_commit_or_empty,
    to_i64_saturating,
};
use plimsoll_domain::board::SetAsideReason;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_flows::workers::BoardError;
use plimsoll_flows::workers::connection::{
    BoardConnection, BoardSnapshot, ExhaustedLimit, FleetEnd, LocalWorkerReport, RejectedItem, Reservation,
    SharedItem,
};
use plimsoll_policy::workers::{self, Claim};
use postgres::types::Type;
use postgres::{Error, Row};
use std::collections::HashSet;
use std::time::Duration;

/// The columns of an item that other machines need. The text is left out because every machine has it from the plan.
const READ_SHARED_ITEMS: &str = "
    select place, '' as text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note,
      '{}'::text[] as landings, start, beyond, question, answer
    from plimsoll.item where plan = $1 and stage <> 'merged' and ($2 < 0 or place = $2) order by place";
const READ_PLAN_SNAPSHOT: &str = "
    select paused_until, merger, merger_until, merger_epoch, passed, draining, ended, max_cost, plimsoll.moment() as now,
      (select coalesce(sum(cost), 0) from plimsoll.worker where plan = $1) as cost,
      case when max_sessions <= (select coalesce(sum(sessions), 0) from plimsoll.item where plan = $1) then max_sessions end as used
    from plimsoll.plan where id = $1";
const STORE_RESULT: &str = "
    update plimsoll.item set start = $3, beyond = $4, cost = cost + $5, tokens = tokens + $6, sessions = sessions + $7, sessions_allowed = 0,
      question = coalesce($8, question), answer = case when $8 is null then answer end
    where plan = $1 and place = $2";
const SET_START_COMMITS: &str =
    "update plimsoll.item set start = $3, beyond = $4 where plan = $1 and place = $2";
const ADD_PASSED_COMMANDS: &str = "
    update plimsoll.plan set passed = passed || array(select unnest($2::text[]) except select unnest(passed)) where id = $1
    returning id";
const END_IF_ALL_MERGED: &str = "
    with over as (
      update plimsoll.plan set ended = 'done' where id = $1 and ended is null
        and not exists (select from plimsoll.item where plan = $1 and stage <> 'merged')
      returning id
    )
    insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), id, 'done' from over returning plan";

/// Identifies this machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// Its name in the fleet, unique for this clone on this computer.
    pub(crate) member_name: String,
    pub(crate) computer_name: String,
    pub(crate) pid: u32,
}

/// A fleet's board for one machine. Every operation has a timeout, because the machine must keep supervising its sessions.
pub(crate) struct MachineBoard {
    pub(crate) fleet: ReconnectingFleet,
    pub(crate) machine: Machine,
}

impl MachineBoard {
    fn worker_report(&self, local_report: &LocalWorkerReport) -> WorkerReport {
        WorkerReport {
            worker_name: format!("{}/{}", self.machine.member_name, local_report.worker_number),
            machine_name: self.machine.computer_name.clone(),
            pid: self.machine.pid,
            plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id: local_report.session_id.clone(),
            context_percent: local_report.context_percent.map(|percent| percent as f64),
            total_cost_usd: local_report.cost_usd,
            item_index: local_report.item,
        }
    }

    fn run_on_fleet<T: Send + 'static>(
        &mut self,
        operation: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, BoardError> {
        self.fleet.run_with_reconnect_and_timeout("work on the board", operation).map_err(to_board_error)
    }
}

impl Fleet {
    fn read_unmerged_item_or_default(&mut self, index: usize) -> Result<SharedItem, FleetError> {
        let parameters: [Parameter<'_>; 2] =
            [(&self.plan_id, Type::INT8), (&index_to_i32_saturating(index), Type::INT4)];
        let indexed_item = self
            .database
            .query_and_map("read an item", READ_SHARED_ITEMS, &parameters, shared_item_from_row)?
            .pop();
        Ok(indexed_item.map(|(_, item)| item).unwrap_or_default())
    }

    fn read_snapshot(&mut self) -> Result<BoardSnapshot, FleetError> {
        let Fleet { database, plan_id, name, .. } = self;
        database.run_in_transaction("look at the board", |transaction| {
            let row = transaction.query_typed_opt(READ_PLAN_SNAPSHOT, &[(plan_id, Type::INT8)])?;
            let row = row.ok_or_else(|| FleetError::FleetNotFound(name.clone()))?;
            let rows = transaction
                .query_typed(READ_SHARED_ITEMS, &[(plan_id, Type::INT8), (&-1_i32, Type::INT4)])?;
            Ok(BoardSnapshot {
                board_time: from_i64_or_zero(row.try_get("now")?),
                board_state: plan_state_from_row(&row)?,
                open_items: rows.iter().map(shared_item_from_row).collect::<Result<_, _>>()?,
                passed_commands: row.try_get("passed")?,
                is_draining: row.try_get("draining")?,
                exhausted_limit: exhausted_limit_from_row(&row)?,
                fleet_end: match row.try_get::<_, Option<&str>>("ended")? {
                    Some("done") => Some(FleetEnd::AllMerged),
                    Some(_) => Some(FleetEnd::Stopped),
                    None => None,
                },
            })
        })
    }

    /// Stores the result and usage of an attempt at an item. Does nothing if another machine has taken the item over.
    pub fn store_result_unless_outcome_taken_by_other(
        &mut self,
        result: &ItemResult,
    ) -> Result<(), FleetError> {
        let (event_kind, action, event_detail) = match &result.outcome {
            ItemOutcome::Offered => ("offered", "offer the work on an item", result.start_commit_id.clone()),
            ItemOutcome::Failed(reason) => ("failed", "give an item back", remove_nul_characters(reason)),
            ItemOutcome::WaitsForAnswer(question) => {
                ("set_aside", "set an item aside", remove_nul_characters(question))
            }
            ItemOutcome::Released => ("given_back", "give an item back", String::new()),
            ItemOutcome::TakenByOther => return Ok(()),
        };
        let plan_id = self.plan_id;
        let (index, tokens) = (index_to_i32_saturating(result.item), to_i64_saturating(result.usage.tokens));
        let sessions = i32::try_from(result.usage.sessions).unwrap_or(i32::MAX);
        let question = match &result.outcome {
            ItemOutcome::WaitsForAnswer(question) => Some(remove_nul_characters(question)),
            ItemOutcome::Offered
            | ItemOutcome::Failed(_)
            | ItemOutcome::Released
            | ItemOutcome::TakenByOther => None,
        };
        let change = BoardChange { action, event_kind, event_detail: &event_detail };
        self.decide_and_write_with_extra_writes(
            change,
            LockedRows::Item(result.item),
            |partial_board, _| {
                let claim =
                    Claim { item_index: partial_board.local_index_or_max(result.item), epoch: result.epoch };
                let board = &mut partial_board.board;
                match &result.outcome {
                    ItemOutcome::Offered => {
                        workers::mark_claimed_item_ready_to_merge(board, claim, &result.start_commit_id)
                    }
                    ItemOutcome::Failed(_) => {
                        workers::reopen_or_set_aside_after_failed_attempt(board, claim, &event_detail)
                    }
                    ItemOutcome::WaitsForAnswer(_) => workers::set_claimed_item_aside(
                        board,
                        claim,
                        SetAsideReason::Question(event_detail.clone()),
                    ),
                    ItemOutcome::Released => workers::reopen_claimed_item(board, claim),
                    ItemOutcome::TakenByOther => Ok(()),
                }
            },
            |transaction| {
                let parameters: [Parameter<'_>; 8] = [
                    (&plan_id, Type::INT8),
                    (&index, Type::INT4),
                    (&result.start_commit_id, Type::TEXT),
                    (&result.base_commit_id, Type::TEXT),
                    (&result.usage.cost_usd, Type::FLOAT8),
                    (&tokens, Type::INT8),
                    (&sessions, Type::INT4),
                    (&question, Type::TEXT),
                ];
                transaction.execute_typed(STORE_RESULT, &parameters).map(drop)
            },
        )
    }

    /// Reopens an item whose work was rejected, with a note for its next session. After too many tries the item is set aside.
    pub fn reopen_or_set_aside_rejected_item(
        &mut self,
        rejected_item: &RejectedItem,
    ) -> Result<(), FleetError> {
        let (note, plan_id) = (remove_nul_characters(&rejected_item.next_session_note), self.plan_id);
        let (index, start_commit, base_commit) = (
            index_to_i32_saturating(rejected_item.item),
            &rejected_item.start_commit_id,
            &rejected_item.base_commit_id,
        );
        let change = BoardChange { action: "give an item back", event_kind: "refused", event_detail: &note };
        self.decide_and_write_with_extra_writes(
            change,
            LockedRows::PlanAndItem(rejected_item.item),
            |partial_board, _| {
                let item = partial_board.local_index_or_max(rejected_item.item);
                workers::reopen_or_set_aside_rejected_item(
                    &mut partial_board.board,
                    rejected_item.merger_epoch,
                    item,
                    &note,
                )
            },
            |transaction| {
                let parameters: [Parameter<'_>; 4] = [
                    (&plan_id, Type::INT8),
                    (&index, Type::INT4),
                    (start_commit, Type::TEXT),
                    (base_commit, Type::TEXT),
                ];
                transaction.execute_typed(SET_START_COMMITS, &parameters).map(drop)
            },
        )
    }

    fn renew_current_merger_lease(&mut self, merger_epoch: u64) -> Result<(), FleetError> {
        let change =
            BoardChange { action: "renew the merger's lease", event_kind: "merger", event_detail: "" };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, now| {
            workers::renew_current_merger_lease(&mut partial_board.board, merger_epoch, now)
        })
    }

    fn release_merger_lease(&mut self, merger_epoch: u64) -> Result<(), FleetError> {
        let change =
            BoardChange { action: "let another be the merger", event_kind: "merger", event_detail: "" };
        self.decide_and_write(change, LockedRows::Plan, |partial_board, _| {
            workers::release_merger_lease(&mut partial_board.board, merger_epoch)
        })
    }

    fn add_merge_candidate_commit_unless_listed(
        &mut self,
        plan_index: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let change =
            BoardChange { action: "write down what has landed", event_kind: "found", event_detail: commit };
        self.decide_and_write(change, LockedRows::Item(plan_index), |partial_board, _| {
            let index = partial_board.local_index_or_max(plan_index);
            if let Some(item) = partial_board.board.items.get_mut(index)
                && !item.attempted_merge_commits.iter().any(|attempted_commit| attempted_commit == commit)
            {
                item.attempted_merge_commits.push(commit.to_owned());
            }
            Ok(())
        })
    }

    fn record_passed_commands(&mut self, commands: &[String]) -> Result<(), FleetError> {
        let commands: Vec<String> = commands.iter().map(|command| remove_nul_characters(command)).collect();
        let parameters: [Parameter<'_>; 2] = [(&self.plan_id, Type::INT8), (&commands, Type::TEXT_ARRAY)];
        self.database.query("keep what has passed", ADD_PASSED_COMMANDS, &parameters).map(drop)
    }

    fn end_if_all_merged(&mut self) -> Result<(), FleetError> {
        self.database.query("end the fleet", END_IF_ALL_MERGED, &[(&self.plan_id, Type::INT8)]).map(drop)
    }
}

fn shared_item_from_row(row: &Row) -> Result<(usize, SharedItem), Error> {
    // These columns become arguments of git, so they are checked.
    read_commit_or_empty(row, "sha")?;
    let (index, board_item) = item_from_row(row)?;
    let question: Option<String> = row.try_get("question")?;
    let answer: Option<String> = row.try_get("answer")?;
    let item = SharedItem {
        board_item,
        start_commit_id: read_commit_or_empty(row, "start")?,
        base_commit_id: read_commit_or_empty(row, "beyond")?,
        answered_question: question.zip(answer),
    };
    Ok((index, item))
}

fn exhausted_limit_from_row(row: &Row) -> Result<Option<ExhaustedLimit>, Error> {
    let (cost, max_cost) = (row.try_get::<_, f64>("cost")?, row.try_get::<_, Option<f64>>("max_cost")?);
    let money_limit = max_cost
        .filter(|max_cost_usd| cost >= *max_cost_usd)
        .map(|max_cost_usd| ExhaustedLimit::Money(cost, max_cost_usd));
    let session_limit = row
        .try_get::<_, Option<i64>>("used")?
        .map(|used_sessions| ExhaustedLimit::Sessions(from_i64_or_zero(used_sessions)));
    Ok(money_limit.or(session_limit))
}

/// Converts an error by its consequence for a worker: stale epoch, retry later, or permanent failure.
fn to_board_error(error: FleetError) -> BoardError {
    match error {
        FleetError::StaleEpoch(_) => BoardError::StaleEpoch,
        error if error.is_transient() => BoardError::Unreachable(error.to_string()),
        error => BoardError::Permanent(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }),
    }
}

impl BoardConnection for MachineBoard {
    fn read_board(&mut self) -> Result<BoardSnapshot, BoardError> {
        self.run_on_fleet(Fleet::read_snapshot)
    }

    fn claim_item(&mut self, worker_name: &str) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        let worker_name = worker_name.to_owned();
        self.run_on_fleet(move |fleet| {
            let Some(claim) = fleet.claim_next_item(&worker_name)? else { return Ok(None) };
            Ok(Some((claim, fleet.read_unmerged_item_or_default(claim.item_index)?)))
        })
    }

    fn renew_claim(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.run_on_fleet(move |fleet| fleet.renew_claim_unless_stale_or_overlapping(claim))
    }

    fn report_item_result(&mut self, item_result: &ItemResult) -> Result<(), BoardError> {
        let item_result = item_result.clone();
        self.run_on_fleet(move |fleet| fleet.store_result_unless_outcome_taken_by_other(&item_result))
    }

    fn pause_all_workers(&mut self, duration: Duration) -> Result<(), BoardError> {
        self.run_on_fleet(move |fleet| fleet.pause_claims_for_at_least(duration))
    }

    fn acquire_or_renew_merger_lease(&mut self, merger_name: &str) -> Result<Option<u64>, BoardError> {
        let merger_name = merger_name.to_owned();
        self.run_on_fleet(move |fleet| fleet.acquire_or_renew_merger_lease(&merger_name))
    }

    fn renew_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError> {
        self.run_on_fleet(move |fleet| fleet.renew_current_merger_lease(merger_epoch))
    }

    fn release_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError> {
        self.run_on_fleet(move |fleet| fleet.release_merger_lease(merger_epoch))
    }

    fn record_merge_candidate_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.run_on_fleet(move |fleet| fleet.record_merge_candidate_commit(merger_epoch, item, &commit))
    }

    fn restore_merge_candidate_commit(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.run_on_fleet(move |fleet| fleet.add_merge_candidate_commit_unless_listed(item, &commit))
    }

    fn reject_item(&mut self, rejected_item: &RejectedItem) -> Result<(), BoardError> {
        let rejected_item = rejected_item.clone();
        self.run_on_fleet(move |fleet| fleet.reopen_or_set_aside_rejected_item(&rejected_item))
    }

    fn mark_items_in_target_as_merged(
        &mut self,
        is_in_target: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<usize>, BoardError> {
        let candidate_commits = self.run_on_fleet(Fleet::read_candidate_commits_of_unmerged_items)?;
        let commits_in_target: HashSet<String> =
            candidate_commits.into_iter().filter(|commit| is_in_target(commit)).collect();
        self.run_on_fleet(move |fleet| fleet.mark_items_with_commits_as_merged(&commits_in_target))
    }

    fn record_passed_commands(&mut self, commands: &[String]) -> Result<(), BoardError> {
        let commands = commands.to_vec();
        self.run_on_fleet(move |fleet| fleet.record_passed_commands(&commands))
    }

    fn record_report_and_reserve_budget(
        &mut self,
        local_report: &LocalWorkerReport,
        unreported_sessions: u32,
        min_usd: f64,
    ) -> Result<Reservation, BoardError> {
        let report = self.worker_report(local_report);
        self.run_on_fleet(move |fleet| {
            fleet.record_worker_report(&report)?;
            fleet.reserve_money_and_sessions(&report, unreported_sessions, min_usd)
        })
    }

    fn report_worker(&mut self, local_report: &LocalWorkerReport) -> Result<(), BoardError> {
        let report = self.worker_report(local_report);
        self.run_on_fleet(move |fleet| fleet.record_worker_report(&report))
    }

    fn end_fleet_if_all_merged(&mut self) -> Result<(), BoardError> {
        self.run_on_fleet(Fleet::end_if_all_merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::DATABASE_TIMEOUT;
    use std::sync::{Arc, Mutex, mpsc};

    #[test]
    fn a_database_that_never_answers_is_unreachable_and_connected_anew() {
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = Mutex::new(Some(receiver));
        // The first connection blocks until the end of the test.
        let open = move |_: &str| {
            let first_receiver = receiver.lock().expect("nobody panics").take();
            let _ = first_receiver.map(|silent| silent.recv());
            Err(FleetError::FleetNotFound("night".to_owned()))
        };
        let machine = Machine { member_name: "m".to_owned(), computer_name: "m".to_owned(), pid: 1 };
        let limit = Duration::from_millis(50);
        let fleet = ReconnectingFleet {
            open_fleet: Arc::new(open),
            timeout: limit,
            ..ReconnectingFleet::new("night")
        };
        let mut board = MachineBoard { fleet, machine };
        let timeout_error = board.read_board().expect_err("no answer");
        assert!(
            matches!(&timeout_error, BoardError::Unreachable(why) if why.contains("no answer came within")),
            "{timeout_error:?}"
        );
        board.fleet.timeout = DATABASE_TIMEOUT;
        let refused_error = board.read_board().expect_err("an answer");
        assert!(
            matches!(&refused_error, BoardError::Permanent(why) if why.contains("no fleet with the name")),
            "{refused_error:?}"
        );
        drop(sender);
    }
}
