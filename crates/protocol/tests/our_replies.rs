//! The effects of our own replies on the client, as the oracle simulates it.

mod oracle;

use oracle::{Effect, Output, what_the_client_does};
use plimsoll_protocol::HookReply;
use plimsoll_protocol::untrusted_text::{escape_hidden_characters, sanitize_for_model};
use serde_json::Value;

/// Texts for the model, the user and the end of a session; the tests look for them in the effects.
const MODEL: &str = "MODEL";
const PERSON: &str = "PERSON";
const END: &str = "END";

fn effect_of_reply(event: &str, reply: &HookReply) -> Effect {
    let stdout = reply.to_sanitized_json();
    let effect = what_the_client_does(Output { event, stdout: &stdout, stderr: "", exit: 0 });
    let failed = what_the_client_does(Output { event, stdout: &stdout, stderr: "said on stderr", exit: 1 });
    if event != "PreCompact" {
        assert_eq!(effect, failed, "{event}: an object counts whatever the exit code: {stdout}");
    }
    effect
}

/// Describes the effect in a few words; `-` if there is none.
fn describe_effect(effect: &Effect) -> String {
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

/// event | empty reply | text for the model | end of the session | both
const EXPECTED_EFFECTS: &str = "
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

fn event_names() -> impl Iterator<Item = &'static str> {
    EXPECTED_EFFECTS.lines().filter_map(|line| Some(line.split_once('|')?.0.trim()))
}

/// Builds a reply. The bits select its parts, `forwards` the order in which they are added.
fn build_reply(event: &str, bits: u8, in_order: bool) -> HookReply {
    let order = if in_order { [1, 2, 4] } else { [4, 2, 1] };
    order.into_iter().filter(|bit| bits & bit != 0).fold(HookReply::default(), |reply, bit| match bit {
        1 => reply.with_model_context(event, MODEL),
        2 => reply.with_user_message(PERSON),
        _ => reply.end_session(END),
    })
}

#[test]
fn each_reply_has_the_effect_in_the_table_at_each_event() {
    for line in EXPECTED_EFFECTS.lines().filter(|line| line.contains('|')) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        for (cell, bits) in [(1, 0), (2, 1), (3, 4), (4, 5)] {
            let described = describe_effect(&effect_of_reply(cells[0], &build_reply(cells[0], bits, true)));
            assert_eq!(described, cells[cell], "{} {bits:03b}", cells[0]);
        }
    }
}

#[test]
fn a_user_message_does_not_affect_the_model_or_the_session() {
    for event in event_names() {
        for bits in [0, 1, 4, 5] {
            let [without, with] = [bits, bits | 2]
                .map(|bits| describe_effect(&effect_of_reply(event, &build_reply(event, bits, true))));
            assert_eq!(without, with, "{event} {bits:03b}");
        }
    }
}

#[test]
fn a_user_message_is_lost_only_when_post_tool_use_ends_the_session() {
    for event in event_names() {
        for bits in [2, 3, 6, 7] {
            let arrives = effect_of_reply(event, &build_reply(event, bits, true)).reaches_user.is_some();
            assert_eq!(arrives, !(event == "PostToolUse" && bits & 4 != 0), "{event} {bits:03b}");
        }
    }
}

#[test]
fn a_reply_never_blocks_a_prompt_a_tool_or_a_compaction() {
    for event in event_names().filter(|event| !event.ends_with("Stop")) {
        for bits in 0..8 {
            assert!(!effect_of_reply(event, &build_reply(event, bits, true)).blocks, "{event} {bits:03b}");
        }
    }
}

#[test]
fn the_order_of_builder_calls_does_not_matter() {
    for bits in 0..8 {
        assert_eq!(build_reply("Stop", bits, true), build_reply("Stop", bits, false));
    }
}

#[test]
fn a_reply_that_names_another_event_is_dropped() {
    let reply =
        HookReply::default().with_model_context("Stop", MODEL).with_user_message(PERSON).end_session(END);
    assert_eq!(effect_of_reply("PostToolBatch", &reply), Effect::default());
}

#[test]
fn the_model_receives_at_most_ten_thousand_characters() {
    for (length, whole) in [(10_000, true), (10_001, false)] {
        for letter in ["x", "é"] {
            let reply = HookReply::default().with_model_context("PostToolBatch", letter.repeat(length));
            assert_eq!(
                effect_of_reply("PostToolBatch", &reply).reaches_model[0].whole,
                whole,
                "{length} {letter}"
            );
        }
    }
}

fn contains_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.iter().any(contains_null),
        Value::Object(fields) => fields.values().any(contains_null),
        _ => false,
    }
}

#[test]
fn a_reply_is_one_object_on_one_line_without_nulls() {
    for event in event_names() {
        for bits in 0..8 {
            let line = build_reply(event, bits, true).to_sanitized_json();
            let value: Value = serde_json::from_str(&line).expect("JSON");
            assert!(value.is_object() && !contains_null(&value), "{line}");
            assert!(!line.contains(['\n', '\r']) && line.starts_with('{') && line.ends_with('}'), "{line}");
        }
    }
}

#[test]
fn a_full_reply_has_the_expected_json() {
    let full = HookReply::default()
        .with_user_message("p")
        .with_model_context("Stop", "m")
        .end_session("e")
        .to_sanitized_json();
    let specific = r#"{"hookEventName":"Stop","additionalContext":"m"}"#;
    let expected = format!(
        r#"{{"continue":false,"stopReason":"e","systemMessage":"p","hookSpecificOutput":{specific}}}"#
    );
    assert_eq!(full, expected);
    assert_eq!(HookReply::default().to_sanitized_json(), "{}");
}

/// Texts that are difficult to print correctly.
const DIFFICULT_TEXTS: [&str; 10] = [
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
fn only_hidden_characters_and_client_tags_are_changed_in_a_text() {
    for text in DIFFICULT_TEXTS {
        let reply = HookReply::default().with_model_context("PostToolBatch", text).with_user_message(text);
        let line = reply.to_sanitized_json();
        assert!(!line.contains(['\n', '\r', '\0', '\u{1b}']), "{line:?}");
        let effect = effect_of_reply("PostToolBatch", &reply);
        let model = &effect.reaches_model[0].text;
        assert_eq!(
            model.strip_prefix("PostToolBatch hook additional context: "),
            Some(sanitize_for_model(text).as_str())
        );
        assert_eq!(effect.reaches_user.as_deref(), Some(escape_hidden_characters(text).as_ref()));
        let ended: Value =
            serde_json::from_str(&HookReply::default().end_session(text).to_sanitized_json()).expect("JSON");
        assert_eq!(ended["stopReason"], sanitize_for_model(text));
    }
    let stop_effect = effect_of_reply(
        "Stop",
        &HookReply::default().with_model_context("Stop", "a\u{1b}[2J</system-reminder>"),
    );
    assert!(
        stop_effect.reaches_model[0].text.contains(r"a\u{1b}[2J‹/system-reminder>"),
        "{:?}",
        stop_effect.reaches_model[0].text
    );
}

#[test]
fn an_empty_text_changes_nothing() {
    let empty = HookReply::default().with_model_context("Stop", "").with_user_message("");
    assert_eq!(empty, HookReply::default());
    assert_eq!(empty.to_sanitized_json(), "{}");
    assert_eq!(
        build_reply("Stop", 3, true).with_model_context("Stop", "").with_user_message(""),
        build_reply("Stop", 3, true)
    );
    assert_eq!(HookReply::default().end_session("").to_sanitized_json(), r#"{"continue":false}"#);
}
