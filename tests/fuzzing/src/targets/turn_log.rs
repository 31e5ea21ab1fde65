//! A line of the turn log: its framing, its hash chain, its content.

use super::Target;
use crate::draw::{hash_of_bytes, split_at_separator};
use plimsoll_domain::log_line::{
    EMPTY_CHAIN_HASH, LogLine, MAIN_STREAM, RecordHeader, RecordKind, TokenUsage, render_erased_line,
    render_line_and_chain_hash,
};
use plimsoll_domain::turn::record::{
    DecodeError, decode_fields, decode_turn, encode_fields, encode_turn, referenced_blob_hashes,
};
use serde_json::{Map, Value};

pub(super) const TARGET: Target =
    Target { name: "turn_log", check_input, seeds, mutated_input_count: 10_000 };

const TURN_JSON: &str = r#"{"raw_response":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"result":"done","prints":["x"],"tool_calls":[{"result":"y","ext":{"id":"t","ok":true}}],"memory":{"heap":{"a":"b"}},"ext":{"message":"m"}}"#;
const FAILED_TURN_JSON: &str = r#"{"raw_response":[],"program":"p","result":{"reason":"api_error","message":"overloaded"},"prints":[],"tool_calls":[{"asked":["Read",{"a":{"$blob":{"literal":{"$blob":1}}}}],"result":null,"ext":{}}],"memory":{},"ext":{},"later":5}"#;

fn seeds() -> Vec<Vec<u8>> {
    let (first, link) = render_line_and_chain_hash(EMPTY_CHAIN_HASH, header(1), TURN_JSON);
    let (second, _) = render_line_and_chain_hash(&link, header(2), "{\"text\":\"\"}");
    let mut seeds: Vec<Vec<u8>> =
        vec![first.trim_end().into(), second.trim_end().into(), FAILED_TURN_JSON.into(), TURN_JSON.into()];
    seeds.push([b"x\xff".as_slice(), FAILED_TURN_JSON.as_bytes()].concat());
    seeds
}

fn header(seq: u64) -> RecordHeader {
    RecordHeader {
        format_version: 1,
        sequence_number: seq,
        recorded_at: "2026-01-07T11:45:00Z".into(),
        kind: RecordKind::Turn,
        stream: MAIN_STREAM.into(),
        turn_number: Some(seq),
        message_id: Some("m".into()),
        succeeded: Some(true),
        failure_reason: None,
        usage: Some(TokenUsage::default()),
        transcript_offset: Some(7),
        pending_file: None,
        content_hash: String::new(),
    }
}

fn check_input(bytes: &[u8]) {
    let (first, rest) = split_at_separator(bytes);
    if let Some(log_line) = LogLine::parse(first) {
        let _ = (log_line.has_intact_content(), log_line.is_chained_to(EMPTY_CHAIN_HASH));
        let erased_text = render_erased_line(&log_line, first.len());
        let erased_line = LogLine::parse(erased_text.as_bytes()).expect("a line");
        assert!(erased_line.is_erased() && erased_line.has_intact_content());
        assert_eq!(
            (erased_line.header_bytes, erased_line.chain_hash),
            (log_line.header_bytes, log_line.chain_hash)
        );
        assert_eq!(
            erased_line.is_chained_to(EMPTY_CHAIN_HASH),
            log_line.is_chained_to(EMPTY_CHAIN_HASH),
            "the chain holds"
        );
        check_content(log_line.content);
    }
    let text = String::from_utf8_lossy(if rest.is_empty() { first } else { rest });
    check_content(&text);
    check_framing(&text, bytes);
}

/// Asserts that a written line is read back, and that any change of a bit is detected.
fn check_framing(content: &str, bytes: &[u8]) {
    let is_one_line = !content.contains('\n') && content.trim() == content;
    if !is_one_line || serde_json::from_str::<Value>(content).is_err() {
        return;
    }
    let (text, link) = render_line_and_chain_hash("before", header(3), content);
    let text = text.trim_end();
    let parsed = LogLine::parse(text.as_bytes()).expect("what we wrote");
    assert_eq!((parsed.content, parsed.chain_hash), (content, link.as_str()));
    assert!(
        parsed.has_intact_content()
            && parsed.is_chained_to("before")
            && !parsed.is_chained_to(EMPTY_CHAIN_HASH)
    );
    let mut changed = text.as_bytes().to_vec();
    let index = hash_of_bytes(bytes) % changed.len();
    changed[index] ^= 1 << (hash_of_bytes(bytes) / 3 % 8);
    let is_detected = LogLine::parse(&changed)
        .is_none_or(|line| line.is_erased() || !line.has_intact_content() || !line.is_chained_to("before"));
    assert!(is_detected, "a changed byte {index}");
}

fn check_content(text: &str) {
    let _ = referenced_blob_hashes(text);
    let no_blobs = |_: &str| None;
    for success in [true, false] {
        let Ok(turn) = decode_turn(1, success, text, &no_blobs) else { continue };
        let encoded = encode_turn(&turn);
        let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
        assert_eq!(decode_turn(1, success, &encoded.content, &fetch), Ok(turn), "written and read");
        assert_eq!(
            decode_turn(0, success, text, &no_blobs)
                .err()
                .map(|fault| matches!(fault, DecodeError::InvalidShape(_))),
            Some(true)
        );
    }
    let Ok(fields) = decode_fields(text, &no_blobs) else { return };
    let fields: Map<String, Value> = fields;
    let encoded = encode_fields(&fields);
    let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
    assert_eq!(decode_fields(&encoded.content, &fetch), Ok(fields), "written and read");
}
