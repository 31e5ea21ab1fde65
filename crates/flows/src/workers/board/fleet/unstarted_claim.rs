//! Gives claims back that were made a moment too early: another machine has recorded a dependency as merged after this
//! machine last read the board, so this machine has not found it in the target yet.

use super::FleetBoard;
use crate::workers::connection::SharedItem;
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::workers::{ItemOutcome, ItemResult, WorkersState};
use plimsoll_policy::workers::{Claim, reopen_claimed_item};

impl FleetBoard {
    /// Gives a claim that was not begun back to the board, unless all items on which its item depends are merged in
    /// this machine's record. The attempt does not count. Returns true if the claim is not kept. `claimed_item` is
    /// the item as the board has returned it, if it has. If the board cannot be reached, it still lists the claim,
    /// which is then found as one whose response was lost.
    pub(super) fn give_back_claim_if_dependency_unmerged(
        &self,
        claim: Claim,
        claimed_item: Option<&SharedItem>,
    ) -> bool {
        let workers_state = self.workers_file.workers_state();
        let recorded_item = || shared_item_in_record(&workers_state, claim);
        let claimed_item = claimed_item.cloned().unwrap_or_else(recorded_item);
        let is_merged_or_outside_plan = |dependency: &usize| {
            let dependency = workers_state.board.items.get(*dependency);
            dependency.is_none_or(|board_item| board_item.stage == ItemStage::Merged)
        };
        if claimed_item.board_item.dependency_indices.iter().all(is_merged_or_outside_plan) {
            return false;
        }
        let given_back = ItemResult {
            item: claim.item_index,
            epoch: claim.epoch,
            start_commit_id: claimed_item.start_commit_id,
            base_commit_id: claimed_item.base_commit_id,
            outcome: ItemOutcome::Released,
            ..ItemResult::default()
        };
        if self.call_board(|board| board.report_item_result(&given_back)).is_ok() {
            self.workers_file.update_in_memory(|workers| {
                // Fails if the record does not have the claim yet.
                let _ = reopen_claimed_item(&mut workers.board, claim);
            });
        }
        true
    }
}

/// Returns the item of a claim as the record has it.
fn shared_item_in_record(workers_state: &WorkersState, claim: Claim) -> SharedItem {
    let item_progress = &workers_state.item_progress[claim.item_index];
    SharedItem {
        board_item: workers_state.board.items[claim.item_index].clone(),
        start_commit_id: item_progress.start_commit_id.clone(),
        base_commit_id: item_progress.base_commit_id.clone(),
        answered_question: item_progress.answered_question.clone(),
    }
}
