//! The page: a pure function from the report to HTML. No script, nothing from outside; whatever is foreign is of the
//! type [`RedactedText`] and goes through [`ReportPage::say`].

mod handoffs;
mod items;
mod loadline;
mod scale;
mod sessions;
mod top;
mod troubles;
mod window;

use super::contents::{At, Report};
use crate::render::redact::RedactedText;
use crate::render::web_page::{escaped, opening};
use chrono::Local;

const STYLE: &str = include_str!("page/page.css");

/// Renders it.
pub(super) fn render(report: &Report) -> String {
    let title = format!("{} · Plimsoll report", report.name.text());
    let mut page = ReportPage { html: opening(&title, STYLE, None), long: spans_days(report) };
    page.add("<main>\n");
    top::render(&mut page, report);
    loadline::render(&mut page, report);
    items::render(&mut page, report);
    window::render(&mut page, report);
    troubles::render(&mut page, report);
    handoffs::render(&mut page, report);
    sessions::render(&mut page, report);
    lines(&mut page, report);
    sources(&mut page, report);
    page.add("</main>\n</body>\n</html>\n");
    page.html
}

/// A run that began and ended within a day shows only times.
fn spans_days(report: &Report) -> bool {
    report.started.is_some_and(|started| (report.until() - started).num_hours() >= 24)
}

/// The page in the making.
struct ReportPage {
    html: String,
    /// True if a time needs its day.
    long: bool,
}

impl ReportPage {
    /// Adds HTML of our own.
    fn add(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Adds foreign words, in a piece of text of their own direction; in a sentence of ours what is in backticks is
    /// code.
    fn say(&mut self, words: &RedactedText) {
        let html = escaped(words.text());
        self.html.push_str("<bdi>");
        self.html.push_str(&if words.are_ours() { with_code(&html) } else { html });
        self.html.push_str("</bdi>");
    }

    /// Adds an element with words of our own.
    fn element(&mut self, tag: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.html.push_str(&format!("<{tag}{class}>{}</{tag}>", escaped(text)));
    }

    /// A command line to copy.
    fn command(&mut self, command: &RedactedText) {
        self.html.push_str("<pre class=\"command\"><code>");
        self.html.push_str(&escaped(command.text()));
        self.html.push_str("</code></pre>");
    }

    /// A time on the wall clock, with the whole moment behind it.
    fn time(&self, at: At) -> String {
        let local = at.with_timezone(&Local);
        let form = if self.long { "%a %H:%M" } else { "%H:%M" };
        let whole = at.format("%Y-%m-%dT%H:%M:%SZ");
        format!("<time datetime=\"{whole}\">{}</time>", local.format(form))
    }

    /// Begins a section with its heading.
    fn section(&mut self, id: &str, heading: &str) {
        let heading = escaped(heading);
        self.add(&format!("<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{heading}</h2>\n"));
    }

    fn end_section(&mut self) {
        self.add("</section>\n");
    }
}

/// A backtick that has no fellow stays one.
fn with_code(html: &str) -> String {
    let mut rest = html;
    let mut told = String::with_capacity(html.len());
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, behind)| Some((before, behind.split_once('`')?)))
    {
        told.push_str(&format!("{before}<code>{code}</code>"));
        rest = after;
    }
    told + rest
}

/// The moment with its day.
fn day_and_time(at: At) -> String {
    at.with_timezone(&Local).format("%a %-d %b %H:%M").to_string()
}

/// `about $1.20`, with cents if they matter.
fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

fn lines(page: &mut ReportPage, report: &Report) {
    if report.lines.is_empty() {
        return;
    }
    page.section("log", "Line by line");
    let count = plimsoll_domain::text::counted(report.lines.len(), "line");
    let left_out = match report.lines_left_out {
        0 => String::new(),
        number => format!(", {number} earlier ones left out"),
    };
    page.add(&format!("<details><summary>{count}{left_out}</summary>\n<ol class=\"log\">\n"));
    for line in &report.lines {
        let time = line.at.map(|at| page.time(at)).unwrap_or_default();
        let session = line.iteration.map(|number| format!("<span class=\"number\">{number}</span>"));
        page.add(&format!("<li>{time} {} <span>", session.unwrap_or_default()));
        page.say(&line.words);
        page.add("</span></li>\n");
    }
    page.add("</ol>\n<p class=\"note\">The number is the session’s. All of it: <code>plimsoll log</code>.</p>\n</details>\n");
    page.end_section();
}

const SOURCES: &str = "<ul>
<li>What is done and open, cost and limits: the run’s state, <code>ralph-state.json</code>.</li>
<li>Sessions, pauses, checkpoints, refusals, the circuit breaker: Plimsoll’s own journal.</li>
<li>The load line and what filled the window: the turn log. The line shows the input tokens of each request, the figure that
the client shows too; a checkpoint also counts what the next request would have added.</li>
<li>Cost is as reported by Claude Code, not a bill. Tokens are all that it counts: input, read from the cache, written to it,
output.</li>
<li>Commits are counted to the session during which they were made, even if someone else made them.</li>
<li>“not recorded” and “?” mean that there is no record, not that there was nothing.</li>
<li>Times are in the time zone of the machine that made this page. What looked like a secret was replaced.</li>
</ul>\n";

fn sources(page: &mut ReportPage, report: &Report) {
    page.add("<footer>\n");
    for gap in &report.gaps {
        page.add("<p class=\"gap\">");
        page.say(gap);
        page.add("</p>\n");
    }
    page.add("<details><summary>Where these figures come from</summary>\n");
    page.add(SOURCES);
    page.add("</details>\n<p>Run <span class=\"id\">");
    page.say(&report.run_id);
    page.add(&format!("</span> · Plimsoll {}</p>\n</footer>\n", env!("CARGO_PKG_VERSION")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::redact::Redactor;

    #[test]
    fn backticks_mean_code_in_our_words_and_nothing_in_those_of_others() {
        let cleaner = Redactor;
        let said = |words: &RedactedText| {
            let mut page = ReportPage { html: String::new(), long: false };
            page.say(words);
            page.html
        };
        let text = "no `plimsoll run` <b> is `active";
        assert_eq!(
            said(&cleaner.ours(text, 80)),
            "<bdi>no <code>plimsoll run</code> &lt;b&gt; is `active</bdi>"
        );
        assert_eq!(said(&cleaner.line(text, 80)), "<bdi>no `plimsoll run` &lt;b&gt; is `active</bdi>");
    }
}
