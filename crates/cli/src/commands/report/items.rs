//! The items of a run, with the sessions, tokens, cost and time that each took.

use super::contents::{ItemOutcome, ReportItem, RunSession};
use crate::render::redact::RedactedText;
use plimsoll_domain::RunState;

const MAX_NAME_CHARS: usize = super::entry::MAX_FACT_CHARS;

/// Returns the items in this order: done items in the order in which they were ticked (those without a recorded tick
/// first), open items, items removed from the plan.
pub(super) fn report_items(state: &RunState, sessions: &[RunSession]) -> Vec<ReportItem> {
    let is_done = |item: &&String| state.plan_items.completed_items.contains(item);
    let done_in_tick_order = state.plan_items.ever_ticked_items.iter().filter(is_done);
    let done_without_recorded_tick = state
        .plan_items
        .completed_items
        .iter()
        .filter(|item| !state.plan_items.ever_ticked_items.contains(item));
    let outcome_if_open = |item: &String| {
        if state.is_parked(item) {
            ItemOutcome::Parked
        } else if state.plan_items.set_aside_items.contains(item) {
            ItemOutcome::SetAside
        } else {
            ItemOutcome::Open
        }
    };
    let done_items =
        done_without_recorded_tick.chain(done_in_tick_order).map(|item| (item.clone(), ItemOutcome::Done));
    let open_items = state.plan_items.todo_items.iter().map(|item| (item.clone(), outcome_if_open(item)));
    let removed_items = state
        .items_removed_without_being_ticked()
        .into_iter()
        .map(|item| (item.to_owned(), ItemOutcome::RemovedUnticked));
    let mut items: Vec<ReportItem> = done_items
        .chain(open_items)
        .chain(removed_items)
        .map(|(name, outcome)| {
            item_without_sessions(RedactedText::single_line(&name, MAX_NAME_CHARS), outcome)
        })
        .collect();
    for (session_index, session) in sessions.iter().enumerate() {
        divide_session_among_its_items(&mut items, session_index, session);
    }
    items
}

fn item_without_sessions(name: RedactedText, outcome: ItemOutcome) -> ReportItem {
    let (tokens, usd, seconds) = (None, None, None);
    ReportItem {
        name,
        outcome,
        session_indexes: Vec::new(),
        has_shared_session: false,
        tokens,
        cost_usd: usd,
        seconds,
        commits: Vec::new(),
    }
}

/// Adds a session to the items that it ticked and to the item that its prompt named, and divides its figures evenly among them.
fn divide_session_among_its_items(items: &mut [ReportItem], session_index: usize, session: &RunSession) {
    let mut session_items: Vec<&RedactedText> = session.ticked_items.iter().collect();
    session_items.extend(session.item.as_ref().filter(|item| !session.ticked_items.contains(item)));
    let seconds = session
        .ended_at
        .or(session.verdict_at)
        .zip(session.started_at)
        .map(|(end, start)| (end - start).num_seconds());
    let item_count = session_items.len() as f64;
    let mut commits = session.commits.clone();
    for item in items.iter_mut().filter(|item| session_items.contains(&&item.name)) {
        let add_share = |total: &mut Option<f64>, amount: Option<f64>| {
            if let Some(amount) = amount {
                *total = Some(total.unwrap_or(0.0) + amount / item_count);
            }
        };
        add_share(&mut item.tokens, session.tokens.map(|tokens| tokens as f64));
        add_share(&mut item.cost_usd, session.cost_usd);
        add_share(&mut item.seconds, seconds.map(|seconds| seconds as f64));
        item.session_indexes.push(session_index);
        item.has_shared_session |= session_items.len() > 1;
        // Each commit is listed once: with the item that its subject names, else with the first item.
        let belongs_to_item = |commit: &super::contents::SessionCommit| {
            session_items.len() == 1 || commit.subject.text().contains(item.name.text())
        };
        item.commits.extend(commits.extract_if(.., |commit| belongs_to_item(commit)));
    }
    if let Some(item) = items.iter_mut().find(|item| session_items.contains(&&item.name)) {
        item.commits.append(&mut commits);
    }
}
