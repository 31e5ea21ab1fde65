//! The section with the handoffs of the run.

use super::{render_section, render_time};
use crate::commands::report::contents::{Report, RunHandoff};
use maud::{Markup, html};

pub(super) fn render(report: &Report) -> Markup {
    let contents = html! {
        @if report.handoffs.is_empty() {
            p { "None was written: no session reached a checkpoint." }
        } @else {
            ul.handoffs { @for handoff in &report.handoffs { (render_handoff(report, handoff)) } }
            p.note { "The newest first. What a session says about itself is its own claim and unchecked." }
        }
    };
    render_section("handoffs", "Handoffs", &contents)
}

fn render_handoff(report: &Report, handoff: &RunHandoff) -> Markup {
    html! {
        li {
            p.name {
                (handoff.path)
                @if handoff.is_unresumed { " " strong.waiting { "not resumed yet" } }
            }
            p.note {
                @if let Some(number) = handoff.iteration { "session " (number) ", " }
                (render_time(report, handoff.written_at)) ", " (handoff.cause)
                @if let Some(item) = &handoff.item { " · " (item) }
            }
            @for (name, claim) in &handoff.claims { p.claim { b { (name) ":" } " " (claim) } }
            @if let Some(text) = &handoff.text {
                details open[handoff.is_unresumed] { summary { "the whole handoff" } pre { (text.text()) } }
            }
        }
    }
}
