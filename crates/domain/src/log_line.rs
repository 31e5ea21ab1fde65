//! One line of a turn log: a header, a content, and the link that chains it to the line before.
//!
//! The link is the SHA-256 of the link before, the header's exact bytes, and the content's own SHA-256. So a content
//! can be taken away for good, and the chain still holds.

use crate::digest::sha256;
use crate::format::{FORMAT, newer_record};
use crate::time::Timestamp;
use crate::turn::Reason;
use crate::turn::record::ERASED;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The stream of the session itself; a subagent's stream has its id for a name.
pub const MAIN: &str = "main";
/// What the first line is chained to.
pub const NO_LINK: &str = "";

/// What is known of a record without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The shape of the record; 1.
    pub v: u8,
    /// Orders the file: 1, 2, 3, …
    pub seq: u64,
    /// When it happened, RFC 3339.
    pub at: Timestamp,
    /// What it is.
    pub kind: RecordKind,
    /// Whose it is: `main`, or a subagent's id.
    pub stream: String,
    /// A turn's number in its stream: 1, 2, 3, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The client's id of a turn's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How a turn went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// Why a turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What a turn cost, counted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// Up to this byte the stream's transcript has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// The name of the pending file it came from, if the log was locked when it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// The SHA-256 of the content.
    pub content: String,
}

/// Tokens of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Sent and not cached.
    pub input: u64,
    /// Sent and read from the cache.
    pub cache_read: u64,
    /// Sent and written to the cache.
    pub cache_creation: u64,
    /// Answered.
    pub output: u64,
}

impl Tokens {
    /// What was sent: how full the window was.
    pub fn sent(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A turn.
    Turn,
    /// A prompt, by the user or the client.
    Prompt,
    /// The client replaced the conversation by a summary.
    Compaction,
    /// Words that the client or a hook added for the model.
    Context,
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The client's own account of what the session cost.
    Cost,
    /// Something that came after its turn had been closed; kept, because nothing is lost.
    Late,
    /// The log was repaired here: a torn or missing end.
    Repair,
    /// The user took contents away for good.
    Erase,
    /// The working memory was changed.
    Memory,
    /// Of a later Plimsoll.
    #[serde(other)]
    Other,
}

impl RecordKind {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Turn => "turn",
            RecordKind::Prompt => "prompt",
            RecordKind::Compaction => "compaction",
            RecordKind::Context => "context",
            RecordKind::SessionStart => "session start",
            RecordKind::SessionEnd => "session end",
            RecordKind::Cost => "cost",
            RecordKind::Late => "late words",
            RecordKind::Repair => "repair",
            RecordKind::Erase => "erasure",
            RecordKind::Memory => "memory",
            RecordKind::Other => "?",
        }
    }
}

/// A line, taken apart.
#[derive(Debug, Clone)]
pub struct LogLine<'a> {
    /// The header, read.
    pub header: Header,
    /// The header, byte for byte.
    pub header_bytes: &'a str,
    /// The content, byte for byte.
    pub content: &'a str,
    /// The link.
    pub link: &'a str,
}

impl<'a> LogLine<'a> {
    /// The format of a line, if a newer version wrote it: what it says, this one cannot know. `parsed` is what
    /// [`LogLine::parse`] makes of it.
    pub fn newer(line: &[u8], parsed: Option<&LogLine<'_>>) -> Option<u32> {
        match parsed {
            Some(known) => Some(u32::from(known.header.v)).filter(|format| *format > FORMAT),
            None => newer_record(line),
        }
    }

    /// Takes a line apart; none if it is torn or no line of a log.
    pub fn parse(line: &'a [u8]) -> Option<LogLine<'a>> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parts<'a> {
            #[serde(borrow)]
            header: &'a RawValue,
            #[serde(borrow)]
            content: &'a RawValue,
            link: &'a str,
        }
        let parts: Parts<'a> = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
        let header_bytes = parts.header.get();
        let header = serde_json::from_str(header_bytes).ok()?;
        Some(LogLine { header, header_bytes, content: parts.content.get(), link: parts.link })
    }

    /// True if the content has been taken away.
    pub fn is_erased(&self) -> bool {
        self.content == ERASED
    }

    /// True if the content is what the header says; an erased one is not asked.
    pub fn is_whole(&self) -> bool {
        self.is_erased() || sha256(&[self.content.as_bytes()]) == self.header.content
    }

    /// True if the line follows the one with that link.
    pub fn follows(&self, before: &str) -> bool {
        self.link == self.link_after(before)
    }

    /// The link that this line would have after the one with that link.
    pub fn link_after(&self, before: &str) -> String {
        link(before, self.header_bytes, &self.header.content)
    }
}

fn link(before: &str, header: &str, content_hash: &str) -> String {
    sha256(&[before.as_bytes(), header.as_bytes(), content_hash.as_bytes()])
}

/// A line of the log with its break, and its link.
pub fn line(before: &str, mut header: Header, content: &str) -> (String, String) {
    header.content = sha256(&[content.as_bytes()]);
    let header_bytes = serde_json::to_string(&header).unwrap_or_default();
    let link = link(before, &header_bytes, &header.content);
    (format!("{{\"header\":{header_bytes},\"content\":{content},\"link\":\"{link}\"}}\n"), link)
}

/// The same line without its content, as long as before; the header's bytes and the link stay.
pub fn erased(line: &LogLine<'_>, length: usize) -> String {
    let mut text =
        format!("{{\"header\":{},\"content\":{ERASED},\"link\":\"{}\"}}", line.header_bytes, line.link);
    while text.len() < length {
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(seq: u64) -> Header {
        Header {
            v: 1,
            seq,
            at: "2026-01-07T11:45:00Z".into(),
            kind: RecordKind::Prompt,
            stream: MAIN.into(),
            number: None,
            message: None,
            success: None,
            reason: None,
            usage: None,
            read: Some(7),
            pending: None,
            content: String::new(),
        }
    }

    #[test]
    fn a_content_can_go_and_the_chain_holds() {
        let (first, link) = line(NO_LINK, header(1), "{\"text\":\"secret\"}");
        let (second, _) = line(&link, header(2), "{\"text\":\"\"}");
        let before = LogLine::parse(first.trim_end().as_bytes()).unwrap();
        let erased = erased(&before, first.len() - 1);
        assert_eq!(erased.len(), first.len() - 1);
        let after = LogLine::parse(erased.as_bytes()).unwrap();
        assert!(after.is_erased() && after.is_whole() && after.follows(NO_LINK));
        assert!(!erased.contains("secret"));
        assert!(LogLine::parse(second.trim_end().as_bytes()).unwrap().follows(after.link));
    }

    #[test]
    fn every_change_of_a_byte_is_seen() {
        let (text, _) = line(NO_LINK, header(1), "{\"text\":\"hello\"}");
        let text = text.trim_end();
        for place in 0..text.len() {
            let mut changed = text.as_bytes().to_vec();
            changed[place] ^= 1;
            let seen = LogLine::parse(&changed).is_none_or(|line| !line.is_whole() || !line.follows(NO_LINK));
            assert!(seen, "byte {place}");
        }
    }
}
