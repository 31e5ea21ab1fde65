//! The marks on the load line, each with its own shape, and their legend.

use super::{format_clock_time, format_percent, format_pixels};
use crate::commands::report::contents::{ChartMark, MarkKind, Report, RunPause};
use crate::commands::report::page::render_time;
use crate::commands::report::page::scale::{CHART_HEIGHT, ChartScale};
use maud::{Markup, html};
use plimsoll_terminal::duration::format_seconds;

const ALL_MARKS: [MarkKind; 6] = [
    MarkKind::Checkpoint,
    MarkKind::Compaction,
    MarkKind::SessionEnd,
    MarkKind::AbnormalSessionEnd,
    MarkKind::RefusedPromise,
    MarkKind::CircuitBreaker,
];

impl MarkKind {
    fn css_class(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Compaction => "compaction",
            MarkKind::SessionEnd => "end",
            MarkKind::AbnormalSessionEnd => "broken",
            MarkKind::RefusedPromise => "refused",
            MarkKind::CircuitBreaker => "breaker",
        }
    }

    /// Returns the SVG path of the mark, centered on its point.
    fn svg_path(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "M0-6 6 0 0 6-6 0Z",
            MarkKind::Compaction => "M-6-5H6L0 6Z",
            MarkKind::SessionEnd => "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z",
            MarkKind::AbnormalSessionEnd => "M-4-4 4 4M4-4-4 4",
            MarkKind::RefusedPromise => "M-5-5H5V5H-5ZM-5 5 5-5",
            MarkKind::CircuitBreaker => "M2-9-5 1H0L-2 9 5-1H0Z",
        }
    }

    fn legend_label(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Compaction => "compaction by Claude Code",
            MarkKind::SessionEnd => "a session’s end",
            MarkKind::AbnormalSessionEnd => "a session that broke off",
            MarkKind::RefusedPromise => "promise refused",
            MarkKind::CircuitBreaker => "circuit breaker",
        }
    }
}

/// Renders the marks. A mark without a percentage is drawn at the bottom of the chart.
pub(super) fn render(scale: &ChartScale, marks: &[ChartMark]) -> Markup {
    html! { @for mark in marks { (render_mark(scale, mark)) } }
}

fn render_mark(scale: &ChartScale, mark: &ChartMark) -> Markup {
    let x = format_percent(scale.x_percent(mark.occurred_at));
    let y = mark.percent.map_or(CHART_HEIGHT, ChartScale::y_pixels);
    let class = mark.kind.css_class();
    html! {
        @if matches!(mark.kind, MarkKind::Compaction | MarkKind::CircuitBreaker) {
            line class=(class) x1=(x) x2=(x) y1="0" y2=(CHART_HEIGHT) {}
        }
        svg.mark.(class) x=(x) y=(format_pixels(y)) {
            title { (format_clock_time(mark.occurred_at)) " " (mark.description.text()) }
            path d=(mark.kind.svg_path()) {}
        }
    }
}

/// Renders the legend of the marks that occur in the report, and the list of pauses.
pub(super) fn render_legend_and_pause_list(report: &Report) -> Markup {
    let counts = ALL_MARKS
        .map(|kind| (kind, report.marks.iter().filter(|chart_mark| chart_mark.kind == kind).count()));
    html! {
        ul.legend {
            @for (kind, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                li {
                    svg width="16" height="18" aria-hidden="true" {
                        svg.mark.(kind.css_class()) x="8" y="9" { path d=(kind.svg_path()) {} }
                    }
                    (kind.legend_label()) " (" (count) ")"
                }
            }
            @if !report.pauses.is_empty() {
                li { span.swatch.pause { "‖" } "paused (" (report.pauses.len()) ")" }
            }
        }
        (render_latest_pauses(report))
    }
}

const MAX_LISTED_PAUSES: usize = 12;

/// Renders the latest pauses and their reasons as a list, because phones show no tooltips.
fn render_latest_pauses(report: &Report) -> Markup {
    let omitted_count = report.pauses.len().saturating_sub(MAX_LISTED_PAUSES);
    let pause_seconds = |pause: &RunPause| {
        (pause.ended_at.unwrap_or_else(|| report.end_or_now()) - pause.started_at).num_seconds().max(0)
    };
    html! {
        @if !report.pauses.is_empty() {
            ul.pauses {
                @for pause in report.pauses.iter().skip(omitted_count) {
                    li {
                        "‖ " (render_time(report, pause.started_at)) " – "
                        @if let Some(ended_at) = pause.ended_at { (render_time(report, ended_at)) } @else { "now" }
                        " (" (format_seconds(pause_seconds(pause))) "): " (pause.reason)
                    }
                }
            }
        }
        @if omitted_count > 0 { p.note { (omitted_count) " earlier ones are not listed." } }
    }
}
