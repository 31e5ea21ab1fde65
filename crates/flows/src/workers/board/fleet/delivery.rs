//! Delivers queued results to the shared board: first the branch is pushed, then the result is reported. Between
//! deliveries, checks the items that the board lists as merged. This happens in a separate thread, because pushes
//! and fetches take long and the board may be unreachable.

use super::FleetBoard;
use super::merge_check::check_listed_items_if_due;
use crate::workers::error::BoardError;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_store::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long to wait before a delivery is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Delivers queued results and checks merged items until `should_stop` is true. `item_notes` returns the notes that the sessions of an
/// item wrote in the plan.
pub(super) fn run_delivery_loop(
    board: &FleetBoard,
    should_stop: &AtomicBool,
    should_cancel: &dyn Fn() -> bool,
    item_notes: &dyn Fn(usize) -> Vec<String>,
) {
    while !should_stop.load(Ordering::Relaxed) {
        let was_target_fetched = check_listed_items_if_due(board, should_cancel);
        let next_result = board
            .workers_file
            .workers_state()
            .fleet_member
            .and_then(|member| member.outbox.into_iter().next());
        let Some(result) = next_result else {
            board.workers_file.wait_for_change(RETRY_INTERVAL);
            // Nothing else checks whether the remote is reachable again.
            if !was_target_fetched && board.target.outage().is_some() {
                let fetch_result = board.target.fetch_target(should_cancel);
                board.target.record_outage(fetch_result.err().map(|error| error.to_string()));
                std::thread::sleep(RETRY_INTERVAL);
            }
            continue;
        };
        match push_report_and_return_if_delivered(board, &result, should_cancel, item_notes) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(RETRY_INTERVAL),
            Err(error) => board.record_permanent_error(error.to_string()),
        }
    }
}

/// Pushes the work and reports the result. Returns true if the result is delivered or no longer needed, and false
/// if the delivery must be retried.
fn push_report_and_return_if_delivered(
    board: &FleetBoard,
    result: &ItemResult,
    should_cancel: &dyn Fn() -> bool,
    item_notes: &dyn Fn(usize) -> Vec<String>,
) -> Result<bool, StoreError> {
    let Ok(branch) = board.workers_file.workers_state().parse_attempt_branch(result.item, result.epoch)
    else {
        return Ok(true);
    };
    let mut reported_result = result.clone();
    // Notes are also sent for an unfinished item, because another machine may continue it.
    let notes = item_notes(result.item);
    // If the item has no commits, there is nothing to push.
    if result.start_commit_id != result.base_commit_id {
        match board.target.push_work_and_notes(result, &branch, &notes, should_cancel) {
            Ok(()) => board.target.record_outage(None),
            // The objects do not match their ids, so no machine may build on them.
            Err(RemoteError::OwnRepository(error)) => {
                let outcome = ItemOutcome::Failed(error.to_string());
                reported_result = ItemResult {
                    start_commit_id: String::new(),
                    base_commit_id: String::new(),
                    outcome,
                    ..reported_result
                };
            }
            Err(RemoteError::Canceled) => return Ok(false),
            Err(RemoteError::Rejected(error)) => {
                board.record_permanent_error(format!("the remote rejects the branch {branch}: {error}"));
                return Ok(false);
            }
            Err(error) => {
                board.target.record_outage(Some(error.to_string()));
                return Ok(false);
            }
        }
    }
    report_result_and_return_if_dequeued(board, result, &reported_result)
}

/// Reports a result to the board and removes it from the queue if the board accepts it or the epoch is stale.
/// Returns true if it was removed.
pub(super) fn report_result_and_return_if_dequeued(
    board: &FleetBoard,
    result: &ItemResult,
    reported_result: &ItemResult,
) -> Result<bool, StoreError> {
    let report_result = match reported_result.outcome {
        ItemOutcome::TakenByOther => Ok(()),
        ItemOutcome::Offered
        | ItemOutcome::Failed(_)
        | ItemOutcome::WaitsForAnswer(_)
        | ItemOutcome::Released => {
            board.call_board(|connection| connection.report_item_result(reported_result))
        }
    };
    match report_result {
        Ok(()) | Err(BoardError::StaleEpoch) => {
            board.workers_file.update_and_write_file(|workers| {
                if let Some(member) = &mut workers.fleet_member {
                    member.outbox.retain(|queued| queued != result);
                }
            })?;
            Ok(true)
        }
        Err(BoardError::Unreachable(_) | BoardError::Permanent(_)) => Ok(false),
    }
}
