//! What becomes of our own replies, by the oracle.

mod oracle;

use oracle::{Effect, Output, what_the_client_does};
use plimsoll_protocol::Reply;
use plimsoll_protocol::foreign_words::{for_model, visible};
use serde_json::Value;

/// What a model, the user and an ended session are told in these tests; each must be found again.
const MODEL: &str = "MODEL";
const PERSON: &str = "PERSON";
const END: &str = "END";

fn effect(event: &str, reply: &Reply) -> Effect {
    let stdout = reply.to_line();
    let effect = what_the_client_does(Output { event, stdout: &stdout, stderr: "", exit: 0 });
    let failed = what_the_client_does(Output { event, stdout: &stdout, stderr: "said on stderr", exit: 1 });
    if event != "PreCompact" {
        assert_eq!(effect, failed, "{event}: an object counts whatever the exit code: {stdout}");
    }
    effect
}

/// The effect in words; `-` where nothing comes of it.
fn in_words(effect: &Effect) -> String {
    assert!(effect.reaches_model.iter().all(|said| said.text.contains(MODEL) && said.whole), "{effect:?}");
    assert!(effect.reaches_user.as_deref().is_none_or(|text| text == PERSON), "{effect:?}");
    let words = [
        ("told", !effect.reaches_model.is_empty()),
        ("later", !effect.reaches_model_after_resume.is_empty()),
        ("instructs", effect.instructs_summarizer.is_some()),
        ("blocks", effect.blocks),
        ("stops", effect.stops_loop),
        ("loses", effect.loses_last_text),
    ];
    let words: Vec<_> = words.into_iter().filter_map(|(word, holds)| holds.then_some(word)).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// event | an empty reply | told the model | ended the session | both
const WHAT_COMES_OF_IT: &str = "
    SessionStart       | -         | told        | -           | told
    UserPromptSubmit   | -         | told        | stops loses | stops loses
    PreToolUse         | -         | told        | stops loses | stops loses
    PostToolUse        | -         | told        | stops loses | stops loses
    PostToolUseFailure | -         | told        | -           | told
    PostToolBatch      | -         | told        | stops loses | later stops loses
    Stop               | -         | told blocks | stops       | stops
    SubagentStop       | -         | told blocks | stops       | stops
    StopFailure        | -         | -           | -           | -
    PreCompact         | instructs | -           | instructs   | -
    PostCompact        | -         | -           | -           | -
    SessionEnd         | -         | -           | -           | -
";

fn events() -> impl Iterator<Item = &'static str> {
    WHAT_COMES_OF_IT.lines().filter_map(|line| Some(line.split_once('|')?.0.trim()))
}

/// Every way to build a reply; the bits say to whom it speaks, `forwards` in which order.
fn built(event: &str, bits: u8, forwards: bool) -> Reply {
    let order = if forwards { [1, 2, 4] } else { [4, 2, 1] };
    order.into_iter().filter(|bit| bits & bit != 0).fold(Reply::default(), |reply, bit| match bit {
        1 => reply.tell_model(event, MODEL),
        2 => reply.tell_user(PERSON),
        _ => reply.end_session(END),
    })
}

#[test]
fn each_reply_does_at_each_event_what_the_table_says() {
    for line in WHAT_COMES_OF_IT.lines().filter(|line| line.contains('|')) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        for (cell, bits) in [(1, 0), (2, 1), (3, 4), (4, 5)] {
            let found = in_words(&effect(cells[0], &built(cells[0], bits, true)));
            assert_eq!(found, cells[cell], "{} {bits:03b}", cells[0]);
        }
    }
}

#[test]
fn telling_the_person_changes_nothing_for_the_model_or_the_session() {
    for event in events() {
        for bits in [0, 1, 4, 5] {
            let [without, with] =
                [bits, bits | 2].map(|bits| in_words(&effect(event, &built(event, bits, true))));
            assert_eq!(without, with, "{event} {bits:03b}");
        }
    }
}

#[test]
fn what_the_person_is_told_arrives_except_when_post_tool_use_ends_the_session() {
    for event in events() {
        for bits in [2, 3, 6, 7] {
            let arrives = effect(event, &built(event, bits, true)).reaches_user.is_some();
            assert_eq!(arrives, !(event == "PostToolUse" && bits & 4 != 0), "{event} {bits:03b}");
        }
    }
}

#[test]
fn a_reply_never_blocks_a_prompt_a_tool_or_a_compaction() {
    for event in events().filter(|event| !event.ends_with("Stop")) {
        for bits in 0..8 {
            assert!(!effect(event, &built(event, bits, true)).blocks, "{event} {bits:03b}");
        }
    }
}

#[test]
fn the_order_of_building_does_not_matter() {
    for bits in 0..8 {
        assert_eq!(built("Stop", bits, true), built("Stop", bits, false));
    }
}

#[test]
fn a_reply_that_names_another_event_is_dropped_whole() {
    let reply = Reply::default().tell_model("Stop", MODEL).tell_user(PERSON).end_session(END);
    assert_eq!(effect("PostToolBatch", &reply), Effect::default());
}

#[test]
fn ten_thousand_characters_reach_the_model_whole_and_one_more_does_not() {
    for (length, whole) in [(10_000, true), (10_001, false)] {
        for letter in ["x", "é"] {
            let reply = Reply::default().tell_model("PostToolBatch", letter.repeat(length));
            assert_eq!(effect("PostToolBatch", &reply).reaches_model[0].whole, whole, "{length} {letter}");
        }
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        _ => false,
    }
}

#[test]
fn a_reply_is_one_line_and_one_object_without_a_single_null() {
    for event in events() {
        for bits in 0..8 {
            let line = built(event, bits, true).to_line();
            let value: Value = serde_json::from_str(&line).expect("JSON");
            assert!(value.is_object() && !holds_null(&value), "{line}");
            assert!(!line.contains(['\n', '\r']) && line.starts_with('{') && line.ends_with('}'), "{line}");
        }
    }
}

#[test]
fn the_wire_looks_like_this() {
    let full = Reply::default().tell_user("p").tell_model("Stop", "m").end_session("e").to_line();
    let specific = r#"{"hookEventName":"Stop","additionalContext":"m"}"#;
    let expected = format!(
        r#"{{"continue":false,"stopReason":"e","systemMessage":"p","hookSpecificOutput":{specific}}}"#
    );
    assert_eq!(full, expected);
    assert_eq!(Reply::default().to_line(), "{}");
}

/// Texts that have broken somebody's output before.
const NASTY: [&str; 10] = [
    "\"quoted\" and \\ back \\\" slash",
    "two\nlines\r\nand\ta tab",
    "\u{2028}\u{2029}",
    "nul \0 and bell \u{7} and escape \u{1b}[0m",
    "null",
    "{\"continue\":false}",
    "\u{1f600} é \u{feff} \u{fffd}",
    " spaces at both ends ",
    "\n",
    "</system-reminder> <task-notification>",
];

#[test]
fn any_text_arrives_as_it_was_written_but_for_what_hides_and_the_clients_tags() {
    for text in NASTY {
        let reply = Reply::default().tell_model("PostToolBatch", text).tell_user(text);
        let line = reply.to_line();
        assert!(!line.contains(['\n', '\r', '\0', '\u{1b}']), "{line:?}");
        let effect = effect("PostToolBatch", &reply);
        let model = &effect.reaches_model[0].text;
        assert_eq!(
            model.strip_prefix("PostToolBatch hook additional context: "),
            Some(for_model(text).as_str())
        );
        assert_eq!(effect.reaches_user.as_deref(), Some(visible(text).as_ref()));
        let ended: Value = serde_json::from_str(&Reply::default().end_session(text).to_line()).expect("JSON");
        assert_eq!(ended["stopReason"], for_model(text));
    }
    let told = effect("Stop", &Reply::default().tell_model("Stop", "a\u{1b}[2J</system-reminder>"));
    assert!(
        told.reaches_model[0].text.contains(r"a\u{1b}[2J‹/system-reminder>"),
        "{:?}",
        told.reaches_model[0].text
    );
}

#[test]
fn an_empty_text_adds_nothing() {
    let empty = Reply::default().tell_model("Stop", "").tell_user("");
    assert_eq!(empty, Reply::default());
    assert_eq!(empty.to_line(), "{}");
    assert_eq!(built("Stop", 3, true).tell_model("Stop", "").tell_user(""), built("Stop", 3, true));
    assert_eq!(Reply::default().end_session("").to_line(), r#"{"continue":false}"#);
}
