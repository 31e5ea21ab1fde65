//! The open items of a parallel run that no worker of this machine holds, in lines.

use crate::workers::table;
use plimsoll_domain::RunState;
use plimsoll_domain::board::{Aside, BoardItem, Stage};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_store::{Project, StoreError, disk};

/// How much of an item and of a reason is on a line.
const ITEM: usize = 50;
const REASON: usize = 200;

/// Describes the items that others hold, that wait to be merged or that are set aside, and names the folder of the worktrees. Empty
/// for a run without workers.
pub fn describe_pending_items(project: &Project, run: &RunState) -> Result<Vec<String>, StoreError> {
    let Some(record) = table::load(project, &run.run_id)? else { return Ok(Vec::new()) };
    let lines = record.board.items.iter().enumerate().filter_map(|(item, row)| describe(&record, item, row));
    let trees = super::tree::folder(project, &run.run_id).filter(|folder| disk::exists(folder));
    let trees = trees.map(|folder| format!("worktrees: {}", folder.display()));
    Ok(lines.chain(trees).collect())
}

fn describe(record: &Workers, item: usize, row: &BoardItem) -> Option<String> {
    let name = name_item(item + 1, &row.text);
    match &row.stage {
        Stage::Leased { .. } if !record.is_held_here(item) => Some(format!("elsewhere: {name}")),
        Stage::Offered { .. } => Some(format!("waits to be merged: {name}")),
        Stage::Aside { reason: Aside::Tries } => {
            Some(format!("set aside: {name}: {}", clip(&row.note, REASON)))
        }
        Stage::Aside { reason: Aside::Ended(why) } => {
            Some(format!("set aside: {name}: {}", clip(why, REASON)))
        }
        Stage::Leased { .. } | Stage::Aside { reason: Aside::Question(_) } | Stage::Open | Stage::Merged => {
            None
        }
    }
}

/// An item by its number in the plan and its first words.
pub fn name_item(number: usize, text: &str) -> String {
    format!("{number} \"{}\"", clip(&one_line(text), ITEM))
}
