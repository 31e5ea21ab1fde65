//! Arguments of tools. The JSON Schema and the checks are derived from one list, because the client checks nothing.

use crate::tool_error::ToolError;
use plimsoll_domain::memory::Register;
use serde_json::{Map, Value, json};

/// Maximum length of a register value. A value over the register's own limit is truncated and logged in full; one over this
/// limit is rejected.
const MAX_REGISTER_INPUT_CHARS: usize = 100_000;

pub(crate) struct Argument {
    name: &'static str,
    description: &'static str,
    kind: ArgumentKind,
    is_required: bool,
}

/// The type and limits of an argument's value.
enum ArgumentKind {
    /// Text of at most this many characters.
    Text {
        max_chars: usize,
    },
    /// A register's value. The memory truncates a value that is too long and reports it.
    Register(Register),
    Flag,
    /// A whole number from 1 to `max`.
    Count {
        max: u64,
    },
}

impl Argument {
    fn new(name: &'static str, description: &'static str, kind: ArgumentKind) -> Argument {
        Argument { name, description, kind, is_required: false }
    }

    pub(crate) fn text(name: &'static str, max_chars: usize, description: &'static str) -> Argument {
        Argument::new(name, description, ArgumentKind::Text { max_chars })
    }

    pub(crate) fn register(register: Register, description: &'static str) -> Argument {
        Argument::new(register.key(), description, ArgumentKind::Register(register))
    }

    pub(crate) fn flag(name: &'static str, description: &'static str) -> Argument {
        Argument::new(name, description, ArgumentKind::Flag)
    }

    /// Creates an argument that is a whole number from 1 to `max`.
    pub(crate) fn count(name: &'static str, max: u64, description: &'static str) -> Argument {
        Argument::new(name, description, ArgumentKind::Count { max })
    }

    /// Makes the argument required: a call without it is rejected.
    pub(crate) fn required(self) -> Argument {
        Argument { is_required: true, ..self }
    }

    fn to_json_schema(&self) -> Value {
        let description = self.description;
        match &self.kind {
            ArgumentKind::Text { max_chars } => {
                json!({"type": "string", "maxLength": max_chars, "description": description})
            }
            ArgumentKind::Register(register) => {
                json!({"type": "string", "maxLength": register.max_chars(), "description": description})
            }
            ArgumentKind::Flag => json!({"type": "boolean", "description": description}),
            ArgumentKind::Count { max } => {
                json!({"type": "integer", "minimum": 1, "maximum": max, "description": description})
            }
        }
    }

    /// Returns why a value is invalid, or `None` if it is valid.
    fn describe_invalid_value(&self, value: &Value) -> Option<String> {
        let name = self.name;
        match (&self.kind, value) {
            (ArgumentKind::Text { max_chars }, Value::String(text)) => {
                describe_problem_if_text_too_long(name, text, *max_chars, "shorten it")
            }
            (ArgumentKind::Register(_), Value::String(text)) => describe_problem_if_text_too_long(
                name,
                text,
                MAX_REGISTER_INPUT_CHARS,
                "put it into a file, and a pointer here",
            ),
            (ArgumentKind::Flag, Value::Bool(_)) => None,
            (ArgumentKind::Count { max }, value) => {
                let is_in_range = value.as_u64().is_some_and(|count| (1..=*max).contains(&count));
                (!is_in_range).then(|| {
                    format!("{name} is {}: give a whole number from 1 to {max}", describe_json_value(value))
                })
            }
            (ArgumentKind::Register(_), Value::Null) => {
                Some(format!("{name} is null: leave it out to keep it, give \"\" to clear it"))
            }
            (ArgumentKind::Text { .. } | ArgumentKind::Register(_), value) => {
                Some(format!("{name} is {}: give a string", describe_json_value(value)))
            }
            (ArgumentKind::Flag, value) => {
                Some(format!("{name} is {}: give true or false", describe_json_value(value)))
            }
        }
    }
}

fn describe_problem_if_text_too_long(
    argument_name: &str,
    text: &str,
    max_chars: usize,
    advice: &str,
) -> Option<String> {
    let char_count = text.chars().count();
    (char_count > max_chars).then(|| {
        format!("{argument_name} takes at most {max_chars} characters, and {char_count} were given: {advice}")
    })
}

/// Describes a value for an error message: null, booleans and numbers by their value, others by their type.
fn describe_json_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

pub(crate) fn build_json_schema_of_arguments(arguments: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.to_owned(), argument.to_json_schema())).collect();
    let required: Vec<&str> =
        arguments.iter().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// Arguments of a call that have passed the checks.
pub(crate) struct CheckedArguments(Map<String, Value>);

impl CheckedArguments {
    /// Checks the arguments of a call. Fails on the first unknown, invalid or missing one; the error names the argument, the
    /// problem and the correction.
    pub(crate) fn check_values_against_arguments(
        tool_name: &'static str,
        arguments: &[Argument],
        values: Map<String, Value>,
    ) -> Result<CheckedArguments, ToolError> {
        let join_argument_names =
            || arguments.iter().map(|argument| argument.name).collect::<Vec<_>>().join(", ");
        for (name, value) in &values {
            let matching_argument = arguments.iter().find(|argument| argument.name == name);
            let problem = match matching_argument {
                Some(argument) => argument.describe_invalid_value(value),
                None if arguments.is_empty() => Some(format!("{name:?} is unknown: it takes no arguments")),
                None => Some(format!("{name:?} is unknown: it takes {}", join_argument_names())),
            };
            if let Some(problem) = problem {
                return Err(ToolError::InvalidArgument { tool_name, problem });
            }
        }
        let is_missing = |argument: &&Argument| argument.is_required && !values.contains_key(argument.name);
        match arguments.iter().find(is_missing) {
            Some(argument) => Err(ToolError::MissingArgument {
                tool_name,
                name: argument.name,
                description: argument.description,
            }),
            None => Ok(CheckedArguments(values)),
        }
    }

    pub(crate) fn optional_text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// Returns a text argument, or an empty string if it is missing.
    pub(crate) fn text_or_empty(&self, name: &str) -> String {
        self.optional_text(name).unwrap_or_default()
    }

    /// Returns the flag's value, or false if it is missing.
    pub(crate) fn flag_or_false(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn optional_count(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_u64()?).ok()
    }
}
