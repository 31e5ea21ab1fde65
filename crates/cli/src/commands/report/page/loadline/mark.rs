//! The marks on the load line, each with its own shape, and their legend.

use super::{format_clock_time, format_percent, format_pixels};
use crate::commands::report::contents::{LoadLineMark, MarkKind, Report, RunPause};
use crate::commands::report::page::render_time;
use crate::commands::report::page::scale::{CHART_HEIGHT, ChartScale};
use maud::{Markup, html};
use plimsoll_terminal::duration::format_seconds;

const ALL_MARKS: [MarkKind; 6] = [
    MarkKind::Checkpoint,
    MarkKind::Compaction,
    MarkKind::End,
    MarkKind::BrokenEnd,
    MarkKind::Refused,
    MarkKind::Breaker,
];

impl MarkKind {
    fn css_class(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Compaction => "compaction",
            MarkKind::End => "end",
            MarkKind::BrokenEnd => "broken",
            MarkKind::Refused => "refused",
            MarkKind::Breaker => "breaker",
        }
    }

    /// Returns the SVG path of the mark, centered on its point.
    fn svg_path(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "M0-6 6 0 0 6-6 0Z",
            MarkKind::Compaction => "M-6-5H6L0 6Z",
            MarkKind::End => "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z",
            MarkKind::BrokenEnd => "M-4-4 4 4M4-4-4 4",
            MarkKind::Refused => "M-5-5H5V5H-5ZM-5 5 5-5",
            MarkKind::Breaker => "M2-9-5 1H0L-2 9 5-1H0Z",
        }
    }

    fn label(self) -> &'static str {
        match self {
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Compaction => "compaction by the client",
            MarkKind::End => "a session’s end",
            MarkKind::BrokenEnd => "a session that broke off",
            MarkKind::Refused => "promise refused",
            MarkKind::Breaker => "circuit breaker",
        }
    }
}

/// Renders the marks. A mark without a percentage is drawn at the bottom of the chart.
pub(super) fn render(scale: &ChartScale, moments: &[LoadLineMark]) -> Markup {
    html! { @for moment in moments { (render_mark(scale, moment)) } }
}

fn render_mark(scale: &ChartScale, moment: &LoadLineMark) -> Markup {
    let x = format_percent(scale.x_percent(moment.at));
    let y = moment.percent.map_or(CHART_HEIGHT, ChartScale::y_pixels);
    let class = moment.kind.css_class();
    html! {
        @if matches!(moment.kind, MarkKind::Compaction | MarkKind::Breaker) {
            line class=(class) x1=(x) x2=(x) y1="0" y2=(CHART_HEIGHT) {}
        }
        svg.mark.(class) x=(x) y=(format_pixels(y)) {
            title { (format_clock_time(moment.at)) " " (moment.description.text()) }
            path d=(moment.kind.svg_path()) {}
        }
    }
}

/// Renders the legend of the marks that occur in the report, and the list of pauses.
pub(super) fn render_legend(report: &Report) -> Markup {
    let counts =
        ALL_MARKS.map(|mark| (mark, report.marks.iter().filter(|moment| moment.kind == mark).count()));
    html! {
        ul.legend {
            @for (mark, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                li {
                    svg width="16" height="18" aria-hidden="true" {
                        svg.mark.(mark.css_class()) x="8" y="9" { path d=(mark.svg_path()) {} }
                    }
                    (mark.label()) " (" (count) ")"
                }
            }
            @if !report.pauses.is_empty() {
                li { span.swatch.pause { "‖" } "paused (" (report.pauses.len()) ")" }
            }
        }
        (render_pause_list(report))
    }
}

const MAX_LISTED_PAUSES: usize = 12;

/// Renders the pauses and their reasons as a list, because phones show no tooltips.
fn render_pause_list(report: &Report) -> Markup {
    let left_out = report.pauses.len().saturating_sub(MAX_LISTED_PAUSES);
    let pause_seconds = |pause: &RunPause| {
        (pause.ended_at.unwrap_or_else(|| report.end_or_now()) - pause.started_at).num_seconds().max(0)
    };
    html! {
        @if !report.pauses.is_empty() {
            ul.pauses {
                @for pause in report.pauses.iter().skip(left_out) {
                    li {
                        "‖ " (render_time(report, pause.started_at)) " – "
                        @if let Some(to) = pause.ended_at { (render_time(report, to)) } @else { "now" }
                        " (" (format_seconds(pause_seconds(pause))) "): " (pause.reason)
                    }
                }
            }
        }
        @if left_out > 0 { p.note { (left_out) " earlier ones are not listed." } }
    }
}
