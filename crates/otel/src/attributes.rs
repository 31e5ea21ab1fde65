//! What is known of a span or a log. All text may come from a session: it is one line, clipped, and without what looks like a
//! secret.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use plimsoll_domain::text::{to_single_line, truncate_end};
use serde_json::Value;

/// The longest text.
const LONGEST: usize = 500;
/// The most texts of a list, and the most facts of an event.
const MOST: usize = 20;

/// Text that may leave the computer.
pub(crate) fn clean(text: &str) -> String {
    // Clipped before the search, too: a session may have written a book.
    truncate_end(&to_single_line(&plimsoll_secrets::redact(&truncate_end(text, 8 * LONGEST))), LONGEST)
}

/// A list in the making.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Attributes {
        self.put(key, Any::StringValue(clean(value)))
    }

    pub(crate) fn maybe(&mut self, key: &str, value: Option<&str>) -> &mut Attributes {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    pub(crate) fn count(&mut self, key: &str, value: impl TryInto<i64>) -> &mut Attributes {
        self.put(key, Any::IntValue(value.try_into().unwrap_or(i64::MAX)))
    }

    pub(crate) fn number(&mut self, key: &str, value: f64) -> &mut Attributes {
        self.put(key, Any::DoubleValue(value))
    }

    pub(crate) fn flag(&mut self, key: &str, value: bool) -> &mut Attributes {
        self.put(key, Any::BoolValue(value))
    }

    pub(crate) fn texts<'a>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> &mut Attributes {
        let text = |value: &str| AnyValue { value: Some(Any::StringValue(clean(value))) };
        let values = values.into_iter().take(MOST).map(text).collect();
        self.put(key, Any::ArrayValue(ArrayValue { values }))
    }

    /// The facts of an event, each under its own name; what is made of parts is left out.
    pub(crate) fn facts(&mut self, facts: &serde_json::Map<String, Value>) -> &mut Attributes {
        for (name, value) in facts.iter().take(MOST) {
            let key = format!("plimsoll.{name}");
            match value {
                Value::String(text) => self.text(&key, text),
                Value::Bool(is_so) => self.flag(&key, *is_so),
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(count), _) => self.count(&key, count),
                    (None, Some(number)) => self.number(&key, number),
                    (None, None) => self,
                },
                Value::Array(values) if values.iter().all(Value::is_string) => {
                    self.texts(&key, values.iter().filter_map(Value::as_str))
                }
                // A word with what it says more: {"ending": {"ending": "failed", "detail": "…"}}.
                Value::Object(parts) => self.maybe(&key, parts.get(name).and_then(Value::as_str)),
                Value::Array(_) | Value::Null => self,
            };
        }
        self
    }

    /// The later of two values of one name counts: a name stands once.
    fn put(&mut self, key: &str, value: Any) -> &mut Attributes {
        let value = Some(AnyValue { value: Some(value) });
        match self.0.iter_mut().find(|known| known.key == key) {
            Some(known) => known.value = value,
            None => self.0.push(KeyValue { key: key.to_owned(), value, ..KeyValue::default() }),
        }
        self
    }

    pub(crate) fn list(&self) -> Vec<KeyValue> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_of_a_session_are_clipped_cleaned_and_counted() {
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
        attributes.facts(facts.as_object().unwrap());
        let list = attributes.list();
        let names: Vec<&str> = list.iter().map(|one| one.key.as_str()).collect();
        let names_of = ["item", "long", "count", "cost_usd", "is", "items", "ending"];
        assert_eq!(names, names_of.map(|name| format!("plimsoll.{name}")));
        let of = |at: usize| list[at].value.clone().unwrap().value.unwrap();
        assert_eq!(of(0), Any::StringValue("two lines, [redacted:github-token]".to_owned()));
        assert!(matches!(of(1), Any::StringValue(text) if text.chars().count() == LONGEST));
        assert!(matches!(of(5), Any::ArrayValue(values) if values.values.len() == MOST));
    }

    #[test]
    fn a_name_stands_once_with_its_last_value() {
        let mut attributes = Attributes::default();
        attributes.count("a", 1).text("b", "x").count("a", 2);
        let list = attributes.list();
        assert_eq!((list.len(), list[0].value.clone().unwrap().value), (2, Some(Any::IntValue(2))));
    }
}
