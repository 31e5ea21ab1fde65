//! A line of the turn log: its frame, its chain, its content.

use super::Target;
use crate::draw::{dice, parts};
use plimsoll_domain::log_line::{
    EMPTY_LINK, LogLine, MAIN_STREAM, RecordHeader, RecordKind, TokenUsage, render_erased_line,
    render_line_and_link,
};
use plimsoll_domain::turn::record::{
    DecodeError, decode_fields, decode_turn, encode_fields, encode_turn, referenced_blob_hashes,
};
use serde_json::{Map, Value};

pub(super) const TARGET: Target = Target { name: "turn_log", body, seeds, inputs: 10_000 };

const TURN: &str = r#"{"raw_response":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"result":"done","prints":["x"],"tool_calls":[{"result":"y","ext":{"id":"t","ok":true}}],"memory":{"heap":{"a":"b"}},"ext":{"message":"m"}}"#;
const FAILED: &str = r#"{"raw_response":[],"program":"p","result":{"reason":"api_error","message":"overloaded"},"prints":[],"tool_calls":[{"asked":["Read",{"a":{"$blob":{"literal":{"$blob":1}}}}],"result":null,"ext":{}}],"memory":{},"ext":{},"later":5}"#;

fn seeds() -> Vec<Vec<u8>> {
    let (first, link) = render_line_and_link(EMPTY_LINK, header(1), TURN);
    let (second, _) = render_line_and_link(&link, header(2), "{\"text\":\"\"}");
    let mut seeds: Vec<Vec<u8>> =
        vec![first.trim_end().into(), second.trim_end().into(), FAILED.into(), TURN.into()];
    seeds.push([b"x\xff".as_slice(), FAILED.as_bytes()].concat());
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

fn body(bytes: &[u8]) {
    let (first, rest) = parts(bytes);
    if let Some(foreign) = LogLine::parse(first) {
        let _ = (foreign.has_intact_content(), foreign.is_chained_to(EMPTY_LINK));
        let text = render_erased_line(&foreign, first.len());
        let after = LogLine::parse(text.as_bytes()).expect("a line");
        assert!(after.is_erased() && after.has_intact_content());
        assert_eq!((after.header_bytes, after.link), (foreign.header_bytes, foreign.link));
        assert_eq!(after.is_chained_to(EMPTY_LINK), foreign.is_chained_to(EMPTY_LINK), "the chain holds");
        content(foreign.content);
    }
    let text = String::from_utf8_lossy(if rest.is_empty() { first } else { rest });
    content(&text);
    framed(&text, bytes);
}

/// What was written is read, and what was changed is seen.
fn framed(content: &str, bytes: &[u8]) {
    let is_one_line = !content.contains('\n') && content.trim() == content;
    if !is_one_line || serde_json::from_str::<Value>(content).is_err() {
        return;
    }
    let (text, link) = render_line_and_link("before", header(3), content);
    let text = text.trim_end();
    let read = LogLine::parse(text.as_bytes()).expect("what we wrote");
    assert_eq!((read.content, read.link), (content, link.as_str()));
    assert!(read.has_intact_content() && read.is_chained_to("before") && !read.is_chained_to(EMPTY_LINK));
    let mut changed = text.as_bytes().to_vec();
    let place = dice(bytes) % changed.len();
    changed[place] ^= 1 << (dice(bytes) / 3 % 8);
    let is_seen = LogLine::parse(&changed)
        .is_none_or(|line| line.is_erased() || !line.has_intact_content() || !line.is_chained_to("before"));
    assert!(is_seen, "a changed byte {place}");
}

fn content(text: &str) {
    let _ = referenced_blob_hashes(text);
    let none = |_: &str| None;
    for success in [true, false] {
        let Ok(turn) = decode_turn(1, success, text, &none) else { continue };
        let encoded = encode_turn(&turn);
        let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
        assert_eq!(decode_turn(1, success, &encoded.content, &fetch), Ok(turn), "written and read");
        assert_eq!(
            decode_turn(0, success, text, &none)
                .err()
                .map(|fault| matches!(fault, DecodeError::InvalidShape(_))),
            Some(true)
        );
    }
    let Ok(fields) = decode_fields(text, &none) else { return };
    let fields: Map<String, Value> = fields;
    let encoded = encode_fields(&fields);
    let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
    assert_eq!(decode_fields(&encoded.content, &fetch), Ok(fields), "written and read");
}
