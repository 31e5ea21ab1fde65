//! Reading a transcript backwards from its end. The cost does not depend on the file's size, and memory stays
//! small: a line longer than [`LONGEST_LINE`] is passed over without being kept, because no line that we look
//! for (an answer of the model, a compaction boundary) can be so long.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

mod conversation;

pub use conversation::{Conversation, conversation};

use crate::search::{contains, last_break};
use crate::turn_log::{Forwards, LineStart};
use crate::{StoreError, clock, disk, io};
use memchr::memmem;
use plimsoll_domain::Timestamp;
use plimsoll_domain::forecast::Fill;
use plimsoll_protocol::hook_trouble::HookTrouble;
use plimsoll_protocol::transcript::{CompactMetadata, Line};
use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// No answer is longer: 128k tokens of output are about 600 KB of JSON.
const LONGEST_LINE: usize = 1024 * 1024;
/// Beyond this the reading is unknown rather than slow.
const FARTHEST: u64 = 8 * 1024 * 1024;
// Mostly the last usage is near: what is not read touches no memory. A read of one fixed size can miss the last usage: the result of reading a picture was one line of 852 KB (2.1.329).
const FIRST_CHUNK: usize = 8 * 1024;
const LARGEST_CHUNK: usize = 256 * 1024;

/// What the end of a transcript tells.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    /// The last answer of the main conversation.
    pub answer: Option<Answer>,
    /// A compaction that came after every answer.
    pub compaction: Option<Compaction>,
    /// The file's size when it was read; 0 also for a file that is not there.
    pub size: u64,
}

/// A compaction that came after every answer.
#[derive(Debug, Clone, Default)]
pub struct Compaction {
    /// What it did.
    pub metadata: CompactMetadata,
    /// When it was written, RFC 3339.
    pub at: Option<Timestamp>,
    /// The model of the last answer before it, with its `[1m]` suffix.
    pub model: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
}

/// The last answer of the main conversation.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Tokens sent.
    pub used: u64,
    /// Tokens answered.
    pub output: u64,
    /// The model that was asked for, with its `[1m]` suffix.
    pub model: Option<String>,
    /// The response's id.
    pub message_id: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
    /// When it was written, RFC 3339.
    pub at: Option<Timestamp>,
    /// True when one of its lines holds one of the tool calls that were looked for.
    pub is_the_one: bool,
    /// How many bytes of the file are behind it.
    pub bytes_after: u64,
}

/// Reads the end of a transcript, looking for tool calls by their ids. A missing file tells nothing.
pub fn read(path: &Path, tool_use_ids: &[&str]) -> Result<Tail, StoreError> {
    let Some((file, size)) = disk::open_sized(path)? else { return Ok(Tail::default()) };
    let mut tail = Tail { size, ..Tail::default() };
    backwards(&file, size, &mut |start, bytes| visit(start, bytes, tool_use_ids, &mut tail))
        .map_err(io("read", path))?;
    Ok(tail)
}

/// The last lines of a transcript that may matter to people, oldest first: at most this many bytes.
pub fn last_lines(path: &Path, limit: u64) -> Result<Vec<Line>, StoreError> {
    let mut lines = Vec::new();
    recent(path, limit, &mut |bytes| {
        lines.extend(Line::parse(bytes));
        ControlFlow::Continue(())
    })?;
    lines.reverse();
    Ok(lines)
}

/// How full the window was after each of the last responses since the last compaction, at most so many, oldest first: in
/// the last bytes of a transcript.
pub fn fills(path: &Path, most: usize, limit: u64) -> Result<Vec<Fill>, StoreError> {
    let mut fills = Vec::new();
    let mut last_id = None;
    recent(path, limit, &mut |bytes| {
        let line = if is_marked(bytes) { Line::parse_usage(bytes) } else { None };
        let is_compaction = line.as_ref().is_some_and(|line| line.compaction().is_some());
        if let Some(line) = line.filter(Line::speaks_of_usage) {
            // A response has a line for each of its parts; the first of them has its time.
            let at = line.timestamp.as_deref().and_then(clock::parse).map(|at| at.timestamp());
            let fill = Fill { used: line.message.usage.unwrap_or_default().input(), at };
            match fills.last_mut() {
                Some(known) if line.message.id.is_some() && line.message.id == last_id => *known = fill,
                _ => fills.push(fill),
            }
            last_id = line.message.id;
        }
        // The last one is whole only when the next is seen.
        let is_enough = is_compaction || fills.len() > most;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    fills.truncate(most);
    fills.reverse();
    Ok(fills)
}

/// Hands out the lines of a transcript that begin at this byte or later. Returns the byte where the next line begins.
pub fn lines_from(path: &Path, offset: u64, visit: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
    let mut lines = Forwards::open(path, LineStart { line: 0, offset })?;
    let mut line = Forwards::buffer();
    while lines.read_into(&mut line)? {
        visit(&line.bytes);
        if !line.is_ended {
            // The client is still writing it: it is handed out again.
            return Ok(line.place.offset);
        }
    }
    Ok(lines.offset())
}

/// Returns true if a line has a mark, without parsing it.
pub fn has_mark(bytes: &[u8], mark: &str) -> bool {
    contains(bytes, mark.as_bytes())
}

/// What the client says went wrong with hooks, in the last bytes of a transcript, oldest first.
pub fn hook_troubles(path: &Path, limit: u64) -> Result<Vec<HookTrouble>, StoreError> {
    let mut troubles = Vec::new();
    recent(path, limit, &mut |bytes| {
        if memmem::find(bytes, HookTrouble::MARK.as_bytes()).is_some() {
            troubles.extend(HookTrouble::parse(bytes));
        }
        ControlFlow::Continue(())
    })?;
    troubles.reverse();
    Ok(troubles)
}

/// Hands out the lines of a transcript from the last one on, until told to stop or more than this many bytes were seen.
fn recent(
    path: &Path,
    limit: u64,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let Some((file, size)) = disk::open_sized(path)? else { return Ok(()) };
    let mut seen = 0;
    let within = &mut |_, bytes: &[u8]| {
        seen += bytes.len() as u64;
        visit(bytes)?;
        if seen > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    backwards(&file, size, within).map_err(io("read", path))
}

/// Most bytes of a transcript are tool results: only a line with a mark is parsed.
fn is_marked(bytes: &[u8]) -> bool {
    Line::MARKS.iter().any(|mark| contains(bytes, mark.as_bytes()))
}

/// The request that a session's first answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRequest {
    /// Its tokens: what was in the window before any work.
    pub used: u64,
    /// The bytes of the user's own words in it. The rest (system prompt, tools, instructions) is part of every request.
    pub prompt_bytes: u64,
}

/// Finds the session's first request at the transcript's beginning.
pub fn first_request(path: &Path) -> Option<FirstRequest> {
    // A new session begins with about 140 KB before the first answer (2.1.329).
    const BEGINNING: u64 = 4 * 1024 * 1024;
    let (file, size) = disk::open_sized(path).ok()??;
    let bytes = read_at(&file, 0, usize::try_from(size.min(BEGINNING)).ok()?).ok()?;
    let mut prompt_bytes = 0;
    for line in bytes.split(|byte| *byte == b'\n').filter_map(Line::parse_usage) {
        if line.speaks_of_usage() {
            return Some(FirstRequest { used: line.message.usage.unwrap_or_default().input(), prompt_bytes });
        }
        let is_prompt = line.kind.as_deref() == Some("user") && !line.is_sidechain;
        let texts = line.message.blocks().iter().filter_map(|block| block.text.as_ref());
        if is_prompt {
            prompt_bytes += texts.map(|text| text.len() as u64).sum::<u64>();
        }
    }
    None
}

/// Finds the folder that a session was started in, at the beginning of its transcript: the client names in each line where the
/// session is at that moment.
pub fn first_directory(path: &Path) -> Option<PathBuf> {
    // The first line that names it may hold a long prompt.
    const BEGINNING: u64 = 4 * 1024 * 1024;
    let mut lines = Forwards::open(path, LineStart::default()).ok()?;
    let mut line = Forwards::buffer();
    while lines.read_into(&mut line).ok()? && line.place.offset < BEGINNING {
        if let Some(folder) = Line::parse(&line.bytes).and_then(|line| line.cwd) {
            return Some(PathBuf::from(folder));
        }
    }
    None
}

fn visit(start: u64, bytes: &[u8], tool_use_ids: &[&str], tail: &mut Tail) -> ControlFlow<()> {
    if !is_marked(bytes) {
        return ControlFlow::Continue(());
    }
    let Some(line) = Line::parse_usage(bytes) else { return ControlFlow::Continue(()) };
    if let Some(metadata) = line.compaction() {
        if tail.answer.is_some() {
            return ControlFlow::Break(());
        }
        // Until the next response only the boundary tells the new fill: the client does not write the
        // messages that it keeps again (2.1.329).
        let at = line.timestamp.map(Timestamp::from);
        let newest = Compaction { metadata, at, model: None, client_version: line.version };
        tail.compaction.get_or_insert(newest);
        return ControlFlow::Continue(());
    }
    if !line.speaks_of_usage() {
        return ControlFlow::Continue(());
    }
    if let Some(compaction) = &mut tail.compaction {
        // Its usage is void, but the session continues with its model.
        compaction.model = line.requested_model.or(line.message.model);
        return ControlFlow::Break(());
    }
    let is_the_one = tool_use_ids.iter().any(|id| contains(bytes, id.as_bytes()));
    if let Some(answer) = &mut tail.answer {
        // A response has a line for each of its parts, and the call may be in an earlier one.
        let same = answer.message_id.is_some() && answer.message_id == line.message.id;
        answer.is_the_one |= same && is_the_one;
        return if same && !is_the_one { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    }
    let usage = line.message.usage.unwrap_or_default();
    tail.answer = Some(Answer {
        used: usage.input(),
        output: usage.output(),
        model: line.requested_model.or(line.message.model),
        message_id: line.message.id,
        client_version: line.version,
        at: line.timestamp.map(Timestamp::from),
        is_the_one,
        bytes_after: tail.size.saturating_sub(start + bytes.len() as u64),
    });
    if tool_use_ids.is_empty() || is_the_one { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Reads this many bytes.
fn read_at(file: &File, start: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let bytes = disk::read_part(file, start, length)?;
    // Shorter than when it was opened: somebody has cut it, and the pieces no longer fit together.
    if bytes.len() < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// Hands out whole lines with the byte at which each begins, from the last to the first, until told to stop or too far from the end.
fn backwards(
    file: &File,
    size: u64,
    visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> std::io::Result<()> {
    let mut start = size;
    let mut chunk = FIRST_CHUNK;
    // The bytes from `start` to the end of the line that is not whole yet.
    let mut rest: Vec<u8> = Vec::new();
    let mut too_long = false;
    while start > 0 && size - start < FARTHEST {
        let length = chunk.min(usize::try_from(start).unwrap_or(chunk));
        start -= length as u64;
        let mut bytes = read_at(file, start, length)?;
        let Some(newest_break) = last_break(&bytes) else {
            too_long |= bytes.len() + rest.len() > LONGEST_LINE;
            if too_long {
                rest.clear();
            } else {
                bytes.append(&mut rest);
                rest = bytes;
            }
            chunk = (chunk * 4).min(LARGEST_CHUNK);
            continue;
        };
        let joined = [&bytes[newest_break + 1..], &rest].concat();
        let begin = start + newest_break as u64 + 1;
        if !too_long && !joined.is_empty() && visit(begin, &joined).is_break() {
            return Ok(());
        }
        too_long = false;
        let mut end = newest_break;
        while let Some(line_break) = last_break(&bytes[..end]) {
            if visit(start + line_break as u64 + 1, &bytes[line_break + 1..end]).is_break() {
                return Ok(());
            }
            end = line_break;
        }
        bytes.truncate(end);
        rest = bytes;
        chunk = (chunk * 4).min(LARGEST_CHUNK);
    }
    if start == 0 && !too_long && !rest.is_empty() {
        let _ = visit(0, &rest);
    }
    Ok(())
}
