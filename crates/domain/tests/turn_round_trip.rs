//! Any turn goes into the log and comes back as it was (ARC-001, ARC-010, DBG-001, DBG-002); nothing that is damaged
//! makes it panic or come back as another one.

#![expect(clippy::unwrap_used, reason = "a strategy that fails is a test that fails")]

use plimsoll_domain::Turn;
use plimsoll_domain::turn::record::{DecodeError, Encoded, blobs_of, decode, encode};
use plimsoll_domain::turn::{Block, CallOutcome, Failure, Reason, ToolCall};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Short and long, with everything that JSON must escape, and with our own mark.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>(),
        1 => Just("$blob".to_owned()),
        1 => "[a-z\n\u{1F600}]{0,20}",
        1 => ("[ -~é€\n]{1,7}", 600..2_000usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{0,6}", 1 => any::<String>(), 2 => Just("$blob".to_owned()),
        1 => Just("sha256".to_owned()), 1 => Just("literal".to_owned())]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| json!(value)),
        text().prop_map(|value| json!(value)),
        "[0-9a-f]{64}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((key(), value()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn block() -> impl Strategy<Value = Block> {
    let json = prop_oneof![
        value(),
        text().prop_map(|text| json!({"type": "text", "text": text})),
        (key(), value())
            .prop_map(|(name, input)| json!({"type": "tool_use", "id": name, "name": name, "input": input})),
    ];
    // As compact as the client writes, and as loose as anybody may.
    (json, any::<bool>()).prop_map(|(value, is_loose)| {
        let text =
            if is_loose { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        Block::new(RawValue::from_string(text.unwrap()).unwrap())
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    (key(), value(), value(), map()).prop_map(|(name, args, result, ext)| ToolCall {
        name,
        args,
        result,
        ext,
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    let outcome = (text(), any::<bool>(), text(), prop::option::of("[0-9a-f]{64}"));
    let outcome = outcome.prop_map(|(id, ok, preview, blob)| CallOutcome { id, ok, preview, blob });
    let reason = (0..Reason::ALL.len()).prop_map(|place| Reason::ALL[place]);
    (reason, text(), prop::collection::vec(outcome, 0..3)).prop_map(|(reason, message, calls)| Failure {
        reason,
        message,
        calls,
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let body = (
        1..u64::MAX,
        prop::collection::vec(block(), 0..4),
        prop::option::of(text()),
        value(),
        prop::collection::vec(text(), 0..3),
        prop::collection::vec(call(), 0..3),
        map(),
        map(),
        prop::option::of(failure()),
    );
    body.prop_map(|(number, raw, program, result, prints, calls, memory, ext, failure)| match failure {
        Some(failure) => Turn::failure(number, raw, program, &failure, prints, calls, memory, ext),
        None => Turn::success(number, raw, program, result, prints, calls, memory, ext),
    })
}

fn read_back(turn: &Turn, encoded: &Encoded) -> Result<Turn, DecodeError> {
    let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
    decode(turn.number(), turn.is_success(), &encoded.content, &fetch)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arc_010_dbg_001_every_turn_comes_back_as_it_was(turn in turn()) {
        let encoded = encode(&turn);
        prop_assert!(!encoded.content.contains('\n'), "one line");
        let back = read_back(&turn, &encoded);
        prop_assert_eq!(back.as_ref(), Ok(&turn));
        prop_assert_eq!(turn.failure_of().is_some(), !turn.is_success());
    }

    #[test]
    fn what_lies_beside_the_log_is_what_its_lines_name_and_nothing_else(turn in turn()) {
        let encoded = encode(&turn);
        let mut named = blobs_of(&encoded.content);
        named.sort();
        named.dedup();
        prop_assert_eq!(named, encoded.blobs.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn a_field_of_a_later_time_is_kept(turn in turn(), name in "later_[a-z]{1,6}", value in map()) {
        let mut encoded = encode(&turn);
        let mut content: Map<String, Value> = serde_json::from_str(&encoded.content).unwrap();
        let value = Value::Object(value.into_iter().filter(|(key, _)| key != "$blob").collect());
        prop_assume!(!value.to_string().contains("$blob"));
        content.insert(name.clone(), value.clone());
        encoded.content = Value::Object(content).to_string();
        let back = read_back(&turn, &encoded).unwrap();
        prop_assert_eq!(&back.ext()[&name], &value);
    }

    #[test]
    fn damage_is_an_error_or_the_same_turn_and_never_a_panic(
        turn in turn(), place in any::<prop::sample::Index>(), bit in 0..8u8, kind in 0..3
    ) {
        let mut encoded = encode(&turn);
        let mut bytes = encoded.content.clone().into_bytes();
        let place = place.index(bytes.len());
        match kind {
            0 => bytes[place] ^= 1 << bit,
            1 => bytes.truncate(place),
            _ => drop(bytes.remove(place)),
        }
        encoded.content = String::from_utf8_lossy(&bytes).into_owned();
        // Whether the content is what was written, the chain says; here it is only read.
        if let Ok(back) = read_back(&turn, &encoded) {
            prop_assert_eq!(back.is_success(), turn.is_success());
            prop_assert_eq!(back.number(), turn.number());
        }
    }

    #[test]
    fn a_missing_or_changed_piece_is_named(turn in turn(), place in any::<prop::sample::Index>()) {
        let mut encoded = encode(&turn);
        prop_assume!(!encoded.blobs.is_empty());
        let hash = encoded.blobs.keys().nth(place.index(encoded.blobs.len())).unwrap().clone();
        encoded.blobs.get_mut(&hash).unwrap().push('x');
        prop_assert_eq!(read_back(&turn, &encoded), Err(DecodeError::Missing(hash.clone())));
        encoded.blobs.remove(&hash);
        prop_assert_eq!(read_back(&turn, &encoded), Err(DecodeError::Missing(hash)));
    }
}

#[test]
fn arc_001_a_turn_is_written_with_the_eight_fields_by_name() {
    let turn = Turn::success(3, vec![], None, json!("x"), vec![], vec![], Map::new(), Map::new());
    let value = serde_json::to_value(&turn).unwrap();
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    let eight =
        ["number", "raw_response", "program", "result", "prints", "tool_calls", "memory", "success", "ext"];
    assert_eq!(names, eight);
}

#[test]
fn a_mark_of_ours_in_a_disguise_is_still_somebody_s_own_words() {
    let json = r#"{"type":"tool_use","id":"a","name":"X","input":{"\u0024blob":{"sha256":"00"}}}"#;
    let block = Block::new(RawValue::from_string(json.to_owned()).unwrap());
    let turn = Turn::success(1, vec![block], None, Value::Null, vec![], vec![], Map::new(), Map::new());
    let encoded = encode(&turn);
    assert_eq!(blobs_of(&encoded.content), encoded.blobs.keys().cloned().collect::<Vec<_>>());
    assert_eq!(read_back(&turn, &encoded), Ok(turn));
}

/// JavaScript may cut a text in the middle of an emoji, and writes half of it.
#[test]
fn half_an_emoji_costs_no_call_and_no_result() {
    let json = r#"{"type":"tool_use","id":"a","name":"Bash","input":{"command":"echo \ud83d"}}"#;
    let block = Block::new(RawValue::from_string(json.to_owned()).unwrap());
    let outline = plimsoll_domain::turn::outline(std::slice::from_ref(&block));
    assert_eq!(outline.calls.len(), 1, "{outline:?}");
    assert_eq!(outline.calls[0].2["command"], "echo \u{fffd}");
    let ext = Map::from_iter([("note".to_owned(), json!("x".repeat(5_000)))]);
    let turn = Turn::success(1, vec![block], None, Value::Null, vec![], vec![], Map::new(), ext);
    let encoded = encode(&turn);
    assert_eq!(blobs_of(&encoded.content).len(), 1, "and hides no piece from whoever checks or erases");
    assert_eq!(read_back(&turn, &encoded), Ok(turn));
}
