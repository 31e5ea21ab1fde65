//! Builds the log record of a turn from the assembled response and its results.

use super::{OpenTurn, ReturnedResult, TurnLogRecord, TurnMemory, outcome};
use plimsoll_domain::Turn;
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::log_line::TokenUsage;
use plimsoll_domain::text::{parse_json_or_null, truncate_end};
use plimsoll_domain::turn::record::EncodingHints;
use plimsoll_domain::turn::{ToolCall, ToolCallOutcome, TurnFailure};
use plimsoll_protocol::transcript::Usage;
use plimsoll_protocol::transcript_content::{ToolResult, ToolResultContent};
use serde_json::{Map, Value, json};

/// The maximum number of characters of a call's result that are copied into the turn's result.
const MAX_PREVIEW_CHARS: usize = 200;

pub(super) fn build_turn_record(
    number: u64,
    open_turn: OpenTurn,
    common_ext: &Map<String, Value>,
    memory: TurnMemory,
) -> TurnLogRecord {
    let (memory, packed_memory) = match memory {
        TurnMemory::Snapshot(memory) => (memory, None),
        TurnMemory::SameAsPreviousTurn(packed_memory) => (Map::new(), Some(packed_memory)),
    };
    let (program, text) = (open_turn.outline.program(), open_turn.outline.joined_text());
    let failure = outcome::classify_turn_failure(&open_turn, &text);
    let calls: Vec<ToolCall> =
        open_turn.outline.calls.iter().map(|call| build_tool_call(call, &open_turn)).collect();
    let outcomes: Vec<ToolCallOutcome> =
        calls.iter().map(build_outcome_with_result_preview_and_hash).collect();
    let full_result_hashes = outcomes.iter().map(|outcome| outcome.full_result_sha256.clone()).collect();
    let encoding_hints = EncodingHints {
        result_hashes: full_result_hashes,
        memory_json: packed_memory,
        is_derived_from_response: true,
    };
    let printed_texts = open_turn
        .outline
        .calls
        .iter()
        .filter_map(|(id, name, _)| {
            stdout_stderr_or_bash_text_if_program_ran(name, &open_turn.results.get(id)?.result)
        })
        .filter(|text| !text.is_empty())
        .collect();
    let mut ext_fields = build_response_ext_fields(&open_turn, open_turn.outline.reasoning());
    ext_fields.extend(common_ext.clone());
    let response_id = open_turn.response.id.clone();
    let tokens = parse_token_usage(&open_turn);
    let reason = failure.as_ref().map(|(reason, _)| *reason);
    let turn = match failure {
        Some((reason, message)) => {
            let failure = TurnFailure { reason, message, calls: outcomes };
            Turn::new_failure(
                number,
                open_turn.blocks,
                program,
                &failure,
                printed_texts,
                calls,
                memory,
                ext_fields,
            )
        }
        None => {
            let result = if calls.is_empty() { json!(text) } else { json!(outcomes) };
            Turn::new_success(
                number,
                open_turn.blocks,
                program,
                result,
                printed_texts,
                calls,
                memory,
                ext_fields,
            )
        }
    };
    TurnLogRecord::Turn {
        turn: Box::new(turn),
        message_id: response_id,
        tokens,
        failure_reason: reason,
        encoding_hints,
    }
}

/// Builds the record of a call with its result and its `ext` fields. A call that has not returned has `ok: false` and a
/// null result.
fn build_tool_call((id, name, args): &(String, String, Value), open_turn: &OpenTurn) -> ToolCall {
    let mut ext = Map::from_iter([("id".to_owned(), json!(id))]);
    let Some(ReturnedResult { result, returned_at: result_time }) = open_turn.results.get(id) else {
        ext.insert("ok".to_owned(), json!(false));
        return ToolCall { name: name.clone(), args: args.clone(), result: Value::Null, ext };
    };
    let is_ok =
        !result.is_error && !result.denied && !result.stopped_by_user && !result.tool_use_result.interrupted;
    let details = &result.tool_use_result;
    let duration_ms = details
        .total_duration_ms
        .or(details.duration_ms)
        .or_else(|| elapsed_ms(&open_turn.first_line_at, result_time.as_str()));
    let optional_fields = [
        ("ok", Some(json!(is_ok))),
        ("duration_ms", duration_ms.map(|duration_ms| json!(duration_ms))),
        ("error", (!is_ok).then(|| json!(truncate_end(&result.content_as_text(), 500)))),
        ("denied", result.denied.then(|| json!(true))),
        ("agent_id", details.agent_id.as_ref().map(|id| json!(id))),
        ("agent_type", details.agent_type.as_ref().map(|agent_type| json!(agent_type))),
    ];
    ext.extend(optional_fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let result = match &result.content {
        Some(ToolResultContent::Parsed(value)) => value.clone(),
        Some(ToolResultContent::Raw(raw)) => parse_json_or_null(raw.get()),
        None => Value::Null,
    };
    ToolCall { name: name.clone(), args: args.clone(), result, ext }
}

/// Summarizes a call with a preview of its result. If that is truncated, the hash of the full text is added.
fn build_outcome_with_result_preview_and_hash(call: &ToolCall) -> ToolCallOutcome {
    let text = call.result_text();
    let preview = truncate_end(&text, MAX_PREVIEW_CHARS);
    let full_text_hash = (preview != text).then(|| sha256_hex(&[text.as_bytes()]));
    ToolCallOutcome {
        id: call.id().to_owned(),
        has_succeeded: call.is_ok(),
        preview,
        full_result_sha256: full_text_hash,
    }
}

/// Returns the output of a command: stdout and stderr if the result has them. The transcript of a subagent and the line of a failed
/// command have neither, so the output of `Bash` is then taken from the text that the model received. Returns `None` otherwise.
fn stdout_stderr_or_bash_text_if_program_ran(tool_name: &str, result: &ToolResult) -> Option<String> {
    let details = &result.tool_use_result;
    if details.stdout.is_some() || details.stderr.is_some() {
        let parts = [details.stdout.as_deref(), details.stderr.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        return Some(parts.join("\n"));
    }
    let text = (tool_name == "Bash").then(|| result.content_as_text())?;
    let first_line = text.lines().next().unwrap_or_default();
    let is_exit_code_line =
        first_line.strip_prefix("Exit code ").is_some_and(|code| code.parse::<i32>().is_ok());
    if is_exit_code_line {
        return Some(text[first_line.len()..].trim_start_matches('\n').to_owned());
    }
    // If the call did not run, the text is a message of the client, not the output of a program.
    (!result.is_error).then_some(text)
}

fn build_response_ext_fields(open_turn: &OpenTurn, reasoning: &str) -> Map<String, Value> {
    let response = &open_turn.response;
    let usage: Option<Value> = response.usage.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let optional_fields = [
        ("message", Some(json!(response.id))),
        ("model", response.model.as_ref().map(|text| json!(text))),
        ("requested_model", response.requested_model.as_ref().map(|text| json!(text))),
        ("stop_reason", response.stop_reason.as_ref().map(|text| json!(text))),
        ("request_id", response.request_id.as_ref().map(|text| json!(text))),
        ("api_error", response.api_error.as_ref().map(|text| json!(text))),
        ("reasoning", Some(json!(reasoning))),
        ("began_at", Some(json!(open_turn.first_line_at))),
        ("usage", usage),
    ];
    optional_fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn parse_token_usage(open_turn: &OpenTurn) -> Option<TokenUsage> {
    let usage: Usage = serde_json::from_str(open_turn.response.usage.as_ref()?.get()).ok()?;
    Some(TokenUsage {
        input: usage.input_tokens.unwrap_or(0),
        cache_read: usage.cache_read_input_tokens.unwrap_or(0),
        cache_creation: usage.cache_creation_input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
    })
}

/// Returns the milliseconds between two times in RFC 3339. Returns `None` if one cannot be parsed or if the second is earlier.
fn elapsed_ms(start: &str, end: &str) -> Option<u64> {
    let parse_time = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    u64::try_from((parse_time(end)? - parse_time(start)?).num_milliseconds()).ok()
}
