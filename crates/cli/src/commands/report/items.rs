//! The items of a run, with what each took.

use super::contents::{Item, ItemOutcome, RunSession};
use crate::render::redact::RedactedText;
use plimsoll_domain::RunState;

/// How much of an item is shown.
const NAME: usize = super::entry::FACT;

/// Done first, in the order in which they were ticked as far as that was seen; then what is open.
pub(super) fn items(state: &RunState, sessions: &[RunSession]) -> Vec<Item> {
    let is_done = |item: &&String| state.items.completed_items.contains(item);
    let seen = state.items.ever_done.iter().filter(is_done);
    let unseen = state.items.completed_items.iter().filter(|item| !state.items.ever_done.contains(item));
    let outcome = |item: &String| {
        if state.is_parked(item) {
            ItemOutcome::Parked
        } else if state.items.set_aside.contains(item) {
            ItemOutcome::SetAside
        } else {
            ItemOutcome::Open
        }
    };
    let done = unseen.chain(seen).map(|item| (item.clone(), ItemOutcome::Done));
    let open = state.items.todo_items.iter().map(|item| (item.clone(), outcome(item)));
    let gone = state.vanished().into_iter().map(|item| (item.to_owned(), ItemOutcome::Gone));
    let mut items: Vec<Item> = done
        .chain(open)
        .chain(gone)
        .map(|(name, outcome)| bare(RedactedText::line(&name, NAME), outcome))
        .collect();
    for (place, session) in sessions.iter().enumerate() {
        add(&mut items, place, session);
    }
    items
}

fn bare(name: RedactedText, outcome: ItemOutcome) -> Item {
    let (tokens, usd, seconds) = (None, None, None);
    Item { name, outcome, sessions: Vec::new(), is_shared: false, tokens, usd, seconds, commits: Vec::new() }
}

/// A session is about what it ticked, and about what its prompt named: evenly.
fn add(items: &mut [Item], place: usize, session: &RunSession) {
    let mut about: Vec<&RedactedText> = session.ticked.iter().collect();
    about.extend(session.item.as_ref().filter(|item| !session.ticked.contains(item)));
    let seconds =
        session.ended.or(session.judged).zip(session.began).map(|(end, began)| (end - began).num_seconds());
    let parts = about.len() as f64;
    let mut commits = session.commits.clone();
    for item in items.iter_mut().filter(|item| about.contains(&&item.name)) {
        let share = |sum: &mut Option<f64>, more: Option<f64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0.0) + more / parts);
            }
        };
        share(&mut item.tokens, session.tokens.map(|tokens| tokens as f64));
        share(&mut item.usd, session.usd);
        share(&mut item.seconds, seconds.map(|seconds| seconds as f64));
        item.sessions.push(place);
        item.is_shared |= about.len() > 1;
        // Each commit is named once, where its words name the item; else with the first.
        let of_it = |commit: &super::contents::Commit| {
            about.len() == 1 || commit.subject.text().contains(item.name.text())
        };
        item.commits.extend(commits.extract_if(.., |commit| of_it(commit)));
    }
    if let Some(item) = items.iter_mut().find(|item| about.contains(&&item.name)) {
        item.commits.append(&mut commits);
    }
}
