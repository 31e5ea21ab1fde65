//! The section with a table of the sessions: time, peak usage, tokens, cost, ending and item.

use super::{format_dollars, render_section, render_time};
use crate::commands::report::contents::{Report, RunSession};
use maud::{Markup, html};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_domain::verdict::EndingCategory;
use plimsoll_terminal::duration::format_seconds;

/// Maximum number of sessions shown unfolded.
const MAX_UNFOLDED_SESSIONS: usize = 12;

pub(super) fn render(report: &Report) -> Markup {
    // The sessions of a parallel run are in the section of its workers.
    if report.sessions.is_empty() && report.other_modules.is_none() {
        return html! {};
    }
    let contents = html! {
        @if let Some(sentence) = &report.other_modules { p.note { (sentence) "." } }
        @if report.sessions.len() > MAX_UNFOLDED_SESSIONS {
            details { summary { (count_with_noun(report.sessions.len(), "session")) } (render_table(report)) }
        } @else if !report.sessions.is_empty() {
            (render_table(report))
        }
    };
    render_section("sessions", "Sessions", &contents)
}

fn render_table(report: &Report) -> Markup {
    html! {
        div.scroll role="region" aria-labelledby="sessions" tabindex="0" {
            table.sessions {
                thead {
                    tr {
                        th.number scope="col" { "No." }
                        th scope="col" { "Began" }
                        th.number scope="col" { "Took" }
                        th.number scope="col" { "Peak" }
                        th.number scope="col" { "Tokens" }
                        th.number scope="col" { "Cost" }
                        th scope="col" { "Ended" }
                        th scope="col" { "Item" }
                    }
                }
                tbody { @for session in &report.sessions { (render_row(report, session)) } }
            }
        }
    }
}

fn render_row(report: &Report, session: &RunSession) -> Markup {
    let number_cell = |value: Option<String>| html! { td.number { (value.as_deref().unwrap_or("?")) } };
    html! {
        tr {
            th.number scope="row" { (session.iteration) }
            td { @if let Some(started_at) = session.started_at { (render_time(report, started_at)) } @else { "?" } }
            (number_cell(report.session_duration_seconds(session).map(format_seconds)))
            (number_cell(session.peak_percent.map(|peak| format!("{peak}%"))))
            (number_cell(session.tokens.map(format_tokens)))
            (number_cell(session.cost_usd.map(format_dollars)))
            td class=(ending_css_class(session)) { (ending_text(report, session)) }
            td.item { (render_items_and_error_detail(session)) }
        }
    }
}

/// Renders the items that the session ticked, or else the item that its prompt named, and the error if the session broke off.
fn render_items_and_error_detail(session: &RunSession) -> Markup {
    let detail = session.ending_detail.as_ref().filter(|_| ending_css_class(session) == "bad");
    html! {
        @for (index, item) in session.ticked_items.iter().enumerate() { @if index > 0 { br; } "✓ " (item) }
        @if session.ticked_items.is_empty() {
            @if let Some(item) = &session.item { (item) } @else { "not recorded" }
        }
        @if let Some(detail) = detail { br; small { (detail) } }
    }
}

fn ending_css_class(session: &RunSession) -> &'static str {
    match session.ending.as_ref().map(|ending| ending.category_and_description().category) {
        None | Some(EndingCategory::Completed) => "plain",
        Some(EndingCategory::StoppedExternally) => "wait",
        Some(EndingCategory::Aborted) => "bad",
    }
}

/// Returns how the session ended, with the same wording as the marks on the load line.
fn ending_text(report: &Report, session: &RunSession) -> String {
    match &session.ending {
        None if report.is_live && session.ended_at.is_none() => "at work".to_owned(),
        None => "not recorded".to_owned(),
        Some(ending) => ending.as_str().replace('_', " "),
    }
}
