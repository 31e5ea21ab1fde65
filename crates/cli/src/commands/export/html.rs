//! One self-contained page: no network, no script to read it. Every word of the session is escaped, and
//! the page's own policy lets nothing in but its own style and its one script, by its digest.

mod curve;
mod turn;

use super::exported::{Exported, Stream};
use crate::render::visible::{event, time, visible};
use crate::render::web_page::{escaped, opening};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::text::{counted, tokens};
use plimsoll_flows::turns::Recorded;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

pub(crate) fn render(exported: &Exported) -> String {
    let mut page = HtmlPage { html: String::new() };
    let title = visible(&exported.id);
    page.add(&opening(&format!("Session {title}"), STYLE, Some(SCRIPT)));
    page.add("<main>\n");
    let title = escaped(&title);
    page.add(&format!("<h1>Session <span class=\"id\">{title}</span></h1>\n"));
    page.facts(exported);
    page.add(&curve::render(exported));
    page.add(
        "<div id=\"search\" hidden><label>Search <input type=\"search\" id=\"words\" autocomplete=\"off\"></label>\
         <output id=\"found\"></output><button type=\"button\" id=\"open\">Open all</button>\
         <button type=\"button\" id=\"close\">Close all</button></div>\n",
    );
    page.add("<section class=\"timeline\" aria-label=\"Timeline\">\n");
    for (place, stream) in exported.streams().iter().enumerate() {
        if place > 0 {
            page.agent(stream, "who started it is not in the log");
        } else {
            page.stream(stream);
        }
    }
    page.add("</section>\n<footer>Exported by Plimsoll from its own turn log.</footer>\n</main>\n");
    page.add(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    page.html
}

/// The page in the making.
struct HtmlPage {
    html: String,
}

impl HtmlPage {
    /// Adds HTML of our own.
    fn add(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Adds foreign words.
    fn say(&mut self, text: &str) {
        self.html.push_str(&escaped(text));
    }

    fn facts(&mut self, exported: &Exported) {
        let turns = || exported.records.iter().filter(|record| record.is_turn());
        let failed = turns().filter(|record| record.header.success == Some(false)).count();
        let usages = || exported.records.iter().filter_map(|record| record.header.usage);
        let mut facts = vec![
            ("turns", turns().count().to_string()),
            ("failed", failed.to_string()),
            ("sent", tokens(usages().map(plimsoll_domain::log_line::Tokens::sent).sum())),
            ("answered", tokens(usages().map(|usage| usage.output).sum())),
        ];
        facts.extend(exported.model().map(|model| ("model", visible(model))));
        facts.extend(exported.cost().map(|cost| ("cost", format!("${cost:.4}"))));
        let began =
            exported.records.first().map(|record| record.header.at.as_str().get(..16).unwrap_or_default());
        facts.extend(began.map(|at| ("began", visible(&at.replace('T', " ")))));
        self.add("<dl class=\"facts\">");
        for (name, value) in facts {
            self.add(&format!("<div><dt>{name}</dt><dd>"));
            self.say(&value);
            self.add("</dd></div>");
        }
        self.add("</dl>\n");
    }

    fn stream(&mut self, stream: &Stream<'_>) {
        let is_context = |record: &Recorded| record.header.kind == RecordKind::Context;
        for run in stream.records.chunk_by(|one, next| is_context(one) && is_context(next)) {
            if run.len() > 1 {
                self.contexts(run);
                continue;
            }
            for record in run {
                if record.is_turn() {
                    self.turn(record, stream);
                } else {
                    self.event(record);
                }
            }
        }
    }

    /// What the client adds for the model comes in heaps.
    fn contexts(&mut self, run: &[&Recorded]) {
        let at = run.first().map_or("", |record| record.header.at.as_str());
        let names: Vec<String> = run.iter().map(|record| event(record).0.replace("context: ", "")).collect();
        self.add(&format!(
            "<details class=\"event group\"><summary><time>{}</time> <span class=\"what\">",
            escaped(&time(at))
        ));
        self.say(&format!("{}: {}", counted(run.len(), "context"), names.join(", ")));
        self.add("</span></summary>\n");
        run.iter().for_each(|record| self.event(record));
        self.add("</details>\n");
    }

    /// A subagent, folded.
    fn agent(&mut self, stream: &Stream<'_>, note: &str) {
        let count = stream.records.iter().filter(|record| record.is_turn()).count();
        self.add("<details class=\"agent\"><summary><span class=\"name\">Subagent ");
        self.say(&visible(stream.name));
        self.add("</span> <span class=\"note\">");
        let notes = [stream.kind.map(visible), Some(counted(count, "turn")), Some(note.to_owned())];
        let notes: Vec<String> = notes.into_iter().flatten().filter(|note| !note.is_empty()).collect();
        self.say(&notes.join(" · "));
        self.add("</span></summary>\n");
        self.stream(stream);
        self.add("</details>\n");
    }

    fn event(&mut self, record: &Recorded) {
        let (line, words) = event(record);
        let kind = serde_json::to_value(record.header.kind).unwrap_or_default();
        let class = format!("event {}", kind.as_str().unwrap_or("other"));
        let id = record.header.seq;
        let clock = format!("<time>{}</time>", escaped(&time(record.header.at.as_str())));
        match words {
            None => {
                self.add(&format!("<p class=\"{class}\" id=\"s{id}\">{clock} <span class=\"what\">"));
                self.say(&line);
                self.add("</span></p>\n");
            }
            Some(words) => {
                let open = if record.header.kind == RecordKind::Prompt { " open" } else { "" };
                self.add(&format!(
                    "<details class=\"{class}\" id=\"s{id}\"{open}><summary>{clock} <span class=\"what\">"
                ));
                self.say(&line);
                self.add("</span></summary><pre class=\"words\">");
                self.say(&words);
                self.add("</pre></details>\n");
            }
        }
    }
}
