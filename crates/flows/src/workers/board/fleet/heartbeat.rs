//! Renews this machine's leases and refreshes its copy of the board. This happens in a separate thread, which
//! never waits for other work.

use super::{CachedState, FleetBoard, epoch_if_leased_here, local_now};
use crate::workers::connection::BoardSnapshot;
use crate::workers::error::BoardError;
use plimsoll_domain::board::SetAsideReason;
use plimsoll_domain::workers::{ItemOutcome, ItemResult, WorkersState};
use plimsoll_policy::workers::{
    Claim, mark_claimed_item_ready_to_merge, reopen_claimed_item, reopen_or_set_aside_after_failed_attempt,
    set_claimed_item_aside,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A sixth of the lease duration, so that a lease survives several failed renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(15);
/// How often the board is read. A board with many items is read less often, because it has many rows.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
const ITEMS_PER_EXTRA_SECOND: usize = 1_000;

/// Renews leases, reports workers and refreshes the board until `should_stop` is true.
pub(super) fn run_heartbeat_loop(board: &FleetBoard, should_stop: &AtomicBool) {
    let mut last_renewal: Option<Instant> = None;
    let mut last_refresh: Option<Instant> = None;
    let (mut reported_items, mut is_report_due) = (Vec::new(), true);
    while !should_stop.load(Ordering::Relaxed) {
        let is_renewal_due = last_renewal.is_none_or(|renewed_at| renewed_at.elapsed() >= RENEWAL_INTERVAL);
        if is_renewal_due {
            last_renewal = Some(Instant::now());
            renew_leases_and_mark_lost_claims(board);
            is_report_due = true;
        }
        let refresh_interval = REFRESH_INTERVAL
            * u32::try_from(1 + board.workers_file.item_count() / ITEMS_PER_EXTRA_SECOND).unwrap_or(u32::MAX);
        if last_refresh.is_none_or(|refreshed_at| refreshed_at.elapsed() >= refresh_interval) {
            // The call records its errors, so they are ignored here.
            is_report_due =
                !report_workers_and_return_if_lock_was_free(board, &mut reported_items, is_report_due);
            let _ = refresh_cached_state_from_board(board);
            last_refresh = Some(Instant::now());
        }
        std::thread::sleep(REFRESH_INTERVAL / 4);
    }
}

/// Renews the leases of the items that are worked on here, and the merger's lease. Records claims whose epoch is
/// stale. Stops at the first other error.
pub(super) fn renew_leases_and_mark_lost_claims(board: &FleetBoard) {
    let (leased_claims, merger_epoch) = {
        let cached_state = board.lock_cached_state();
        (cached_state.leased_claims.clone(), cached_state.merger_epoch)
    };
    for claim in leased_claims {
        match board.call_board_over_heartbeat(|connection| connection.renew_claim(claim)) {
            Err(BoardError::StaleEpoch) => {
                _ = board.lock_cached_state().lost_claims.insert((claim.item_index, claim.epoch));
            }
            Err(BoardError::Unreachable(_) | BoardError::Permanent(_)) => return,
            Ok(()) => {}
        }
    }
    // The error is ignored: a merger with a stale epoch gets `StaleEpoch` at its next write.
    if let Some(merger_epoch) = merger_epoch {
        let _ = board.call_board_over_heartbeat(|connection| connection.renew_merger_lease(merger_epoch));
    }
}

/// Sends the reports of all workers if a worker has changed its item or if `even_if_unchanged` is true.
/// Returns false only if the lock is busy, so that the report must be repeated: another thread is reserving a
/// budget, and the heartbeat thread must not wait for that.
pub(super) fn report_workers_and_return_if_lock_was_free(
    board: &FleetBoard,
    reported_items: &mut Vec<(usize, Option<usize>)>,
    even_if_unchanged: bool,
) -> bool {
    let Ok(_reporting_guard) = board.reporting_lock.try_lock() else { return false };
    let worker_reports = board.lock_cached_state().worker_reports.clone();
    let current_items: Vec<(usize, Option<usize>)> = worker_reports
        .iter()
        .map(|worker_report| (worker_report.worker_number, worker_report.item))
        .collect();
    if !even_if_unchanged && *reported_items == current_items {
        return true;
    }
    let result = worker_reports.iter().try_for_each(|worker_report| {
        board.call_board_over_heartbeat(|connection| connection.report_worker(worker_report))
    });
    if result.is_ok() {
        *reported_items = current_items;
    }
    true
}

/// Reads the board and copies its state into the cached state and this machine's record.
pub(super) fn refresh_cached_state_from_board(board: &FleetBoard) -> Result<(), BoardError> {
    let change_count = board.workers_file.change_count();
    let requested_at = local_now();
    let snapshot = board.call_board_over_heartbeat(|connection| connection.read_board())?;
    let mut cached_state = board.lock_cached_state();
    cached_state.clock_offset_ms =
        i64::try_from(snapshot.board_time).unwrap_or(i64::MAX).saturating_sub_unsigned(requested_at);
    (cached_state.is_draining, cached_state.exhausted_limit) =
        (snapshot.is_draining, snapshot.exhausted_limit);
    board.workers_file.update_in_memory_if_unchanged(change_count, |workers| {
        apply_board_snapshot(workers, snapshot, &mut cached_state);
    });
    Ok(())
}

/// Copies the snapshot into the record, and applies the results that are still to be delivered.
fn apply_board_snapshot(
    workers_state: &mut WorkersState,
    snapshot: BoardSnapshot,
    cached_state: &mut CachedState,
) {
    let BoardSnapshot { board_state, open_items: items, passed_commands, fleet_end, .. } = snapshot;
    // Set together with the items: the end of the fleet is compared with what the record has of them.
    cached_state.fleet_end = fleet_end;
    (workers_state.board.paused_until, workers_state.board.merger_lease, workers_state.board.merger_epoch) =
        (board_state.paused_until, board_state.merger_lease, board_state.merger_epoch);
    workers_state.passed_verify_commands = passed_commands;
    // All other items are recorded as merged. This machine believes that only after its own check.
    let open_items: BTreeSet<usize> = items.iter().map(|(index, _)| *index).collect();
    let listed_as_merged = (0..workers_state.board.items.len()).filter(|index| !open_items.contains(index));
    cached_state.merge_checks.set_listed_items(listed_as_merged);
    cached_state.merge_checks.write_stages(workers_state);
    for (index, item) in items {
        let Some(board_item) = workers_state.board.items.get_mut(index) else { continue };
        let text = std::mem::take(&mut board_item.text);
        *board_item = item.board_item;
        board_item.text = text;
        let epoch = board_item.epoch;
        let is_leased_here = epoch_if_leased_here(workers_state, index) == Some(epoch)
            && !cached_state.lost_claims.contains(&(index, epoch));
        let item_progress = &mut workers_state.item_progress[index];
        item_progress.answered_question = item.answered_question;
        // For an item that is leased here, this machine's start commit is newer than the board's.
        if !is_leased_here || item_progress.start_commit_id.is_empty() {
            (item_progress.start_commit_id, item_progress.base_commit_id) =
                (item.start_commit_id, item.base_commit_id);
        }
    }
    let queued_results =
        workers_state.fleet_member.as_ref().map(|member| member.outbox.clone()).unwrap_or_default();
    // A result for an item that is recorded as merged will be rejected.
    let applicable_results =
        queued_results.iter().filter(|result| !cached_state.merge_checks.is_listed(result.item));
    applicable_results.for_each(|result| apply_queued_result(workers_state, result));
}

/// Applies the effect that a queued result will have on the board.
fn apply_queued_result(workers_state: &mut WorkersState, result: &ItemResult) {
    let claim = Claim { item_index: result.item, epoch: result.epoch };
    let board = &mut workers_state.board;
    // A stale epoch means that another machine now has the item.
    let _ = match &result.outcome {
        ItemOutcome::Offered => mark_claimed_item_ready_to_merge(board, claim, &result.start_commit_id),
        ItemOutcome::Failed(reason) => reopen_or_set_aside_after_failed_attempt(board, claim, reason),
        ItemOutcome::WaitsForAnswer(question) => {
            set_claimed_item_aside(board, claim, SetAsideReason::Question(question.clone()))
        }
        ItemOutcome::Released => reopen_claimed_item(board, claim),
        ItemOutcome::TakenByOther => Ok(()),
    };
    if result.outcome != ItemOutcome::TakenByOther
        && workers_state.board.items[result.item].epoch == result.epoch
    {
        let item_progress = &mut workers_state.item_progress[result.item];
        (item_progress.start_commit_id, item_progress.base_commit_id) =
            (result.start_commit_id.clone(), result.base_commit_id.clone());
    }
}
