//! A record that is to be added to a log.

use crate::clock;
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{Header, MAIN, RecordKind};
use plimsoll_domain::turn::record::{Encoded, encode_fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A record: the log gives it its place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewRecord {
    /// What is known of it without its content.
    pub header: Header,
    /// The content.
    pub encoded: Encoded,
}

impl NewRecord {
    /// A record of the main stream with nothing in it yet.
    pub fn new(kind: RecordKind, at: Timestamp) -> NewRecord {
        let header = Header {
            v: 1,
            seq: 0,
            at,
            kind,
            stream: MAIN.to_owned(),
            number: None,
            message: None,
            success: None,
            reason: None,
            usage: None,
            read: None,
            pending: None,
            content: String::new(),
        };
        NewRecord { header, encoded: Encoded { content: "{}".to_owned(), ..Encoded::default() } }
    }

    /// Something that has just happened, as the fields of an object.
    pub fn event(kind: RecordKind, fields: &Value) -> NewRecord {
        let fields = fields.as_object().cloned().unwrap_or_default();
        NewRecord::new(kind, clock::fine_stamp(clock::now())).holding(encode_fields(&fields))
    }

    /// The same with a content.
    pub fn holding(self, encoded: Encoded) -> NewRecord {
        NewRecord { encoded, ..self }
    }
}
