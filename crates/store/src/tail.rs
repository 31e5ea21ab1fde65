//! Reads a transcript backwards from its end. The cost does not depend on the file's size, and memory stays
//! small: a line longer than [`MAX_LINE_BYTES`] is skipped without being kept, because no line that is searched
//! for (a response of the model, a compaction boundary) can be that long.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

mod conversation;

pub use conversation::{MAX_TAIL_BYTES, RequestsAndTasks, read_requests_and_tasks};

use crate::search::{contains_bytes, find_last_newline};
use crate::turn_log::{ForwardLines, LineStart};
use crate::{StoreError, clock, disk, io_error};
use memchr::memmem;
use plimsoll_domain::Timestamp;
use plimsoll_domain::forecast::UsageSample;
use plimsoll_protocol::hook_failure::HookFailure;
use plimsoll_protocol::transcript::{CompactMetadata, TranscriptEntry};
use plimsoll_protocol::transcript_content::TranscriptLine;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// No response is longer: 128k output tokens are about 600 KB of JSON.
const MAX_LINE_BYTES: usize = 1024 * 1024;
/// Beyond this distance from the end the usage is reported as unknown, because reading on would be too slow.
const MAX_BYTES_FROM_END: u64 = 8 * 1024 * 1024;
// The last usage is usually near the end, and unread bytes cost no memory. One read of a fixed size could
// miss it: the result of reading a picture was one line of 852 KB (2.1.329).
const FIRST_CHUNK_BYTES: usize = 8 * 1024;
const MAX_CHUNK_BYTES: usize = 256 * 1024;

/// The entries at the end of a transcript.
#[derive(Debug, Clone, Default)]
pub struct TranscriptTail {
    /// The last response of the main conversation.
    pub last_response: Option<LastResponse>,
    /// A compaction after the last response, if any.
    pub compaction: Option<LatestCompaction>,
    /// The file's size when it was read; 0 also if the file does not exist.
    pub file_size: u64,
}

/// A compaction that comes after every response.
#[derive(Debug, Clone, Default)]
pub struct LatestCompaction {
    /// The record that the client wrote about the compaction.
    pub metadata: CompactMetadata,
    /// When the line was written, RFC 3339.
    pub recorded_at: Option<Timestamp>,
    /// The model of the last response before it, with its `[1m]` suffix.
    pub model: Option<String>,
    pub client_version: Option<String>,
}

/// The last response of the main conversation.
#[derive(Debug, Clone, Default)]
pub struct LastResponse {
    /// All input tokens, including cache reads and writes.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The requested model, with its `[1m]` suffix.
    pub model: Option<String>,
    pub message_id: Option<String>,
    pub client_version: Option<String>,
    /// When the line was written, RFC 3339.
    pub recorded_at: Option<Timestamp>,
    /// True if one of its lines contains one of the tool calls that were searched for.
    pub has_requested_tool_call: bool,
    /// How many bytes of the file follow it.
    pub bytes_after: u64,
}

/// Finds the last response, or the compaction after it, by reading a transcript backwards. Also finds whether the
/// response contains one of these tool calls. Returns an empty tail for a missing file.
pub fn find_last_response_or_compaction(
    path: &Path,
    tool_use_ids_to_check_for: &[&str],
) -> Result<TranscriptTail, StoreError> {
    let Some((file, size)) = disk::open_with_size_if_exists(path)? else {
        return Ok(TranscriptTail::default());
    };
    let mut tail = TranscriptTail { file_size: size, ..TranscriptTail::default() };
    visit_lines_backwards(&file, size, &mut |line_start, bytes| {
        update_tail_from_line(line_start, bytes, tool_use_ids_to_check_for, &mut tail)
    })
    .map_err(io_error("read", path))?;
    Ok(tail)
}

/// Returns the transcript entries in the last `max_bytes` bytes, oldest first.
pub fn read_last_entries(path: &Path, max_bytes: u64) -> Result<Vec<TranscriptEntry>, StoreError> {
    let mut entries = Vec::new();
    visit_last_lines_backwards(path, max_bytes, &mut |bytes| {
        entries.extend(TranscriptEntry::parse(bytes));
        ControlFlow::Continue(())
    })?;
    entries.reverse();
    Ok(entries)
}

/// Returns the lines of a conversation with their content, in the last `max_bytes` bytes, oldest first.
pub fn read_last_lines_with_content(path: &Path, max_bytes: u64) -> Result<Vec<TranscriptLine>, StoreError> {
    let mut lines = Vec::new();
    visit_last_lines_backwards(path, max_bytes, &mut |bytes| {
        lines.extend(TranscriptLine::parse_utf8_lossy(bytes));
        ControlFlow::Continue(())
    })?;
    lines.reverse();
    Ok(lines)
}

/// Returns the context usage after each of the last responses since the last compaction, oldest first. Reads at
/// most the last `max_bytes` bytes of the transcript, and returns at most `max_samples` samples.
pub fn read_usage_samples_since_compaction(
    path: &Path,
    max_samples: usize,
    max_bytes: u64,
) -> Result<Vec<UsageSample>, StoreError> {
    let mut samples = Vec::new();
    let mut last_message_id = None;
    visit_last_lines_backwards(path, max_bytes, &mut |bytes| {
        let entry = if has_usage_or_compaction_marker(bytes) {
            TranscriptEntry::parse_usage_only(bytes)
        } else {
            None
        };
        let is_compaction_boundary =
            entry.as_ref().is_some_and(|entry| entry.compaction_metadata().is_some());
        if let Some(entry) = entry.filter(TranscriptEntry::has_nonzero_main_conversation_usage) {
            // A response has one line for each of its parts; the first of them has its time.
            let unix_seconds =
                entry.timestamp.as_deref().and_then(clock::parse_rfc3339).map(|time| time.timestamp());
            let sample = UsageSample {
                used_tokens: entry.message.usage.unwrap_or_default().total_input_tokens(),
                unix_seconds,
            };
            match samples.last_mut() {
                Some(last_sample) if entry.message.id.is_some() && entry.message.id == last_message_id => {
                    *last_sample = sample;
                }
                _ => samples.push(sample),
            }
            last_message_id = entry.message.id;
        }
        // The oldest sample is final only once a line of an earlier response has been read.
        let has_enough_samples = is_compaction_boundary || samples.len() > max_samples;
        if has_enough_samples { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    samples.truncate(max_samples);
    samples.reverse();
    Ok(samples)
}

/// Calls `visit` for each line of a transcript that begins at this byte or later, including an unfinished last
/// line. Returns the offset for the next call: the start of an unfinished line, or else the end of the file.
pub fn visit_lines_and_partial_from_resume_offset(
    path: &Path,
    resume_offset: u64,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<u64, StoreError> {
    let mut lines = ForwardLines::open_at(path, LineStart { line_number: 0, offset: resume_offset })?;
    let mut line = ForwardLines::empty_line();
    while lines.read_line_into(&mut line)? {
        visit(&line.bytes);
        if !line.has_newline {
            // The client is still writing this line, so the next call visits it again.
            return Ok(line.start.offset);
        }
    }
    Ok(lines.next_offset())
}

/// Returns true if the line contains a marker, without parsing it.
pub fn contains_marker(bytes: &[u8], marker: &str) -> bool {
    contains_bytes(bytes, marker.as_bytes())
}

/// Returns the hook failures that the client recorded in the last bytes of a transcript, oldest first.
pub fn read_hook_failures(path: &Path, max_bytes: u64) -> Result<Vec<HookFailure>, StoreError> {
    let mut failures = Vec::new();
    visit_last_lines_backwards(path, max_bytes, &mut |bytes| {
        if memmem::find(bytes, HookFailure::LINE_MARKER.as_bytes()).is_some() {
            failures.extend(HookFailure::from_error_or_timeout_line(bytes));
        }
        ControlFlow::Continue(())
    })?;
    failures.reverse();
    Ok(failures)
}

/// Visits the lines of a transcript from the last to the first, until `visit` breaks or the visited lines have
/// more than `max_bytes` bytes.
fn visit_last_lines_backwards(
    path: &Path,
    max_bytes: u64,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let Some((file, size)) = disk::open_with_size_if_exists(path)? else { return Ok(()) };
    let mut visited_bytes = 0;
    let visit_with_limit = &mut |_, bytes: &[u8]| {
        visited_bytes += bytes.len() as u64;
        visit(bytes)?;
        if visited_bytes > max_bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    visit_lines_backwards(&file, size, visit_with_limit).map_err(io_error("read", path))
}

/// Returns true if the line may have usage or a compaction. Most bytes of a transcript are tool results, so
/// only lines with a marker are parsed.
fn has_usage_or_compaction_marker(bytes: &[u8]) -> bool {
    TranscriptEntry::USAGE_MARKERS.iter().any(|marker| contains_bytes(bytes, marker.as_bytes()))
}

/// The size of the request for a session's first response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRequestSize {
    /// The input tokens: the context usage before any work.
    pub input_tokens: u64,
    /// The bytes of the user's prompt. Everything else (system prompt, tools, instructions) is part of every
    /// request.
    pub prompt_bytes: u64,
}

/// Returns the input tokens of the session's first response and the bytes of the prompt before it, from the
/// beginning of its transcript.
pub fn read_first_request_tokens_and_prompt_bytes(path: &Path) -> Option<FirstRequestSize> {
    // A new session begins with about 140 KB before the first response (2.1.329).
    const MAX_SCANNED_BYTES: u64 = 4 * 1024 * 1024;
    let (file, size) = disk::open_with_size_if_exists(path).ok()??;
    let bytes = read_exact_at(&file, 0, usize::try_from(size.min(MAX_SCANNED_BYTES)).ok()?).ok()?;
    let mut prompt_bytes = 0;
    for entry in bytes.split(|byte| *byte == b'\n').filter_map(TranscriptEntry::parse_usage_only) {
        if entry.has_nonzero_main_conversation_usage() {
            return Some(FirstRequestSize {
                input_tokens: entry.message.usage.unwrap_or_default().total_input_tokens(),
                prompt_bytes,
            });
        }
        let is_prompt = entry.kind.as_deref() == Some("user") && !entry.is_sidechain;
        let texts = entry.message.blocks().iter().filter_map(|block| block.text.as_ref());
        if is_prompt {
            prompt_bytes += texts.map(|text| text.len() as u64).sum::<u64>();
        }
    }
    None
}

/// Finds the folder in which a session was started, from the beginning of its transcript: each line of the
/// client names the current folder.
pub fn read_transcript_cwd(path: &Path) -> Option<PathBuf> {
    // The first line that names the folder may contain a long prompt.
    const MAX_SCANNED_BYTES: u64 = 4 * 1024 * 1024;
    let mut lines = ForwardLines::open_at(path, LineStart::default()).ok()?;
    let mut line = ForwardLines::empty_line();
    while lines.read_line_into(&mut line).ok()? && line.start.offset < MAX_SCANNED_BYTES {
        if let Some(cwd) = TranscriptEntry::parse(&line.bytes).and_then(|entry| entry.cwd) {
            return Some(PathBuf::from(cwd));
        }
    }
    None
}

/// Adds what a line contributes to the tail. Lines come from the last to the first. Breaks once the tail is
/// complete.
fn update_tail_from_line(
    line_start: u64,
    bytes: &[u8],
    tool_use_ids_to_check_for: &[&str],
    tail: &mut TranscriptTail,
) -> ControlFlow<()> {
    if !has_usage_or_compaction_marker(bytes) {
        return ControlFlow::Continue(());
    }
    let Some(entry) = TranscriptEntry::parse_usage_only(bytes) else { return ControlFlow::Continue(()) };
    if let Some(metadata) = entry.compaction_metadata() {
        if tail.last_response.is_some() {
            return ControlFlow::Break(());
        }
        // Until the next response only the boundary has the new usage: the client does not write again the
        // messages that it keeps (2.1.329).
        let recorded_at = entry.timestamp.map(Timestamp::from);
        let compaction =
            LatestCompaction { metadata, recorded_at, model: None, client_version: entry.version };
        tail.compaction.get_or_insert(compaction);
        return ControlFlow::Continue(());
    }
    if !entry.has_nonzero_main_conversation_usage() {
        return ControlFlow::Continue(());
    }
    if let Some(compaction) = &mut tail.compaction {
        // The last response's usage is no longer valid after the compaction, but the session keeps its model.
        compaction.model = entry.requested_model.or(entry.message.model);
        return ControlFlow::Break(());
    }
    let has_requested_tool_call =
        tool_use_ids_to_check_for.iter().any(|id| contains_bytes(bytes, id.as_bytes()));
    if let Some(response) = &mut tail.last_response {
        // A response has one line for each of its parts, and the tool call may be in an earlier line.
        let is_same_response = response.message_id.is_some() && response.message_id == entry.message.id;
        response.has_requested_tool_call |= is_same_response && has_requested_tool_call;
        return if is_same_response && !has_requested_tool_call {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        };
    }
    let usage = entry.message.usage.unwrap_or_default();
    tail.last_response = Some(LastResponse {
        input_tokens: usage.total_input_tokens(),
        output_tokens: usage.output_tokens_or_zero(),
        model: entry.requested_model.or(entry.message.model),
        message_id: entry.message.id,
        client_version: entry.version,
        recorded_at: entry.timestamp.map(Timestamp::from),
        has_requested_tool_call,
        bytes_after: tail.file_size.saturating_sub(line_start + bytes.len() as u64),
    });
    if tool_use_ids_to_check_for.is_empty() || has_requested_tool_call {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Reads exactly this many bytes. Returns an error if the file is shorter.
fn read_exact_at(file: &File, start: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let bytes = disk::read_range(file, start, length)?;
    // The file was truncated after it was opened, so its chunks no longer belong together.
    if bytes.len() < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// Visits whole lines, each with the offset of its first byte, from the last to the first, until `visit` breaks
/// or [`MAX_BYTES_FROM_END`] is reached. Skips lines that are longer than [`MAX_LINE_BYTES`].
fn visit_lines_backwards(
    file: &File,
    file_size: u64,
    visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> std::io::Result<()> {
    let mut chunk_start = file_size;
    let mut chunk_bytes = FIRST_CHUNK_BYTES;
    // The bytes from `chunk_start` to the end of the line whose start has not been read yet.
    let mut partial_line: Vec<u8> = Vec::new();
    let mut is_line_too_long = false;
    while chunk_start > 0 && file_size - chunk_start < MAX_BYTES_FROM_END {
        let length = chunk_bytes.min(usize::try_from(chunk_start).unwrap_or(chunk_bytes));
        chunk_start -= length as u64;
        let mut bytes = read_exact_at(file, chunk_start, length)?;
        let Some(last_newline) = find_last_newline(&bytes) else {
            is_line_too_long |= bytes.len() + partial_line.len() > MAX_LINE_BYTES;
            if is_line_too_long {
                partial_line.clear();
            } else {
                bytes.append(&mut partial_line);
                partial_line = bytes;
            }
            chunk_bytes = (chunk_bytes * 4).min(MAX_CHUNK_BYTES);
            continue;
        };
        let line = [&bytes[last_newline + 1..], &partial_line].concat();
        let line_start = chunk_start + last_newline as u64 + 1;
        if !is_line_too_long && !line.is_empty() && visit(line_start, &line).is_break() {
            return Ok(());
        }
        is_line_too_long = false;
        let mut line_end = last_newline;
        while let Some(newline) = find_last_newline(&bytes[..line_end]) {
            if visit(chunk_start + newline as u64 + 1, &bytes[newline + 1..line_end]).is_break() {
                return Ok(());
            }
            line_end = newline;
        }
        bytes.truncate(line_end);
        partial_line = bytes;
        chunk_bytes = (chunk_bytes * 4).min(MAX_CHUNK_BYTES);
    }
    if chunk_start == 0 && !is_line_too_long && !partial_line.is_empty() {
        let _ = visit(0, &partial_line);
    }
    Ok(())
}
