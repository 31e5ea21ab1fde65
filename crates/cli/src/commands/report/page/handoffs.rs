//! The handoffs: what the night left for the next session, and for the user.

use super::{section, time};
use crate::commands::report::contents::{Handoff, Report};
use maud::{Markup, html};

pub(super) fn render(report: &Report) -> Markup {
    let contents = html! {
        @if report.handoffs.is_empty() {
            p { "None was written: no session reached a checkpoint." }
        } @else {
            ul.handoffs { @for handoff in &report.handoffs { (one(report, handoff)) } }
            p.note { "The newest first. What a session says about itself is its own claim and unchecked." }
        }
    };
    section("handoffs", "Handoffs", &contents)
}

fn one(report: &Report, handoff: &Handoff) -> Markup {
    html! {
        li {
            p.name {
                (handoff.path)
                @if handoff.is_waiting { " " strong.waiting { "not resumed yet" } }
            }
            p.note {
                @if let Some(number) = handoff.iteration { "session " (number) ", " }
                (time(report, handoff.at)) ", " (handoff.why)
                @if let Some(item) = &handoff.item { " · " (item) }
            }
            @for (name, claim) in &handoff.claims { p.claim { b { (name) ":" } " " (claim) } }
            @if let Some(text) = &handoff.text {
                details open[handoff.is_waiting] { summary { "the whole handoff" } pre { (text.text()) } }
            }
        }
    }
}
