//! Verification receipts of runs. They are stored beside the runs' ledgers, outside the project, where no
//! sandboxed session can write.

use crate::{Project, StoreError, disk, ledger};
use plimsoll_domain::RunId;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::receipt::VerificationReceipt;
use std::path::Path;

const RECEIPTS_FILE: &str = "receipts.jsonl";

/// Appends a receipt of a run. Does nothing if there is no home folder.
pub fn append_receipt(
    project: &Project,
    run_id: &RunId,
    receipt: &VerificationReceipt,
) -> Result<(), StoreError> {
    let Some(folder) = ledger::inherited_or_default_run_record_folder(project, run_id) else { return Ok(()) };
    let line = serde_json::to_string(receipt).unwrap_or_default();
    disk::append_line(&folder.join(RECEIPTS_FILE), &line)
}

/// Returns all receipts for a git tree from this user's runs, oldest first. Skips lines that do not parse, because
/// a kill may have truncated them.
pub fn receipts_for_tree(project: &Project, tree: &CommitId) -> Vec<VerificationReceipt> {
    let Some(records_folder) = ledger::records_folder(project) else { return Vec::new() };
    let files =
        disk::list_names(&records_folder).into_iter().map(|run| records_folder.join(run).join(RECEIPTS_FILE));
    let mut receipts: Vec<VerificationReceipt> =
        files.flat_map(|file| read_receipts_file(&file)).filter(|receipt| receipt.tree == *tree).collect();
    receipts.sort_by(|left, right| left.verified_at.cmp(&right.verified_at));
    receipts
}

fn read_receipts_file(file: &Path) -> Vec<VerificationReceipt> {
    let text = disk::read_text(file).ok().flatten().unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
