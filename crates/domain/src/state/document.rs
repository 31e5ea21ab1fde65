//! Merges the state into its JSON document, so that foreign fields and the order of keys survive every rewrite.

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

/// Removes the fields that the earlier state had and the new state omits because they are empty now. Merging alone would keep
/// their old values.
pub(super) fn remove_fields_absent_from_new(document: &mut Value, earlier: &Value, new: &Value) {
    match (document, earlier, new) {
        (Value::Object(document), Value::Object(earlier), Value::Object(new)) => {
            for (key, earlier) in earlier {
                match (new.get(key), document.get_mut(key)) {
                    (None, _) => drop(document.shift_remove(key)),
                    (Some(new), Some(value)) => remove_fields_absent_from_new(value, earlier, new),
                    (Some(_), None) => {}
                }
            }
        }
        (Value::Array(document), Value::Array(earlier), Value::Array(new)) => {
            for ((value, earlier), new) in document.iter_mut().zip(earlier).zip(new) {
                remove_fields_absent_from_new(value, earlier, new);
            }
        }
        _ => {}
    }
}

/// Merges known fields into a document. Objects are merged recursively. A list element keeps its foreign fields if its first
/// field is unchanged, because then it still describes the same thing.
pub fn merge_known_fields(document: &mut Value, known_fields: Value) {
    match (document, known_fields) {
        (Value::Object(old), Value::Object(new)) if !is_different_enum_variant(old, &new) => {
            for (key, value) in new {
                match old.get_mut(&key) {
                    Some(old_value) => merge_known_fields(old_value, value),
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
                    Some(old_value) if has_equal_first_field(old_value, &value) => {
                        merge_known_fields(old_value, value);
                    }
                    Some(old_value) => *old_value = value,
                    None => old.push(value),
                }
            }
        }
        (target, value) => *target = value,
    }
}

/// Returns true if the new object is another variant of a tagged enum, a verdict or an ending. Then nothing of the old object
/// may be kept.
fn is_different_enum_variant(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let is_ending = new.keys().all(|key| key == "ending" || key == "detail");
    let tag = if is_ending { "ending" } else { "verdict" };
    new.contains_key(tag) && old.get(tag) != new.get(tag)
}

fn has_equal_first_field(old: &Value, new: &Value) -> bool {
    let Some((key, value)) = new.as_object().and_then(|fields| fields.iter().next()) else { return false };
    old.get(key) == Some(value)
}
