use super::*;
use serde_json::json;

fn line(value: &Value) -> TranscriptLine {
    TranscriptLine::parse_utf8_lossy(value.to_string().as_bytes()).expect("a line")
}

fn prompt(text: &str) -> TranscriptLine {
    line(&json!({"type": "user", "message": {"content": text}}))
}

fn assistant_text(text: &str) -> TranscriptLine {
    response(&json!({"type": "text", "text": text}))
}

fn response(block: &Value) -> TranscriptLine {
    line(&json!({"type": "assistant", "message": {"id": "m", "content": [block]}}))
}

fn call(name: &str, input: &Value) -> TranscriptLine {
    response(&json!({"type": "tool_use", "id": "t", "name": name, "input": input}))
}

fn result(text: &str, is_error: bool) -> TranscriptLine {
    line(&json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": is_error}]}}))
}

fn boundary() -> TranscriptLine {
    line(&json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}))
}

fn render(lines: &[TranscriptLine], exchange_bytes: usize, earlier_text_bytes: usize) -> ConversationEnd {
    let limits = ExchangeLimits { exchange_bytes, earlier_text_bytes };
    render_conversation_end(lines, limits, &|text| text.replace("SECRET", "[redacted]"))
}

#[test]
fn the_last_exchanges_are_rendered_in_order_as_text() {
    let lines = [
        prompt("Fix the parser."),
        assistant_text("I read the parser first."),
        call("Read", &json!({"file_path": "src/parser.rs", "limit": 20})),
        result("1\tfn parse() {}", false),
        prompt("And the docs."),
        response(&json!({"type": "thinking", "thinking": "private", "signature": "s"})),
        call("Edit", &json!({"file_path": "a.rs", "old_string": "one\ntwo", "new_string": "SECRET"})),
        result("Exit code 1\nerror: SECRET", true),
    ];
    let end = render(&lines, 10_000, 10_000);
    insta::assert_snapshot!(end.exchanges, @"
    ### An earlier request of the user (quoted above)

    ### You said

    > I read the parser first.

    ### You called Read

    file_path: src/parser.rs
    limit: 20

    ### Result

    > 1	fn parse() {}

    ### The user's last request (quoted above)

    ### You called Edit

    file_path: a.rs
    old_string:
    > one
    > two
    new_string: [redacted]

    ### The call FAILED

    > Exit code 1
    > error: [redacted]
    ");
    assert_eq!(end.earlier_texts, "");
}

#[test]
fn what_does_not_fit_leaves_the_models_own_words_behind() {
    let long = "x".repeat(400);
    let lines = [
        assistant_text("We use SQLite,\nbecause it needs no server."),
        result(&long, false),
        assistant_text("The tests pass."),
        call("Bash", &json!({"command": "ls"})),
        result("a.txt", false),
    ];
    let end = render(&lines, 150, 1_000);
    assert!(end.exchanges.contains("a.txt") && !end.exchanges.contains(&long), "{end:?}");
    assert_eq!(end.earlier_texts, "- We use SQLite, because it needs no server.\n");
    assert_eq!(render(&lines, 0, 30).earlier_texts, "- The tests pass.\n", "the newest words come first");
    assert_eq!(render(&lines, 0, 0), ConversationEnd::default());
}

#[test]
fn exchanges_before_a_compaction_are_not_repeated_but_its_summary_and_earlier_words_are() {
    let summary =
        line(&json!({"type": "user", "isCompactSummary": true, "message": {"content": "The summary."}}));
    let handoff = prompt("[Plimsoll handoff, in place of a summary]\n\n# Handoff");
    let lines = [
        assistant_text("Decided early."),
        result("old", false),
        boundary(),
        summary,
        handoff,
        result("new", false),
    ];
    let end = render(&lines, 10_000, 10_000);
    assert!(end.exchanges.contains("> The summary.") && end.exchanges.contains("> new"), "{end:?}");
    assert!(!end.exchanges.contains("old") && !end.exchanges.contains("Handoff"), "{end:?}");
    assert_eq!(end.earlier_texts, "- Decided early.\n");
}

#[test]
fn subagents_reminders_and_api_errors_are_left_out() {
    let mut of_subagent = assistant_text("of a subagent");
    of_subagent.is_sidechain = true;
    let lines = [
        of_subagent,
        line(&json!({"type": "user", "isMeta": true, "message": {"content": "a reminder"}})),
        line(&json!({"type": "assistant", "isApiErrorMessage": true, "error": "overloaded",
            "message": {"id": "m", "content": [{"type": "text", "text": "API Error"}]}})),
    ];
    assert_eq!(render(&lines, 10_000, 10_000), ConversationEnd::default());
}

#[test]
fn the_newest_result_keeps_more_of_its_beginning_and_end() {
    let output = |name: &str| format!("{name} begins\n{}\n{name} ends", "y".repeat(11_000));
    let end = render(&[result(&output("old"), false), result(&output("new"), false)], 100_000, 0);
    assert!(end.exchanges.contains("old ends") && end.exchanges.contains("new begins"), "{end:?}");
    assert!(end.exchanges.len() < 16_000, "{}", end.exchanges.len());
    assert!(end.exchanges.matches('y').count() > 13_000);
}
