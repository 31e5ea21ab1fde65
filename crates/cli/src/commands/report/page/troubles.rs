//! Refusals, the circuit breaker, and whatever else went wrong, with the evidence.

use super::ReportPage;
use crate::commands::report::contents::{Report, Trouble};

/// So many are shown; of each so many times.
const SHOWN: usize = 40;
const TIMES: usize = 6;

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    page.section("trouble", "What went wrong");
    if report.troubles.is_empty() {
        page.add("<p>Nothing was recorded: no promise refused, no session broken off, the circuit breaker closed.</p>\n");
        return page.end_section();
    }
    page.add("<ul class=\"troubles\">\n");
    for trouble in report.troubles.iter().take(SHOWN) {
        one(page, trouble);
    }
    page.add("</ul>\n");
    if report.troubles.len() > SHOWN {
        page.add(&format!(
            "<p class=\"note\">and {} more kinds: <code>plimsoll log</code></p>\n",
            report.troubles.len() - SHOWN
        ));
    }
    page.end_section();
}

fn one(page: &mut ReportPage, trouble: &Trouble) {
    let times = match trouble.times.len() {
        0 | 1 => String::new(),
        number => format!(" <small>{number} times</small>"),
    };
    page.add(&format!("<li><p class=\"name\"><b>{}</b>{times}: ", trouble.kind));
    page.say(&trouble.words);
    page.add("</p>");
    for evidence in &trouble.evidence {
        page.add("<p class=\"evidence\">");
        page.say(evidence);
        page.add("</p>");
    }
    let skipped = trouble.times.len().saturating_sub(TIMES);
    let when: Vec<String> = trouble.times[skipped..]
        .iter()
        .map(|(at, session)| {
            let session = session.map(|number| format!(" (session {number})")).unwrap_or_default();
            format!("{}{session}", page.time(*at))
        })
        .collect();
    let last = if skipped > 0 { "last at " } else { "at " };
    page.add(&format!("<p class=\"note\">{last}{}</p></li>\n", when.join(", ")));
}
