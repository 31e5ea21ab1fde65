//! The attributes of a span or a log record. Any text may come from a session, so it is redacted, joined to one line and truncated.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use serde_json::Value;

/// Maximum length of a text, in characters.
const MAX_TEXT_CHARS: usize = 500;
/// Maximum number of texts in an array, and of fields of an event.
const MAX_ENTRIES: usize = 20;

/// Prepares text for export: redacts secrets, joins the lines to one, and truncates it.
pub(crate) fn redact_and_truncate_to_line(text: &str) -> String {
    // The text is also truncated before the search for secrets, so that a very long text is not searched in full.
    truncate_end(
        &to_safe_single_line(&plimsoll_secrets::redact(&truncate_end(text, 8 * MAX_TEXT_CHARS))),
        MAX_TEXT_CHARS,
    )
}

/// A list of attributes with unique keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub(crate) fn add_text(&mut self, key: &str, value: &str) -> &mut Attributes {
        self.set(key, Any::StringValue(redact_and_truncate_to_line(value)))
    }

    pub(crate) fn add_text_if_not_empty(&mut self, key: &str, value: Option<&str>) -> &mut Attributes {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.add_text(key, value),
            None => self,
        }
    }

    pub(crate) fn add_count(&mut self, key: &str, value: impl TryInto<i64>) -> &mut Attributes {
        self.set(key, Any::IntValue(value.try_into().unwrap_or(i64::MAX)))
    }

    pub(crate) fn add_number(&mut self, key: &str, value: f64) -> &mut Attributes {
        self.set(key, Any::DoubleValue(value))
    }

    pub(crate) fn add_flag(&mut self, key: &str, value: bool) -> &mut Attributes {
        self.set(key, Any::BoolValue(value))
    }

    pub(crate) fn add_text_array_up_to_limit<'a>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> &mut Attributes {
        let string_value =
            |value: &str| AnyValue { value: Some(Any::StringValue(redact_and_truncate_to_line(value))) };
        let values = values.into_iter().take(MAX_ENTRIES).map(string_value).collect();
        self.set(key, Any::ArrayValue(ArrayValue { values }))
    }

    /// Adds the first `MAX_ENTRIES` fields of an event as `plimsoll.NAME`. Nulls, objects and arrays that do not contain only
    /// texts are left out. Of an object, only the text under the field's own name is added.
    pub(crate) fn add_supported_event_fields(
        &mut self,
        event_fields: &serde_json::Map<String, Value>,
    ) -> &mut Attributes {
        for (name, value) in event_fields.iter().take(MAX_ENTRIES) {
            let key = format!("plimsoll.{name}");
            match value {
                Value::String(text) => self.add_text(&key, text),
                Value::Bool(flag) => self.add_flag(&key, *flag),
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(count), _) => self.add_count(&key, count),
                    (None, Some(number)) => self.add_number(&key, number),
                    (None, None) => self,
                },
                Value::Array(values) if values.iter().all(Value::is_string) => {
                    self.add_text_array_up_to_limit(&key, values.iter().filter_map(Value::as_str))
                }
                // An enum with details: {"ending": {"ending": "failed", "detail": "…"}}.
                Value::Object(fields) => {
                    self.add_text_if_not_empty(&key, fields.get(name).and_then(Value::as_str))
                }
                Value::Array(_) | Value::Null => self,
            };
        }
        self
    }

    /// Sets an attribute, replacing an earlier value of the same key.
    fn set(&mut self, key: &str, value: Any) -> &mut Attributes {
        let value = Some(AnyValue { value: Some(value) });
        match self.0.iter_mut().find(|attribute| attribute.key == key) {
            Some(attribute) => attribute.value = value,
            None => self.0.push(KeyValue { key: key.to_owned(), value, ..KeyValue::default() }),
        }
        self
    }

    pub(crate) fn to_key_values(&self) -> Vec<KeyValue> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn event_facts_are_clipped_redacted_and_limited_in_number() {
        let token = format!("{}{}", "ghp_", "a1".repeat(18));
        let facts = json!({
            "item": format!("two\nlines, {token}"),
            "long": "ä".repeat(100_000),
            "count": u64::MAX,
            "cost_usd": 0.25,
            "is": true,
            "items": vec!["x"; 100],
            "reading": {"used": 1},
            "ending": {"ending": "failed", "detail": "x"},
            "mixed": ["a", 1],
            "nothing": null,
        });
        let mut attributes = Attributes::default();
        attributes.add_supported_event_fields(facts.as_object().unwrap());
        let list = attributes.to_key_values();
        let names: Vec<&str> = list.iter().map(|attribute| attribute.key.as_str()).collect();
        let expected_names = ["item", "long", "count", "cost_usd", "is", "items", "ending"];
        assert_eq!(names, expected_names.map(|name| format!("plimsoll.{name}")));
        let value_at = |index: usize| list[index].value.clone().unwrap().value.unwrap();
        assert_eq!(value_at(0), Any::StringValue("two lines, [redacted:github-token]".to_owned()));
        assert!(matches!(value_at(1), Any::StringValue(text) if text.chars().count() == MAX_TEXT_CHARS));
        assert!(matches!(value_at(5), Any::ArrayValue(values) if values.values.len() == MAX_ENTRIES));
    }

    #[test]
    fn each_key_occurs_once_with_its_last_value() {
        let mut attributes = Attributes::default();
        attributes.add_count("a", 1).add_text("b", "x").add_count("a", 2);
        let list = attributes.to_key_values();
        assert_eq!((list.len(), list[0].value.clone().unwrap().value), (2, Some(Any::IntValue(2))));
    }
}
