//! A transcript that was rewritten: what the log has of it already is not recorded again.

use plimsoll_domain::digest::sha256;
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_domain::turn::{Block, outline};
use plimsoll_policy::turns::{AssembledRecord, Record};
use plimsoll_protocol::recording::LineKind;
use plimsoll_store::{StoreError, TurnLog};
use std::collections::HashSet;

/// What the log has of a stream.
#[derive(Debug, Default)]
pub(super) struct AlreadyRecorded {
    messages: HashSet<String>,
    /// When they happened, and the SHA-256 of their contents.
    events: HashSet<(String, String)>,
}

impl AlreadyRecorded {
    pub(super) fn of(log: &TurnLog, stream: &str) -> Result<AlreadyRecorded, StoreError> {
        let mut known = AlreadyRecorded::default();
        for line in log.forwards()? {
            if let Some(LogLine { header, .. }) = LogLine::parse(&line?.bytes)
                && header.stream == stream
            {
                known.messages.extend(header.message);
                // The client's account of the costs has no time.
                let at = if header.kind == RecordKind::Cost { String::new() } else { header.at.to_string() };
                known.events.insert((at, header.content));
            }
        }
        Ok(known)
    }

    /// True for a line of a recorded message, and for results of its calls: `passed` are those that were seen.
    pub(super) fn has(&self, what: &LineKind, passed: &mut HashSet<String>) -> bool {
        match what {
            LineKind::Answer(answer) if self.messages.contains(&answer.id) => {
                let blocks: Vec<Block> = answer.blocks.iter().cloned().map(Block::new).collect();
                passed.extend(outline(&blocks).calls.into_iter().map(|(id, ..)| id));
                true
            }
            LineKind::Results(results) => results.iter().all(|result| passed.contains(&result.id)),
            _ => false,
        }
    }

    pub(super) fn has_event(&self, made: &AssembledRecord) -> bool {
        let Record::Event { fields, .. } = &made.what else { return false };
        if self.events.is_empty() {
            return false;
        }
        let content = sha256(&[encode_fields(fields).content.as_bytes()]);
        self.events.contains(&(made.at.clone().to_string(), content))
    }
}
