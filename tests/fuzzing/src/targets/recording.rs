//! The lines of a transcript, put together to turns and written into the turn log.

use super::Target;
use crate::seeds::{beginnings, texts};
use plimsoll_domain::text::parse_json_or_null;
use plimsoll_domain::turn::record::{
    decode_fields, decode_turn, encode_fields, encode_turn, referenced_blob_hashes,
};
use plimsoll_policy::turns::{
    AssembledRecord, EndOfInput, MemoryLookup, TurnAssembler, TurnLogRecord, TurnMemory,
};
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_protocol::transcript_content::{
    AgentMetadata, ToolResult, ToolResultContent, TranscriptLine, TranscriptLineKind,
};
use serde_json::{Map, Value, json};

pub(super) const TARGET: Target = Target { name: "recording", body, seeds, inputs: 2_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = beginnings("fixtures/transcripts", ".jsonl");
    seeds.extend(texts(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"$blob":{"sha256":"x"}}}],"stop_reason":"tool_use"}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"Exit code 1\nno","is_error":true}]},"toolUseResult":{"stdout":"a\ud83d"}}
{"type":"assistant","message":{"id":"n","content":"done","stop_reason":"end_turn"}}"#,
        r#"{"agentType":"frame","toolUseId":"t"}"#,
    ]));
    seeds
}

fn body(bytes: &[u8]) {
    let _ = AgentMetadata::parse(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        quick_and_patient(line);
        results_in_one_go(line);
    }
    let (whole, blocks) = assembled(bytes, false);
    let (in_steps, _) = assembled(bytes, true);
    same_records(&whole, &in_steps);
    let mut number = 0;
    let mut kept = 0;
    for made in &whole {
        match &made.record {
            TurnLogRecord::Turn { turn, .. } => {
                number += 1;
                assert_eq!(turn.number(), number, "without gaps");
                kept += turn.raw_response().len();
                let encoded = encode_turn(turn);
                assert!(!encoded.content.contains('\n'), "one line");
                let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
                let read = decode_turn(turn.number(), turn.is_success(), &encoded.content, &fetch);
                assert_eq!(read.as_ref(), Ok(turn.as_ref()), "read back");
                assert!(
                    referenced_blob_hashes(&encoded.content)
                        .iter()
                        .all(|hash| encoded.blobs.contains_key(hash))
                );
            }
            TurnLogRecord::Event { fields, .. } => {
                kept += fields.get("blocks").and_then(Value::as_array).map_or(0, Vec::len);
                let encoded = encode_fields(fields);
                let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
                assert_eq!(decode_fields(&encoded.content, &fetch).as_ref(), Ok(fields), "read back");
            }
        }
    }
    assert_eq!(kept, blocks, "no block is lost, and none is there twice");
}

/// Whenever it is taken, the same is made; only what is taken late may know that more has been read.
fn same_records(whole: &[AssembledRecord], in_steps: &[AssembledRecord]) {
    assert_eq!(whole.len(), in_steps.len());
    for (one, other) in whole.iter().zip(in_steps) {
        assert!(one.read_offset >= other.read_offset && one.timestamp == other.timestamp);
        assert_eq!(format!("{:?}", one.record), format!("{:?}", other.record));
    }
}

/// What is made of all lines, and how many blocks the answers among them had.
fn assembled(bytes: &[u8], take_often: bool) -> (Vec<AssembledRecord>, usize) {
    let memory = |at: &str| TurnMemory::Snapshot(Map::from_iter([("at".to_owned(), json!(at))]));
    let mut assembler = TurnAssembler::resume_after_turn(0, "", 0, Map::new(), MemoryLookup(&memory));
    let (mut made, mut blocks, mut at) = (Vec::new(), 0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len() as u64;
        let said = TranscriptLine::parse(line);
        if let Some(TranscriptLineKind::Response(answer)) = said.as_ref().map(|said| &said.kind) {
            blocks += answer.blocks.len();
            check_blocks(line, answer);
        }
        assembler.feed_line(said, at);
        assert!(assembler.resume_offset() <= assembler.read_offset() && assembler.read_offset() == at);
        if take_often {
            made.extend(assembler.take_finished_records());
        }
    }
    assembler.finish_input(EndOfInput::Complete);
    made.extend(assembler.take_finished_records());
    (made, blocks)
}

/// The raw response is what stands there, byte for byte.
fn check_blocks(line: &[u8], answer: &plimsoll_protocol::transcript_content::ResponsePart) {
    let Ok(line) = std::str::from_utf8(line) else { return };
    for block in &answer.blocks {
        let is_of_a_text = block.get().starts_with(r#"{"type":"text","text":"#);
        assert!(is_of_a_text || line.contains(block.get()), "{}", block.get());
    }
}

/// A line with results that is read in one go says what it says where it is spelled in a way that the client does not use.
fn results_in_one_go(line: &[u8]) {
    let Ok(line) = std::str::from_utf8(line) else { return };
    let patient =
        TranscriptLine::parse(line.replacen(r#""type":"user""#, r#""type" : "user""#, 1).as_bytes());
    match (TranscriptLine::parse(line.as_bytes()), patient) {
        (Some(quick), Some(patient)) => assert_eq!(results(&quick), results(&patient), "{line}"),
        (quick, patient) => assert_eq!(quick.is_some(), patient.is_some(), "{line}"),
    }
}

fn results(line: &TranscriptLine) -> String {
    let TranscriptLineKind::ToolResults(results) = &line.kind else { return format!("{line:?}") };
    let result = |result: &ToolResult| {
        let content = match &result.content {
            Some(ToolResultContent::Parsed(value)) => value.clone(),
            Some(ToolResultContent::Raw(raw)) => parse_json_or_null(raw.get()),
            None => Value::Null,
        };
        format!("{content} {:?}", (result.content_as_text(), ToolResult { content: None, ..result.clone() }))
    };
    let results: Vec<String> = results.iter().map(result).collect();
    format!("{:?} {} {results:?}", line.timestamp, line.is_sidechain)
}

/// A line read for its usage alone says what the whole line says.
fn quick_and_patient(line: &[u8]) {
    let (quick, patient) = (TranscriptEntry::parse_usage_only(line), TranscriptEntry::parse(line));
    assert_eq!(quick.is_some(), patient.is_some());
    let (Some(quick), Some(patient)) = (quick, patient) else { return };
    assert_eq!(quick.has_main_usage(), patient.has_main_usage());
    assert_eq!(format!("{:?}", quick.compaction_metadata()), format!("{:?}", patient.compaction_metadata()));
    assert_eq!(quick.message.usage, patient.message.usage);
    assert_eq!(quick.requested_model, patient.requested_model);
    assert_eq!((&quick.message.id, &quick.timestamp), (&patient.message.id, &patient.timestamp));
    let _ = (
        patient.file_change(),
        patient.tool_use_result.as_deref().map(plimsoll_protocol::tool::measure_visible_size),
    );
}
