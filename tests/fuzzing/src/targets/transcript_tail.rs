//! The end of a transcript, read backwards in chunks: the result is the same as that of a plain scan from the beginning.

use super::Target;
use crate::draw::Draw;
use crate::in_memory;
use crate::seeds::text_seeds;
use plimsoll_domain::Timestamp;
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_store::tail::{self, LastResponse, LatestCompaction, TranscriptTail};
use std::path::Path;
use tempfile::TempDir;

pub(super) const TARGET: Target =
    Target { name: "transcript_tail", check_input, seeds, mutated_input_count: 1_500 };

const WANTED_CALL_ID: &str = "toolu_wanted";
/// The size of the reader's first chunk. Lines of about this length end at its boundaries.
const CHUNK_BYTES: usize = 32 * 1024;
/// The file stays well below the size that the reader accepts.
const MAX_TRANSCRIPT_BYTES: usize = 600 * 1024;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds =
        text_seeds(&["\x00\x01\x02", "\x01\x00\x01", "\x00\x05\x01\x00\x06\x00", "\x02\x02\x00\x03"]);
    seeds.push(vec![0, 1, 4, 8, 0, 0, 2, 4, 9, 1, 5]);
    seeds.push([&[3, 60][..], br#"{"type":"assistant","message":{"usage":{"input_tokens":7}}}"#].concat());
    seeds
}

fn check_input(bytes: &[u8]) {
    let (text, has_call) = draw_transcript(bytes);
    let calls: &[&str] = if has_call { &[WANTED_CALL_ID] } else { &[] };
    with_transcript_file(&text, |path| {
        let actual = tail::find_last_response_or_compaction(path, calls).expect("a file");
        assert_eq!(format!("{actual:?}"), format!("{:?}", scan_from_beginning(&text, calls)));
        let lines = tail::read_last_entries(path, u64::MAX).expect("a file");
        let all_lines: Vec<TranscriptEntry> =
            text.split(|byte| *byte == b'\n').filter_map(TranscriptEntry::parse).collect();
        assert_eq!(format!("{lines:?}"), format!("{all_lines:?}"));
        let _ = tail::read_hook_failures(path, 4096).expect("a file");
        let first_usage_line = all_lines.iter().find(|line| line.has_nonzero_main_conversation_usage());
        let first_usage =
            first_usage_line.and_then(|line| line.message.usage).map(|usage| usage.total_input_tokens());
        assert_eq!(
            tail::read_first_request_tokens_and_prompt_bytes(path).map(|first| first.input_tokens),
            first_usage
        );
    });
}

/// Builds a transcript from the bytes, and decides whether a call is searched for.
fn draw_transcript(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut draw = Draw::from_bytes(bytes);
    let mut text = Vec::new();
    while !draw.is_empty() && text.len() < MAX_TRANSCRIPT_BYTES {
        match draw.byte() % 8 {
            0 | 1 => text.extend(draw_answer_line(&mut draw)),
            2 => text.extend_from_slice(
                br#"{"type":"system","subtype":"compact_boundary","timestamp":"t","compactMetadata":{"preTokens":9}}"#,
            ),
            3 => {
                let length = usize::from(draw.byte());
                text.extend_from_slice(draw.take_bytes(length));
            }
            // A line of another kind that ends near the edge of a chunk.
            4 | 5 => {
                let length = CHUNK_BYTES * usize::from(draw.byte() % 6) + usize::from(draw.byte());
                text.resize(text.len() + length.saturating_sub(120), b'x');
            }
            6 => text.extend_from_slice(br#"{"type":"user","message":{"content":"\"assistant\""}}"#),
            // Longer than the longest line that is searched for.
            _ if draw.byte() > 250 => text.resize(text.len() + 1024 * 1024 + 7, b'y'),
            _ => {}
        }
        if draw.byte() != 255 {
            text.push(b'\n');
        }
    }
    (text, !bytes.len().is_multiple_of(3))
}

fn draw_answer_line(draw: &mut Draw<'_>) -> Vec<u8> {
    let kind = draw.byte();
    let (id, tokens) = (draw.byte() % 4, draw.byte());
    let call = if kind & 1 == 1 { WANTED_CALL_ID } else { "toolu_other" };
    let sidechain_field = if kind & 14 == 14 { r#""isSidechain":true,"# } else { "" };
    let model = if kind & 48 == 48 { "<synthetic>" } else { "claude-opus-5-5" };
    let name = "w".repeat(usize::from(draw.byte()) * usize::from(kind >> 5));
    // Escaped letters make the reader take its slow path.
    let name = if kind & 64 == 64 { format!("{name}\\n") } else { name };
    format!(
        r#"{{"type":"assistant",{sidechain_field}"requestedModel":"m{kind}[1m]","timestamp":"2026","message":{{"id":"msg_{id}","model":"{model}","content":[{{"type":"tool_use","id":"{call}","name":"{name}"}}],"usage":{{"input_tokens":{tokens},"cache_read_input_tokens":5,"output_tokens":2}}}}}}"#
    )
    .into_bytes()
}

/// Scans the text from the beginning and parses each line with the tolerant parser.
fn scan_from_beginning(text: &[u8], calls: &[&str]) -> TranscriptTail {
    let mut tail = TranscriptTail { file_size: text.len() as u64, ..TranscriptTail::default() };
    let mut answers: Vec<(TranscriptEntry, bool, usize)> = Vec::new();
    let mut next_start = 0;
    let mut model = None;
    for bytes in text.split(|byte| *byte == b'\n') {
        let end = next_start + bytes.len();
        next_start = end + 1;
        let contains_marker = |mark: &&str| memchr::memmem::find(bytes, mark.as_bytes()).is_some();
        if !TranscriptEntry::USAGE_MARKERS.iter().any(contains_marker) {
            continue;
        }
        let Some(line) = TranscriptEntry::parse(bytes) else { continue };
        if let Some(metadata) = line.compaction_metadata() {
            answers.clear();
            let (at, client_version) = (line.timestamp.map(Timestamp::from), line.version);
            tail.compaction =
                Some(LatestCompaction { metadata, recorded_at: at, model: model.clone(), client_version });
        } else if line.has_nonzero_main_conversation_usage() {
            model = line.requested_model.clone().or(line.message.model.clone());
            answers.push((line, calls.iter().any(contains_marker), end));
        }
    }
    let Some((last_answer, last_has_call, end)) = answers.last() else { return tail };
    let id = last_answer.message.id.as_deref();
    let is_same_message =
        |(line, ..): &&(TranscriptEntry, bool, usize)| id.is_some() && line.message.id.as_deref() == id;
    let has_requested_call =
        *last_has_call || answers.iter().rev().take_while(is_same_message).any(|(_, is, _)| *is);
    let usage = last_answer.message.usage.unwrap_or_default();
    tail.compaction = None;
    tail.last_response = Some(LastResponse {
        input_tokens: usage.total_input_tokens(),
        output_tokens: usage.output_tokens_or_zero(),
        model,
        message_id: last_answer.message.id.clone(),
        client_version: last_answer.version.clone(),
        recorded_at: last_answer.timestamp.clone().map(Timestamp::from),
        has_requested_tool_call: has_requested_call,
        bytes_after: (text.len() - end) as u64,
    });
    tail
}

/// Writes the text into a file that the thread reuses for all inputs, and calls the function with its path.
fn with_transcript_file(text: &[u8], check: impl FnOnce(&Path)) {
    thread_local! {
        static FOLDER: TempDir = in_memory::temp_folder();
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("transcript.jsonl");
        in_memory::write_creating_folders(&path, text);
        check(&path);
    });
}
