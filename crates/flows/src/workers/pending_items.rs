//! Describes items of a parallel run that no worker of this machine is working on, one per line.

use crate::workers::unchecked_item::is_stage_of_unchecked_item;
use crate::workers::workers_file;
use plimsoll_domain::RunState;
use plimsoll_domain::board::{BoardItem, ItemStage, SetAsideReason};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::workers::WorkersState;
use plimsoll_store::{Project, StoreError, disk};

/// The maximum lengths of an item's text and of a reason on a line.
const MAX_ITEM_CHARS: usize = 50;
const MAX_REASON_CHARS: usize = 200;

/// Describes the items that are leased to other machines, wait to be merged, or were set aside after
/// failures, and names the folder of the worktrees. Returns an empty list for a run without workers.
pub fn describe_pending_items_and_worktrees_folder(
    project: &Project,
    run_state: &RunState,
) -> Result<Vec<String>, StoreError> {
    let Some(workers_state) = workers_file::load_workers_state(project, &run_state.run_id)? else {
        return Ok(Vec::new());
    };
    let lines = workers_state.board.items.iter().enumerate().filter_map(|(item_index, board_item)| {
        describe_if_leased_elsewhere_ready_or_failed(&workers_state, item_index, board_item)
    });
    let worktrees_line =
        super::worktrees::worktrees_folder(project, &run_state.run_id).filter(|folder| disk::exists(folder));
    let worktrees_line = worktrees_line.map(|folder| format!("worktrees: {}", folder.display()));
    Ok(lines.chain(worktrees_line).collect())
}

fn describe_if_leased_elsewhere_ready_or_failed(
    workers_state: &WorkersState,
    item_index: usize,
    board_item: &BoardItem,
) -> Option<String> {
    let quoted_item = quote_item_with_number(item_index + 1, &board_item.text);
    match &board_item.stage {
        stage if is_stage_of_unchecked_item(stage) => {
            Some(format!("recorded as merged, and not checked yet: {quoted_item}"))
        }
        ItemStage::Leased { .. } if !workers_state.is_leased_by_this_machine(item_index) => {
            Some(format!("elsewhere: {quoted_item}"))
        }
        ItemStage::ReadyToMerge { .. } => Some(format!("waits to be merged: {quoted_item}")),
        ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges } => Some(format!(
            "set aside: {quoted_item}: {}",
            truncate_end(&board_item.next_session_note, MAX_REASON_CHARS)
        )),
        ItemStage::SetAside { reason: SetAsideReason::RunEnded(reason) } => {
            Some(format!("set aside: {quoted_item}: {}", truncate_end(reason, MAX_REASON_CHARS)))
        }
        ItemStage::Leased { .. }
        | ItemStage::SetAside { reason: SetAsideReason::Question(_) }
        | ItemStage::Open
        | ItemStage::Merged => None,
    }
}

/// Renders an item as its number in the plan and the beginning of its text.
pub fn quote_item_with_number(item_number: usize, text: &str) -> String {
    format!("{item_number} \"{}\"", truncate_end(&to_safe_single_line(text), MAX_ITEM_CHARS))
}
