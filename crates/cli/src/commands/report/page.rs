//! Renders the report as a self-contained HTML page, without scripts or external resources. Foreign text always has the type
//! [`RedactedText`].

mod handoffs;
mod items;
mod problems;
mod scale;
mod sessions;
mod top;
mod usage_chart;
mod window_usage;
mod workers;

use super::contents::{Report, UtcTime};
use crate::render::redact::RedactedText;
use crate::render::web_page::render_page;
use chrono::Local;
use maud::{Markup, Render, html};

const STYLE: &str = include_str!("page/page.css");

/// Renders the whole page.
pub(super) fn render(report: &Report) -> String {
    let title = format!("{} · Plimsoll report", report.name.text());
    let main = html! {
        (top::render(report))
        (workers::render(report))
        @if report.workers.is_empty() { (usage_chart::render(report)) }
        (items::render(report))
        (window_usage::render(report))
        (problems::render(report))
        (handoffs::render(report))
        (sessions::render(report))
        (render_footer_with_errors_and_sources(report))
    };
    render_page(&title, STYLE, None, &main)
}

/// Renders the text in a `bdi` element, so that its direction does not affect the text around it. Backticks are rendered
/// as code only in Plimsoll's own sentences.
impl Render for RedactedText {
    fn render(&self) -> Markup {
        html! { bdi { @if self.is_plimsoll_text() { (render_inline_code(self.text())) } @else { (self.text()) } } }
    }
}

/// Renders text between backticks as `code` elements. An unmatched backtick is kept.
fn render_inline_code(mut text: &str) -> Markup {
    let mut parts = Vec::new();
    while let Some((before, (code, after))) = text
        .split_once('`')
        .and_then(|(before, after_backtick)| Some((before, after_backtick.split_once('`')?)))
    {
        parts.push((before, code));
        text = after;
    }
    html! { @for (before, code) in parts { (before) code { (code) } } (text) }
}

/// Renders a section with its heading.
fn render_section(id: &str, heading: &str, contents: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (contents) } }
}

/// Renders a local time, with the full timestamp in its `datetime` attribute. The weekday is shown only for runs of a day or more.
fn render_time(report: &Report, utc_time: UtcTime) -> Markup {
    let is_day_or_longer =
        report.started_at.is_some_and(|started| (report.end_or_now() - started).num_hours() >= 24);
    let format = if is_day_or_longer { "%a %H:%M" } else { "%H:%M" };
    html! { time datetime=(utc_time.format("%Y-%m-%dT%H:%M:%SZ")) { (utc_time.with_timezone(&Local).format(format)) } }
}

/// Formats a local time with its day.
fn format_day_and_time(utc_time: UtcTime) -> String {
    utc_time.with_timezone(&Local).format("%a %-d %b %H:%M").to_string()
}

/// Formats an amount as `$1.20`, or with four decimals below ten cents.
fn format_dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

const SOURCES: [&str; 8] = [
    "Line by line: `plimsoll log`.",
    "What is done and open, cost and limits: the run’s state, `ralph-state.json`.",
    "Sessions, pauses, checkpoints, refusals, the circuit breaker: Plimsoll’s own journal.",
    "The load line and what filled the window: the turn log. The line shows the input tokens of each request, the figure \
     that Claude Code shows too; a checkpoint also counts what the next request would have added.",
    "Cost is as reported by Claude Code, else estimated, and not a bill. Tokens are all that it counts: input, read from the cache, written \
     to it, output.",
    "Commits are counted to the session during which they were made, even if someone else made them.",
    "“not recorded” and “?” mean that there is no record, not that there was nothing.",
    "Times are in the time zone of the machine that made this page. What looked like a secret was replaced.",
];

fn render_footer_with_errors_and_sources(report: &Report) -> Markup {
    html! {
        footer {
            @for read_error in &report.read_errors { p.gap { (read_error) } }
            details {
                summary { "Where these figures come from" }
                ul { @for source in SOURCES { li { (render_inline_code(source)) } } }
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
    fn backticks_mark_code_only_in_our_own_sentences() {
        let render_html = |text: &RedactedText| text.render().into_string();
        let text = "no `plimsoll run` <b> is `active";
        assert_eq!(
            render_html(&RedactedText::plimsoll_sentence(text, 80)),
            "<bdi>no <code>plimsoll run</code> &lt;b&gt; is `active</bdi>"
        );
        assert_eq!(
            render_html(&RedactedText::single_line(text, 80)),
            "<bdi>no `plimsoll run` &lt;b&gt; is `active</bdi>"
        );
    }
}
