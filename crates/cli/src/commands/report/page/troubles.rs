//! Refusals, the circuit breaker, and whatever else went wrong, with the evidence.

use super::{section, time};
use crate::commands::report::contents::{Report, Trouble};
use maud::{Markup, html};

/// So many are shown; of each so many times.
const SHOWN: usize = 40;
const TIMES: usize = 6;

pub(super) fn render(report: &Report) -> Markup {
    let left_out = report.troubles.len().saturating_sub(SHOWN);
    let contents = html! {
        @if report.troubles.is_empty() {
            p { "Nothing was recorded: no promise refused, no session broken off, the circuit breaker closed." }
        } @else {
            ul.troubles { @for trouble in report.troubles.iter().take(SHOWN) { (one(report, trouble)) } }
        }
        @if left_out > 0 { p.note { "and " (left_out) " more kinds: " code { "plimsoll log" } } }
    };
    section("trouble", "What went wrong", &contents)
}

fn one(report: &Report, trouble: &Trouble) -> Markup {
    let times = trouble.times.len();
    let skipped = times.saturating_sub(TIMES);
    html! {
        li {
            p.name {
                b { (trouble.kind) }
                @if times > 1 { " " small { (times) " times" } }
                ": " (trouble.words)
            }
            @for evidence in &trouble.evidence { p.evidence { (evidence) } }
            p.note {
                @if skipped > 0 { "last at " } @else { "at " }
                @for (place, (at, session)) in trouble.times.iter().skip(skipped).enumerate() {
                    @if place > 0 { ", " }
                    (time(report, *at))
                    @if let Some(number) = session { " (session " (number) ")" }
                }
            }
        }
    }
}
