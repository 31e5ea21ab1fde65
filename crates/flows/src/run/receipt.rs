//! Keeps what was proved of the commit on which a session's verify commands passed.

use crate::our_files::is_ours;
use crate::run_context::RunContext;
use plimsoll_domain::RunState;
use plimsoll_domain::format::Format;
use plimsoll_domain::receipt::{Receipt, ReceiptItem};
use plimsoll_launcher::branch::clean_head;
use plimsoll_launcher::git;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_store::{StoreError, clock, ledger, receipts};

/// Keeps a receipt if all of these commands passed and nothing is uncommitted: only then is it known on which tree they did.
pub(super) fn keep(
    context: &RunContext<'_>,
    state: &RunState,
    commands: &[String],
    outcomes: &[VerifyOutcome],
) -> Result<(), StoreError> {
    let has_passed = outcomes.len() == commands.len() && outcomes.iter().all(|outcome| outcome.passed);
    if commands.is_empty() || !has_passed {
        return Ok(());
    }
    let (project, run_id) = (context.project, context.run_id);
    let Some(records) = ledger::folder(project, run_id) else { return Ok(()) };
    let head = clean_head(project.root(), &records.join("receipt.index"), &is_ours);
    let Some((commit, tree)) = head.and_then(|head| Some((head.clone(), git::tree(project.root(), &head)?)))
    else {
        return Ok(());
    };
    let item = ReceiptItem {
        text: state.iteration_record.item.clone().unwrap_or_default(),
        sessions: state.session_id.clone().into_iter().collect(),
        cost_usd: state.iteration_record.cost_usd,
    };
    let receipt = Receipt {
        format: Format,
        at: clock::stamp(clock::now()),
        run_id: run_id.clone(),
        commit,
        tree,
        commands: commands.to_vec(),
        items: vec![item],
    };
    receipts::keep(project, run_id, &receipt)
}
