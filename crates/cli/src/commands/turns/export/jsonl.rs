//! Exports the decoded records of the log as JSON Lines, one record per line.

use super::exported_session::ExportedSession;
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use serde_json::{Map, Value, json};

pub(crate) fn render_json_lines(session: &ExportedSession) -> String {
    session.records.iter().map(|record| render_record_as_json(record) + "\n").collect()
}

fn render_record_as_json(record: &LoggedRecord) -> String {
    let header = &record.header;
    let mut fields = Map::new();
    let mut insert = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    insert("session", json!(record.session_id));
    insert("seq", json!(header.sequence_number));
    insert("kind", json!(header.kind));
    insert("stream", json!(header.stream));
    insert("at", json!(header.recorded_at));
    if let Some(usage) = header.usage {
        insert("tokens", json!(usage));
    }
    match &record.body {
        RecordBody::Turn(turn) => {
            // Appends the turn's own JSON text, not a parsed value, so that its response stays byte for byte.
            let header_json = Value::Object(fields).to_string();
            let turn_json = serde_json::to_string(turn).unwrap_or_default();
            return match (header_json.strip_suffix('}'), turn_json.strip_prefix('{')) {
                (Some(header_members), Some(turn_members)) => format!("{header_members},{turn_members}"),
                _ => header_json,
            };
        }
        RecordBody::Event(content) => insert("content", json!(content)),
        RecordBody::Erased => insert("erased", json!(true)),
        RecordBody::DecodeError(reason) => insert("unsound", json!(reason)),
    }
    if let Some(number) = header.turn_number {
        insert("number", json!(number));
        insert("success", json!(header.succeeded));
        insert("reason", json!(header.failure_reason));
    }
    Value::Object(fields).to_string()
}
