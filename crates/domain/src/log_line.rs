//! One line of a turn log: a header, a content, and a hash that chains it to the previous line.
//!
//! The chain hash is the SHA-256 of the previous chain hash, the header's exact bytes and the SHA-256 of the
//! content. A content can therefore be erased for good while the chain stays valid.

use crate::digest::sha256_hex;
use crate::format::{CURRENT_FORMAT, newer_format_of_record};
use crate::time::Timestamp;
use crate::turn::FailureReason;
use crate::turn::record::ERASED_CONTENT;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The stream of the session itself. A subagent's stream is named by its id.
pub const MAIN_STREAM: &str = "main";
/// The chain hash that precedes the first line.
pub const EMPTY_CHAIN_HASH: &str = "";

/// The metadata of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The format of the record, 1.
    #[serde(rename = "v")]
    pub format_version: u8,
    /// The position in the file: 1, 2, 3, …
    #[serde(rename = "seq")]
    pub sequence_number: u64,
    /// When it happened, RFC 3339.
    #[serde(rename = "at")]
    pub recorded_at: Timestamp,
    pub kind: RecordKind,
    /// The stream it belongs to: `main`, or a subagent's id.
    pub stream: String,
    /// A turn's number in its stream: 1, 2, 3, …
    #[serde(rename = "number", default, skip_serializing_if = "Option::is_none")]
    pub turn_number: Option<u64>,
    /// The client's id of a turn's message.
    #[serde(rename = "message", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Whether a turn succeeded.
    #[serde(rename = "success", default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// Why a turn failed.
    #[serde(rename = "reason", default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<FailureReason>,
    /// The tokens of a turn, each counted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The offset up to which the stream's transcript has been read.
    #[serde(rename = "read", default, skip_serializing_if = "Option::is_none")]
    pub transcript_offset: Option<u64>,
    /// The name of the pending file it came from, if the log was locked when it happened.
    #[serde(rename = "pending", default, skip_serializing_if = "Option::is_none")]
    pub pending_file: Option<String>,
    /// The SHA-256 of the content.
    #[serde(rename = "content")]
    pub content_hash: String,
}

/// The tokens of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Input tokens that were not cached.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
    /// Output tokens.
    pub output: u64,
}

impl TokenUsage {
    /// Returns the input tokens of the request, which are the usage of the window.
    pub fn total_input(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    Turn,
    /// A prompt by the user or the client.
    Prompt,
    /// The client replaced the conversation by a summary.
    Compaction,
    /// Text that the client or a hook added for the model.
    Context,
    /// A session began.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// The cost of the session, as the client reports it.
    Cost,
    /// Content that arrived after its turn had been closed. It is kept so that nothing is lost.
    #[serde(rename = "late")]
    LateContent,
    /// The log was repaired here: its end was torn or missing.
    Repair,
    /// The user erased contents for good.
    #[serde(rename = "erase")]
    Erasure,
    /// The working memory was changed.
    Memory,
    /// A kind that a newer version of Plimsoll wrote.
    #[serde(other)]
    Other,
}

impl RecordKind {
    /// Returns the name that is displayed.
    pub fn display_name(self) -> &'static str {
        match self {
            RecordKind::Turn => "turn",
            RecordKind::Prompt => "prompt",
            RecordKind::Compaction => "compaction",
            RecordKind::Context => "context",
            RecordKind::SessionStart => "session start",
            RecordKind::SessionEnd => "session end",
            RecordKind::Cost => "cost",
            RecordKind::LateContent => "late content",
            RecordKind::Repair => "repair",
            RecordKind::Erasure => "erasure",
            RecordKind::Memory => "memory",
            RecordKind::Other => "?",
        }
    }
}

/// A parsed line of the log.
#[derive(Debug, Clone)]
pub struct LogLine<'a> {
    pub header: RecordHeader,
    /// The header's exact bytes.
    pub header_bytes: &'a str,
    /// The content's exact bytes.
    pub content: &'a str,
    pub chain_hash: &'a str,
}

impl<'a> LogLine<'a> {
    /// Returns the format of a line if a newer version wrote it, because this version cannot interpret it.
    /// `parsed` is the result of [`LogLine::parse`] for that line.
    pub fn newer_format_of_line(line: &[u8], parsed: Option<&LogLine<'_>>) -> Option<u32> {
        match parsed {
            Some(log_line) => {
                Some(u32::from(log_line.header.format_version)).filter(|format| *format > CURRENT_FORMAT)
            }
            None => newer_format_of_record(line),
        }
    }

    /// Parses a line. Returns `None` if it is torn or not a line of a log.
    pub fn parse(line: &'a [u8]) -> Option<LogLine<'a>> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct RawLogLine<'a> {
            #[serde(borrow)]
            header: &'a RawValue,
            #[serde(borrow)]
            content: &'a RawValue,
            link: &'a str,
        }
        let raw_line: RawLogLine<'a> = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
        let header_bytes = raw_line.header.get();
        let header = serde_json::from_str(header_bytes).ok()?;
        Some(LogLine { header, header_bytes, content: raw_line.content.get(), chain_hash: raw_line.link })
    }

    /// Returns true if the content was erased.
    pub fn is_erased(&self) -> bool {
        self.content == ERASED_CONTENT
    }

    /// Returns true if the content matches the hash in the header. An erased content always passes.
    pub fn has_intact_content(&self) -> bool {
        self.is_erased() || sha256_hex(&[self.content.as_bytes()]) == self.header.content_hash
    }

    /// Returns true if the line is chained to a previous line with this chain hash.
    pub fn is_chained_to(&self, previous_chain_hash: &str) -> bool {
        self.chain_hash == self.compute_chain_hash_after(previous_chain_hash)
    }

    /// Computes the chain hash that this line must have after a line with the hash `previous_chain_hash`.
    pub fn compute_chain_hash_after(&self, previous_chain_hash: &str) -> String {
        compute_chain_hash(previous_chain_hash, self.header_bytes, &self.header.content_hash)
    }
}

fn compute_chain_hash(previous_chain_hash: &str, header_bytes: &str, content_hash: &str) -> String {
    sha256_hex(&[previous_chain_hash.as_bytes(), header_bytes.as_bytes(), content_hash.as_bytes()])
}

/// Renders a line of the log with its line break. Returns the line and its chain hash.
pub fn render_line_and_chain_hash(
    previous_chain_hash: &str,
    mut header: RecordHeader,
    content: &str,
) -> (String, String) {
    header.content_hash = sha256_hex(&[content.as_bytes()]);
    let header_bytes = serde_json::to_string(&header).unwrap_or_default();
    let chain_hash = compute_chain_hash(previous_chain_hash, &header_bytes, &header.content_hash);
    (format!("{{\"header\":{header_bytes},\"content\":{content},\"link\":\"{chain_hash}\"}}\n"), chain_hash)
}

/// Renders a line without its content, padded with spaces to `padded_length` bytes. The header's bytes and
/// the chain hash stay.
pub fn render_erased_line(line: &LogLine<'_>, padded_length: usize) -> String {
    let mut text = format!(
        "{{\"header\":{},\"content\":{ERASED_CONTENT},\"link\":\"{}\"}}",
        line.header_bytes, line.chain_hash
    );
    while text.len() < padded_length {
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_header(sequence_number: u64) -> RecordHeader {
        RecordHeader {
            format_version: 1,
            sequence_number,
            recorded_at: "2026-01-07T11:45:00Z".into(),
            kind: RecordKind::Prompt,
            stream: MAIN_STREAM.into(),
            turn_number: None,
            message_id: None,
            succeeded: None,
            failure_reason: None,
            usage: None,
            transcript_offset: Some(7),
            pending_file: None,
            content_hash: String::new(),
        }
    }

    #[test]
    fn erasing_a_content_keeps_the_chain_valid() {
        let (first, link) =
            render_line_and_chain_hash(EMPTY_CHAIN_HASH, sample_header(1), "{\"text\":\"secret\"}");
        let (second, _) = render_line_and_chain_hash(&link, sample_header(2), "{\"text\":\"\"}");
        let original_line = LogLine::parse(first.trim_end().as_bytes()).unwrap();
        let erased_line = render_erased_line(&original_line, first.len() - 1);
        assert_eq!(erased_line.len(), first.len() - 1);
        let parsed_erased_line = LogLine::parse(erased_line.as_bytes()).unwrap();
        assert!(
            parsed_erased_line.is_erased()
                && parsed_erased_line.has_intact_content()
                && parsed_erased_line.is_chained_to(EMPTY_CHAIN_HASH)
        );
        assert!(!erased_line.contains("secret"));
        assert!(
            LogLine::parse(second.trim_end().as_bytes())
                .unwrap()
                .is_chained_to(parsed_erased_line.chain_hash)
        );
    }

    #[test]
    fn every_changed_byte_is_detected() {
        let (text, _) =
            render_line_and_chain_hash(EMPTY_CHAIN_HASH, sample_header(1), "{\"text\":\"hello\"}");
        let text = text.trim_end();
        for place in 0..text.len() {
            let mut changed = text.as_bytes().to_vec();
            changed[place] ^= 1;
            let is_detected = LogLine::parse(&changed)
                .is_none_or(|line| !line.has_intact_content() || !line.is_chained_to(EMPTY_CHAIN_HASH));
            assert!(is_detected, "byte {place}");
        }
    }
}
