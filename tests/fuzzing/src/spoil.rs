//! Replaces one field of a JSON object by an invalid value, to test that a reader loses only that field.

use crate::draw::hash_of_bytes;
use serde_json::{Map, Value, json};

/// A JSON object in which the value of one field was replaced by an unexpected one.
pub(crate) struct SpoiledObject {
    /// The field whose value was replaced.
    pub(crate) spoiled_key: String,
    /// The object as it was, serialized again.
    pub(crate) original: String,
    /// The object with the replaced value.
    pub(crate) with_bad_field: String,
    /// The object with an additional unknown field.
    pub(crate) with_extra_field: String,
}

/// Replaces the value of one field if the bytes are a JSON object with fields.
pub(crate) fn spoil_one_field(bytes: &[u8]) -> Option<SpoiledObject> {
    let fields: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    let hash = hash_of_bytes(bytes);
    let spoiled_key = fields.keys().nth(hash.checked_rem(fields.len())?)?.clone();
    let junk_values = [json!(null), json!(-1.5), json!([[]]), json!({"": 1}), json!("\u{1}"), json!(true)];
    let mut with_bad_field = fields.clone();
    with_bad_field.insert(spoiled_key.clone(), junk_values[hash / 7 % junk_values.len()].clone());
    let mut with_extra_field = fields.clone();
    with_extra_field
        .insert("aFieldOfALaterClient".to_owned(), junk_values[hash / 11 % junk_values.len()].clone());
    let to_json = |fields: Map<String, Value>| Value::Object(fields).to_string();
    Some(SpoiledObject {
        spoiled_key,
        original: to_json(fields),
        with_bad_field: to_json(with_bad_field),
        with_extra_field: to_json(with_extra_field),
    })
}

/// Puts a byte order mark in front of a document: readers with a fast path for the exact form that the client writes then
/// take their slow path.
pub(crate) fn with_byte_order_mark(bytes: &[u8]) -> Vec<u8> {
    ["\u{feff}".as_bytes(), bytes].concat()
}

/// Removes the white space in empty containers from a JSON text. Nothing else may change when an entry is inserted and
/// removed again.
pub(crate) fn without_space_in_empty_containers(text: &str) -> String {
    let mut compacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['{', '[']) {
        let after_open = &rest[open + 1..];
        compacted.push_str(&rest[..=open]);
        let trimmed = after_open.trim_start_matches([' ', '\t', '\r', '\n']);
        rest = if trimmed.starts_with(['}', ']']) { trimmed } else { after_open };
    }
    compacted + rest
}
