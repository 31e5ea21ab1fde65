//! One bad field costs that field alone.

use crate::draw::dice;
use serde_json::{Map, Value, json};

/// Something that no field wants, in the place of one field of an object.
pub(crate) struct Spoiled {
    /// Whose value it is.
    pub(crate) key: String,
    /// The object as it was, written by ourselves.
    pub(crate) before: String,
    /// The object with that field spoiled.
    pub(crate) after: String,
    /// The object with one field more, of which nobody has heard.
    pub(crate) richer: String,
}

/// Spoils one field of the object that the bytes are, if they are one with fields.
pub(crate) fn spoil(bytes: &[u8]) -> Option<Spoiled> {
    let fields: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    let chosen = dice(bytes);
    let key = fields.keys().nth(chosen.checked_rem(fields.len())?)?.clone();
    let junk = [json!(null), json!(-1.5), json!([[]]), json!({"": 1}), json!("\u{1}"), json!(true)];
    let mut spoiled = fields.clone();
    spoiled.insert(key.clone(), junk[chosen / 7 % junk.len()].clone());
    let mut richer = fields.clone();
    richer.insert("aFieldOfALaterClient".to_owned(), junk[chosen / 11 % junk.len()].clone());
    let text = |fields: Map<String, Value>| Value::Object(fields).to_string();
    Some(Spoiled { key, before: text(fields), after: text(spoiled), richer: text(richer) })
}

/// The same document behind a byte order mark: readers with a quick way for what the client writes exactly take
/// the patient one.
pub(crate) fn behind_a_mark(bytes: &[u8]) -> Vec<u8> {
    ["\u{feff}".as_bytes(), bytes].concat()
}

/// A text without the white space in empty containers: that is all that may change when something is put into one
/// and taken out again.
pub(crate) fn tight(text: &str) -> String {
    let mut tight = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['{', '[']) {
        let behind = &rest[open + 1..];
        tight.push_str(&rest[..=open]);
        let closed = behind.trim_start_matches([' ', '\t', '\r', '\n']);
        rest = if closed.starts_with(['}', ']']) { closed } else { behind };
    }
    tight + rest
}
