//! The state and its document: foreign fields and the order of keys survive every rewrite.

use serde_json::{Map, Value};

pub(super) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// Removes the fields of an earlier state that a new one leaves out because they are empty now: laid over a document, the new state would
/// leave them as they were.
pub(super) fn remove_gone_fields(document: &mut Value, earlier: &Value, new: &Value) {
    match (document, earlier, new) {
        (Value::Object(document), Value::Object(earlier), Value::Object(new)) => {
            for (key, earlier) in earlier {
                match (new.get(key), document.get_mut(key)) {
                    (None, _) => drop(document.shift_remove(key)),
                    (Some(new), Some(place)) => remove_gone_fields(place, earlier, new),
                    (Some(_), None) => {}
                }
            }
        }
        (Value::Array(document), Value::Array(earlier), Value::Array(new)) => {
            for ((place, earlier), new) in document.iter_mut().zip(earlier).zip(new) {
                remove_gone_fields(place, earlier, new);
            }
        }
        _ => {}
    }
}

/// Lays known fields over a document. Objects are merged; in lists an element keeps its foreign fields while
/// it is the same thing, which is known by its first field.
pub fn merge(document: &mut Value, known: Value) {
    match (document, known) {
        (Value::Object(old), Value::Object(new)) if !is_other_variant(old, &new) => {
            for (key, value) in new {
                match old.get_mut(&key) {
                    Some(place) => merge(place, value),
                    None => {
                        old.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            old.truncate(new.len());
            for (index, value) in new.into_iter().enumerate() {
                match old.get_mut(index) {
                    Some(place) if is_same_thing(place, &value) => merge(place, value),
                    Some(place) => *place = value,
                    None => old.push(value),
                }
            }
        }
        (place, value) => *place = value,
    }
}

/// A verdict to stop keeps nothing of the verdict to pause that stood there before; an ending neither.
fn is_other_variant(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let is_ending = new.keys().all(|key| key == "ending" || key == "detail");
    let tag = if is_ending { "ending" } else { "verdict" };
    new.contains_key(tag) && old.get(tag) != new.get(tag)
}

fn is_same_thing(old: &Value, new: &Value) -> bool {
    let Some((key, value)) = new.as_object().and_then(|fields| fields.iter().next()) else { return false };
    old.get(key) == Some(value)
}
