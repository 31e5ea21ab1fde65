//! What filled the windows.

use super::section;
use crate::commands::report::contents::{Filling, Large, Part, Report};
use maud::{Markup, html};
use plimsoll_domain::text::{counted, tokens};

/// So many kinds are shown; the rest is summed.
const SHOWN: usize = 10;

pub(super) fn render(report: &Report) -> Markup {
    let filling = &report.filling;
    let contents = if filling.parts.is_empty() {
        html! { p.note { "Not recorded: there is no turn log of these sessions." } }
    } else {
        html! {
            (table(filling))
            p.note { (note(report)) }
            (largest(&filling.largest))
        }
    };
    section("window", "What filled the window", &contents)
}

fn table(filling: &Filling) -> Markup {
    let all: u64 = filling.parts.iter().map(|part| part.tokens).sum();
    let rest = filling.parts.get(SHOWN..).unwrap_or_default();
    html! {
        table.filling {
            thead { tr { th scope="col" { "What" } th scope="col" { "Share" } th.number scope="col" { "Tokens" } } }
            tbody {
                @for part in filling.parts.iter().take(SHOWN) {
                    tr { th scope="row" { (name(part)) } (bar(part.tokens, all)) }
                }
                @if !rest.is_empty() {
                    @let sum = rest.iter().map(|part| part.tokens).sum();
                    tr { th scope="row" { (rest.len()) " more kinds" } (bar(sum, all)) }
                }
            }
        }
    }
}

fn name(part: &Part) -> Markup {
    let calls = counted(usize::try_from(part.calls).unwrap_or(usize::MAX), "call");
    html! {
        (part.name)
        @if part.is_tool { " " small { (calls) @if part.failed > 0 { ", " (part.failed) " failed" } } }
    }
}

fn bar(number: u64, all: u64) -> Markup {
    let share = number as f64 * 100.0 / all.max(1) as f64;
    html! {
        td.share {
            span.track { span style=(format!("width:{share:.1}%")) {} } " "
            span.percent { (format!("{share:.0} %")) }
        }
        td.number { (tokens(number)) }
    }
}

fn note(report: &Report) -> String {
    let filling = &report.filling;
    let of = counted(filling.sessions, "session");
    let missing = match report.sessions.len().saturating_sub(filling.sessions) {
        0 => String::new(),
        missing => format!("; of {} no turn was recorded", counted(missing, "session")),
    };
    let kept = filling.delegated.words().map(|words| format!(": {words}")).unwrap_or_default();
    format!(
        "Each part is counted once, when it enters the window of one of {of}{missing}. The model’s text and the \
         client’s own part are counted by the client; the rest is estimated at four bytes per token. Subagents have \
         windows of their own, which are not included{kept}."
    )
}

fn largest(largest: &[Large]) -> Markup {
    html! {
        @if !largest.is_empty() {
            h3 { "The largest single results" }
            ol.largest {
                @for large in largest {
                    li {
                        b { "about " (tokens(large.tokens)) } " · " (large.tool) " " code { (large.asked) }
                        br;
                        span.note { code { "plimsoll turns show " (large.turn) } }
                    }
                }
            }
        }
    }
}
