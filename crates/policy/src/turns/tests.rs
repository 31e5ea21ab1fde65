//! Lines in every order in which a client may write them.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use super::{AssembledRecord, Assembler, EndOfInput, Record, Remembered, TurnMemory};

const NONE: Remembered<'static> = Remembered(&|_| TurnMemory::Whole(Map::new()));
use plimsoll_protocol::recording::TranscriptLine;
use serde_json::{Map, Value, json};

const AT: &str = "2026-01-07T12:00:00Z";

/// A line of a response: message, stop reason (empty: none), its block.
fn says(id: &str, stop: &str, block: Value) -> Value {
    let stop = if stop.is_empty() { Value::Null } else { json!(stop) };
    json!({"type": "assistant", "timestamp": AT,
        "message": {"id": id, "stop_reason": stop, "content": [block], "usage": {"output_tokens": 1}}})
}

fn text(id: &str, stop: &str) -> Value {
    says(id, stop, json!({"type": "text", "text": "words"}))
}

fn call(id: &str, stop: &str, call: &str) -> Value {
    says(id, stop, json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}}))
}

fn back(call: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": "out"});
    json!({"type": "user", "timestamp": AT, "message": {"content": [block]}})
}

/// A result with these fields of its line and block.
fn failed(call: &str, words: &str, line: Value) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": words, "is_error": true});
    let mut all = json!({"type": "user", "timestamp": AT, "message": {"content": [block]}});
    all.as_object_mut().unwrap().extend(line.as_object().unwrap().clone());
    all
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "timestamp": AT, "message": {"content": text}})
}

fn context() -> Value {
    json!({"type": "attachment", "timestamp": AT, "attachment": {"type": "date"}, "rendered": [{"content": "x"}]})
}

fn other() -> Value {
    json!({"type": "last-prompt"})
}

/// `1 m1 2/1 ok` is turn 1 of message m1 with two blocks and one result; events are their words.
fn word(made: &AssembledRecord) -> String {
    match &made.what {
        Record::Event { kind, .. } => kind.word().to_owned(),
        Record::Turn { turn, message, reason, .. } => {
            let back = turn.tool_calls().iter().filter(|call| !call.result.is_null()).count();
            let reason = reason.map_or("ok", plimsoll_domain::turn::Reason::word);
            format!("{} {message} {}/{back} {reason}", turn.number(), turn.raw_response().len())
        }
    }
}

fn feed(assembler: &mut Assembler<'_>, lines: &[Value]) -> Vec<AssembledRecord> {
    let mut made = Vec::new();
    let mut to = assembler.read();
    for line in lines {
        to += 10;
        assembler.feed(TranscriptLine::parse(line.to_string().as_bytes()), to);
        made.extend(assembler.take());
    }
    made
}

fn check(lines: &[Value], closing: EndOfInput<'_>, expected: &[&str]) -> Vec<AssembledRecord> {
    let mut assembler = Assembler::after(0, "", 0, Map::new(), NONE);
    let mut made = feed(&mut assembler, lines);
    assembler.settle(closing);
    made.extend(assembler.take());
    assert_eq!(made.iter().map(word).collect::<Vec<_>>(), expected);
    let reads: Vec<u64> = made.iter().map(|made| made.read).collect();
    assert!(reads.is_sorted() && reads.iter().all(|read| *read <= assembler.read()), "{reads:?}");
    // Cut anywhere and read on from what is safe, as a log does: nothing is lost, nothing comes twice.
    for cut in 0..lines.len() {
        assert_eq!(in_two(lines, cut, closing), expected, "cut after {cut} lines");
    }
    made
}

fn in_two(lines: &[Value], cut: usize, closing: EndOfInput<'_>) -> Vec<String> {
    let mut first = Assembler::after(0, "", 0, Map::new(), NONE);
    let mut made = feed(&mut first, &lines[..cut]);
    let (mut read, mut number, mut message) = (0, 0, String::new());
    for made in &made {
        read = made.read;
        if let Record::Turn { turn, message: id, .. } = &made.what {
            (number, message) = (turn.number(), id.clone());
        }
    }
    let mut second = Assembler::after(number, &message, read, Map::new(), NONE);
    made.extend(feed(&mut second, &lines[usize::try_from(read / 10).unwrap()..]));
    second.settle(closing);
    made.extend(second.take());
    made.iter().map(word).collect()
}

const OPEN: EndOfInput<'_> = EndOfInput::Open;
const OVER: EndOfInput<'_> = EndOfInput::Over;

#[test]
fn the_lines_of_one_message_are_one_turn_in_whatever_order_they_come() {
    let tool = "tool_use";
    check(&[text("m1", "end_turn")], OPEN, &[]);
    check(&[text("m1", "end_turn")], OVER, &["1 m1 1/0 ok"]);
    check(&[text("m1", "end_turn"), other()], OPEN, &["1 m1 1/0 ok"]);
    let plain = [text("m1", tool), call("m1", tool, "a"), call("m1", tool, "b"), back("b"), back("a")];
    check(&plain, OPEN, &[]);
    check(&plain, EndOfInput::Batch(&["a", "b"]), &["1 m1 3/2 ok"]);
    check(&plain[..4], EndOfInput::Batch(&["a", "b"]), &[]);
    check(&plain[..4], OVER, &["1 m1 3/1 abandoned"]);
    // A result before a later block of its message.
    let early = [call("m1", tool, "a"), back("a"), call("m1", tool, "b"), back("b"), other()];
    check(&early, OPEN, &["1 m1 2/2 ok"]);
    // A line without an end says nothing about later calls.
    check(&[text("m1", tool), other(), call("m1", tool, "a"), back("a"), other()], OPEN, &["1 m1 2/1 ok"]);
    check(&[text("m1", "end_turn"), text("m2", "end_turn")], OVER, &["1 m1 1/0 ok", "2 m2 1/0 ok"]);
}

#[test]
fn events_come_after_the_turn_that_was_open_when_they_were_written() {
    let tool = "tool_use";
    let lines =
        [prompt("go"), call("m1", tool, "a"), context(), prompt("more"), back("a"), text("m2", "end_turn")];
    check(&lines, OVER, &["prompt", "1 m1 1/1 ok", "context", "prompt", "2 m2 1/0 ok"]);
    check(&[text("m1", "end_turn"), prompt("more")], OPEN, &["1 m1 1/0 ok", "prompt"]);
}

#[test]
fn what_comes_after_its_turn_was_closed_is_kept_and_changes_nothing() {
    let late = [text("m1", "end_turn"), other(), text("m1", "end_turn"), text("m2", "end_turn")];
    check(&late, OVER, &["1 m1 1/0 ok", "late words", "2 m2 1/0 ok"]);
    let later = [call("m1", "tool_use", "a"), text("m2", "end_turn"), back("a")];
    check(&later, OVER, &["1 m1 1/0 abandoned", "2 m2 1/0 ok", "late words"]);
    check(&[back("unknown")], OVER, &["late words"]);
}

/// Only within one reading: the log remembers the last message of a stream, not those before.
#[test]
fn a_late_line_neither_makes_a_second_turn_of_its_message_nor_ends_another() {
    let lines =
        [text("m1", "end_turn"), call("m2", "tool_use", "a"), text("m1", "end_turn"), back("a"), other()];
    let mut assembler = Assembler::after(0, "", 0, Map::new(), NONE);
    let made = feed(&mut assembler, &lines);
    assert_eq!(made.iter().map(word).collect::<Vec<_>>(), ["1 m1 1/0 ok", "2 m2 1/1 ok", "late words"]);
}

#[test]
fn the_last_usage_wins_and_counts_once() {
    let with = |mut line: Value, input: u64, output: u64| {
        line["message"]["usage"] = json!({
            "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": null,
        });
        line
    };
    let lines = [with(text("m1", ""), 5, 1), with(text("m1", ""), 5, 2), with(text("m1", "end_turn"), 6, 30)];
    let made = check(&lines, OVER, &["1 m1 3/0 ok"]);
    let Record::Turn { tokens: Some(tokens), turn, .. } = &made[0].what else { panic!("{made:?}") };
    assert_eq!((tokens.sent(), tokens.output, tokens.cache_creation), (13, 30, 0));
    assert_eq!(turn.ext()["usage"]["output_tokens"], 30);
}

#[test]
fn a_client_that_gives_no_stop_reason_closes_a_turn_with_the_next() {
    let lines = [call("m1", "", "a"), back("a"), prompt("more"), text("m2", "")];
    check(&lines, OPEN, &["1 m1 1/1 ok", "prompt"]);
    check(&lines, OVER, &["1 m1 1/1 ok", "prompt", "2 m2 1/0 ok"]);
}

#[test]
fn how_it_went_is_told_by_the_client_s_words() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected";
    let rejected = |source: &str| json!({"permissionDecision": {"decision": "reject", "source": source}});
    let by_person = json!({"toolDenialKind": "user-rejected"});
    let before = json!({"toolDenialKind": "user-rejected", "toolDenialBeforeRun": true});
    let cases = [
        (failed("a", "Exit code 1", json!({})), "tool_error"),
        (failed("a", "Claude requested permissions to write to x", rejected("config")), "tool_denied"),
        (failed("a", "PreToolUse:Bash hook error: no", rejected("hook")), "hook_blocked"),
        (failed("a", "PreToolUse:Bash hook error: no", json!({})), "hook_blocked"),
        (failed("a", "Error: No such tool available: X", json!({})), "unknown_tool"),
        (failed("a", "InputValidationError: Read failed", json!({})), "parse_error"),
        (failed("a", refusal, before), "tool_denied"),
        (failed("a", refusal, json!({})), "tool_denied"),
        (failed("a", refusal, by_person), "interrupted"),
        (failed("a", "", json!({"toolUseResult": {"stdout": "half", "interrupted": true}})), "interrupted"),
    ];
    for (result, reason) in cases {
        let lines = [call("m1", "tool_use", "a"), result, other()];
        check(&lines, OPEN, &[&format!("1 m1 1/1 {reason}")]);
    }
    for (stop, reason) in [
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "ok"),
        ("stop_sequence", "ok"),
        ("model_context_window_exceeded", "max_tokens"),
        ("of_a_later_time", "api_error"),
    ] {
        check(&[text("m1", stop), other()], OPEN, &[&format!("1 m1 1/0 {reason}")]);
    }
    let stopped = [call("m1", "tool_use", "a"), prompt("[Request interrupted by user for tool use]")];
    check(&stopped, OVER, &["1 m1 1/0 interrupted", "prompt"]);
    let mut beginning = text("m1", "");
    beginning["isAbortedMidStream"] = json!(true);
    let stopped = [beginning, prompt("[Request interrupted by user]")];
    check(&stopped, OPEN, &["1 m1 1/0 interrupted", "prompt"]);
}

#[test]
fn an_error_of_the_api_is_a_failed_turn() {
    let mut line = text("m1", "stop_sequence");
    line["isApiErrorMessage"] = json!(true);
    line["error"] = json!("server_error");
    let made = check(&[line, other()], OPEN, &["1 m1 1/0 api_error"]);
    let Record::Turn { turn, .. } = &made[0].what else { panic!("{made:?}") };
    assert_eq!(turn.failure_of().map(|failure| failure.message).as_deref(), Some("words"));
}

#[test]
fn a_tool_that_runs_at_the_api_has_returned_within_its_message() {
    let asked = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}});
    let came =
        |content: Value| json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": content});
    let error = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    for (content, word) in [(json!([{"type": "text", "text": "found"}]), "ok"), (error, "tool_error")] {
        let lines = [says("m1", "end_turn", asked.clone()), says("m1", "end_turn", came(content)), other()];
        check(&lines, OPEN, &[&format!("1 m1 2/1 {word}")]);
    }
}

#[test]
fn arc_010_reasoning_is_claimed_only_as_far_as_it_is_there() {
    let thinks = |words: &str| json!({"type": "thinking", "thinking": words, "signature": "s"});
    let redacted = json!({"type": "redacted_thinking", "data": "x"});
    for (block, word) in [(thinks("I think."), "full"), (thinks(""), "omitted"), (redacted, "redacted")] {
        let made = check(&[says("m1", "", block), text("m1", "end_turn")], OVER, &["1 m1 2/0 ok"]);
        let Record::Turn { turn, .. } = &made[0].what else { panic!("{made:?}") };
        assert_eq!(turn.ext()["reasoning"], word);
    }
}
