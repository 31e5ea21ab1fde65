//! The handoffs: what the night left for the next session, and for the person.

use super::ReportPage;
use crate::commands::report::contents::{Handoff, Report};
use crate::render::web_page::escaped;

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    page.section("handoffs", "Handoffs");
    if report.handoffs.is_empty() {
        page.add("<p>None was written: no session reached a checkpoint.</p>\n");
        return page.end_section();
    }
    page.add("<ul class=\"handoffs\">\n");
    for handoff in &report.handoffs {
        one(page, handoff);
    }
    page.add("</ul>\n<p class=\"note\">The newest first. What a session says about itself is its own claim and unchecked.</p>\n");
    page.end_section();
}

fn one(page: &mut ReportPage, handoff: &Handoff) {
    page.add("<li><p class=\"name\">");
    match &handoff.link {
        Some(link) => {
            page.add(&format!("<a href=\"{}\">", escaped(link)));
            page.say(&handoff.path);
            page.add("</a>");
        }
        None => page.say(&handoff.path),
    }
    if handoff.is_waiting {
        page.add(" <strong class=\"waiting\">not resumed yet</strong>");
    }
    let session = handoff.iteration.map(|number| format!("session {number}, ")).unwrap_or_default();
    page.add(&format!("</p><p class=\"note\">{session}{}, ", page.time(handoff.at)));
    page.say(&handoff.why);
    if let Some(item) = &handoff.item {
        page.add(" · ");
        page.say(item);
    }
    page.add("</p>");
    for (name, claim) in &handoff.claims {
        page.add(&format!("<p class=\"claim\"><b>{name}:</b> "));
        page.say(claim);
        page.add("</p>");
    }
    if let Some(text) = &handoff.text {
        let open = if handoff.is_waiting { " open" } else { "" };
        page.add(&format!("<details{open}><summary>the whole handoff</summary><pre>"));
        page.add(&escaped(text.text()));
        page.add("</pre></details>");
    }
    page.add("</li>\n");
}
