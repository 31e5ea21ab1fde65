//! Connects `flows::workers`, which does not depend on a database, to a fleet's board.

use super::Fleet;
use super::members::{Member, MemberEventKind, WorkerReport};
use super::reconnecting_fleet::ReconnectingFleet;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{
    from_i64_or_zero, index_to_i32_saturating, item_from_row, plan_state_from_row, read_commit_or_empty,
};
use plimsoll_domain::workers::ItemResult;
use plimsoll_flows::workers::BoardError;
use plimsoll_flows::workers::connection::{
    BoardConnection, BoardSnapshot, ExhaustedLimit, FleetEnd, LocalWorkerReport, RejectedItem, Reservation,
    SharedItem,
};
use plimsoll_policy::workers::Claim;
use postgres::types::Type;
use postgres::{Error, Row};
use std::time::Duration;

/// The columns of an item that other machines need. The text is left out because every machine has it from the plan.
const READ_SHARED_ITEMS: &str = "
    select place, '' as text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note,
      '{}'::text[] as landings, start, beyond, question, answer
    from {fleet}.item where stage <> 'merged' and ($1 < 0 or place = $1) order by place";
const READ_PLAN_SNAPSHOT: &str = "
    select paused_until, merger, merger_until, merger_epoch, passed, draining, ended, max_cost, {fleet}.moment() as now,
      (select coalesce(sum(cost), 0) from {fleet}.worker) as cost,
      case when max_sessions <= (select coalesce(sum(sessions), 0) from {fleet}.item) then max_sessions end as used
    from {fleet}.plan";

/// Identifies this machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// This clone on this computer, as a member of the fleet.
    pub(crate) member: Member,
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
            worker_number: local_report.worker_number,
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
        self.fleet.run_with_reconnect_and_timeout("update the board", operation).map_err(to_board_error)
    }

    /// Runs an operation of this member on the fleet.
    fn run_as_member<T: Send + 'static>(
        &mut self,
        operation: impl FnOnce(&mut Fleet, &Member) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, BoardError> {
        let member = self.machine.member.clone();
        self.run_on_fleet(move |fleet| operation(fleet, &member))
    }
}

impl Fleet {
    fn read_unmerged_item_or_default(&mut self, index: usize) -> Result<SharedItem, FleetError> {
        let parameters: [Parameter<'_>; 1] = [(&index_to_i32_saturating(index), Type::INT4)];
        let indexed_item =
            self.query_and_map("read an item", READ_SHARED_ITEMS, &parameters, shared_item_from_row)?.pop();
        Ok(indexed_item.map(|(_, item)| item).unwrap_or_default())
    }

    fn read_snapshot(&mut self) -> Result<BoardSnapshot, FleetError> {
        let Fleet { database, name } = self;
        let snapshot = database.run_in_transaction("read the board", |transaction| {
            let row = transaction.query_typed_one(&name.qualify(READ_PLAN_SNAPSHOT), &[])?;
            let rows = transaction.query_typed(&name.qualify(READ_SHARED_ITEMS), &[(&-1_i32, Type::INT4)])?;
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
        });
        snapshot.map_err(|error| error.or_fleet_not_found(name))
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

    fn claim_item(
        &mut self,
        worker_number: usize,
        unconfirmed_items: &[usize],
    ) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        let unconfirmed_items = unconfirmed_items.to_vec();
        self.run_as_member(move |fleet, member| {
            let claim = fleet.claim_next_item(member, worker_number, &unconfirmed_items)?;
            let Some(claim) = claim else { return Ok(None) };
            Ok(Some((claim, fleet.read_unmerged_item_or_default(claim.item_index)?)))
        })
    }

    fn renew_claim(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.run_as_member(move |fleet, member| fleet.renew_claim_unless_stale_or_overlapping(member, claim))
    }

    fn report_item_result(&mut self, item_result: &ItemResult) -> Result<(), BoardError> {
        let item_result = item_result.clone();
        self.run_as_member(move |fleet, member| {
            fleet.store_result_unless_outcome_taken_by_other(member, &item_result)
        })
    }

    fn pause_all_workers(&mut self, duration: Duration) -> Result<(), BoardError> {
        self.run_as_member(move |fleet, member| fleet.pause_claims_for_at_least(member, duration))
    }

    fn acquire_or_renew_merger_lease(&mut self) -> Result<Option<u64>, BoardError> {
        self.run_as_member(Fleet::acquire_or_renew_merger_lease)
    }

    fn renew_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError> {
        self.run_as_member(move |fleet, member| fleet.renew_current_merger_lease(member, merger_epoch))
    }

    fn release_merger_lease(&mut self, merger_epoch: u64) -> Result<(), BoardError> {
        self.run_as_member(move |fleet, member| fleet.release_merger_lease(member, merger_epoch))
    }

    fn record_merge_candidate_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.run_as_member(move |fleet, member| {
            fleet.record_merge_candidate_commit(member, merger_epoch, item, &commit)
        })
    }

    fn restore_merge_candidate_commit(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.run_as_member(move |fleet, member| fleet.restore_merge_candidate_commit(member, item, &commit))
    }

    fn reject_item(&mut self, rejected_item: &RejectedItem) -> Result<(), BoardError> {
        let rejected_item = rejected_item.clone();
        self.run_as_member(move |fleet, member| {
            fleet.reopen_or_set_aside_rejected_item(member, &rejected_item)
        })
    }

    fn mark_items_in_target_as_merged(
        &mut self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
    ) -> Result<Vec<usize>, BoardError> {
        let candidates = self.run_on_fleet(Fleet::read_candidate_commits_of_unmerged_items)?;
        let commit_in_target = |(item, commits): (usize, Vec<String>)| {
            let commit = commits.into_iter().find(|commit| is_in_target(item, commit))?;
            Some((item, commit))
        };
        let items_with_commits: Vec<(usize, String)> =
            candidates.into_iter().filter_map(commit_in_target).collect();
        self.run_as_member(move |fleet, member| {
            fleet.mark_items_with_commits_as_merged(member, &items_with_commits)
        })
    }

    fn read_merge_commits_of_merged_items(
        &mut self,
        items: &[usize],
    ) -> Result<Vec<(usize, Vec<String>)>, BoardError> {
        let items = items.to_vec();
        self.run_on_fleet(move |fleet| fleet.read_candidate_commits_of_merged_items(&items))
    }

    fn report_unconfirmed_merge(&mut self, item: usize) -> Result<(), BoardError> {
        self.run_as_member(move |fleet, member| {
            fleet.record_member_event(member, MemberEventKind::MergeUnconfirmed, Some(item), "")
        })
    }

    fn record_passed_commands(&mut self, commands: &[String]) -> Result<(), BoardError> {
        let commands = commands.to_vec();
        self.run_as_member(move |fleet, member| fleet.record_passed_commands(member, &commands))
    }

    fn record_report_and_reserve_budget(
        &mut self,
        local_report: &LocalWorkerReport,
        unreported_sessions: u32,
        min_usd: f64,
    ) -> Result<Reservation, BoardError> {
        let report = self.worker_report(local_report);
        self.run_as_member(move |fleet, member| {
            fleet.record_worker_report(member, &report)?;
            fleet.reserve_money_and_sessions(member, &report, unreported_sessions, min_usd)
        })
    }

    fn report_worker(&mut self, local_report: &LocalWorkerReport) -> Result<(), BoardError> {
        let report = self.worker_report(local_report);
        self.run_as_member(move |fleet, member| fleet.record_worker_report(member, &report))
    }

    fn end_fleet_if_all_merged(&mut self) -> Result<(), BoardError> {
        self.run_as_member(Fleet::end_if_all_merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::DATABASE_TIMEOUT;
    use plimsoll_domain::workers::MemberToken;
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
        let member = Member::new("m", &MemberToken::from("secret".to_owned()));
        let machine = Machine { member, computer_name: "m".to_owned(), pid: 1 };
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
            matches!(&refused_error, BoardError::Permanent(why) if why.contains("no fleet named")),
            "{refused_error:?}"
        );
        drop(sender);
    }
}
