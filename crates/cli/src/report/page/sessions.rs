//! The sessions in a table: when, what, how full, what it cost.

use super::{Page, dollars};
use crate::progress::for_people;
use crate::report::night::{Report, Sitting};
use session::text::{counted, tokens};

/// More than this are folded.
const UNFOLDED: usize = 12;

const HEAD: &str = "<div class=\"scroll\" role=\"region\" aria-labelledby=\"sessions\" tabindex=\"0\">
<table class=\"sessions\">
<thead><tr><th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">Began</th><th scope=\"col\" class=\"number\">Took</th>\
<th scope=\"col\" class=\"number\">Peak</th><th scope=\"col\" class=\"number\">Tokens</th><th scope=\"col\" class=\"number\">Cost</th>\
<th scope=\"col\">Ended</th><th scope=\"col\">Item</th></tr></thead>
<tbody>\n";

pub(super) fn render(page: &mut Page, report: &Report) {
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

fn row(page: &mut Page, report: &Report, sitting: &Sitting) {
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
    if let Some(detail) = sitting.detail.as_ref().filter(|_| tone(sitting) == "bad") {
        page.add("<br><small>");
        page.say(detail);
        page.add("</small>");
    }
    page.add("</td></tr>\n");
}

fn tone(sitting: &Sitting) -> &'static str {
    match sitting.ending.as_deref() {
        None | Some("completed" | "hook_stopped" | "unknown") => "plain",
        Some("limit" | "overloaded" | "interrupted" | "cancelled" | "out_of_time") => "wait",
        Some(_) => "bad",
    }
}

fn ending(report: &Report, sitting: &Sitting) -> &'static str {
    match sitting.ending.as_deref() {
        None if report.is_live && sitting.ended.is_none() => "at work",
        None => "not recorded",
        Some("completed") => "its turn was done",
        Some("hook_stopped") => "stopped at a checkpoint",
        Some("window_full") => "window full",
        Some("client_limit") => "the client’s own limit",
        Some("fatal") => "cannot work",
        Some("limit") => "usage limit",
        Some("overloaded") => "service overloaded",
        Some("silent") => "silent, ended by us",
        Some("out_of_time") => "deadline",
        Some("interrupted") => "interrupted",
        Some("cancelled") => "ended by plimsoll stop",
        Some("crashed") => "crashed",
        Some("failed") => "failed",
        Some(_) => "not known",
    }
}
