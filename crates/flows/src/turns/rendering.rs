//! Renders a turn as text for people.

use super::{LoggedRecord, RecordBody};
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
use plimsoll_domain::turn::{ToolCall, Turn};
use plimsoll_store::clock;
use serde_json::Value;

/// The maximum number of characters of a tool result that are shown.
const MAX_RESULT_CHARS: usize = 1_200;

/// Renders a record on one line: the calls and text of a turn, the name of an event, or why there is no content.
pub fn render_summary(record: &LoggedRecord) -> String {
    match &record.body {
        RecordBody::Turn(turn) => summarize_calls_and_text(turn),
        RecordBody::Event(_) => record.header.kind.display_name().to_owned(),
        RecordBody::Erased => "[erased]".to_owned(),
        RecordBody::DecodeError(error) => format!("[{error}]"),
    }
}

/// Returns `ok`, the failure reason, or `?` if the record has neither.
pub fn ok_or_failure_reason(record: &LoggedRecord) -> &'static str {
    match (record.header.succeeded, record.header.failure_reason) {
        (Some(true), _) => "ok",
        (_, Some(reason)) => reason.as_str(),
        _ => "?",
    }
}

/// Renders the calls of a turn and its text on one line.
fn summarize_calls_and_text(turn: &Turn) -> String {
    let calls: Vec<String> =
        turn.tool_calls().iter().map(|tool_call| describe_call(&tool_call.name, &tool_call.args)).collect();
    let text = to_safe_single_line(&turn.joined_text());
    if calls.is_empty() {
        text
    } else if text.is_empty() {
        calls.join(" · ")
    } else {
        format!("{} — {text}", calls.join(" · "))
    }
}

/// Renders a call as its tool name and its most descriptive argument.
pub fn describe_call(name: &str, arguments: &Value) -> String {
    const DESCRIPTIVE_KEYS: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "description", "url", "query", "path", "prompt"];
    let description = DESCRIPTIVE_KEYS.into_iter().find_map(|key| arguments.get(key)?.as_str());
    match description {
        Some(description) => format!("{name}({})", truncate_end(&to_safe_single_line(description), 60)),
        None => name.to_owned(),
    }
}

/// Renders a turn in full, with its results shortened.
pub fn render_turn(record: &LoggedRecord, turn: &Turn) -> String {
    let ext_text = |key: &str| turn.ext().get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    let started_at = clock::parse_timestamp(&record.header.recorded_at)
        .map(clock::format_local_time_with_seconds)
        .unwrap_or_default();
    let iteration = turn.ext().get("iteration").and_then(Value::as_u64);
    let iteration = iteration.map(|number| format!(", session {number}")).unwrap_or_default();
    let mut parts = vec![
        format!(
            "Turn {}   {started_at}   (record {}{iteration})",
            record.short_session_id_and_number(),
            record.header.sequence_number
        ),
        format!("Session  {}, stream {}", record.session_id, record.header.stream),
        format!(
            "Model    {}, stopped for {}, reasoning {}",
            ext_text("model"),
            ext_text("stop_reason"),
            ext_text("reasoning")
        ),
    ];
    if let Some(usage) = record.header.usage {
        let cached_tokens = format_tokens(usage.cache_read);
        parts.push(format!(
            "Tokens   {} input ({cached_tokens} from the cache), {} output",
            format_tokens(usage.total_input()),
            format_tokens(usage.output)
        ));
    }
    if let Some(failure) = turn.parsed_failure() {
        parts.push(format!(
            "Failed   {}: {}",
            failure.reason.as_str(),
            truncate_end(&failure.message, MAX_RESULT_CHARS)
        ));
    }
    let text = turn.joined_text();
    if !text.is_empty() {
        parts.push(format!("\n{text}"));
    }
    parts.extend(turn.tool_calls().iter().map(render_call_with_result));
    parts.join("\n")
}

fn render_call_with_result(call: &ToolCall) -> String {
    let duration_ms = call.ext.get("duration_ms").and_then(Value::as_u64);
    let duration = duration_ms
        .map(|milliseconds| format!(", {:.1} s", milliseconds as f64 / 1_000.0))
        .unwrap_or_default();
    let outcome = if call.is_ok() { "ok" } else { "failed" };
    let agent_id = call.ext.get("agent_id").and_then(Value::as_str);
    let agent_id = agent_id.map(|id| format!(", subagent {id}")).unwrap_or_default();
    let result = call.result_text();
    let shown_result = truncate_end(&result, MAX_RESULT_CHARS);
    let hidden_char_count = result.chars().count().saturating_sub(MAX_RESULT_CHARS);
    let truncation_note = if hidden_char_count > 0 {
        format!("\n  ({hidden_char_count} more characters: --json)")
    } else {
        String::new()
    };
    let indented_result: String = shown_result.lines().map(|line| format!("\n  | {line}")).collect();
    format!(
        "\n→ {}   [{outcome}{duration}{agent_id}]{indented_result}{truncation_note}",
        describe_call(&call.name, &call.args)
    )
}
