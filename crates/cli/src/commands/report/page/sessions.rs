//! The sessions in a table: when, what, how full, what it cost.

use super::{ReportPage, dollars};
use crate::commands::report::contents::{Report, RunSession};
use crate::commands::run::progress::for_people;
use plimsoll_domain::Ending;
use plimsoll_domain::text::{counted, tokens};

/// More than this are folded.
const UNFOLDED: usize = 12;

const HEAD: &str = "<div class=\"scroll\" role=\"region\" aria-labelledby=\"sessions\" tabindex=\"0\">
<table class=\"sessions\">
<thead><tr><th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">Began</th><th scope=\"col\" class=\"number\">Took</th>\
<th scope=\"col\" class=\"number\">Peak</th><th scope=\"col\" class=\"number\">Tokens</th><th scope=\"col\" class=\"number\">Cost</th>\
<th scope=\"col\">Ended</th><th scope=\"col\">Item</th></tr></thead>
<tbody>\n";

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    if report.sittings.is_empty() {
        return;
    }
    page.section("sessions", "Sessions");
    let fold = report.sittings.len() > UNFOLDED;
    if fold {
        page.add(&format!("<details><summary>{}</summary>\n", counted(report.sittings.len(), "session")));
    }
    page.add(HEAD);
    for sitting in &report.sittings {
        row(page, report, sitting);
    }
    page.add("</tbody>\n</table>\n</div>\n");
    if fold {
        page.add("</details>\n");
    }
    page.end_section();
}

fn row(page: &mut ReportPage, report: &Report, sitting: &RunSession) {
    let unknown = || "?".to_owned();
    let number = |text: String| format!("<td class=\"number\">{text}</td>");
    let began = sitting.began.map_or_else(unknown, |at| page.time(at));
    let cells = [
        format!("<tr><th scope=\"row\" class=\"number\">{}</th><td>{began}</td>", sitting.iteration),
        number(report.lasted(sitting).map_or_else(unknown, for_people)),
        number(sitting.peak.map_or_else(unknown, |peak| format!("{peak} %"))),
        number(sitting.tokens.map_or_else(unknown, tokens)),
        number(sitting.usd.map_or_else(unknown, dollars)),
        format!("<td class=\"{}\">{}</td><td class=\"item\">", tone(sitting), ending(report, sitting)),
    ];
    page.add(&cells.concat());
    let about: Vec<_> = match sitting.ticked.as_slice() {
        [] => sitting.item.iter().collect(),
        ticked => ticked.iter().collect(),
    };
    for (place, item) in about.iter().enumerate() {
        page.add(if place > 0 { "<br>" } else { "" });
        page.add(if sitting.ticked.is_empty() { "" } else { "✓ " });
        page.say(item);
    }
    page.add(if about.is_empty() { "not recorded" } else { "" });
    if tone(sitting) == "bad"
        && let Some(detail) = &sitting.detail
    {
        page.add("<br><small>");
        page.say(detail);
        page.add("</small>");
    }
    page.add("</td></tr>\n");
}

fn tone(sitting: &RunSession) -> &'static str {
    match &sitting.ending {
        None | Some(Ending::Completed | Ending::HookStopped | Ending::Unknown) => "plain",
        Some(
            Ending::Limit(_)
            | Ending::Overloaded(_)
            | Ending::Interrupted
            | Ending::Cancelled
            | Ending::OutOfTime,
        ) => "wait",
        Some(
            Ending::WindowFull(_)
            | Ending::ClientLimit(_)
            | Ending::Fatal(_)
            | Ending::Silent(_)
            | Ending::Crashed(_)
            | Ending::Failed(_),
        ) => "bad",
    }
}

fn ending(report: &Report, sitting: &RunSession) -> &'static str {
    match &sitting.ending {
        None if report.is_live && sitting.ended.is_none() => "at work",
        None => "not recorded",
        Some(Ending::Completed) => "its turn ended",
        Some(Ending::HookStopped) => "stopped at a checkpoint",
        Some(Ending::WindowFull(_)) => "window full",
        Some(Ending::ClientLimit(_)) => "the client’s own limit",
        Some(Ending::Fatal(_)) => "fatal error",
        Some(Ending::Limit(_)) => "usage limit",
        Some(Ending::Overloaded(_)) => "service overloaded",
        Some(Ending::Silent(_)) => "silent, ended by Plimsoll",
        Some(Ending::OutOfTime) => "deadline",
        Some(Ending::Interrupted) => "interrupted",
        Some(Ending::Cancelled) => "ended by plimsoll stop",
        Some(Ending::Crashed(_)) => "crashed",
        Some(Ending::Failed(_)) => "failed",
        Some(Ending::Unknown) => "not known",
    }
}
