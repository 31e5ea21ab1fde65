//! Decides why the run of a machine closes if no more items can be claimed from its fleet.

use super::merge_check::message_about_unconfirmed_item;
use super::{Board, FleetBoard};
use crate::workers::closing_reason::ClosingReason;
use crate::workers::connection::{ExhaustedLimit, FleetEnd};
use plimsoll_domain::RunStatus;
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::text::count_with_noun;
use plimsoll_policy::workers::{BoardProgress, classify_board_progress};

impl FleetBoard {
    /// Returns why the run closes if the fleet drains or is recorded as done, and not everything is merged. A run is
    /// not completed if this machine does not find in the target what is recorded as merged.
    pub(super) fn closing_reason_if_drained_or_recorded_as_done(&self) -> Option<ClosingReason> {
        let (workers_state, board_now) = (self.workers_file.workers_state(), self.board_now());
        let cached_state = self.lock_cached_state();
        let is_recorded_as_done = cached_state.fleet_end == Some(FleetEnd::AllMerged);
        let can_claim_items = !cached_state.is_draining && !is_recorded_as_done;
        let is_done = classify_board_progress(&workers_state.board, board_now) == BoardProgress::Done;
        if can_claim_items || is_done || cached_state.merge_checks.has_undecided_items() {
            return None;
        }
        let board_items = &workers_state.board.items;
        let merged_count =
            board_items.iter().filter(|board_item| board_item.stage == ItemStage::Merged).count();
        let fleet_state = if is_recorded_as_done { "is recorded as done" } else { "drains" };
        let item_count = count_with_noun(board_items.len(), "item");
        let mut reasons = vec![format!("the fleet {fleet_state}: {merged_count} of {item_count} merged")];
        let unconfirmed_items = cached_state.merge_checks.items_not_confirmed();
        reasons.extend(
            unconfirmed_items.iter().map(|item| message_about_unconfirmed_item(&workers_state, *item)),
        );
        let status = match (unconfirmed_items.is_empty(), is_recorded_as_done) {
            (true, false) => RunStatus::Completed,
            (true, true) => RunStatus::Blocked,
            (false, _) => RunStatus::CircuitBreaker,
        };
        Some(ClosingReason::Stop(status, reasons.join("; ")))
    }
}

/// Returns the status and the reason with which a machine leaves a fleet that has used up a limit.
pub(super) fn describe_exhausted_limit(exhausted_limit: ExhaustedLimit) -> (RunStatus, String) {
    match exhausted_limit {
        ExhaustedLimit::Money(spent_usd, max_usd) => {
            let spent_text = CostBasis::Reported.format_usd_spent_of_limit(spent_usd, max_usd);
            (RunStatus::Budget, format!("{spent_text} spent by the whole fleet"))
        }
        ExhaustedLimit::Sessions(session_count) => {
            let sessions = count_with_noun(session_count as usize, "session");
            (RunStatus::MaxIterations, format!("{sessions} used by the whole fleet"))
        }
    }
}
