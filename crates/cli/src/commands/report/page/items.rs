//! The section with the items: the outcome, sessions, tokens, cost, time and commits of each.

use super::{format_dollars, render_section};
use crate::commands::report::contents::{ItemOutcome, Report, ReportItem, RunSession, SessionCommit};
use maud::{Markup, html};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_terminal::duration::format_seconds;

/// Maximum number of done items shown unfolded. If there are more, they are folded, so that the open items stay visible.
const MAX_UNFOLDED_ITEMS: usize = 12;
/// Maximum number of commits listed for an item.
const MAX_COMMITS: usize = 6;

pub(super) fn render(report: &Report) -> Markup {
    if report.items.is_empty() {
        return html! {};
    }
    let (done_items, unfinished_items): (Vec<&ReportItem>, Vec<&ReportItem>) =
        report.items.iter().partition(|item| item.outcome == ItemOutcome::Done);
    let contents = html! {
        (render_list(report, &unfinished_items))
        @if done_items.len() > MAX_UNFOLDED_ITEMS {
            details { summary { (count_with_noun(done_items.len(), "item")) " done" } (render_list(report, &done_items)) }
        } @else {
            (render_list(report, &done_items))
        }
        @if report.items.iter().any(|item| item.has_shared_session) {
            p.note { "“About”: a session that did several items is divided evenly among them." }
        }
        (render_totals_of_sessions_without_item(report))
    };
    render_section("items", "Items", &contents)
}

fn render_list(report: &Report, items: &[&ReportItem]) -> Markup {
    html! {
        @if !items.is_empty() { ul.items { @for item in items { (render_item(report, item)) } } }
    }
}

fn render_item(report: &Report, item: &ReportItem) -> Markup {
    let (class, symbol, outcome_text) = match item.outcome {
        ItemOutcome::Done => ("done", "✓", "done"),
        ItemOutcome::Open => ("open", "○", "open"),
        ItemOutcome::SetAside => ("aside", "‖", "set aside"),
        ItemOutcome::Parked => ("aside", "?", "waits for an answer"),
        ItemOutcome::RemovedUnticked => ("gone", "✕", "removed from the plan without a tick"),
    };
    html! {
        li class=(class) {
            span.sign aria-hidden="true" { (symbol) }
            div {
                p.name { (item.name) }
                p.note { b { (outcome_text) } " · " (item_usage_text(report, item)) }
                (render_commits_up_to_limit(&item.commits))
            }
        }
    }
}

fn item_usage_text(report: &Report, item: &ReportItem) -> String {
    if item.session_indexes.is_empty() {
        return match item.outcome {
            ItemOutcome::Done => "which session did it was not recorded".to_owned(),
            _ => "no session has started it".to_owned(),
        };
    }
    let prefix = if item.has_shared_session { "about " } else { "" };
    let mut parts = vec![count_with_noun(item.session_indexes.len(), "session")];
    let resumed_sessions = item
        .session_indexes
        .iter()
        .filter(|index| report.sessions.get(**index).is_some_and(|session| session.resumes_checkpoint));
    let resumed_count = resumed_sessions.count();
    parts.extend((resumed_count > 0).then(|| format!("{resumed_count} resumed")));
    parts.push(item.tokens.map_or("tokens not recorded".to_owned(), |number| {
        format!("{prefix}{} tokens", format_tokens(number.round() as u64))
    }));
    parts.push(
        item.cost_usd
            .map_or("cost not recorded".to_owned(), |usd| format!("{prefix}{}", format_dollars(usd))),
    );
    parts.extend(item.seconds.map(|seconds| format!("{prefix}{}", format_seconds(seconds.round() as i64))));
    parts.join(" · ")
}

fn render_commits_up_to_limit(commits: &[SessionCommit]) -> Markup {
    let omitted_count = commits.len().saturating_sub(MAX_COMMITS);
    html! {
        @if !commits.is_empty() {
            ul.commits {
                @for commit in commits.iter().take(MAX_COMMITS) {
                    li { code { (commit.id.chars().take(8).collect::<String>()) } " " (commit.subject) }
                }
            }
        }
        @if omitted_count > 0 { p.note { "and " (omitted_count) " more" } }
    }
}

/// Renders a note with the total tokens and cost of the sessions that belong to no item, so that the figures on the page add up.
fn render_totals_of_sessions_without_item(report: &Report) -> Markup {
    let belongs_to_item =
        |index: usize| report.items.iter().any(|item| item.session_indexes.contains(&index));
    let sessions: Vec<&RunSession> = report
        .sessions
        .iter()
        .enumerate()
        .filter(|(index, _)| !belongs_to_item(*index))
        .map(|(_, session)| session)
        .collect();
    let token_count: u64 = sessions.iter().filter_map(|session| session.tokens).sum();
    let usd: f64 = sessions.iter().filter_map(|session| session.cost_usd).sum();
    html! {
        @if !sessions.is_empty() {
            p.note {
                (count_with_noun(sessions.len(), "session")) " with none of these items, or without a recorded item: "
                (format_tokens(token_count)) " tokens, " (format_dollars(usd)) "."
            }
        }
    }
}
