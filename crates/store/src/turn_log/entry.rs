//! A record that is to be added to a log.

use crate::clock;
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind};
use plimsoll_domain::turn::record::{EncodedRecord, encode_fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A record that has no sequence number yet; the writer assigns it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewRecord {
    /// The metadata of the record.
    pub header: RecordHeader,
    pub encoded: EncodedRecord,
}

impl NewRecord {
    /// Creates a record of the main stream without content.
    pub fn empty_in_main_stream(kind: RecordKind, recorded_at: Timestamp) -> NewRecord {
        let header = RecordHeader {
            format_version: 1,
            sequence_number: 0,
            recorded_at,
            kind,
            stream: MAIN_STREAM.to_owned(),
            turn_number: None,
            message_id: None,
            succeeded: None,
            failure_reason: None,
            usage: None,
            transcript_offset: None,
            pending_file: None,
            content_hash: String::new(),
        };
        NewRecord { header, encoded: EncodedRecord { content: "{}".to_owned(), ..EncodedRecord::default() } }
    }

    /// Creates a record of something that has just happened, with the fields of a JSON object as content.
    pub fn event_now(kind: RecordKind, fields: &Value) -> NewRecord {
        let fields = fields.as_object().cloned().unwrap_or_default();
        NewRecord::empty_in_main_stream(kind, clock::to_millis_timestamp(clock::now()))
            .with_content(encode_fields(&fields))
    }

    /// Returns the record with this content.
    pub fn with_content(self, encoded: EncodedRecord) -> NewRecord {
        NewRecord { encoded, ..self }
    }
}
