//! What a tool takes: said as a JSON Schema, and checked, from the same list. The client checks nothing.

use crate::tool_error::ToolError;
use plimsoll_domain::memory::Register;
use serde_json::{Map, Value, json};

/// How much of a register that is too long is taken to be cut, and kept whole in the log; more is refused.
const MOST_TO_CUT: usize = 100_000;

/// One argument of a tool.
pub(crate) struct Argument {
    name: &'static str,
    about: &'static str,
    kind: ArgumentKind,
    is_required: bool,
}

/// What it may hold.
enum ArgumentKind {
    /// Text of at most this many characters.
    Text { most: usize },
    /// A register's value: one that is too long is cut by the memory's own rules, and reported.
    Register(Register),
    /// True or false.
    Flag,
    /// A whole number from 1.
    Count { most: u64 },
}

impl Argument {
    fn new(name: &'static str, about: &'static str, kind: ArgumentKind) -> Argument {
        Argument { name, about, kind, is_required: false }
    }

    /// Text of at most this many characters.
    pub(crate) fn text(name: &'static str, most: usize, about: &'static str) -> Argument {
        Argument::new(name, about, ArgumentKind::Text { most })
    }

    /// A register.
    pub(crate) fn register(register: Register, about: &'static str) -> Argument {
        Argument::new(register.key(), about, ArgumentKind::Register(register))
    }

    /// True or false.
    pub(crate) fn flag(name: &'static str, about: &'static str) -> Argument {
        Argument::new(name, about, ArgumentKind::Flag)
    }

    /// A whole number from 1.
    pub(crate) fn count(name: &'static str, most: u64, about: &'static str) -> Argument {
        Argument::new(name, about, ArgumentKind::Count { most })
    }

    /// Without it the call is refused.
    pub(crate) fn required(self) -> Argument {
        Argument { is_required: true, ..self }
    }

    fn schema(&self) -> Value {
        let about = self.about;
        match &self.kind {
            ArgumentKind::Text { most } => json!({"type": "string", "maxLength": most, "description": about}),
            ArgumentKind::Register(register) => {
                json!({"type": "string", "maxLength": register.max_chars(), "description": about})
            }
            ArgumentKind::Flag => json!({"type": "boolean", "description": about}),
            ArgumentKind::Count { most } => {
                json!({"type": "integer", "minimum": 1, "maximum": most, "description": about})
            }
        }
    }

    /// Why a value will not do.
    fn fault(&self, value: &Value) -> Option<String> {
        let name = self.name;
        match (&self.kind, value) {
            (ArgumentKind::Text { most }, Value::String(text)) => too_long(name, text, *most, "shorten it"),
            (ArgumentKind::Register(_), Value::String(text)) => {
                too_long(name, text, MOST_TO_CUT, "put it into a file, and a pointer here")
            }
            (ArgumentKind::Flag, Value::Bool(_)) => None,
            (ArgumentKind::Count { most }, value) => {
                let is_one = value.as_u64().is_some_and(|count| (1..=*most).contains(&count));
                (!is_one).then(|| format!("{name} is {}: give a whole number from 1 to {most}", kind(value)))
            }
            (ArgumentKind::Register(_), Value::Null) => {
                Some(format!("{name} is null: leave it out to keep it, give \"\" to clear it"))
            }
            (ArgumentKind::Text { .. } | ArgumentKind::Register(_), value) => {
                Some(format!("{name} is {}: give a string", kind(value)))
            }
            (ArgumentKind::Flag, value) => Some(format!("{name} is {}: give true or false", kind(value))),
        }
    }
}

fn too_long(name: &str, text: &str, most: usize, advice: &str) -> Option<String> {
    let length = text.chars().count();
    (length > most)
        .then(|| format!("{name} takes at most {most} characters, and {length} were given: {advice}"))
}

/// A value in a word.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The JSON Schema of a tool's arguments.
pub(crate) fn schema(arguments: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.to_owned(), argument.schema())).collect();
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

/// Arguments that have been checked.
pub(crate) struct Given(Map<String, Value>);

impl Given {
    /// Checks arguments; or says what is wrong, where, and what to do.
    pub(crate) fn check(
        tool: &'static str,
        arguments: &[Argument],
        given: Map<String, Value>,
    ) -> Result<Given, ToolError> {
        let names = || arguments.iter().map(|argument| argument.name).collect::<Vec<_>>().join(", ");
        for (name, value) in &given {
            let known = arguments.iter().find(|argument| argument.name == name);
            let fault = match known {
                Some(argument) => argument.fault(value),
                None if arguments.is_empty() => Some(format!("{name:?} is unknown: it takes no arguments")),
                None => Some(format!("{name:?} is unknown: it takes {}", names())),
            };
            if let Some(fault) = fault {
                return Err(ToolError::Argument { tool, fault });
            }
        }
        let is_missing = |argument: &&Argument| argument.is_required && !given.contains_key(argument.name);
        match arguments.iter().find(is_missing) {
            Some(argument) => Err(ToolError::Missing { tool, name: argument.name, about: argument.about }),
            None => Ok(Given(given)),
        }
    }

    /// A text, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// A text that is required, or empty.
    pub(crate) fn words(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// True if it was given and is true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A number, if it was given.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_u64()?).ok()
    }
}
