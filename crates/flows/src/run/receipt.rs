//! Saves a receipt of the commit on which a session's verify commands passed.

use crate::plimsoll_files::is_plimsoll_file;
use crate::run_context::RunContext;
use plimsoll_domain::RunState;
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::receipt::{ReceiptItem, VerificationReceipt};
use plimsoll_launcher::branch::head_commit_if_clean;
use plimsoll_launcher::git;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_store::{StoreError, clock, ledger, receipts};

/// Saves a receipt if all of these commands passed and nothing is uncommitted. With uncommitted changes no
/// commit contains the tree on which they passed.
pub(super) fn save_receipt_if_all_passed_and_clean(
    context: &RunContext<'_>,
    state: &RunState,
    commands: &[String],
    outcomes: &[VerifyOutcome],
) -> Result<(), StoreError> {
    let have_all_passed = outcomes.len() == commands.len() && outcomes.iter().all(|outcome| outcome.passed);
    if commands.is_empty() || !have_all_passed {
        return Ok(());
    }
    let (project, run_id) = (context.project, context.run_id);
    let Some(records_folder) = ledger::inherited_or_default_run_record_folder(project, run_id) else {
        return Ok(());
    };
    let clean_commit =
        head_commit_if_clean(project.root(), &records_folder.join("receipt.index"), &is_plimsoll_file);
    let Some((commit, tree)) =
        clean_commit.and_then(|head| Some((head.clone(), git::tree_of_commit(project.root(), &head)?)))
    else {
        return Ok(());
    };
    let item = ReceiptItem {
        text: state.iteration_record.item.clone().unwrap_or_default(),
        sessions: state.session_id.clone().into_iter().collect(),
        cost_usd: state.iteration_record.cost_usd,
    };
    let receipt = VerificationReceipt {
        format: FormatVersion,
        verified_at: clock::to_timestamp(clock::now()),
        run_id: run_id.clone(),
        commit,
        tree,
        commands: commands.to_vec(),
        items: vec![item],
    };
    receipts::append_receipt(project, run_id, &receipt)
}
