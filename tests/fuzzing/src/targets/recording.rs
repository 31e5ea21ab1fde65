//! The lines of a transcript, assembled into turns and written into the turn log.

use super::Target;
use crate::seeds::{file_beginnings, text_seeds};
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

pub(super) const TARGET: Target =
    Target { name: "recording", check_input, seeds, mutated_input_count: 2_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = file_beginnings("fixtures/transcripts", ".jsonl");
    seeds.extend(text_seeds(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"$blob":{"sha256":"x"}}}],"stop_reason":"tool_use"}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"Exit code 1\nno","is_error":true}]},"toolUseResult":{"stdout":"a\ud83d"}}
{"type":"assistant","message":{"id":"n","content":"done","stop_reason":"end_turn"}}"#,
        r#"{"agentType":"frame","toolUseId":"t"}"#,
    ]));
    seeds
}

fn check_input(bytes: &[u8]) {
    let _ = AgentMetadata::parse(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        check_usage_parser(line);
        check_fast_result_parser(line);
    }
    let (all_at_once, block_count) = assemble_records(bytes, false);
    let (in_steps, _) = assemble_records(bytes, true);
    assert_same_records(&all_at_once, &in_steps);
    let mut turn_count = 0;
    let mut kept_block_count = 0;
    for record in &all_at_once {
        match &record.record {
            TurnLogRecord::Turn { turn, .. } => {
                turn_count += 1;
                assert_eq!(turn.number(), turn_count, "without gaps");
                kept_block_count += turn.raw_response().len();
                let encoded = encode_turn(turn);
                assert!(!encoded.content.contains('\n'), "one line");
                let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
                let decoded = decode_turn(turn.number(), turn.is_success(), &encoded.content, &fetch);
                assert_eq!(decoded.as_ref(), Ok(turn.as_ref()), "read back");
                assert!(
                    referenced_blob_hashes(&encoded.content)
                        .iter()
                        .all(|hash| encoded.blobs.contains_key(hash))
                );
            }
            TurnLogRecord::Event { fields, .. } => {
                kept_block_count += fields.get("blocks").and_then(Value::as_array).map_or(0, Vec::len);
                let encoded = encode_fields(fields);
                let fetch = |hash: &str| encoded.blobs.get(hash).map(|text| text.as_bytes().to_vec());
                assert_eq!(decode_fields(&encoded.content, &fetch).as_ref(), Ok(fields), "read back");
            }
        }
    }
    assert_eq!(kept_block_count, block_count, "no block is lost, and none is there twice");
}

/// Asserts that taking records after each line gives the same ones as taking them all at the end. Only the read position
/// of a record that is taken late may be further ahead.
fn assert_same_records(all_at_once: &[AssembledRecord], in_steps: &[AssembledRecord]) {
    assert_eq!(all_at_once.len(), in_steps.len());
    for (late, early) in all_at_once.iter().zip(in_steps) {
        assert!(late.read_offset >= early.read_offset && late.timestamp == early.timestamp);
        assert_eq!(format!("{:?}", late.record), format!("{:?}", early.record));
    }
}

/// Returns the records assembled from all lines, and the number of blocks in the responses among the lines.
fn assemble_records(bytes: &[u8], take_after_each_line: bool) -> (Vec<AssembledRecord>, usize) {
    let memory_at = |at: &str| TurnMemory::Snapshot(Map::from_iter([("at".to_owned(), json!(at))]));
    let mut assembler = TurnAssembler::resume_after_turn(0, "", 0, Map::new(), MemoryLookup(&memory_at));
    let (mut records, mut block_count, mut offset) = (Vec::new(), 0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        offset += line.len() as u64;
        let parsed_line = TranscriptLine::parse_utf8_lossy(line);
        if let Some(TranscriptLineKind::Response(answer)) = parsed_line.as_ref().map(|parsed| &parsed.kind) {
            block_count += answer.blocks.len();
            assert_blocks_are_verbatim(line, answer);
        }
        assembler.feed_line(parsed_line, offset);
        assert!(assembler.resume_offset() <= assembler.read_offset() && assembler.read_offset() == offset);
        if take_after_each_line {
            records.extend(assembler.take_finished_records());
        }
    }
    assembler.finish_input(EndOfInput::Complete);
    records.extend(assembler.take_finished_records());
    (records, block_count)
}

/// Asserts that each raw block occurs in the line byte for byte.
fn assert_blocks_are_verbatim(line: &[u8], answer: &plimsoll_protocol::transcript_content::ResponsePart) {
    let Ok(line) = std::str::from_utf8(line) else { return };
    for block in &answer.blocks {
        let is_plain_text = block.get().starts_with(r#"{"type":"text","text":"#);
        assert!(is_plain_text || line.contains(block.get()), "{}", block.get());
    }
}

/// Asserts that the fast parser of a line with tool results agrees with the general one, which reads any spelling that
/// the client does not write itself.
fn check_fast_result_parser(line: &[u8]) {
    let Ok(line) = std::str::from_utf8(line) else { return };
    let slow_line = TranscriptLine::parse_utf8_lossy(
        line.replacen(r#""type":"user""#, r#""type" : "user""#, 1).as_bytes(),
    );
    match (TranscriptLine::parse_utf8_lossy(line.as_bytes()), slow_line) {
        (Some(fast), Some(slow)) => assert_eq!(describe_results(&fast), describe_results(&slow), "{line}"),
        (fast, slow) => assert_eq!(fast.is_some(), slow.is_some(), "{line}"),
    }
}

fn describe_results(line: &TranscriptLine) -> String {
    let TranscriptLineKind::ToolResults(results) = &line.kind else { return format!("{line:?}") };
    let describe_result = |result: &ToolResult| {
        let content = match &result.content {
            Some(ToolResultContent::Parsed(value)) => value.clone(),
            Some(ToolResultContent::Raw(raw)) => parse_json_or_null(raw.get()),
            None => Value::Null,
        };
        format!("{content} {:?}", (result.content_as_text(), ToolResult { content: None, ..result.clone() }))
    };
    let results: Vec<String> = results.iter().map(describe_result).collect();
    format!("{:?} {} {results:?}", line.timestamp, line.is_sidechain)
}

/// Asserts that parsing a line for its usage alone agrees with parsing it completely.
fn check_usage_parser(line: &[u8]) {
    let (usage_only, full_line) = (TranscriptEntry::parse_usage_only(line), TranscriptEntry::parse(line));
    assert_eq!(usage_only.is_some(), full_line.is_some());
    let (Some(usage_only), Some(full_line)) = (usage_only, full_line) else { return };
    assert_eq!(
        usage_only.has_nonzero_main_conversation_usage(),
        full_line.has_nonzero_main_conversation_usage()
    );
    assert_eq!(
        format!("{:?}", usage_only.compaction_metadata()),
        format!("{:?}", full_line.compaction_metadata())
    );
    assert_eq!(usage_only.message.usage, full_line.message.usage);
    assert_eq!(usage_only.requested_model, full_line.requested_model);
    assert_eq!(
        (&usage_only.message.id, &usage_only.timestamp),
        (&full_line.message.id, &full_line.timestamp)
    );
    let _ = (
        full_line.file_change(),
        full_line.tool_use_result.as_deref().map(plimsoll_protocol::tool::measure_visible_size),
    );
}
