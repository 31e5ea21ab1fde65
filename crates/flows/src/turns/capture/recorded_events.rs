//! Detects which entries of a rewritten transcript the log already has, so that they are not recorded twice.

use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_domain::turn::{Block, parse_response_outline};
use plimsoll_policy::turns::{AssembledRecord, TurnLogRecord};
use plimsoll_protocol::transcript_content::TranscriptLineKind;
use plimsoll_store::{StoreError, TurnLog};
use std::collections::HashSet;

/// The messages and events of a stream that the log already has.
#[derive(Debug, Default)]
pub(super) struct RecordedEntries {
    message_ids: HashSet<String>,
    /// The timestamp and the SHA-256 of the content of each event.
    event_times_and_hashes: HashSet<(String, String)>,
}

impl RecordedEntries {
    pub(super) fn load_ids_and_hashes_of_stream(
        turn_log: &TurnLog,
        stream_name: &str,
    ) -> Result<RecordedEntries, StoreError> {
        let mut recorded_entries = RecordedEntries::default();
        for line in turn_log.forward_lines()? {
            if let Some(LogLine { header, .. }) = LogLine::parse(&line?.bytes)
                && header.stream == stream_name
            {
                recorded_entries.message_ids.extend(header.message_id);
                // The client's cost lines have no timestamp, so `recorded_at` must not be compared.
                let timestamp = if header.kind == RecordKind::Cost {
                    String::new()
                } else {
                    header.recorded_at.to_string()
                };
                recorded_entries.event_times_and_hashes.insert((timestamp, header.content_hash));
            }
        }
        Ok(recorded_entries)
    }

    /// Returns true for a response that is recorded, and for tool results that belong only to its calls.
    /// Adds the ids of these calls to `matched_call_ids`.
    pub(super) fn contains_line_collecting_call_ids(
        &self,
        kind: &TranscriptLineKind,
        matched_call_ids: &mut HashSet<String>,
    ) -> bool {
        match kind {
            TranscriptLineKind::Response(response) if self.message_ids.contains(&response.id) => {
                let blocks: Vec<Block> = response.blocks.iter().cloned().map(Block::new).collect();
                matched_call_ids.extend(parse_response_outline(&blocks).calls.into_iter().map(|(id, ..)| id));
                true
            }
            TranscriptLineKind::ToolResults(results) => {
                results.iter().all(|result| matched_call_ids.contains(&result.tool_use_id))
            }
            _ => false,
        }
    }

    pub(super) fn contains_event(&self, record: &AssembledRecord) -> bool {
        let TurnLogRecord::Event { fields, .. } = &record.record else { return false };
        if self.event_times_and_hashes.is_empty() {
            return false;
        }
        let content_hash = sha256_hex(&[encode_fields(fields).content.as_bytes()]);
        self.event_times_and_hashes.contains(&(record.timestamp.clone().to_string(), content_hash))
    }
}
