//! The lines of `claude -p --output-format stream-json`, and the result among them.

use super::Target;
use crate::seeds::{distinct_lines, read_files};
use crate::spoil::spoil_one_field;
use plimsoll_domain::ProcessExit;
use plimsoll_policy::session_ending::classify_ending;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::stream::StreamLine;

pub(super) const TARGET: Target = Target { name: "stream", check_input, seeds, mutated_input_count: 20_000 };

/// The name of a field, and a function that reads it.
type FieldReader = (&'static str, fn(&ClientResult) -> String);

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = distinct_lines("fixtures/stream", ".jsonl");
    seeds.extend(read_files("fixtures/result", ".json"));
    seeds
}

fn check_input(bytes: &[u8]) {
    let line = StreamLine::parse(bytes);
    match &line {
        StreamLine::Result(result) => check_result(result),
        StreamLine::Assistant { message, .. } | StreamLine::User { message, .. } => {
            for block in message.blocks() {
                let _ = block.result_text();
            }
        }
        _ => {}
    }
    let Some(spoiled) = spoil_one_field(bytes) else { return };
    let (before, after) = (parse_line(&spoiled.original), parse_line(&spoiled.with_bad_field));
    assert_eq!(
        format!("{before:?}"),
        format!("{:?}", parse_line(&spoiled.with_extra_field)),
        "a later client's field"
    );
    if !["type", "subtype"].contains(&spoiled.spoiled_key.as_str()) {
        assert_eq!(
            std::mem::discriminant(&before),
            std::mem::discriminant(&after),
            "{}",
            spoiled.spoiled_key
        );
    }
    if let (StreamLine::Result(before), StreamLine::Result(after)) = (&before, &after) {
        let fields: [FieldReader; 9] = [
            ("is_error", |result| result.is_error.to_string()),
            ("terminal_reason", |result| format!("{:?}", result.terminal_reason)),
            ("api_error_status", |result| format!("{:?}", result.api_error_status)),
            ("result", |result| format!("{:?}", result.result)),
            ("session_id", |result| format!("{:?}", result.session_id)),
            ("total_cost_usd", |result| format!("{:?}", result.total_cost_usd)),
            ("modelUsage", |result| format!("{:?}", result.model_usage)),
            ("permission_denials", |result| format!("{:?}", result.permission_denials)),
            ("errors", |result| format!("{:?}", result.errors)),
        ];
        for (_, field) in fields.iter().filter(|(name, _)| *name != spoiled.spoiled_key) {
            assert_eq!(field(before), field(after), "{} costs only itself", spoiled.spoiled_key);
        }
    }
}

fn parse_line(text: &str) -> StreamLine {
    StreamLine::parse(text.as_bytes())
}

fn check_result(result: &ClientResult) {
    let _ = result.total_tokens();
    for (code, signal) in [(Some(0), None), (Some(1), None), (None, Some(9)), (None, None)] {
        let _ = classify_ending(Some(result), ProcessExit { code, signal });
    }
    let text = result.result.as_deref().unwrap_or_default();
    let _ = plimsoll_policy::reset_clock::parse_reset_time(text);
}
