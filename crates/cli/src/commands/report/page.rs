//! The page: a pure function from the report to HTML. No script, nothing from outside; whatever is foreign is of the
//! type [`RedactedText`].

mod handoffs;
mod items;
mod loadline;
mod scale;
mod sessions;
mod top;
mod troubles;
mod window;
mod workers;

use super::contents::{At, Report};
use crate::render::redact::RedactedText;
use crate::render::web_page::document;
use chrono::Local;
use maud::{Markup, Render, html};

const STYLE: &str = include_str!("page/page.css");

/// Renders it.
pub(super) fn render(report: &Report) -> String {
    let title = format!("{} · Plimsoll report", report.name.text());
    let main = html! {
        (top::render(report))
        (workers::render(report))
        @if report.workers.is_empty() { (loadline::render(report)) }
        (items::render(report))
        (window::render(report))
        (troubles::render(report))
        (handoffs::render(report))
        (sessions::render(report))
        (sources(report))
    };
    document(&title, STYLE, None, &main)
}

/// Foreign words are in a piece of text of their own direction; in a sentence of ours what is in backticks is code.
impl Render for RedactedText {
    fn render(&self) -> Markup {
        html! { bdi { @if self.are_ours() { (with_code(self.text())) } @else { (self.text()) } } }
    }
}

/// A backtick that has no fellow stays one.
fn with_code(mut text: &str) -> Markup {
    let mut parts = Vec::new();
    while let Some((before, (code, after))) =
        text.split_once('`').and_then(|(before, behind)| Some((before, behind.split_once('`')?)))
    {
        parts.push((before, code));
        text = after;
    }
    html! { @for (before, code) in parts { (before) code { (code) } } (text) }
}

/// A section with its heading.
fn section(id: &str, heading: &str, contents: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (contents) } }
}

/// A time on the wall clock, with the whole moment behind it. A run that began and ended within a day shows only times.
fn time(report: &Report, at: At) -> Markup {
    let spans_days = report.started.is_some_and(|started| (report.until() - started).num_hours() >= 24);
    let form = if spans_days { "%a %H:%M" } else { "%H:%M" };
    html! { time datetime=(at.format("%Y-%m-%dT%H:%M:%SZ")) { (at.with_timezone(&Local).format(form)) } }
}

/// The moment with its day.
fn day_and_time(at: At) -> String {
    at.with_timezone(&Local).format("%a %-d %b %H:%M").to_string()
}

/// `about $1.20`, with cents if they matter.
fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

const SOURCES: [&str; 8] = [
    "Line by line: `plimsoll log`.",
    "What is done and open, cost and limits: the run’s state, `ralph-state.json`.",
    "Sessions, pauses, checkpoints, refusals, the circuit breaker: Plimsoll’s own journal.",
    "The load line and what filled the window: the turn log. The line shows the input tokens of each request, the figure \
     that the client shows too; a checkpoint also counts what the next request would have added.",
    "Cost is as reported by Claude Code, else estimated, and not a bill. Tokens are all that it counts: input, read from the cache, written \
     to it, output.",
    "Commits are counted to the session during which they were made, even if someone else made them.",
    "“not recorded” and “?” mean that there is no record, not that there was nothing.",
    "Times are in the time zone of the machine that made this page. What looked like a secret was replaced.",
];

fn sources(report: &Report) -> Markup {
    html! {
        footer {
            @for gap in &report.gaps { p.gap { (gap) } }
            details {
                summary { "Where these figures come from" }
                ul { @for source in SOURCES { li { (with_code(source)) } } }
            }
            p { "Run " span.id { (report.run_id) } " · Plimsoll " (env!("CARGO_PKG_VERSION")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::redact::RedactedText;

    #[test]
    fn backticks_mean_code_in_our_words_and_nothing_in_those_of_others() {
        let said = |words: &RedactedText| words.render().into_string();
        let text = "no `plimsoll run` <b> is `active";
        assert_eq!(
            said(&RedactedText::ours(text, 80)),
            "<bdi>no <code>plimsoll run</code> &lt;b&gt; is `active</bdi>"
        );
        assert_eq!(said(&RedactedText::line(text, 80)), "<bdi>no `plimsoll run` &lt;b&gt; is `active</bdi>");
    }
}
