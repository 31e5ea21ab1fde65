//! Merges the state into its JSON document, so that foreign fields and the order of keys survive every rewrite.

use serde_json::{Map, Value};

pub(super) fn remove_null_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_null_fields);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_null_fields),
        _ => {}
    }
}

/// Removes the fields that the earlier state had and the new state omits because they are empty now. Merging alone would keep
/// their old values.
pub(super) fn remove_fields_absent_from_new(
    document: &mut Value,
    earlier_document: &Value,
    new_document: &Value,
) {
    match (document, earlier_document, new_document) {
        (Value::Object(fields), Value::Object(earlier_fields), Value::Object(new_fields)) => {
            for (key, earlier_value) in earlier_fields {
                match (new_fields.get(key), fields.get_mut(key)) {
                    (None, _) => drop(fields.shift_remove(key)),
                    (Some(new_value), Some(value)) => {
                        remove_fields_absent_from_new(value, earlier_value, new_value);
                    }
                    (Some(_), None) => {}
                }
            }
        }
        (Value::Array(elements), Value::Array(earlier_elements), Value::Array(new_elements)) => {
            for ((element, earlier_element), new_element) in
                elements.iter_mut().zip(earlier_elements).zip(new_elements)
            {
                remove_fields_absent_from_new(element, earlier_element, new_element);
            }
        }
        _ => {}
    }
}

/// Merges a new value into a document, and keeps the foreign fields of its objects. Objects are merged recursively. A list element
/// keeps its foreign fields if its first field is unchanged, because then it still describes the same thing.
pub fn merge_keeping_unknown_fields(document: &mut Value, new_value: Value) {
    match (document, new_value) {
        (Value::Object(old_fields), Value::Object(new_fields))
            if !is_different_enum_variant(old_fields, &new_fields) =>
        {
            for (key, value) in new_fields {
                match old_fields.get_mut(&key) {
                    Some(old_value) => merge_keeping_unknown_fields(old_value, value),
                    None => {
                        old_fields.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(old_elements), Value::Array(new_elements)) => {
            old_elements.truncate(new_elements.len());
            for (index, value) in new_elements.into_iter().enumerate() {
                match old_elements.get_mut(index) {
                    Some(old_value) if has_equal_first_field(old_value, &value) => {
                        merge_keeping_unknown_fields(old_value, value);
                    }
                    Some(old_value) => *old_value = value,
                    None => old_elements.push(value),
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
