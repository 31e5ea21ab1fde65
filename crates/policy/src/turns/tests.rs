//! Feeds lines in every order in which a client may write them.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use super::{AssembledRecord, EndOfInput, MemoryLookup, TurnAssembler, TurnLogRecord, TurnMemory};

const NONE: MemoryLookup<'static> = MemoryLookup(&|_| TurnMemory::Snapshot(Map::new()));
use plimsoll_protocol::transcript_content::TranscriptLine;
use serde_json::{Map, Value, json};

const AT: &str = "2026-01-07T12:00:00Z";

/// Returns a line of a response with one block; an empty stop reason stands for none.
fn response_line(id: &str, stop: &str, block: Value) -> Value {
    let stop = if stop.is_empty() { Value::Null } else { json!(stop) };
    json!({"type": "assistant", "timestamp": AT,
        "message": {"id": id, "stop_reason": stop, "content": [block], "usage": {"output_tokens": 1}}})
}

fn text_line(id: &str, stop: &str) -> Value {
    response_line(id, stop, json!({"type": "text", "text": "words"}))
}

fn call_line(id: &str, stop: &str, call_id: &str) -> Value {
    response_line(
        id,
        stop,
        json!({"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": call_id}}),
    )
}

fn result_line(call_id: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call_id, "content": "out"});
    json!({"type": "user", "timestamp": AT, "message": {"content": [block]}})
}

/// Returns the line of a failed result, with additional fields.
fn failed_result_line(call_id: &str, message: &str, line_fields: Value) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call_id, "content": message, "is_error": true});
    let mut transcript_line = json!({"type": "user", "timestamp": AT, "message": {"content": [block]}});
    transcript_line.as_object_mut().unwrap().extend(line_fields.as_object().unwrap().clone());
    transcript_line
}

fn prompt_line(text: &str) -> Value {
    json!({"type": "user", "timestamp": AT, "message": {"content": text}})
}

fn context_line() -> Value {
    json!({"type": "attachment", "timestamp": AT, "attachment": {"type": "date"}, "rendered": [{"content": "x"}]})
}

fn other_line() -> Value {
    json!({"type": "last-prompt"})
}

/// Renders a record: `1 m1 2/1 ok` is turn 1 of message m1 with two blocks and one result; an event is its kind.
fn render_record(record: &AssembledRecord) -> String {
    match &record.record {
        TurnLogRecord::Event { kind, .. } => kind.display_name().to_owned(),
        TurnLogRecord::Turn { turn, message_id: message, failure_reason: reason, .. } => {
            let returned_count = turn.tool_calls().iter().filter(|call| !call.result.is_null()).count();
            let reason = reason.map_or("ok", plimsoll_domain::turn::FailureReason::as_str);
            format!("{} {message} {}/{returned_count} {reason}", turn.number(), turn.raw_response().len())
        }
    }
}

fn feed_lines(assembler: &mut TurnAssembler<'_>, lines: &[Value]) -> Vec<AssembledRecord> {
    let mut records = Vec::new();
    let mut end_offset = assembler.read_offset();
    for line in lines {
        end_offset += 10;
        assembler.feed_line(TranscriptLine::parse_utf8_lossy(line.to_string().as_bytes()), end_offset);
        records.extend(assembler.take_finished_records());
    }
    records
}

fn assert_records(lines: &[Value], closing: EndOfInput<'_>, expected: &[&str]) -> Vec<AssembledRecord> {
    let mut assembler = TurnAssembler::resume_after_turn(0, "", 0, Map::new(), NONE);
    let mut records = feed_lines(&mut assembler, lines);
    assembler.finish_input(closing);
    records.extend(assembler.take_finished_records());
    assert_eq!(records.iter().map(render_record).collect::<Vec<_>>(), expected);
    let reads: Vec<u64> = records.iter().map(|record| record.read_offset).collect();
    assert!(reads.is_sorted() && reads.iter().all(|read| *read <= assembler.read_offset()), "{reads:?}");
    // Stopping after any line and continuing from the last record, as the log does, loses and repeats nothing.
    for cut in 0..lines.len() {
        assert_eq!(assemble_in_two_parts(lines, cut, closing), expected, "cut after {cut} lines");
    }
    records
}

fn assemble_in_two_parts(lines: &[Value], cut: usize, closing: EndOfInput<'_>) -> Vec<String> {
    let mut first = TurnAssembler::resume_after_turn(0, "", 0, Map::new(), NONE);
    let mut records = feed_lines(&mut first, &lines[..cut]);
    let (mut read_offset, mut turn_number, mut message_id) = (0, 0, String::new());
    for record in &records {
        read_offset = record.read_offset;
        if let TurnLogRecord::Turn { turn, message_id: id, .. } = &record.record {
            (turn_number, message_id) = (turn.number(), id.clone());
        }
    }
    let mut second =
        TurnAssembler::resume_after_turn(turn_number, &message_id, read_offset, Map::new(), NONE);
    records.extend(feed_lines(&mut second, &lines[usize::try_from(read_offset / 10).unwrap()..]));
    second.finish_input(closing);
    records.extend(second.take_finished_records());
    records.iter().map(render_record).collect()
}

const MORE_MAY_FOLLOW: EndOfInput<'_> = EndOfInput::MoreMayFollow;
const COMPLETE: EndOfInput<'_> = EndOfInput::Complete;

#[test]
fn the_lines_of_one_message_form_one_turn_in_any_order() {
    let tool = "tool_use";
    assert_records(&[text_line("m1", "end_turn")], MORE_MAY_FOLLOW, &[]);
    assert_records(&[text_line("m1", "end_turn")], COMPLETE, &["1 m1 1/0 ok"]);
    assert_records(&[text_line("m1", "end_turn"), other_line()], MORE_MAY_FOLLOW, &["1 m1 1/0 ok"]);
    let two_calls = [
        text_line("m1", tool),
        call_line("m1", tool, "a"),
        call_line("m1", tool, "b"),
        result_line("b"),
        result_line("a"),
    ];
    assert_records(&two_calls, MORE_MAY_FOLLOW, &[]);
    assert_records(&two_calls, EndOfInput::BatchReturned(&["a", "b"]), &["1 m1 3/2 ok"]);
    assert_records(&two_calls[..4], EndOfInput::BatchReturned(&["a", "b"]), &[]);
    assert_records(&two_calls[..4], COMPLETE, &["1 m1 3/1 abandoned"]);
    // The result of the first call is written before the second call of the same message.
    let early_result = [
        call_line("m1", tool, "a"),
        result_line("a"),
        call_line("m1", tool, "b"),
        result_line("b"),
        other_line(),
    ];
    assert_records(&early_result, MORE_MAY_FOLLOW, &["1 m1 2/2 ok"]);
    // Another line between a response that stopped for a tool and its call does not close the turn.
    assert_records(
        &[text_line("m1", tool), other_line(), call_line("m1", tool, "a"), result_line("a"), other_line()],
        MORE_MAY_FOLLOW,
        &["1 m1 2/1 ok"],
    );
    assert_records(
        &[text_line("m1", "end_turn"), text_line("m2", "end_turn")],
        COMPLETE,
        &["1 m1 1/0 ok", "2 m2 1/0 ok"],
    );
}

#[test]
fn events_come_after_the_turn_that_was_open_when_they_were_written() {
    let tool = "tool_use";
    let lines = [
        prompt_line("go"),
        call_line("m1", tool, "a"),
        context_line(),
        prompt_line("more"),
        result_line("a"),
        text_line("m2", "end_turn"),
    ];
    assert_records(&lines, COMPLETE, &["prompt", "1 m1 1/1 ok", "context", "prompt", "2 m2 1/0 ok"]);
    assert_records(
        &[text_line("m1", "end_turn"), prompt_line("more")],
        MORE_MAY_FOLLOW,
        &["1 m1 1/0 ok", "prompt"],
    );
}

#[test]
fn a_line_after_its_turn_was_closed_becomes_a_late_record() {
    let late =
        [text_line("m1", "end_turn"), other_line(), text_line("m1", "end_turn"), text_line("m2", "end_turn")];
    assert_records(&late, COMPLETE, &["1 m1 1/0 ok", "late content", "2 m2 1/0 ok"]);
    let later = [call_line("m1", "tool_use", "a"), text_line("m2", "end_turn"), result_line("a")];
    assert_records(&later, COMPLETE, &["1 m1 1/0 abandoned", "2 m2 1/0 ok", "late content"]);
    assert_records(&[result_line("unknown")], COMPLETE, &["late content"]);
}

/// Holds only within one pass: the log stores the last message of a stream, not earlier ones.
#[test]
fn a_late_line_neither_starts_a_second_turn_nor_closes_the_open_one() {
    let lines = [
        text_line("m1", "end_turn"),
        call_line("m2", "tool_use", "a"),
        text_line("m1", "end_turn"),
        result_line("a"),
        other_line(),
    ];
    let mut assembler = TurnAssembler::resume_after_turn(0, "", 0, Map::new(), NONE);
    let records = feed_lines(&mut assembler, &lines);
    assert_eq!(
        records.iter().map(render_record).collect::<Vec<_>>(),
        ["1 m1 1/0 ok", "2 m2 1/1 ok", "late content"]
    );
}

#[test]
fn the_last_usage_wins_and_counts_once() {
    let with_usage = |mut line: Value, input: u64, output: u64| {
        line["message"]["usage"] = json!({
            "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": null,
        });
        line
    };
    let lines = [
        with_usage(text_line("m1", ""), 5, 1),
        with_usage(text_line("m1", ""), 5, 2),
        with_usage(text_line("m1", "end_turn"), 6, 30),
    ];
    let records = assert_records(&lines, COMPLETE, &["1 m1 3/0 ok"]);
    let TurnLogRecord::Turn { tokens: Some(tokens), turn, .. } = &records[0].record else {
        panic!("{records:?}")
    };
    assert_eq!((tokens.total_input(), tokens.output, tokens.cache_creation), (13, 30, 0));
    assert_eq!(turn.ext()["usage"]["output_tokens"], 30);
}

#[test]
fn without_a_stop_reason_the_next_message_closes_a_turn() {
    let lines = [call_line("m1", "", "a"), result_line("a"), prompt_line("more"), text_line("m2", "")];
    assert_records(&lines, MORE_MAY_FOLLOW, &["1 m1 1/1 ok", "prompt"]);
    assert_records(&lines, COMPLETE, &["1 m1 1/1 ok", "prompt", "2 m2 1/0 ok"]);
}

#[test]
fn the_failure_reason_is_recognized_by_the_clients_message() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected";
    let rejected = |source: &str| json!({"permissionDecision": {"decision": "reject", "source": source}});
    let by_person = json!({"toolDenialKind": "user-rejected"});
    let before = json!({"toolDenialKind": "user-rejected", "toolDenialBeforeRun": true});
    let cases = [
        (failed_result_line("a", "Exit code 1", json!({})), "tool_error"),
        (
            failed_result_line("a", "Claude requested permissions to write to x", rejected("config")),
            "tool_denied",
        ),
        (failed_result_line("a", "PreToolUse:Bash hook error: no", rejected("hook")), "hook_blocked"),
        (failed_result_line("a", "PreToolUse:Bash hook error: no", json!({})), "hook_blocked"),
        (failed_result_line("a", "Error: No such tool available: X", json!({})), "unknown_tool"),
        (failed_result_line("a", "InputValidationError: Read failed", json!({})), "parse_error"),
        (failed_result_line("a", refusal, before), "tool_denied"),
        (failed_result_line("a", refusal, json!({})), "tool_denied"),
        (failed_result_line("a", refusal, by_person), "interrupted"),
        (
            failed_result_line("a", "", json!({"toolUseResult": {"stdout": "half", "interrupted": true}})),
            "interrupted",
        ),
    ];
    for (result, reason) in cases {
        let lines = [call_line("m1", "tool_use", "a"), result, other_line()];
        assert_records(&lines, MORE_MAY_FOLLOW, &[&format!("1 m1 1/1 {reason}")]);
    }
    for (stop, reason) in [
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "ok"),
        ("stop_sequence", "ok"),
        ("model_context_window_exceeded", "max_tokens"),
        ("of_a_later_time", "api_error"),
    ] {
        assert_records(
            &[text_line("m1", stop), other_line()],
            MORE_MAY_FOLLOW,
            &[&format!("1 m1 1/0 {reason}")],
        );
    }
    let stopped =
        [call_line("m1", "tool_use", "a"), prompt_line("[Request interrupted by user for tool use]")];
    assert_records(&stopped, COMPLETE, &["1 m1 1/0 interrupted", "prompt"]);
    let mut aborted = text_line("m1", "");
    aborted["isAbortedMidStream"] = json!(true);
    let stopped = [aborted, prompt_line("[Request interrupted by user]")];
    assert_records(&stopped, MORE_MAY_FOLLOW, &["1 m1 1/0 interrupted", "prompt"]);
}

#[test]
fn an_api_error_is_a_failed_turn() {
    let mut line = text_line("m1", "stop_sequence");
    line["isApiErrorMessage"] = json!(true);
    line["error"] = json!("server_error");
    let records = assert_records(&[line, other_line()], MORE_MAY_FOLLOW, &["1 m1 1/0 api_error"]);
    let TurnLogRecord::Turn { turn, .. } = &records[0].record else { panic!("{records:?}") };
    assert_eq!(turn.parsed_failure().map(|failure| failure.message).as_deref(), Some("words"));
}

#[test]
fn the_result_of_a_server_tool_is_in_its_message() {
    let call = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}});
    let result =
        |content: Value| json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": content});
    let error = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    for (content, word) in [(json!([{"type": "text", "text": "found"}]), "ok"), (error, "tool_error")] {
        let lines = [
            response_line("m1", "end_turn", call.clone()),
            response_line("m1", "end_turn", result(content)),
            other_line(),
        ];
        assert_records(&lines, MORE_MAY_FOLLOW, &[&format!("1 m1 2/1 {word}")]);
    }
}

#[test]
fn arc_010_the_turn_states_how_much_reasoning_it_contains() {
    let thinking = |words: &str| json!({"type": "thinking", "thinking": words, "signature": "s"});
    let redacted = json!({"type": "redacted_thinking", "data": "x"});
    for (block, word) in [(thinking("I think."), "full"), (thinking(""), "omitted"), (redacted, "redacted")] {
        let records = assert_records(
            &[response_line("m1", "", block), text_line("m1", "end_turn")],
            COMPLETE,
            &["1 m1 2/0 ok"],
        );
        let TurnLogRecord::Turn { turn, .. } = &records[0].record else { panic!("{records:?}") };
        assert_eq!(turn.ext()["reasoning"], word);
    }
}
