//! One self-contained page: no network, no script to read it. Every word of the session is escaped, and
//! the page's own policy lets nothing in but its own style and its one script, by its digest.

mod turn;

use super::exported::{Checkpoint, Exported, Stream};
use crate::render::visible::{event, time, visible};
use crate::render::web_page::document;
use maud::{Markup, html};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::reading::{Window, percent};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_flows::turns::Recorded;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

pub(crate) fn render(exported: &Exported) -> String {
    let title = visible(&exported.id);
    let main = html! {
        h1 { "Session " span.id { (title) } }
        (facts(exported))
        div #search hidden {
            label { "Search " input #words type="search" autocomplete="off"; }
            output #found {}
            button #open type="button" { "Open all" }
            button #close type="button" { "Close all" }
        }
        section.timeline aria-label="Timeline" {
            @for (place, stream) in exported.streams().iter().enumerate() {
                @if place > 0 {
                    (agent(stream, "who started it is not in the log"))
                } @else {
                    (entries(stream))
                }
            }
        }
        footer { "Exported by Plimsoll from its own turn log." }
    };
    document(&format!("Session {title}"), STYLE, Some(SCRIPT), &main)
}

fn facts(exported: &Exported) -> Markup {
    let turns = || exported.records.iter().filter(|record| record.is_turn());
    let failed = turns().filter(|record| record.header.success == Some(false)).count();
    let usages = || exported.records.iter().filter_map(|record| record.header.usage);
    let mut facts = vec![
        ("turns", turns().count().to_string()),
        ("failed", failed.to_string()),
        ("sent", tokens(usages().map(plimsoll_domain::log_line::Tokens::sent).sum())),
        ("answered", tokens(usages().map(|usage| usage.output).sum())),
    ];
    facts.extend(peak(exported).map(|peak| ("peak", peak)));
    if !exported.checkpoints.is_empty() {
        facts.push((
            "checkpoints",
            exported.checkpoints.iter().map(checkpoint).collect::<Vec<_>>().join(", "),
        ));
    }
    facts.extend(exported.model().map(|model| ("model", visible(model))));
    facts.extend(exported.cost().map(|cost| ("cost", format!("${cost:.4}"))));
    let began =
        exported.records.first().map(|record| record.header.at.as_str().get(..16).unwrap_or_default());
    facts.extend(began.map(|at| ("began", visible(&at.replace('T', " ")))));
    html! { dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } } }
}

/// The largest request of the session's own stream, and its share of the window.
fn peak(exported: &Exported) -> Option<String> {
    let peak = exported.main_turns().filter_map(|record| Some(record.header.usage?.sent())).max()?;
    let of = |window: &Window| {
        let percent = percent(peak, window.tokens)?;
        Some(format!(", {percent} % of {}", tokens(window.tokens)))
    };
    let of_window = exported.window.as_ref().and_then(of).unwrap_or_default();
    Some(format!("{}{of_window}", tokens(peak)))
}

fn checkpoint(checkpoint: &Checkpoint) -> String {
    let percent = checkpoint.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
    format!("{}{percent}", checkpoint.level)
}

fn entries(stream: &Stream<'_>) -> Markup {
    let is_context = |record: &Recorded| record.header.kind == RecordKind::Context;
    html! {
        @for run in stream.records.chunk_by(|one, next| is_context(one) && is_context(next)) {
            @if run.len() > 1 {
                (contexts(run))
            } @else {
                @for record in run {
                    @if record.is_turn() { (turn::render(record, stream)) } @else { (other(record)) }
                }
            }
        }
    }
}

/// What the client adds for the model comes in heaps.
fn contexts(run: &[&Recorded]) -> Markup {
    let at = run.first().map_or("", |record| record.header.at.as_str());
    let names: Vec<String> = run.iter().map(|record| event(record).0.replace("context: ", "")).collect();
    html! {
        details.event.group {
            summary {
                time { (time(at)) } " "
                span.what { (counted(run.len(), "context")) ": " (names.join(", ")) }
            }
            @for record in run { (other(record)) }
        }
    }
}

/// A subagent, folded.
fn agent(stream: &Stream<'_>, note: &str) -> Markup {
    let count = stream.records.iter().filter(|record| record.is_turn()).count();
    let notes = [stream.kind.map(visible), Some(counted(count, "turn")), Some(note.to_owned())];
    let notes: Vec<String> = notes.into_iter().flatten().filter(|note| !note.is_empty()).collect();
    html! {
        details.agent {
            summary {
                span.name { "Subagent " (visible(stream.name)) } " "
                span.note { (notes.join(" · ")) }
            }
            (entries(stream))
        }
    }
}

/// What is no turn.
fn other(record: &Recorded) -> Markup {
    let (line, words) = event(record);
    let kind = serde_json::to_value(record.header.kind).unwrap_or_default();
    let kind = kind.as_str().unwrap_or("other");
    let id = format!("s{}", record.header.seq);
    let headline = html! { time { (time(record.header.at.as_str())) } " " span.what { (line) } };
    match words {
        None => html! { p.event.(kind) id=(id) { (headline) } },
        Some(words) => html! {
            details.event.(kind) id=(id) open[record.header.kind == RecordKind::Prompt] {
                summary { (headline) }
                (pre("words", &words))
            }
        },
    }
}

fn pre(class: &str, text: &str) -> Markup {
    // The parser takes a first line break for its own.
    html! { pre class=(class) { @if text.starts_with('\n') { "\n" } (text) } }
}
