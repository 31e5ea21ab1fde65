//! The marks on the load line, each known by its shape, and what they mean.

use super::clock;
use crate::commands::report::contents::{Mark, Moment, Report};
use crate::commands::report::page::ReportPage;
use crate::commands::report::page::scale::{HEIGHT, Scale};
use crate::commands::run::progress::for_people;
use crate::render::web_page::escaped;

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
pub(super) fn render(page: &mut ReportPage, scale: &Scale, moments: &[Moment]) {
    for moment in moments {
        let x = scale.x(moment.at);
        let y = moment.percent.map_or(HEIGHT, Scale::y);
        let class = moment.what.class();
        if matches!(moment.what, Mark::Compaction | Mark::Breaker) {
            page.add(&format!(
                "<line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"{HEIGHT}\"/>"
            ));
        }
        let title = format!("{} {}", clock(moment.at), moment.words.text());
        page.add(&format!(
            "<svg class=\"mark {class}\" x=\"{x:.2}%\" y=\"{y:.1}\"><title>{}</title><path d=\"{}\"/></svg>\n",
            escaped(&title),
            moment.what.shape()
        ));
    }
}

/// What the shapes mean, of those that are there.
pub(super) fn legend(page: &mut ReportPage, report: &Report) {
    page.add("<ul class=\"legend\">\n");
    for mark in ALL {
        let count = report.moments.iter().filter(|moment| moment.what == mark).count();
        if count > 0 {
            page.add(&format!(
                "<li><svg width=\"16\" height=\"18\" aria-hidden=\"true\"><svg class=\"mark {}\" x=\"8\" y=\"9\"><path d=\"{}\"/></svg></svg>{} ({count})</li>\n",
                mark.class(),
                mark.shape(),
                mark.words()
            ));
        }
    }
    if !report.pauses.is_empty() {
        page.add(&format!(
            "<li><span class=\"swatch pause\">‖</span>paused ({})</li>\n",
            report.pauses.len()
        ));
    }
    page.add("</ul>\n");
    standstills(page, report);
}

/// Phones show no tooltips: the pauses and their reasons as lines.
fn standstills(page: &mut ReportPage, report: &Report) {
    if report.pauses.is_empty() {
        return;
    }
    let shown = report.pauses.len().min(SHOWN);
    page.add("<ul class=\"pauses\">\n");
    for pause in report.pauses.iter().rev().take(shown).rev() {
        let from = page.time(pause.from);
        let to = pause.to.map_or("now".to_owned(), |to| page.time(to));
        let lasted = (pause.to.unwrap_or_else(|| report.until()) - pause.from).num_seconds().max(0);
        page.add(&format!("<li>‖ {from} – {to} ({}): ", for_people(lasted)));
        page.say(&pause.reason);
        page.add("</li>\n");
    }
    page.add("</ul>\n");
    if report.pauses.len() > shown {
        let left_out = report.pauses.len() - shown;
        page.add(&format!("<p class=\"note\">{left_out} earlier ones are not listed.</p>\n"));
    }
}

/// How many pauses are listed at most.
const SHOWN: usize = 12;
