//! A turn in words.

use super::{Body, Recorded};
use plimsoll_domain::text::{clip, one_line, tokens};
use plimsoll_domain::turn::{ToolCall, Turn};
use plimsoll_store::clock;
use serde_json::Value;

/// How many letters of what came back are shown at most.
const RESULT: usize = 1_200;

/// Its calls with what they are about, or its words.
pub fn what(recorded: &Recorded) -> String {
    match &recorded.body {
        Body::Turn(turn) => summary(turn),
        Body::Event(_) => recorded.header.kind.word().to_owned(),
        Body::Erased => "[erased]".to_owned(),
        Body::DecodeError(why) => format!("[{why}]"),
    }
}

/// How it ended, in a word.
pub fn outcome(recorded: &Recorded) -> &'static str {
    match (recorded.header.success, recorded.header.reason) {
        (Some(true), _) => "ok",
        (_, Some(reason)) => reason.word(),
        _ => "?",
    }
}

/// The calls with what they are about; else the words.
fn summary(turn: &Turn) -> String {
    let calls: Vec<String> = turn.tool_calls().iter().map(|call| about(&call.name, &call.args)).collect();
    let text = one_line(&turn.text());
    if calls.is_empty() {
        text
    } else if text.is_empty() {
        calls.join(" · ")
    } else {
        format!("{} — {text}", calls.join(" · "))
    }
}

/// A call in a few words.
pub fn about(name: &str, args: &Value) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "pattern", "description", "url", "query", "path", "prompt"];
    let description = TELLING.into_iter().find_map(|key| args.get(key)?.as_str());
    match description {
        Some(words) => format!("{name}({})", clip(&one_line(words), 60)),
        None => name.to_owned(),
    }
}

/// The turn, with its results shortened.
pub fn whole(found: &Recorded, turn: &Turn) -> String {
    let fact = |key: &str| turn.ext().get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    let at = clock::moment(&found.header.at).map(clock::for_people).unwrap_or_default();
    let iteration = turn.ext().get("iteration").and_then(Value::as_u64);
    let iteration = iteration.map(|number| format!(", iteration {number}")).unwrap_or_default();
    let mut parts = vec![
        format!("Turn {}   {at}   (record {}{iteration})", found.name(), found.header.seq),
        format!("Session  {}, stream {}", found.session_id, found.header.stream),
        format!(
            "Model    {}, stopped for {}, reasoning {}",
            fact("model"),
            fact("stop_reason"),
            fact("reasoning")
        ),
    ];
    if let Some(usage) = found.header.usage {
        let cached = tokens(usage.cache_read);
        parts.push(format!(
            "Tokens   {} input ({cached} from the cache), {} output",
            tokens(usage.sent()),
            tokens(usage.output)
        ));
    }
    if let Some(failure) = turn.failure_of() {
        parts.push(format!("Failed   {}: {}", failure.reason.word(), clip(&failure.message, RESULT)));
    }
    let text = turn.text();
    if !text.is_empty() {
        parts.push(format!("\n{text}"));
    }
    parts.extend(turn.tool_calls().iter().map(call));
    parts.join("\n")
}

fn call(call: &ToolCall) -> String {
    let took = call.ext.get("duration_ms").and_then(Value::as_u64);
    let took = took.map(|took| format!(", {:.1} s", took as f64 / 1_000.0)).unwrap_or_default();
    let outcome = if call.is_ok() { "ok" } else { "failed" };
    let agent = call.ext.get("agent_id").and_then(Value::as_str);
    let agent = agent.map(|id| format!(", subagent {id}")).unwrap_or_default();
    let result = call.result_text();
    let shown = clip(&result, RESULT);
    let more = result.chars().count().saturating_sub(RESULT);
    let more = if more > 0 { format!("\n  ({more} more characters: --json)") } else { String::new() };
    let body: String = shown.lines().map(|line| format!("\n  | {line}")).collect();
    format!("\n→ {}   [{outcome}{took}{agent}]{body}{more}", about(&call.name, &call.args))
}
