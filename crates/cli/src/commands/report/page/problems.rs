//! The section with the problems: refused promises, the circuit breaker, and other failures, with their evidence.

use super::{render_section, render_time};
use crate::commands::report::contents::{Problem, Report};
use maud::{Markup, html};

/// Maximum number of problems shown, and of times for each.
const MAX_SHOWN_PROBLEMS: usize = 40;
const MAX_SHOWN_TIMES: usize = 6;

pub(super) fn render(report: &Report) -> Markup {
    let omitted_count = report.problems.len().saturating_sub(MAX_SHOWN_PROBLEMS);
    let contents = html! {
        @if report.problems.is_empty() {
            p { "Nothing was recorded: no promise refused, no session broken off, the circuit breaker closed." }
        } @else {
            ul.troubles { @for problem in report.problems.iter().take(MAX_SHOWN_PROBLEMS) { (render_problem(report, problem)) } }
        }
        @if omitted_count > 0 { p.note { "and " (omitted_count) " more kinds: " code { "plimsoll log" } } }
    };
    render_section("trouble", "What went wrong", &contents)
}

fn render_problem(report: &Report, problem: &Problem) -> Markup {
    let occurrence_count = problem.occurrences.len();
    let skipped_count = occurrence_count.saturating_sub(MAX_SHOWN_TIMES);
    html! {
        li {
            p.name {
                b { (problem.kind) }
                @if occurrence_count > 1 { " " small { (occurrence_count) " times" } }
                ": " (problem.description)
            }
            @for evidence in &problem.evidence { p.evidence { (evidence) } }
            p.note {
                @if skipped_count > 0 { "last at " } @else { "at " }
                @for (index, (time, session)) in problem.occurrences.iter().skip(skipped_count).enumerate() {
                    @if index > 0 { ", " }
                    (render_time(report, *time))
                    @if let Some(number) = session { " (session " (number) ")" }
                }
            }
        }
    }
}
