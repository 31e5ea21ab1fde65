//! What runs proved, beside their ledgers: outside the project, where no session in the sandbox can write.

use crate::{Project, StoreError, disk, ledger};
use plimsoll_domain::RunId;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::receipt::Receipt;
use std::path::Path;

const FILE: &str = "receipts.jsonl";

/// Keeps a receipt of a run; nothing without a home.
pub fn keep(project: &Project, run_id: &RunId, receipt: &Receipt) -> Result<(), StoreError> {
    let Some(folder) = ledger::folder(project, run_id) else { return Ok(()) };
    let line = serde_json::to_string(receipt).unwrap_or_default();
    disk::append_line(&folder.join(FILE), &line)
}

/// All receipts of a tree, of the runs of this user, in the order in which they were written. A line that does not parse is
/// left out: a kill may have cut it.
pub fn of_tree(project: &Project, tree: &CommitId) -> Vec<Receipt> {
    let Some(all) = ledger::all_records(project) else { return Vec::new() };
    let files = disk::names(&all).into_iter().map(|run| all.join(run).join(FILE));
    let mut found: Vec<Receipt> =
        files.flat_map(|file| read(&file)).filter(|receipt| receipt.tree == *tree).collect();
    found.sort_by(|one, other| one.at.cmp(&other.at));
    found
}

fn read(file: &Path) -> Vec<Receipt> {
    let text = disk::read_text(file).ok().flatten().unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
