//! One record a line: everything the log has, put together again.

use super::exported::Exported;
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::{Map, Value, json};

pub(crate) fn render(exported: &Exported) -> String {
    exported.records.iter().map(|record| line(record) + "\n").collect()
}

fn line(record: &Recorded) -> String {
    let header = &record.header;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("session", json!(record.session_id));
    put("seq", json!(header.seq));
    put("kind", json!(header.kind));
    put("stream", json!(header.stream));
    put("at", json!(header.at));
    if let Some(usage) = header.usage {
        put("tokens", json!(usage));
    }
    match &record.body {
        Body::Turn(turn) => {
            // The turn's own JSON, so that its response stays byte for byte; it begins with its number.
            let head = Value::Object(fields).to_string();
            let turn = serde_json::to_string(turn).unwrap_or_default();
            return match (head.strip_suffix('}'), turn.strip_prefix('{')) {
                (Some(head), Some(turn)) => format!("{head},{turn}"),
                _ => head,
            };
        }
        Body::Event(content) => put("content", json!(content)),
        Body::Erased => put("erased", json!(true)),
        Body::DecodeError(why) => put("unsound", json!(why)),
    }
    if let Some(number) = header.number {
        put("number", json!(number));
        put("success", json!(header.success));
        put("reason", json!(header.reason));
    }
    Value::Object(fields).to_string()
}
