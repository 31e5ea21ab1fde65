//! Replaces every field of every recording with every bad value, one at a time.

use crate::recorded::recordings;
use crate::views::{self, View};
use plimsoll_protocol::HookPayload;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::status::StatusPayload;
use plimsoll_protocol::stream::StreamLine;
use plimsoll_protocol::transcript::TranscriptEntry;
use serde_json::{Value, json};

/// The replacements for a field; `None` removes it.
fn bad_values() -> Vec<Option<Value>> {
    let two = json!({"type": ["x"], "x": {"y": null}});
    let values = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!("x"),
        json!(""),
        json!([]),
        json!([null, 1]),
        json!({}),
        two,
    ];
    values.into_iter().map(Some).chain([None]).collect()
}

/// Collects the pointers of all fields and elements below a value.
fn collect_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut visit = |key: &str, inner: &Value| {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        collect_pointers(inner, &pointer, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| visit(key, inner)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(number, inner)| visit(&number.to_string(), inner));
        }
        _ => {}
    }
}

fn with_bad_value(document: &Value, pointer: &str, spoiler: Option<Value>) -> Value {
    let mut document = document.clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    if let Some(value) = spoiler {
        *document.pointer_mut(pointer).expect("the field") = value;
        return document;
    }
    match document.pointer_mut(parent).expect("the parent") {
        Value::Object(fields) => drop(fields.shift_remove(&key.replace("~1", "/").replace("~0", "~"))),
        Value::Array(elements) => drop(elements.remove(key.parse().expect("a number"))),
        _ => unreachable!("only objects and lists have fields"),
    }
    document
}

/// Returns true if a bad field may change this leaf: the field itself, everything below it, and everything that
/// contains it. If an element of a list is replaced, the others may move up, so the whole list may change.
fn may_be_affected(document: &Value, pointer: &str, leaf: &str) -> bool {
    let parent = pointer.rsplit_once('/').expect("a pointer").0;
    let spoiled = if document.pointer(parent).is_some_and(Value::is_array) { parent } else { pointer };
    let below = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    below(leaf, spoiled) || below(spoiled, leaf)
}

/// A bad event name loses the event's own fields; the fields that every event has must stay.
const IN_EVERY_EVENT: [&str; 5] = ["/session_id", "/transcript_path", "/cwd", "/agent_id", "/agent_type"];

fn check_every_field(name: &str, document: &Value, view: impl Fn(&[u8]) -> View) -> usize {
    let mut pointers = Vec::new();
    collect_pointers(document, "", &mut pointers);
    let before = view(document.to_string().as_bytes());
    for pointer in &pointers {
        for spoiler in bad_values() {
            let spoiled = with_bad_value(document, pointer, spoiler.clone()).to_string();
            let after = view(spoiled.as_bytes());
            for (leaf, value) in &before {
                let given_up = pointer == "/hook_event_name" && !IN_EVERY_EVENT.contains(&leaf.as_str());
                if !given_up && !may_be_affected(document, pointer, leaf) {
                    assert_eq!(
                        after.get(leaf),
                        Some(value),
                        "{name}: {leaf} after {pointer} became {spoiler:?}"
                    );
                }
            }
        }
    }
    pointers.len()
}

fn parse_document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("a recorded document")
}

#[test]
fn one_bad_field_of_a_payload_never_loses_the_others() {
    let mut tried = 0;
    for recording in recordings("hooks") {
        tried += check_every_field(&recording.name, &parse_document(&recording.bytes), |bytes| {
            views::hook(&HookPayload::parse(bytes).expect("a payload for all that"))
        });
    }
    for recording in recordings("statusline") {
        tried += check_every_field(&recording.name, &parse_document(&recording.bytes), |bytes| {
            views::status(&StatusPayload::parse(bytes).expect("a payload for all that"))
        });
    }
    assert!(tried > 1000, "only {tried} fields were spoiled");
}

#[test]
fn one_bad_field_of_a_result_never_loses_the_others() {
    for recording in recordings("result") {
        check_every_field(&recording.name, &parse_document(&recording.bytes), |bytes| {
            views::result(&ClientResult::parse(bytes).expect("a result for all that"))
        });
    }
}

#[test]
fn one_bad_field_of_a_transcript_line_never_loses_the_others() {
    for recording in recordings("transcripts").iter().filter(|one| one.name != "natural_sizes") {
        for line in recording.lines().filter(|line| line.len() < 4000) {
            check_every_field(&recording.name, &parse_document(line), |bytes| {
                views::line(&TranscriptEntry::parse(bytes).expect("a line for all that"))
            });
        }
    }
}

#[test]
fn one_bad_field_of_a_rate_limit_never_loses_the_others() {
    let mut tried = 0;
    for recording in recordings("stream") {
        for line in recording.lines().map(parse_document).filter(|line| line["type"] == "rate_limit_event") {
            tried += check_every_field(&recording.name, &line["rate_limit_info"], |info| {
                let head = br#"{"type":"rate_limit_event","rate_limit_info":"#;
                let StreamLine::RateLimit(limit) = StreamLine::parse(&[head, info, b"}"].concat()) else {
                    panic!("a rate limit for all that")
                };
                views::rate_limit(&limit)
            });
        }
    }
    assert!(tried > 20, "only {tried} fields were spoiled");
}

#[test]
fn one_bad_model_in_a_result_never_loses_the_other_models() {
    let usage = json!({"good[1m]": {"contextWindow": 1_000_000, "maxOutputTokens": 32_000}, "bad": 0});
    for spoiler in bad_values().into_iter().flatten() {
        let mut usage = usage.clone();
        usage["bad"] = spoiler;
        let document = json!({"type": "result", "modelUsage": usage}).to_string();
        let result = ClientResult::parse(document.as_bytes()).expect("a result");
        assert_eq!(result.model_usage["good[1m]"].context_window, Some(1_000_000), "{document}");
    }
}

#[test]
fn one_bad_element_of_a_list_never_loses_the_others() {
    for spoiler in bad_values().into_iter().flatten() {
        let call = json!({"tool_name": "Bash", "tool_use_id": "toolu_1"});
        let task = json!({"id": "b1", "type": "shell", "status": "running"});
        let batch = json!({"hook_event_name": "PostToolBatch", "tool_calls": [spoiler, call]}).to_string();
        let hook = HookPayload::parse(batch.as_bytes()).expect("a payload");
        let last = hook.event.tool_calls().last().expect("the good call");
        assert_eq!(last.tool_use_id.as_deref(), Some("toolu_1"), "{batch}");

        let stop = json!({"hook_event_name": "Stop", "background_tasks": [spoiler, task]}).to_string();
        let plimsoll_protocol::HookEvent::Stop(stop) =
            HookPayload::parse(stop.as_bytes()).expect("a payload").event
        else {
            panic!("a Stop")
        };
        assert_eq!(stop.background_tasks.last().expect("the good task").status.as_deref(), Some("running"));
    }
}
