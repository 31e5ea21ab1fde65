//! The items: what became of each, and what it took.

use super::{dollars, section};
use crate::commands::report::contents::{Commit, Item, ItemOutcome, Report, RunSession};
use maud::{Markup, html};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_terminal::duration::for_people;

/// More done items than this are folded: what is open is to be seen.
const UNFOLDED: usize = 12;
/// How many commits of one item are named at most.
const COMMITS: usize = 6;

pub(super) fn render(report: &Report) -> Markup {
    if report.items.is_empty() {
        return html! {};
    }
    let (done, rest): (Vec<&Item>, Vec<&Item>) =
        report.items.iter().partition(|item| item.outcome == ItemOutcome::Done);
    let contents = html! {
        (list(report, &rest))
        @if done.len() > UNFOLDED {
            details { summary { (counted(done.len(), "item")) " done" } (list(report, &done)) }
        } @else {
            (list(report, &done))
        }
        @if report.items.iter().any(|item| item.is_shared) {
            p.note { "“About”: a session that did several items is divided evenly among them." }
        }
        (strays(report))
    };
    section("items", "Items", &contents)
}

fn list(report: &Report, items: &[&Item]) -> Markup {
    html! {
        @if !items.is_empty() { ul.items { @for item in items { (one(report, item)) } } }
    }
}

fn one(report: &Report, item: &Item) -> Markup {
    let (class, sign, word) = match item.outcome {
        ItemOutcome::Done => ("done", "✓", "done"),
        ItemOutcome::Open => ("open", "○", "open"),
        ItemOutcome::SetAside => ("aside", "‖", "set aside"),
        ItemOutcome::Parked => ("aside", "?", "waits for an answer"),
        ItemOutcome::Gone => ("gone", "✕", "gone from the plan, never ticked"),
    };
    html! {
        li class=(class) {
            span.sign aria-hidden="true" { (sign) }
            div {
                p.name { (item.name) }
                p.note { b { (word) } " · " (took(report, item)) }
                (commits(&item.commits))
            }
        }
    }
}

fn took(report: &Report, item: &Item) -> String {
    if item.sessions.is_empty() {
        return match item.outcome {
            ItemOutcome::Done => "which session did it was not recorded".to_owned(),
            _ => "no session has begun it".to_owned(),
        };
    }
    let about = if item.is_shared { "about " } else { "" };
    let mut parts = vec![counted(item.sessions.len(), "session")];
    let resumed = item
        .sessions
        .iter()
        .filter(|place| report.sessions.get(**place).is_some_and(|session| session.resuming));
    let resumed = resumed.count();
    parts.extend((resumed > 0).then(|| format!("{resumed} resumed")));
    parts.push(item.tokens.map_or("tokens not recorded".to_owned(), |number| {
        format!("{about}{} tokens", tokens(number.round() as u64))
    }));
    parts.push(item.usd.map_or("cost not recorded".to_owned(), |usd| format!("{about}{}", dollars(usd))));
    parts.extend(item.seconds.map(|seconds| format!("{about}{}", for_people(seconds.round() as i64))));
    parts.join(" · ")
}

fn commits(commits: &[Commit]) -> Markup {
    let left_out = commits.len().saturating_sub(COMMITS);
    html! {
        @if !commits.is_empty() {
            ul.commits {
                @for commit in commits.iter().take(COMMITS) {
                    li { code { (commit.id.chars().take(8).collect::<String>()) } " " (commit.subject) }
                }
            }
        }
        @if left_out > 0 { p.note { "and " (left_out) " more" } }
    }
}

/// Sessions that are with no item: nothing of them may vanish from the sum.
fn strays(report: &Report) -> Markup {
    let is_with_one = |place: usize| report.items.iter().any(|item| item.sessions.contains(&place));
    let strays: Vec<&RunSession> = report
        .sessions
        .iter()
        .enumerate()
        .filter(|(place, _)| !is_with_one(*place))
        .map(|(_, session)| session)
        .collect();
    let sum: u64 = strays.iter().filter_map(|session| session.tokens).sum();
    let usd: f64 = strays.iter().filter_map(|session| session.usd).sum();
    html! {
        @if !strays.is_empty() {
            p.note {
                (counted(strays.len(), "session")) " with none of these items, or without a recorded item: "
                (tokens(sum)) " tokens, " (dollars(usd)) "."
            }
        }
    }
}
