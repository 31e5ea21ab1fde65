//! Renders a self-contained page that can be read without network access and without scripts. All text of the session is
//! escaped, and the page's content security policy allows only its style sheet and its script, by digest.

mod turn;

use super::exported_session::{AgentStream, ExportedCheckpoint, ExportedSession};
use crate::render::visible::{event_headline_and_text, show_hidden_characters, time_of_day_or_text};
use crate::render::web_page::render_page;
use maud::{Markup, html};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::reading::{WindowSize, rounded_percent};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_flows::turns::LoggedRecord;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

pub(crate) fn render_session_page(session: &ExportedSession) -> String {
    let title = show_hidden_characters(&session.id);
    let main = html! {
        h1 { "Session " span.id { (title) } }
        (render_session_summary(session))
        div #search hidden {
            label { "Search " input #words type="search" autocomplete="off"; }
            output #found {}
            button #open type="button" { "Open all" }
            button #close type="button" { "Close all" }
        }
        section.timeline aria-label="Timeline" {
            @for (stream_index, stream) in session.root_streams_with_subagents().iter().enumerate() {
                @if stream_index > 0 {
                    (render_subagent(stream, "the log does not record who started it"))
                } @else {
                    (render_stream(stream))
                }
            }
        }
        footer { "Exported by Plimsoll from its own turn log." }
    };
    render_page(&format!("Session {title}"), STYLE, Some(SCRIPT), &main)
}

fn render_session_summary(session: &ExportedSession) -> Markup {
    let turns = || session.records.iter().filter(|record| record.is_turn_record());
    let failed_count = turns().filter(|record| record.header.succeeded == Some(false)).count();
    let usages = || session.records.iter().filter_map(|record| record.header.usage);
    let mut summary_entries = vec![
        ("turns", turns().count().to_string()),
        ("failed", failed_count.to_string()),
        ("sent", format_tokens(usages().map(plimsoll_domain::log_line::TokenUsage::total_input).sum())),
        ("answered", format_tokens(usages().map(|usage| usage.output).sum())),
    ];
    summary_entries.extend(render_largest_request(session).map(|peak| ("peak", peak)));
    if !session.checkpoints.is_empty() {
        summary_entries.push((
            "checkpoints",
            session.checkpoints.iter().map(render_checkpoint).collect::<Vec<_>>().join(", "),
        ));
    }
    summary_entries.extend(session.last_model().map(|model| ("model", show_hidden_characters(model))));
    summary_entries.extend(session.last_reported_cost_usd().map(|cost| ("cost", format!("${cost:.4}"))));
    let started_at = session
        .records
        .first()
        .map(|record| record.header.recorded_at.as_str().get(..16).unwrap_or_default());
    summary_entries
        .extend(started_at.map(|timestamp| ("began", show_hidden_characters(&timestamp.replace('T', " ")))));
    html! { dl.facts { @for (name, value) in summary_entries { div { dt { (name) } dd { (value) } } } } }
}

/// Renders the largest request of the main stream in tokens, and its share of the window.
fn render_largest_request(session: &ExportedSession) -> Option<String> {
    let peak_tokens =
        session.main_turns().filter_map(|record| Some(record.header.usage?.total_input())).max()?;
    let share_of_window = |window: &WindowSize| {
        let percent = rounded_percent(peak_tokens, window.tokens)?;
        Some(format!(", {percent}% of {}", format_tokens(window.tokens)))
    };
    let window_share = session.window.as_ref().and_then(share_of_window).unwrap_or_default();
    Some(format!("{}{window_share}", format_tokens(peak_tokens)))
}

fn render_checkpoint(checkpoint: &ExportedCheckpoint) -> String {
    let percent = checkpoint.percent.map(|percent| format!(" {percent}%")).unwrap_or_default();
    format!("{}{percent}", checkpoint.level)
}

fn render_stream(stream: &AgentStream<'_>) -> Markup {
    let is_context = |record: &LoggedRecord| record.header.kind == RecordKind::Context;
    html! {
        @for group in stream.records.chunk_by(|record, next_record| is_context(record) && is_context(next_record)) {
            @if group.len() > 1 {
                (render_context_group(group))
            } @else {
                @for record in group {
                    @if record.is_turn_record() { (turn::render_turn(record, stream)) } @else { (render_non_turn_record(record)) }
                }
            }
        }
    }
}

/// Renders consecutive context records as one collapsed group, because the client adds many of them.
fn render_context_group(records: &[&LoggedRecord]) -> Markup {
    let first_recorded_at = records.first().map_or("", |record| record.header.recorded_at.as_str());
    let names: Vec<String> =
        records.iter().map(|record| event_headline_and_text(record).0.replace("context: ", "")).collect();
    html! {
        details.event.group {
            summary {
                time { (time_of_day_or_text(first_recorded_at)) } " "
                span.what { (count_with_noun(records.len(), "context")) ": " (names.join(", ")) }
            }
            @for record in records { (render_non_turn_record(record)) }
        }
    }
}

/// Renders a subagent's stream, collapsed.
fn render_subagent(stream: &AgentStream<'_>, start_note: &str) -> Markup {
    let turn_count = stream.records.iter().filter(|record| record.is_turn_record()).count();
    let notes = [
        stream.agent_type.map(show_hidden_characters),
        Some(count_with_noun(turn_count, "turn")),
        Some(start_note.to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().filter(|note| !note.is_empty()).collect();
    html! {
        details.agent {
            summary {
                span.name { "Subagent " (show_hidden_characters(stream.name)) } " "
                span.note { (notes.join(" · ")) }
            }
            (render_stream(stream))
        }
    }
}

/// Renders a record that is not a turn.
fn render_non_turn_record(record: &LoggedRecord) -> Markup {
    let (headline_text, body) = event_headline_and_text(record);
    let kind = serde_json::to_value(record.header.kind).unwrap_or_default();
    let kind = kind.as_str().unwrap_or("other");
    let id = format!("s{}", record.header.sequence_number);
    let headline = html! { time { (time_of_day_or_text(record.header.recorded_at.as_str())) } " " span.what { (headline_text) } };
    match body {
        None => html! { p.event.(kind) id=(id) { (headline) } },
        Some(body) => html! {
            details.event.(kind) id=(id) open[record.header.kind == RecordKind::Prompt] {
                summary { (headline) }
                (render_preformatted("words", &body))
            }
        },
    }
}

fn render_preformatted(class: &str, text: &str) -> Markup {
    // An HTML parser drops the first line break of `pre`.
    html! { pre class=(class) { @if text.starts_with('\n') { "\n" } (text) } }
}
