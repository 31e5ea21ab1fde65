//! A turn from its lines.

use super::{OpenTurn, Record, Returned, TurnMemory, outcome};
use plimsoll_domain::Turn;
use plimsoll_domain::digest::sha256;
use plimsoll_domain::log_line::Tokens;
use plimsoll_domain::text::{clip, json_value};
use plimsoll_domain::turn::record::Known;
use plimsoll_domain::turn::{CallOutcome, Failure, ToolCall};
use plimsoll_protocol::recording::{Content, ToolResult};
use plimsoll_protocol::transcript::Usage;
use serde_json::{Map, Value, json};

/// How much of what came back is in the result, in letters.
const PREVIEW: usize = 200;

pub(super) fn turn(number: u64, open: OpenTurn, setting: &Map<String, Value>, memory: TurnMemory) -> Record {
    let (memory, packed) = match memory {
        TurnMemory::Whole(memory) => (memory, None),
        TurnMemory::AsBefore(packed) => (Map::new(), Some(packed)),
    };
    let (program, text) = (open.outline.program(), open.outline.text());
    let failure = outcome::failure(&open, &text);
    let calls: Vec<ToolCall> = open.outline.calls.iter().map(|call| tool_call(call, &open)).collect();
    let outcomes: Vec<CallOutcome> = calls.iter().map(call_outcome).collect();
    let results = outcomes.iter().map(|outcome| outcome.blob.clone()).collect();
    let known = Known { results, memory: packed, is_as_outlined: true };
    let prints = open
        .outline
        .calls
        .iter()
        .filter_map(|(id, name, _)| printed(name, &open.results.get(id)?.result))
        .filter(|text| !text.is_empty())
        .collect();
    let mut ext = ext(&open, open.outline.reasoning());
    ext.extend(setting.clone());
    let message = open.answer.id.clone();
    let tokens = tokens(&open);
    let reason = failure.as_ref().map(|(reason, _)| *reason);
    let turn = match failure {
        Some((reason, message)) => {
            let failure = Failure { reason, message, calls: outcomes };
            Turn::failure(number, open.blocks, program, &failure, prints, calls, memory, ext)
        }
        None => {
            let result = if calls.is_empty() { json!(text) } else { json!(outcomes) };
            Turn::success(number, open.blocks, program, result, prints, calls, memory, ext)
        }
    };
    Record::Turn { turn: Box::new(turn), message, tokens, reason, known }
}

fn tool_call((id, name, args): &(String, String, Value), open: &OpenTurn) -> ToolCall {
    let mut ext = Map::from_iter([("id".to_owned(), json!(id))]);
    let Some(Returned { result, at }) = open.results.get(id) else {
        ext.insert("ok".to_owned(), json!(false));
        return ToolCall { name: name.clone(), args: args.clone(), result: Value::Null, ext };
    };
    let is_ok = !result.is_error && !result.denied && !result.stopped && !result.behind.interrupted;
    let behind = &result.behind;
    let took =
        behind.total_duration_ms.or(behind.duration_ms).or_else(|| milliseconds(&open.first_at, at.as_str()));
    let facts = [
        ("ok", Some(json!(is_ok))),
        ("duration_ms", took.map(|took| json!(took))),
        ("error", (!is_ok).then(|| json!(clip(&result.text(), 500)))),
        ("denied", result.denied.then(|| json!(true))),
        ("agent_id", behind.agent_id.as_ref().map(|id| json!(id))),
        ("agent_type", behind.agent_type.as_ref().map(|kind| json!(kind))),
    ];
    ext.extend(facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let result = match &result.content {
        Some(Content::Read(value)) => value.clone(),
        Some(Content::Raw(raw)) => json_value(raw.get()),
        None => Value::Null,
    };
    ToolCall { name: name.clone(), args: args.clone(), result, ext }
}

fn call_outcome(call: &ToolCall) -> CallOutcome {
    let text = call.result_text();
    let preview = clip(&text, PREVIEW);
    let blob = (preview != text).then(|| sha256(&[text.as_bytes()]));
    CallOutcome { id: call.id().to_owned(), ok: call.is_ok(), preview, blob }
}

/// What a command printed. A subagent's transcript, and a failed command's line, hold only what the model got.
fn printed(name: &str, result: &ToolResult) -> Option<String> {
    let behind = &result.behind;
    if behind.stdout.is_some() || behind.stderr.is_some() {
        let parts = [behind.stdout.as_deref(), behind.stderr.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        return Some(parts.join("\n"));
    }
    let text = (name == "Bash").then(|| result.text())?;
    let first = text.lines().next().unwrap_or_default();
    let is_code = first.strip_prefix("Exit code ").is_some_and(|code| code.parse::<i32>().is_ok());
    if is_code {
        return Some(text[first.len()..].trim_start_matches('\n').to_owned());
    }
    // The client's message about a call that did not run was not printed by a program.
    (!result.is_error).then_some(text)
}

fn ext(open: &OpenTurn, reasoning: &str) -> Map<String, Value> {
    let answer = &open.answer;
    let usage: Option<Value> = answer.usage.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let facts = [
        ("message", Some(json!(answer.id))),
        ("model", answer.model.as_ref().map(|text| json!(text))),
        ("requested_model", answer.requested_model.as_ref().map(|text| json!(text))),
        ("stop_reason", answer.stop_reason.as_ref().map(|text| json!(text))),
        ("request_id", answer.request_id.as_ref().map(|text| json!(text))),
        ("api_error", answer.api_error.as_ref().map(|text| json!(text))),
        ("reasoning", Some(json!(reasoning))),
        ("began_at", Some(json!(open.first_at))),
        ("usage", usage),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn tokens(open: &OpenTurn) -> Option<Tokens> {
    let usage: Usage = serde_json::from_str(open.answer.usage.as_ref()?.get()).ok()?;
    Some(Tokens {
        input: usage.input_tokens.unwrap_or(0),
        cache_read: usage.cache_read_input_tokens.unwrap_or(0),
        cache_creation: usage.cache_creation_input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
    })
}

/// From one moment to another, where both can be read.
fn milliseconds(from: &str, to: &str) -> Option<u64> {
    let at = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    u64::try_from((at(to)? - at(from)?).num_milliseconds()).ok()
}
