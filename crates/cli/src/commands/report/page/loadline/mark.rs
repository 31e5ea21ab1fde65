//! The marks on the load line, each known by its shape, and what they mean.

use super::{clock, percent, pixels};
use crate::commands::report::contents::{Mark, Moment, Pause, Report};
use crate::commands::report::page::scale::{HEIGHT, Scale};
use crate::commands::report::page::time;
use maud::{Markup, html};
use plimsoll_terminal::duration::for_people;

const ALL: [Mark; 6] =
    [Mark::Checkpoint, Mark::Compaction, Mark::End, Mark::BadEnd, Mark::Refused, Mark::Breaker];

impl Mark {
    fn class(self) -> &'static str {
        match self {
            Mark::Checkpoint => "checkpoint",
            Mark::Compaction => "compaction",
            Mark::End => "end",
            Mark::BadEnd => "broken",
            Mark::Refused => "refused",
            Mark::Breaker => "breaker",
        }
    }

    /// Around the point of the mark.
    fn shape(self) -> &'static str {
        match self {
            Mark::Checkpoint => "M0-6 6 0 0 6-6 0Z",
            Mark::Compaction => "M-6-5H6L0 6Z",
            Mark::End => "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z",
            Mark::BadEnd => "M-4-4 4 4M4-4-4 4",
            Mark::Refused => "M-5-5H5V5H-5ZM-5 5 5-5",
            Mark::Breaker => "M2-9-5 1H0L-2 9 5-1H0Z",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Mark::Checkpoint => "checkpoint",
            Mark::Compaction => "compaction by the client",
            Mark::End => "a session’s end",
            Mark::BadEnd => "a session that broke off",
            Mark::Refused => "promise refused",
            Mark::Breaker => "circuit breaker",
        }
    }
}

/// The marks. A mark without a place on the line is drawn at the bottom, and so is a fall.
pub(super) fn render(scale: &Scale, moments: &[Moment]) -> Markup {
    html! { @for moment in moments { (one(scale, moment)) } }
}

fn one(scale: &Scale, moment: &Moment) -> Markup {
    let x = percent(scale.x(moment.at));
    let y = moment.percent.map_or(HEIGHT, Scale::y);
    let class = moment.what.class();
    html! {
        @if matches!(moment.what, Mark::Compaction | Mark::Breaker) {
            line class=(class) x1=(x) x2=(x) y1="0" y2=(HEIGHT) {}
        }
        svg.mark.(class) x=(x) y=(pixels(y)) {
            title { (clock(moment.at)) " " (moment.words.text()) }
            path d=(moment.what.shape()) {}
        }
    }
}

/// What the shapes mean, of those that are there.
pub(super) fn legend(report: &Report) -> Markup {
    let counts = ALL.map(|mark| (mark, report.moments.iter().filter(|moment| moment.what == mark).count()));
    html! {
        ul.legend {
            @for (mark, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                li {
                    svg width="16" height="18" aria-hidden="true" {
                        svg.mark.(mark.class()) x="8" y="9" { path d=(mark.shape()) {} }
                    }
                    (mark.words()) " (" (count) ")"
                }
            }
            @if !report.pauses.is_empty() {
                li { span.swatch.pause { "‖" } "paused (" (report.pauses.len()) ")" }
            }
        }
        (standstills(report))
    }
}

/// How many pauses are listed at most.
const SHOWN: usize = 12;

/// Phones show no tooltips: the pauses and their reasons as lines.
fn standstills(report: &Report) -> Markup {
    let left_out = report.pauses.len().saturating_sub(SHOWN);
    let lasted =
        |pause: &Pause| (pause.to.unwrap_or_else(|| report.until()) - pause.from).num_seconds().max(0);
    html! {
        @if !report.pauses.is_empty() {
            ul.pauses {
                @for pause in report.pauses.iter().skip(left_out) {
                    li {
                        "‖ " (time(report, pause.from)) " – "
                        @if let Some(to) = pause.to { (time(report, to)) } @else { "now" }
                        " (" (for_people(lasted(pause))) "): " (pause.reason)
                    }
                }
            }
        }
        @if left_out > 0 { p.note { (left_out) " earlier ones are not listed." } }
    }
}
