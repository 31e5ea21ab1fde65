//! Parses a state directly from its JSON text. The `Deserialize` that serde derives for a struct with flattened parts buffers
//! every field first: that takes three times as long for a long plan, and adds 200 kB to the hook programs.

use super::{
    Checkpoint, FormatVersion, HistoryEntry, IterationRecord, PlanItems, PromiseCode, RunId, RunState,
    SessionId,
};
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Parses a state, with its history or with an empty one. Also fails for some valid states: those with a `null` or a duplicate
/// field.
pub(super) fn parse_state(text: &str, history_mode: HistoryMode) -> serde_json::Result<RunState> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let state = StateVisitor { history_mode }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(state)
}

/// Whether the history of a state is read or skipped. The history grows with the run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum HistoryMode {
    Read,
    Skip,
}

/// The fields that grow with the plan and the run. They are parsed without buffering.
#[derive(Default)]
struct GrowingFields {
    todo_items: Option<Vec<String>>,
    completed_items: Option<Vec<String>>,
    known_items: Option<Vec<String>>,
    ever_ticked_items: Option<Vec<String>>,
    context_checkpoint: Option<Checkpoint>,
    half_done_checkpoints: Option<Vec<Checkpoint>>,
    context_history: Option<Vec<HistoryEntry>>,
    iteration_record: Option<IterationRecord>,
}

/// The remaining fields that do not belong to a group.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UngroupedFields {
    format: FormatVersion,
    iteration: u32,
    run_id: RunId,
    session_id: Option<SessionId>,
    nonce: PromiseCode,
    revision: u64,
}

struct StateVisitor {
    history_mode: HistoryMode,
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
        let mut growing_fields = GrowingFields::default();
        let mut other_fields: Vec<(&str, &RawValue)> = Vec::new();
        while let Some(key) = map.next_key::<&'de str>()? {
            match key {
                "todo_items" => read_unique_field(&mut growing_fields.todo_items, &mut map)?,
                "completed_items" => read_unique_field(&mut growing_fields.completed_items, &mut map)?,
                "known_items" => read_unique_field(&mut growing_fields.known_items, &mut map)?,
                "ever_done" => read_unique_field(&mut growing_fields.ever_ticked_items, &mut map)?,
                "context_checkpoint" => read_unique_field(&mut growing_fields.context_checkpoint, &mut map)?,
                "half_done" => read_unique_field(&mut growing_fields.half_done_checkpoints, &mut map)?,
                "context_history" if self.history_mode == HistoryMode::Skip => {
                    map.next_value::<IgnoredAny>()?;
                }
                "context_history" => read_unique_field(&mut growing_fields.context_history, &mut map)?,
                "iteration_record" => read_unique_field(&mut growing_fields.iteration_record, &mut map)?,
                _ => other_fields.push((key, map.next_value()?)),
            }
        }
        let ungrouped_fields: UngroupedFields = deserialize_group(&other_fields)?;
        let plan_items: PlanItems = deserialize_group(&other_fields)?;
        Ok(RunState {
            format: ungrouped_fields.format,
            options: deserialize_group(&other_fields)?,
            iteration: ungrouped_fields.iteration,
            project_at_start: deserialize_group(&other_fields)?,
            lifecycle: deserialize_group(&other_fields)?,
            outcomes: deserialize_group(&other_fields)?,
            plan_items: PlanItems {
                todo_items: growing_fields.todo_items.unwrap_or_default(),
                completed_items: growing_fields.completed_items.unwrap_or_default(),
                known_items: growing_fields.known_items.unwrap_or_default(),
                ever_ticked_items: growing_fields.ever_ticked_items.unwrap_or_default(),
                ..plan_items
            },
            context_checkpoint: growing_fields.context_checkpoint.unwrap_or_default(),
            half_done_checkpoints: growing_fields.half_done_checkpoints.unwrap_or_default(),
            context_history: growing_fields.context_history.unwrap_or_default(),
            run_id: ungrouped_fields.run_id,
            session_id: ungrouped_fields.session_id,
            promise_code: ungrouped_fields.nonce,
            revision: ungrouped_fields.revision,
            iteration_record: growing_fields.iteration_record.unwrap_or_default(),
            spending: deserialize_group(&other_fields)?,
        })
    }
}

/// Deserializes a group from the fields that belong to it, and ignores all others.
fn deserialize_group<'de, T: Deserialize<'de>, E: Error>(
    fields: &[(&'de str, &'de RawValue)],
) -> Result<T, E> {
    let fields = MapDeserializer::<_, serde_json::Error>::new(fields.iter().copied());
    T::deserialize(fields).map_err(E::custom)
}

fn read_unique_field<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    match slot.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("the field is there twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::{HistoryMode, parse_state};
    use crate::RunState;
    use serde_json::{Map, Value, json};

    /// The state of a real run, completed with fields that the run did not use.
    const SAMPLE: &str = include_str!("sample.json");

    /// Parses a state with the derived `Deserialize`. The parser of this module must give the same result.
    fn parse_with_serde(text: &str) -> Result<RunState, String> {
        let parse_document = |_| RunState::from_document(&serde_json::from_str(text)?);
        serde_json::from_str(text)
            .or_else(parse_document)
            .map_err(|error: serde_json::Error| error.to_string())
    }

    fn assert_parsed_as_by_serde(text: &str, description: &str) {
        let expected = parse_with_serde(text);
        let parsed = RunState::from_json_text(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(parsed, expected, "{description}");
        let without_history = RunState::from_json_text_without_history(text.as_bytes());
        match (without_history, expected) {
            (Ok(without_history), Ok(expected)) => {
                assert_eq!(
                    without_history,
                    RunState { context_history: Vec::new(), ..expected },
                    "{description}"
                );
            }
            // A damaged history is skipped.
            (Ok(_), Err(_)) => assert!(description.starts_with("/context_history"), "{description}"),
            (Err(error), expected) => assert_eq!(Err(error.to_string()), expected, "{description}"),
        }
    }

    /// Returns the JSON pointer of every value in a document.
    fn json_pointers(value: &Value, pointer: &str) -> Vec<String> {
        let nested_pointers =
            |(key, value): (String, &Value)| json_pointers(value, &format!("{pointer}/{key}"));
        let list_pointers = |list: &[Value]| {
            list.iter()
                .enumerate()
                .flat_map(|(key, value)| nested_pointers((key.to_string(), value)))
                .collect()
        };
        let nested: Vec<String> = match value {
            Value::Object(fields) => {
                fields.iter().flat_map(|(key, value)| nested_pointers((key.clone(), value))).collect()
            }
            Value::Array(list) => list_pointers(list),
            _ => Vec::new(),
        };
        [pointer.to_owned()].into_iter().chain(nested).collect()
    }

    fn full_document() -> Value {
        let state = RunState::from_json_text(SAMPLE.as_bytes()).unwrap();
        let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
        state.merge_into_document(&mut document);
        document
    }

    #[test]
    fn missing_null_mistyped_and_unknown_fields_are_read_as_serde_reads_them() {
        let document_template = full_document();
        let pointers = json_pointers(&document_template, "");
        assert!(pointers.len() > 200, "{}", pointers.len());
        let replacements =
            [json!(null), json!("7"), json!(7), json!(-1.5), json!(true), json!([null]), json!({"a": 1})];
        for pointer in &pointers {
            for replacement in &replacements {
                let mut document = document_template.clone();
                *document.pointer_mut(pointer).unwrap() = replacement.clone();
                assert_parsed_as_by_serde(&document.to_string(), &format!("{pointer} {replacement}"));
            }
            let mut document = document_template.clone();
            match document.pointer_mut(pointer).unwrap() {
                Value::Object(fields) => {
                    for key in fields.keys() {
                        let mut document = document_template.clone();
                        let fields = document.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
                        fields.shift_remove(key);
                        assert_parsed_as_by_serde(&document.to_string(), &format!("{pointer} without {key}"));
                    }
                    let unknown = [("mine".to_owned(), json!({"a": [1e300, "\u{7f}"]}))];
                    *fields = unknown.into_iter().chain(std::mem::take(fields)).collect();
                }
                Value::Array(list) => list.push(json!({"item": "mine", "iteration": 9})),
                _ => {}
            }
            assert_parsed_as_by_serde(&document.to_string(), &format!("{pointer} and more"));
        }
    }

    #[test]
    fn json_in_another_layout_is_read_as_serde_reads_it() {
        let document = full_document();
        let reversed_fields: Map<String, Value> =
            document.as_object().unwrap().clone().into_iter().rev().collect();
        assert_parsed_as_by_serde(&Value::Object(reversed_fields).to_string(), "backwards");
        let compact = document.to_string();
        for (key, value) in document.as_object().unwrap() {
            for value in [value.to_string(), "null".to_owned(), "[]".to_owned(), "3".to_owned()] {
                let text_with_duplicate = format!("{{\"{key}\":{value},{}", &compact[1..]);
                assert_parsed_as_by_serde(&text_with_duplicate, &format!("/{key} twice, first {value}"));
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
            assert_parsed_as_by_serde(&text, &format!("{from} as {to}"));
        }
        // The value of an unknown field is not decoded.
        for undecodable in ["\"\\ud800\"", "1e999"] {
            let text = compact.replacen("\"status\":", &format!("\"mine\":{undecodable},\"status\":"), 1);
            let [state, expected] =
                [&text, &compact].map(|text| RunState::from_json_text(text.as_bytes()).unwrap());
            assert_eq!(state, expected, "{undecodable}");
        }
        for text in ["", "{}", "[]", "null", "3", "{\"iteration\":4}", "{\"format\":2}", "{\"format\":1} x"] {
            assert_parsed_as_by_serde(text, text);
        }
        for end in (0..compact.len()).step_by(97) {
            assert!(RunState::from_json_text(&compact.as_bytes()[..end]).is_err(), "{end}");
        }
        assert!(RunState::from_json_text(b"{\"task_name\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_state_is_read_without_its_history() {
        let state = RunState::from_json_text(SAMPLE.as_bytes()).unwrap();
        assert!(!state.context_history.is_empty());
        let expected = RunState { context_history: Vec::new(), ..state.clone() };
        for text in [state.to_json_text().unwrap(), serde_json::to_string(&state).unwrap()] {
            assert_eq!(parse_state(&text, HistoryMode::Skip).unwrap(), expected);
            // The entries of the history are not parsed, so invalid ones are no error.
            let unreadable =
                text.replacen("\"context_history\":", "\"context_history\":[3],\"context_history\":", 1);
            assert_eq!(RunState::from_json_text_without_history(unreadable.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn the_text_of_a_state_is_its_document() {
        let mut hostile = RunState::from_json_text(SAMPLE.as_bytes()).unwrap();
        hostile.options.objective = "x\n  \"revision\": 9,\n".to_owned();
        hostile.plan_items.todo_items = vec!["\u{2028}ä\"\\".to_owned()];
        for state in [RunState::default(), RunState::from_json_text(SAMPLE.as_bytes()).unwrap(), hostile] {
            let mut document = json!({});
            state.merge_into_document(&mut document);
            let text = state.to_json_text().unwrap();
            assert_eq!(text, serde_json::to_string_pretty(&document).unwrap() + "\n");
            assert_eq!(RunState::from_json_text(text.as_bytes()).unwrap(), state);
        }
    }
}
