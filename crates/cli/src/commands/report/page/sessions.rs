//! The sessions in a table: when, what, how full, what it cost.

use super::{dollars, section, time};
use crate::commands::report::contents::{Report, RunSession};
use maud::{Markup, html};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_domain::verdict::Course;
use plimsoll_terminal::duration::for_people;

/// More than this are folded.
const UNFOLDED: usize = 12;

pub(super) fn render(report: &Report) -> Markup {
    if report.sessions.is_empty() {
        return html! {};
    }
    let contents = html! {
        @if report.sessions.len() > UNFOLDED {
            details { summary { (counted(report.sessions.len(), "session")) } (table(report)) }
        } @else {
            (table(report))
        }
    };
    section("sessions", "Sessions", &contents)
}

fn table(report: &Report) -> Markup {
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
                tbody { @for session in &report.sessions { (row(report, session)) } }
            }
        }
    }
}

fn row(report: &Report, session: &RunSession) -> Markup {
    let number = |figure: Option<String>| html! { td.number { (figure.as_deref().unwrap_or("?")) } };
    html! {
        tr {
            th.number scope="row" { (session.iteration) }
            td { @if let Some(at) = session.began { (time(report, at)) } @else { "?" } }
            (number(report.lasted(session).map(for_people)))
            (number(session.peak.map(|peak| format!("{peak} %"))))
            (number(session.tokens.map(tokens)))
            (number(session.usd.map(dollars)))
            td class=(tone(session)) { (ending(report, session)) }
            td.item { (about(session)) }
        }
    }
}

/// The items that it ticked, else the one that it was given; and what went wrong.
fn about(session: &RunSession) -> Markup {
    let detail = session.detail.as_ref().filter(|_| tone(session) == "bad");
    html! {
        @for (place, item) in session.ticked.iter().enumerate() { @if place > 0 { br; } "✓ " (item) }
        @if session.ticked.is_empty() {
            @if let Some(item) = &session.item { (item) } @else { "not recorded" }
        }
        @if let Some(detail) = detail { br; small { (detail) } }
    }
}

fn tone(session: &RunSession) -> &'static str {
    match session.ending.as_ref().map(|ending| ending.traits().course) {
        None | Some(Course::Orderly) => "plain",
        Some(Course::Stopped) => "wait",
        Some(Course::Broken) => "bad",
    }
}

/// How it ended, in the words of the load line.
fn ending(report: &Report, session: &RunSession) -> String {
    match &session.ending {
        None if report.is_live && session.ended.is_none() => "at work".to_owned(),
        None => "not recorded".to_owned(),
        Some(ending) => ending.word().replace('_', " "),
    }
}
