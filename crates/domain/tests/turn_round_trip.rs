//! Any turn survives encoding and decoding unchanged (ARC-001, ARC-010, DBG-001, DBG-002). Damaged content neither panics nor
//! decodes to a turn with another number or outcome.

#![expect(clippy::unwrap_used, reason = "a strategy that fails is a test that fails")]

use plimsoll_domain::Turn;
use plimsoll_domain::turn::record::{
    DecodeError, EncodedRecord, decode_turn, encode_turn, referenced_blob_hashes,
};
use plimsoll_domain::turn::{Block, FailureReason, ToolCall, ToolCallOutcome, TurnFailure};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Short and long texts, with everything that JSON must escape, and with the key of blob references.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>(),
        1 => Just("$blob".to_owned()),
        1 => "[a-z\n\u{1F600}]{0,20}",
        1 => ("[ -~é€\n]{1,7}", 600..2_000usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{0,6}", 1 => any::<String>(), 2 => Just("$blob".to_owned()),
        1 => Just("sha256".to_owned()), 1 => Just("literal".to_owned())]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| json!(value)),
        any_text().prop_map(|value| json!(value)),
        "[0-9a-f]{64}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

fn any_map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any_key(), any_value()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn any_block() -> impl Strategy<Value = Block> {
    let json = prop_oneof![
        any_value(),
        any_text().prop_map(|text| json!({"type": "text", "text": text})),
        (any_key(), any_value())
            .prop_map(|(name, input)| json!({"type": "tool_use", "id": name, "name": name, "input": input})),
    ];
    // Compact as the client writes it, or indented.
    (json, any::<bool>()).prop_map(|(value, is_loose)| {
        let text =
            if is_loose { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        Block::new(RawValue::from_string(text.unwrap()).unwrap())
    })
}

fn any_tool_call() -> impl Strategy<Value = ToolCall> {
    (any_key(), any_value(), any_value(), any_map()).prop_map(|(name, args, result, ext)| ToolCall {
        name,
        args,
        result,
        ext,
    })
}

fn any_failure() -> impl Strategy<Value = TurnFailure> {
    let outcome = (any_text(), any::<bool>(), any_text(), prop::option::of("[0-9a-f]{64}"));
    let outcome = outcome.prop_map(|(id, ok, preview, blob)| ToolCallOutcome {
        id,
        has_succeeded: ok,
        preview,
        full_result_sha256: blob,
    });
    let reason = (0..FailureReason::ALL.len()).prop_map(|place| FailureReason::ALL[place]);
    (reason, any_text(), prop::collection::vec(outcome, 0..3))
        .prop_map(|(reason, message, calls)| TurnFailure { reason, message, calls })
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let body = (
        1..u64::MAX,
        prop::collection::vec(any_block(), 0..4),
        prop::option::of(any_text()),
        any_value(),
        prop::collection::vec(any_text(), 0..3),
        prop::collection::vec(any_tool_call(), 0..3),
        any_map(),
        any_map(),
        prop::option::of(any_failure()),
    );
    body.prop_map(|(number, raw, program, result, prints, calls, memory, ext, failure)| match failure {
        Some(failure) => Turn::new_failure(number, raw, program, &failure, prints, calls, memory, ext),
        None => Turn::new_success(number, raw, program, result, prints, calls, memory, ext),
    })
}

fn decode_encoded(turn: &Turn, encoded: &EncodedRecord) -> Result<Turn, DecodeError> {
    let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
    decode_turn(turn.number(), turn.is_success(), &encoded.content, &fetch)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arc_010_dbg_001_every_turn_survives_a_round_trip(turn in any_turn()) {
        let encoded = encode_turn(&turn);
        prop_assert!(!encoded.content.contains('\n'), "one line");
        let back = decode_encoded(&turn, &encoded);
        prop_assert_eq!(back.as_ref(), Ok(&turn));
        prop_assert_eq!(turn.parsed_failure().is_some(), !turn.is_success());
    }

    #[test]
    fn the_blobs_are_exactly_those_to_which_the_content_refers(turn in any_turn()) {
        let encoded = encode_turn(&turn);
        let mut named = referenced_blob_hashes(&encoded.content);
        named.sort();
        named.dedup();
        prop_assert_eq!(named, encoded.blobs.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn a_field_of_a_later_version_is_kept(turn in any_turn(), name in "later_[a-z]{1,6}", value in any_map()) {
        let mut encoded = encode_turn(&turn);
        let mut content: Map<String, Value> = serde_json::from_str(&encoded.content).unwrap();
        let value = Value::Object(value.into_iter().filter(|(key, _)| key != "$blob").collect());
        prop_assume!(!value.to_string().contains("$blob"));
        content.insert(name.clone(), value.clone());
        encoded.content = Value::Object(content).to_string();
        let back = decode_encoded(&turn, &encoded).unwrap();
        prop_assert_eq!(&back.ext()[&name], &value);
    }

    #[test]
    fn damaged_content_never_panics_or_decodes_to_another_turn(
        turn in any_turn(), place in any::<prop::sample::Index>(), bit in 0..8u8, kind in 0..3
    ) {
        let mut encoded = encode_turn(&turn);
        let mut bytes = encoded.content.clone().into_bytes();
        let place = place.index(bytes.len());
        match kind {
            0 => bytes[place] ^= 1 << bit,
            1 => bytes.truncate(place),
            _ => drop(bytes.remove(place)),
        }
        encoded.content = String::from_utf8_lossy(&bytes).into_owned();
        // The hash chain detects changed content. Decoding alone need not, so only number and outcome are compared.
        if let Ok(back) = decode_encoded(&turn, &encoded) {
            prop_assert_eq!(back.is_success(), turn.is_success());
            prop_assert_eq!(back.number(), turn.number());
        }
    }

    #[test]
    fn a_missing_or_changed_blob_is_reported_by_its_hash(turn in any_turn(), place in any::<prop::sample::Index>()) {
        let mut encoded = encode_turn(&turn);
        prop_assume!(!encoded.blobs.is_empty());
        let hash = encoded.blobs.keys().nth(place.index(encoded.blobs.len())).unwrap().clone();
        encoded.blobs.get_mut(&hash).unwrap().push('x');
        prop_assert_eq!(decode_encoded(&turn, &encoded), Err(DecodeError::MissingBlob(hash.clone())));
        encoded.blobs.remove(&hash);
        prop_assert_eq!(decode_encoded(&turn, &encoded), Err(DecodeError::MissingBlob(hash)));
    }
}

#[test]
fn arc_001_a_turn_is_written_with_the_eight_fields_by_name() {
    let turn = Turn::new_success(3, vec![], None, json!("x"), vec![], vec![], Map::new(), Map::new());
    let value = serde_json::to_value(&turn).unwrap();
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    let eight =
        ["number", "raw_response", "program", "result", "prints", "tool_calls", "memory", "success", "ext"];
    assert_eq!(names, eight);
}

#[test]
fn an_escaped_blob_key_in_a_response_is_ordinary_content() {
    let json = r#"{"type":"tool_use","id":"a","name":"X","input":{"\u0024blob":{"sha256":"00"}}}"#;
    let block = Block::new(RawValue::from_string(json.to_owned()).unwrap());
    let turn = Turn::new_success(1, vec![block], None, Value::Null, vec![], vec![], Map::new(), Map::new());
    let encoded = encode_turn(&turn);
    assert_eq!(referenced_blob_hashes(&encoded.content), encoded.blobs.keys().cloned().collect::<Vec<_>>());
    assert_eq!(decode_encoded(&turn, &encoded), Ok(turn));
}

/// JavaScript may cut a text in the middle of an emoji and write a lone surrogate.
#[test]
fn a_lone_surrogate_loses_no_call_and_no_result() {
    let json = r#"{"type":"tool_use","id":"a","name":"Bash","input":{"command":"echo \ud83d"}}"#;
    let block = Block::new(RawValue::from_string(json.to_owned()).unwrap());
    let outline = plimsoll_domain::turn::parse_response_outline(std::slice::from_ref(&block));
    assert_eq!(outline.calls.len(), 1, "{outline:?}");
    assert_eq!(outline.calls[0].2["command"], "echo \u{fffd}");
    let ext = Map::from_iter([("note".to_owned(), json!("x".repeat(5_000)))]);
    let turn = Turn::new_success(1, vec![block], None, Value::Null, vec![], vec![], Map::new(), ext);
    let encoded = encode_turn(&turn);
    assert_eq!(
        referenced_blob_hashes(&encoded.content).len(),
        1,
        "and hides no piece from whoever checks or erases"
    );
    assert_eq!(decode_encoded(&turn, &encoded), Ok(turn));
}
