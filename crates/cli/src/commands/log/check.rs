//! `plimsoll log --check COMMIT`: prints which checks passed on a commit's tree.

use plimsoll_domain::receipt::{ReceiptItem, VerificationReceipt, parse_run_id_from_commit_message};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_launcher::git;
use plimsoll_store::{Project, TurnLog, receipts};
use plimsoll_terminal::console::{fail, print_text};
use std::process::ExitCode;

/// Prints which checks passed on the tree of a commit. Returns exit code 1 if no run of this user checked it.
pub(super) fn print_commit_receipt(project: &Project, revision: &str) -> ExitCode {
    let root = project.root();
    let Some(commit) = git::resolve_user_revision(root, revision) else {
        return fail(format!("there is no commit `{}` here", to_safe_single_line(revision)));
    };
    let Some(tree) = git::tree_of_commit(root, &commit) else {
        return fail(format!("git does not have the tree of {commit}"));
    };
    let tree_receipts = receipts::receipts_for_tree(project, &tree);
    let Some(receipt) = tree_receipts.last() else {
        let run_in_commit_message =
            parse_run_id_from_commit_message(&git::commit_message(root, &commit)).map(to_safe_single_line);
        let hint = run_in_commit_message.map_or(String::new(), |run| {
            format!("\nhint: its message names the run {run}: check it on the computer of that run")
        });
        return fail(format!("no run of yours has checked the tree of {commit}{hint}"));
    };
    print_text(format!("commit {commit}\ntree   {tree}"));
    let verify_text = match receipt.commands.len() {
        0 => "no verify command was given".to_owned(),
        count => format!("{} passed", count_with_noun(count, "verify command")),
    };
    print_text(format!(
        "{verify_text} on this tree in the run {} at {}",
        to_safe_single_line(&receipt.run_id),
        receipt.verified_at
    ));
    for command in &receipt.commands {
        print_text(format!("  {}", to_safe_single_line(command)));
    }
    for item in &receipt.items {
        print_text(render_item_sessions_and_cost(project, receipt, item));
    }
    ExitCode::SUCCESS
}

fn render_item_sessions_and_cost(
    project: &Project,
    receipt: &VerificationReceipt,
    item: &ReceiptItem,
) -> String {
    let name = match to_safe_single_line(&item.text) {
        text if text.is_empty() => format!("run {}", to_safe_single_line(&receipt.run_id)),
        text => format!("item \"{text}\""),
    };
    let sessions: Vec<String> = item
        .sessions
        .iter()
        .map(|session| {
            format!(
                "session {} (turn log {})",
                to_safe_single_line(session),
                turn_log_status(project, session)
            )
        })
        .collect();
    let sessions = if sessions.is_empty() {
        "its sessions ran on another computer".to_owned()
    } else {
        sessions.join(", ")
    };
    format!("{name}: {sessions}, {}", plimsoll_domain::cost::format_usd(item.cost_usd))
}

/// Returns a short text for the result that `plimsoll turns verify` would report about a session's log.
fn turn_log_status(project: &Project, session: &plimsoll_domain::SessionId) -> &'static str {
    match TurnLog::for_session_where_started_or_current(project, session)
        .filter(TurnLog::exists)
        .map(|log| log.verify())
    {
        None => "missing",
        Some(Ok(report)) if report.is_intact() => "intact",
        Some(Ok(report)) if report.has_only_unfinished_erasures() => "not finished",
        Some(_) => "broken: plimsoll turns verify",
    }
}
