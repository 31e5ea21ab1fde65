//! Reads a state straight from its text. The `Deserialize` that serde derives for a struct with flattened parts first keeps every field in
//! a form of its own: that takes three times as long where a plan is long, and adds 200 kB to the hook programs.

use super::{
    Checkpoint, Format, HistoryEntry, Items, IterationRecord, PromiseCode, RunId, RunState, SessionId,
};
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Reads a state, with its history or with an empty one. Fails for some valid states, too: one with a `null`, or with a field that is
/// there twice.
pub(super) fn read(text: &str, history: History) -> serde_json::Result<RunState> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let state = StateVisitor { history }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(state)
}

/// Whether the history of a state is read, which grows with the run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum History {
    Read,
    Skip,
}

/// The fields that grow with the plan and the run. Each is read in its place.
#[derive(Default)]
struct LongFields {
    todo_items: Option<Vec<String>>,
    completed_items: Option<Vec<String>>,
    known_items: Option<Vec<String>>,
    ever_done: Option<Vec<String>>,
    context_checkpoint: Option<Checkpoint>,
    half_done: Option<Vec<Checkpoint>>,
    context_history: Option<Vec<HistoryEntry>>,
    iteration_record: Option<IterationRecord>,
}

/// The other fields that are not part of a group.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ShortFields {
    format: Format,
    iteration: u32,
    run_id: RunId,
    session_id: Option<SessionId>,
    nonce: PromiseCode,
    revision: u64,
}

struct StateVisitor {
    history: History,
}

impl<'de> DeserializeSeed<'de> for StateVisitor {
    type Value = RunState;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RunState, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for StateVisitor {
    type Value = RunState;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a state")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RunState, A::Error> {
        let mut long = LongFields::default();
        let mut others: Vec<(&str, &RawValue)> = Vec::new();
        while let Some(key) = map.next_key::<&'de str>()? {
            match key {
                "todo_items" => take(&mut long.todo_items, &mut map)?,
                "completed_items" => take(&mut long.completed_items, &mut map)?,
                "known_items" => take(&mut long.known_items, &mut map)?,
                "ever_done" => take(&mut long.ever_done, &mut map)?,
                "context_checkpoint" => take(&mut long.context_checkpoint, &mut map)?,
                "half_done" => take(&mut long.half_done, &mut map)?,
                "context_history" if self.history == History::Skip => {
                    map.next_value::<IgnoredAny>()?;
                }
                "context_history" => take(&mut long.context_history, &mut map)?,
                "iteration_record" => take(&mut long.iteration_record, &mut map)?,
                _ => others.push((key, map.next_value()?)),
            }
        }
        let short: ShortFields = read_group(&others)?;
        let items: Items = read_group(&others)?;
        Ok(RunState {
            format: short.format,
            options: read_group(&others)?,
            iteration: short.iteration,
            at_start: read_group(&others)?,
            lifecycle: read_group(&others)?,
            outcomes: read_group(&others)?,
            items: Items {
                todo_items: long.todo_items.unwrap_or_default(),
                completed_items: long.completed_items.unwrap_or_default(),
                known_items: long.known_items.unwrap_or_default(),
                ever_done: long.ever_done.unwrap_or_default(),
                ..items
            },
            context_checkpoint: long.context_checkpoint.unwrap_or_default(),
            half_done: long.half_done.unwrap_or_default(),
            context_history: long.context_history.unwrap_or_default(),
            run_id: short.run_id,
            session_id: short.session_id,
            nonce: short.nonce,
            revision: short.revision,
            iteration_record: long.iteration_record.unwrap_or_default(),
            spent: read_group(&others)?,
        })
    }
}

/// Reads those of the fields that a group has.
fn read_group<'de, T: Deserialize<'de>, E: Error>(fields: &[(&'de str, &'de RawValue)]) -> Result<T, E> {
    let fields = MapDeserializer::<_, serde_json::Error>::new(fields.iter().copied());
    T::deserialize(fields).map_err(E::custom)
}

fn take<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    match place.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("the field is there twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::{History, read};
    use crate::RunState;
    use serde_json::{Map, Value, json};

    /// A state of a real run, with what that run did not meet put in.
    const SAMPLE: &str = include_str!("sample.json");

    /// As serde reads it by itself: what is read here must come to the same.
    fn by_serde(text: &str) -> Result<RunState, String> {
        let of_document = |_| RunState::from_document(&serde_json::from_str(text)?);
        serde_json::from_str(text).or_else(of_document).map_err(|error: serde_json::Error| error.to_string())
    }

    fn assert_same(text: &str, told: &str) {
        let expected = by_serde(text);
        let read = RunState::from_text(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read, expected, "{told}");
        let short = RunState::from_text_without_history(text.as_bytes());
        match (short, expected) {
            (Ok(short), Ok(expected)) => {
                assert_eq!(short, RunState { context_history: Vec::new(), ..expected }, "{told}");
            }
            // A damaged history is passed over.
            (Ok(_), Err(_)) => assert!(told.starts_with("/context_history"), "{told}"),
            (Err(error), expected) => assert_eq!(Err(error.to_string()), expected, "{told}"),
        }
    }

    /// The place of every value in a document.
    fn places(value: &Value, at: &str) -> Vec<String> {
        let below = |(key, value): (String, &Value)| places(value, &format!("{at}/{key}"));
        let of_list = |list: &[Value]| {
            list.iter().enumerate().flat_map(|(key, value)| below((key.to_string(), value))).collect()
        };
        let below: Vec<String> = match value {
            Value::Object(fields) => {
                fields.iter().flat_map(|(key, value)| below((key.clone(), value))).collect()
            }
            Value::Array(list) => of_list(list),
            _ => Vec::new(),
        };
        [at.to_owned()].into_iter().chain(below).collect()
    }

    fn full() -> Value {
        let state = RunState::from_text(SAMPLE.as_bytes()).unwrap();
        let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
        state.write_into(&mut document);
        document
    }

    #[test]
    fn a_field_that_is_missing_null_of_another_kind_or_unknown_is_read_as_serde_does_it() {
        let full = full();
        let all = places(&full, "");
        assert!(all.len() > 200, "{}", all.len());
        let others =
            [json!(null), json!("7"), json!(7), json!(-1.5), json!(true), json!([null]), json!({"a": 1})];
        for place in &all {
            for other in &others {
                let mut document = full.clone();
                *document.pointer_mut(place).unwrap() = other.clone();
                assert_same(&document.to_string(), &format!("{place} {other}"));
            }
            let mut document = full.clone();
            match document.pointer_mut(place).unwrap() {
                Value::Object(fields) => {
                    for key in fields.keys() {
                        let mut document = full.clone();
                        let fields = document.pointer_mut(place).unwrap().as_object_mut().unwrap();
                        fields.shift_remove(key);
                        assert_same(&document.to_string(), &format!("{place} without {key}"));
                    }
                    let unknown = [("mine".to_owned(), json!({"a": [1e300, "\u{7f}"]}))];
                    *fields = unknown.into_iter().chain(std::mem::take(fields)).collect();
                }
                Value::Array(list) => list.push(json!({"item": "mine", "iteration": 9})),
                _ => {}
            }
            assert_same(&document.to_string(), &format!("{place} and more"));
        }
    }

    #[test]
    fn a_text_of_another_form_is_read_as_serde_does_it() {
        let full = full();
        let backwards: Map<String, Value> = full.as_object().unwrap().clone().into_iter().rev().collect();
        assert_same(&Value::Object(backwards).to_string(), "backwards");
        let compact = full.to_string();
        for (key, value) in full.as_object().unwrap() {
            for value in [value.to_string(), "null".to_owned(), "[]".to_owned(), "3".to_owned()] {
                let twice = format!("{{\"{key}\":{value},{}", &compact[1..]);
                assert_same(&twice, &format!("/{key} twice, first {value}"));
            }
        }
        for (from, to) in [
            ("\"task_name\"", "\"task\\u005fname\""),
            ("\"todo_items\"", "\"todo\\u005fitems\""),
            ("\"iteration\":", "\"iteration\" :\t\r\n "),
            ("{\"", "[{\""),
            ("}", "} "),
            ("}", "}}"),
            ("\"status\":", "\"mine\":[,],\"status\":"),
            ("\"status\":", "\"mine\":\"\u{1}\",\"status\":"),
            ("\"status\":", "\"status\":3,\"status\":"),
        ] {
            let text = compact.replacen(from, to, 1);
            assert_ne!(text, compact, "{from}");
            assert_same(&text, &format!("{from} as {to}"));
        }
        // The value of an unknown field is not decoded.
        for undecodable in ["\"\\ud800\"", "1e999"] {
            let text = compact.replacen("\"status\":", &format!("\"mine\":{undecodable},\"status\":"), 1);
            let [state, expected] =
                [&text, &compact].map(|text| RunState::from_text(text.as_bytes()).unwrap());
            assert_eq!(state, expected, "{undecodable}");
        }
        for text in ["", "{}", "[]", "null", "3", "{\"iteration\":4}", "{\"format\":2}", "{\"format\":1} x"] {
            assert_same(text, text);
        }
        for end in (0..compact.len()).step_by(97) {
            assert!(RunState::from_text(&compact.as_bytes()[..end]).is_err(), "{end}");
        }
        assert!(RunState::from_text(b"{\"task_name\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_state_is_read_without_its_history() {
        let state = RunState::from_text(SAMPLE.as_bytes()).unwrap();
        assert!(!state.context_history.is_empty());
        let expected = RunState { context_history: Vec::new(), ..state.clone() };
        for text in [state.text().unwrap(), serde_json::to_string(&state).unwrap()] {
            assert_eq!(read(&text, History::Skip).unwrap(), expected);
            // Its entries are not even looked at.
            let unreadable =
                text.replacen("\"context_history\":", "\"context_history\":[3],\"context_history\":", 1);
            assert_eq!(RunState::from_text_without_history(unreadable.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn the_text_of_a_state_is_its_document() {
        let mut hostile = RunState::from_text(SAMPLE.as_bytes()).unwrap();
        hostile.options.objective = "x\n  \"revision\": 9,\n".to_owned();
        hostile.items.todo_items = vec!["\u{2028}ä\"\\".to_owned()];
        for state in [RunState::default(), RunState::from_text(SAMPLE.as_bytes()).unwrap(), hostile] {
            let mut document = json!({});
            state.write_into(&mut document);
            let text = state.text().unwrap();
            assert_eq!(text, serde_json::to_string_pretty(&document).unwrap() + "\n");
            assert_eq!(RunState::from_text(text.as_bytes()).unwrap(), state);
        }
    }
}
