//! `plimsoll log --check COMMIT`: what was proved of a commit.

use plimsoll_domain::receipt::{Receipt, ReceiptItem, run_in_message};
use plimsoll_domain::text::{counted, one_line};
use plimsoll_launcher::git;
use plimsoll_store::{Project, TurnLog, receipts};
use plimsoll_terminal::console::{fail, say};
use std::process::ExitCode;

/// Prints which checks passed on the tree of a commit: exit code 0, or 1 if no run of this user's checked it.
pub(super) fn check(project: &Project, revision: &str) -> ExitCode {
    let root = project.root();
    let Some(commit) = git::resolve(root, revision) else {
        return fail(format!("there is no commit `{}` here", one_line(revision)));
    };
    let Some(tree) = git::tree(root, &commit) else {
        return fail(format!("git does not have the tree of {commit}"));
    };
    let found = receipts::of_tree(project, &tree);
    let Some(receipt) = found.last() else {
        let named = run_in_message(&git::message(root, &commit)).map(one_line);
        let named = named.map_or(String::new(), |run| {
            format!("\nhint: its message names the run {run}: check it on the computer of that run")
        });
        return fail(format!("no run of yours has checked the tree of {commit}{named}"));
    };
    say(format!("commit {commit}\ntree   {tree}"));
    let checks = match receipt.commands.len() {
        0 => "no verify command was given".to_owned(),
        count => format!("{} passed", counted(count, "verify command")),
    };
    say(format!("{checks} on this tree in the run {} at {}", one_line(&receipt.run_id), receipt.at));
    for command in &receipt.commands {
        say(format!("  {}", one_line(command)));
    }
    for item in &receipt.items {
        say(item_line(project, receipt, item));
    }
    ExitCode::SUCCESS
}

fn item_line(project: &Project, receipt: &Receipt, item: &ReceiptItem) -> String {
    let name = match one_line(&item.text) {
        text if text.is_empty() => format!("run {}", one_line(&receipt.run_id)),
        text => format!("item \"{text}\""),
    };
    let sessions: Vec<String> = item
        .sessions
        .iter()
        .map(|session| format!("session {} (turn log {})", one_line(session), log_state(project, session)))
        .collect();
    let sessions = if sessions.is_empty() {
        "its sessions ran on another computer".to_owned()
    } else {
        sessions.join(", ")
    };
    format!("{name}: {sessions}, ${:.2}", item.cost_usd)
}

/// What `plimsoll turns verify` says of a session's log.
fn log_state(project: &Project, session: &plimsoll_domain::SessionId) -> &'static str {
    match TurnLog::of(project, session).filter(TurnLog::exists).map(|log| log.verify()) {
        None => "missing",
        Some(Ok(report)) if report.is_whole() => "intact",
        Some(Ok(report)) if report.is_only_unfinished() => "not finished",
        Some(_) => "broken: plimsoll turns verify",
    }
}
