//! The end of a transcript, read backwards in chunks: it says the same as a plain scan from the beginning.

use super::Target;
use crate::draw::Draw;
use crate::in_memory;
use crate::seeds::texts;
use plimsoll_domain::Timestamp;
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_store::tail::{self, LastResponse, LatestCompaction, TranscriptTail};
use std::path::Path;
use tempfile::TempDir;

pub(super) const TARGET: Target = Target { name: "transcript_tail", body, seeds, inputs: 1_500 };

const CALL: &str = "toolu_wanted";
/// The reader's first chunk: lines as long as this fall on its edges.
const CHUNK: usize = 32 * 1024;
/// The file stays well below what the reader is ready to read.
const LARGEST: usize = 600 * 1024;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&["\x00\x01\x02", "\x01\x00\x01", "\x00\x05\x01\x00\x06\x00", "\x02\x02\x00\x03"]);
    seeds.push(vec![0, 1, 4, 8, 0, 0, 2, 4, 9, 1, 5]);
    seeds.push([&[3, 60][..], br#"{"type":"assistant","message":{"usage":{"input_tokens":7}}}"#].concat());
    seeds
}

fn body(bytes: &[u8]) {
    let (text, is_asked) = transcript(bytes);
    let calls: &[&str] = if is_asked { &[CALL] } else { &[] };
    with_file(&text, |path| {
        let read = tail::read_tail(path, calls).expect("a file");
        assert_eq!(format!("{read:?}"), format!("{:?}", plain_scan(&text, calls)));
        let lines = tail::read_last_entries(path, u64::MAX).expect("a file");
        let all: Vec<TranscriptEntry> =
            text.split(|byte| *byte == b'\n').filter_map(TranscriptEntry::parse).collect();
        assert_eq!(format!("{lines:?}"), format!("{all:?}"));
        let _ = tail::read_hook_failures(path, 4096).expect("a file");
        let first = all.iter().find(|line| line.has_main_usage());
        let first = first.and_then(|line| line.message.usage).map(|usage| usage.total_input_tokens());
        assert_eq!(tail::find_first_request(path).map(|first| first.input_tokens), first);
    });
}

/// A transcript as the bytes choose it, and whether a call is looked for.
fn transcript(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut draw = Draw::from(bytes);
    let mut text = Vec::new();
    while !draw.is_empty() && text.len() < LARGEST {
        match draw.byte() % 8 {
            0 | 1 => text.extend(answer(&mut draw)),
            2 => text.extend_from_slice(
                br#"{"type":"system","subtype":"compact_boundary","timestamp":"t","compactMetadata":{"preTokens":9}}"#,
            ),
            3 => {
                let length = usize::from(draw.byte());
                text.extend_from_slice(draw.bytes(length));
            }
            // A line of another kind that ends near the edge of a chunk.
            4 | 5 => {
                let length = CHUNK * usize::from(draw.byte() % 6) + usize::from(draw.byte());
                text.resize(text.len() + length.saturating_sub(120), b'x');
            }
            6 => text.extend_from_slice(br#"{"type":"user","message":{"content":"\"assistant\""}}"#),
            // Longer than any line that is looked for.
            _ if draw.byte() > 250 => text.resize(text.len() + 1024 * 1024 + 7, b'y'),
            _ => {}
        }
        if draw.byte() != 255 {
            text.push(b'\n');
        }
    }
    (text, !bytes.len().is_multiple_of(3))
}

fn answer(draw: &mut Draw<'_>) -> Vec<u8> {
    let kind = draw.byte();
    let (id, tokens) = (draw.byte() % 4, draw.byte());
    let call = if kind & 1 == 1 { CALL } else { "toolu_other" };
    let side = if kind & 14 == 14 { r#""isSidechain":true,"# } else { "" };
    let model = if kind & 48 == 48 { "<synthetic>" } else { "claude-opus-5-5" };
    let words = "w".repeat(usize::from(draw.byte()) * usize::from(kind >> 5));
    // Letters that are written as escapes take the reader's patient way.
    let words = if kind & 64 == 64 { format!("{words}\\n") } else { words };
    format!(
        r#"{{"type":"assistant",{side}"requestedModel":"m{kind}[1m]","timestamp":"2026","message":{{"id":"msg_{id}","model":"{model}","content":[{{"type":"tool_use","id":"{call}","name":"{words}"}}],"usage":{{"input_tokens":{tokens},"cache_read_input_tokens":5,"output_tokens":2}}}}}}"#
    )
    .into_bytes()
}

/// The same from the beginning to the end, each line with all forgiveness.
fn plain_scan(text: &[u8], calls: &[&str]) -> TranscriptTail {
    let mut tail = TranscriptTail { file_size: text.len() as u64, ..TranscriptTail::default() };
    let mut answers: Vec<(TranscriptEntry, bool, usize)> = Vec::new();
    let mut next = 0;
    let mut model = None;
    for bytes in text.split(|byte| *byte == b'\n') {
        let end = next + bytes.len();
        next = end + 1;
        let has = |mark: &&str| memchr::memmem::find(bytes, mark.as_bytes()).is_some();
        if !TranscriptEntry::USAGE_MARKERS.iter().any(has) {
            continue;
        }
        let Some(line) = TranscriptEntry::parse(bytes) else { continue };
        if let Some(metadata) = line.compaction_metadata() {
            answers.clear();
            let (at, client_version) = (line.timestamp.map(Timestamp::from), line.version);
            tail.compaction =
                Some(LatestCompaction { metadata, recorded_at: at, model: model.clone(), client_version });
        } else if line.has_main_usage() {
            model = line.requested_model.clone().or(line.message.model.clone());
            answers.push((line, calls.iter().any(has), end));
        }
    }
    let Some((last, is_last, end)) = answers.last() else { return tail };
    let id = last.message.id.as_deref();
    let same =
        |(line, ..): &&(TranscriptEntry, bool, usize)| id.is_some() && line.message.id.as_deref() == id;
    let is_the_one = *is_last || answers.iter().rev().take_while(same).any(|(_, is, _)| *is);
    let usage = last.message.usage.unwrap_or_default();
    tail.compaction = None;
    tail.last_response = Some(LastResponse {
        input_tokens: usage.total_input_tokens(),
        output_tokens: usage.output_tokens_or_zero(),
        model,
        message_id: last.message.id.clone(),
        client_version: last.version.clone(),
        recorded_at: last.timestamp.clone().map(Timestamp::from),
        has_requested_tool_call: is_the_one,
        bytes_after: (text.len() - end) as u64,
    });
    tail
}

/// One file for all inputs of a thread.
fn with_file(text: &[u8], look: impl FnOnce(&Path)) {
    thread_local! {
        static FOLDER: TempDir = in_memory::folder();
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("transcript.jsonl");
        in_memory::write(&path, text);
        look(&path);
    });
}
