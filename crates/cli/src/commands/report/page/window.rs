//! What filled the windows.

use super::ReportPage;
use crate::commands::report::contents::{Large, Part, Report};
use plimsoll_domain::text::{counted, tokens};

/// So many kinds are shown; the rest is summed.
const SHOWN: usize = 10;

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    page.section("window", "What filled the window");
    let filling = &report.filling;
    if filling.parts.is_empty() {
        page.add("<p class=\"note\">Not recorded: there is no turn log of these sessions.</p>\n");
        return page.end_section();
    }
    let all: u64 = filling.parts.iter().map(|part| part.tokens).sum();
    page.add("<table class=\"filling\">\n<thead><tr><th scope=\"col\">What</th><th scope=\"col\">Share</th><th scope=\"col\" class=\"number\">Tokens</th></tr></thead>\n<tbody>\n");
    for part in filling.parts.iter().take(SHOWN) {
        row(page, part, all);
    }
    rest(page, filling.parts.get(SHOWN..).unwrap_or_default(), all);
    page.add("</tbody>\n</table>\n");
    let of = counted(filling.sessions, "session");
    let missing = report.sittings.len().saturating_sub(filling.sessions);
    let missing = if missing > 0 {
        format!("; of {} no turn was recorded", counted(missing, "session"))
    } else {
        String::new()
    };
    let kept = filling.delegated.words().map(|words| format!(": {words}")).unwrap_or_default();
    page.element("p", "note", &format!(
        "Each part is counted once, when it enters the window of one of {of}{missing}. The model’s text and the client’s own part are counted by the client; the rest is estimated at four bytes per token. Subagents have windows of their own, which are not included{kept}."
    ));
    page.add("\n");
    largest(page, &filling.largest);
    page.end_section();
}

fn row(page: &mut ReportPage, part: &Part, all: u64) {
    page.add("<tr><th scope=\"row\">");
    page.say(&part.name);
    if part.is_tool {
        let failed = if part.failed > 0 { format!(", {} failed", part.failed) } else { String::new() };
        let calls = usize::try_from(part.calls).unwrap_or(usize::MAX);
        page.add(&format!(" <small>{}{failed}</small>", counted(calls, "call")));
    }
    bar(page, part.tokens, all);
}

fn bar(page: &mut ReportPage, number: u64, all: u64) {
    let share = number as f64 * 100.0 / all.max(1) as f64;
    page.add(&format!(
        "</th><td class=\"share\"><span class=\"track\"><span style=\"width:{share:.1}%\"></span></span> <span class=\"percent\">{share:.0} %</span></td><td class=\"number\">{}</td></tr>\n",
        tokens(number)
    ));
}

fn rest(page: &mut ReportPage, rest: &[Part], all: u64) {
    if !rest.is_empty() {
        page.add(&format!("<tr><th scope=\"row\">{} more kinds", rest.len()));
        bar(page, rest.iter().map(|part| part.tokens).sum(), all);
    }
}

fn largest(page: &mut ReportPage, largest: &[Large]) {
    if largest.is_empty() {
        return;
    }
    page.add("<h3>The largest single results</h3>\n<ol class=\"largest\">\n");
    for large in largest {
        page.add(&format!("<li><b>about {}</b> · ", tokens(large.tokens)));
        page.say(&large.tool);
        page.add(" <code>");
        page.say(&large.asked);
        page.add("</code><br><span class=\"note\"><code>plimsoll turns show ");
        page.say(&large.turn);
        page.add("</code></span></li>\n");
    }
    page.add("</ol>\n");
}
