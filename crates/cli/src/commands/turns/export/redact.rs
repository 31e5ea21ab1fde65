//! Taking secrets out of records: on decoded text, before anything is rendered, so that every format gives out the
//! same. What holds no secret stays byte for byte.

use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN;
use plimsoll_domain::turn::{Block, Failure, ToolCall, outline};
use plimsoll_flows::turns::{Body, Recorded};
use plimsoll_secrets::{Found, mark};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The place of a secret; never its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretPlace {
    /// The record: `session:number`.
    pub(crate) record: String,
    /// The field, with the way to it.
    pub(crate) field: String,
    /// What it looks like.
    pub(crate) kind: &'static str,
}

/// Takes secrets out, and notes where they stood.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    record: String,
    path: Vec<String>,
    places: Vec<SecretPlace>,
}

impl Redactor {
    /// The places of secrets so far.
    pub(crate) fn places(&self) -> &[SecretPlace] {
        &self.places
    }

    /// The record without its secrets.
    pub(crate) fn record(&mut self, record: &Recorded) -> Recorded {
        self.record = record.name();
        if record.header.stream != MAIN {
            self.record = format!("{} of agent {}", self.record, record.header.stream);
        }
        let body = match &record.body {
            Body::Turn(turn) => Body::Turn(Box::new(self.turn(turn))),
            Body::Event(fields) => Body::Event(self.map(fields)),
            Body::Erased => Body::Erased,
            Body::DecodeError(why) => Body::DecodeError(why.clone()),
        };
        Recorded { body, header: record.header.clone(), session_id: record.session_id.clone() }
    }

    fn turn(&mut self, turn: &Turn) -> Turn {
        let raw = self.at("raw_response", |it| it.each(turn.raw_response(), Redactor::block));
        let program = self.program(turn, &raw);
        let wholes: Vec<String> =
            turn.tool_calls().iter().map(|call| call.result_text().into_owned()).collect();
        let calls = self.at("tool_calls", |it| it.each(turn.tool_calls(), Redactor::call));
        let prints = self.at("prints", |it| it.each(turn.prints(), |it, text| it.text(text)));
        let memory = self.at("memory", |it| it.map(turn.memory()));
        let ext = self.at("ext", |it| it.map(turn.ext()));
        match turn.failure_of() {
            Some(failure) => {
                let failure = self.at("result", |it| it.failure(&failure, &wholes));
                Turn::failure(turn.number(), raw, program, &failure, prints, calls, memory, ext)
            }
            None => {
                let result = self.at("result", |it| it.result(turn.result(), &wholes));
                Turn::success(turn.number(), raw, program, result, prints, calls, memory, ext)
            }
        }
    }

    fn block(&mut self, block: &Block) -> Block {
        let before = block.value();
        let after = self.value(&before);
        if after == before {
            return block.clone();
        }
        RawValue::from_string(after.to_string()).map_or_else(|_| block.clone(), Block::new)
    }

    /// The program is derived from the calls: if there is one, it is derived again from the cleaned calls.
    fn program(&mut self, turn: &Turn, raw: &[Block]) -> Option<String> {
        let cleaned = self.at("program", |it| turn.program().map(|program| it.text(program)));
        let is_of_calls = outline(turn.raw_response()).program.as_deref() == turn.program();
        if is_of_calls { outline(raw).program } else { cleaned }
    }

    fn call(&mut self, call: &ToolCall) -> ToolCall {
        let name = self.at("name", |it| it.text(&call.name));
        let args = self.at("args", |it| it.value(&call.args));
        let result = self.at("result", |it| it.value(&call.result));
        let mut ext = call.ext.clone();
        let error = ext.remove("error");
        let mut ext = self.at("ext", |it| it.map(&ext));
        if let Some(error) = error {
            let whole = call.result_text().into_owned();
            let cleaned = match error.as_str() {
                Some(text) => self.at("error", |it| json!(it.part(text, std::slice::from_ref(&whole)))),
                None => self.at("error", |it| it.value(&error)),
            };
            ext.insert("error".to_owned(), cleaned);
        }
        ToolCall { name, args, result, ext }
    }

    fn failure(&mut self, failure: &Failure, wholes: &[String]) -> Failure {
        let message = self.at("message", |it| it.part(&failure.message, wholes));
        let mut cleaned = Failure { message, ..failure.clone() };
        for (place, outcome) in cleaned.calls.iter_mut().enumerate() {
            let preview = self.at(&format!("calls[{place}].preview"), |it| it.part(&outcome.preview, wholes));
            if preview != outcome.preview {
                // A short secret could be found again by its digest.
                outcome.blob = None;
            }
            outcome.preview = preview;
        }
        cleaned
    }

    /// A text, or what came of the calls.
    fn result(&mut self, result: &Value, wholes: &[String]) -> Value {
        let Value::Array(outcomes) = result else { return self.value(result) };
        let outcome = |it: &mut Self, outcome: &Value| {
            let (Some(fields), Some(preview)) = (outcome.as_object(), outcome["preview"].as_str()) else {
                return it.value(outcome);
            };
            let cleaned = it.at("preview", |it| it.part(preview, wholes));
            let mut fields = fields.clone();
            if cleaned != preview {
                fields.remove("blob");
                fields.insert("preview".to_owned(), json!(cleaned));
            }
            Value::Object(fields)
        };
        Value::Array(self.each(outcomes, outcome))
    }

    fn map(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        let is_picture = fields.get("type").is_some_and(|kind| kind == "base64");
        let mut cleaned = Map::new();
        for (key, value) in fields {
            let key_after = self.text(key);
            let after = self.at(&key_after, |it| match value {
                Value::String(_) if is_picture && key == "data" => value.clone(),
                Value::String(text) => json!(it.keyed(key, text)),
                other => it.value(other),
            });
            cleaned.insert(key_after, after);
        }
        cleaned
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.text(text)),
            Value::Array(elements) => Value::Array(self.each(elements, Redactor::value)),
            Value::Object(fields) => Value::Object(self.map(fields)),
            plain => plain.clone(),
        }
    }

    fn keyed(&mut self, key: &str, text: &str) -> String {
        let whole = || plimsoll_secrets::keyed(key, text).into_iter().collect();
        let found = plimsoll_secrets::find(text);
        let found = if found.is_empty() { whole() } else { found };
        if found.is_empty() { self.nested(text) } else { self.replace(text, &found, text.len()) }
    }

    fn text(&mut self, text: &str) -> String {
        let found = plimsoll_secrets::find(text);
        let cleaned = self.replace(text, &found, text.len());
        self.nested(&cleaned)
    }

    /// A text may itself be JSON, or lines of it, and hide a secret behind its escapes.
    fn nested(&mut self, text: &str) -> String {
        let is_json = |text: &str| text.starts_with(['{', '[']) && text.contains('\\');
        let trimmed = text.trim();
        if is_json(trimmed)
            && let Ok(before) = serde_json::from_str::<Value>(trimmed)
        {
            let after = self.value(&before);
            return if after == before { text.to_owned() } else { after.to_string() };
        }
        if !text.contains('\n') || !text.lines().any(|line| is_json(line.trim())) {
            return text.to_owned();
        }
        text.split('\n').map(|line| self.nested(line)).collect::<Vec<_>>().join("\n")
    }

    /// A beginning of something longer: a secret that was cut in two is known by the whole.
    fn part(&mut self, part: &str, wholes: &[String]) -> String {
        let beginning = part.strip_suffix('…');
        let of = |beginning: &str| wholes.iter().find(|whole| whole.starts_with(beginning)).cloned();
        match beginning.and_then(|beginning| Some((beginning.len(), of(beginning)?))) {
            Some((length, whole)) => {
                let found = plimsoll_secrets::find(&whole);
                self.replace(&whole, &found, length) + "…"
            }
            None => self.text(part),
        }
    }

    /// The beginning of a text, up to a byte, without what was found.
    fn replace(&mut self, text: &str, found: &[Found], length: usize) -> String {
        let mut cleaned = String::new();
        let mut from = 0;
        for found in found.iter().filter(|found| found.range.start < length) {
            cleaned.push_str(&text[from..found.range.start]);
            cleaned.push_str(&mark(found.kind));
            from = found.range.end;
            self.places.push(SecretPlace {
                record: self.record.clone(),
                field: self.field(),
                kind: found.kind,
            });
        }
        if from < length {
            cleaned.push_str(&text[from..length]);
        }
        cleaned
    }

    fn field(&self) -> String {
        let mut field = String::new();
        for part in &self.path {
            if !field.is_empty() && !part.starts_with('[') {
                field.push('.');
            }
            field.push_str(part);
        }
        field
    }

    fn at<T>(&mut self, part: &str, what: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(part.to_owned());
        let made = what(self);
        self.path.pop();
        made
    }

    fn each<T, U>(&mut self, elements: &[T], mut what: impl FnMut(&mut Self, &T) -> U) -> Vec<U> {
        let one = |(place, element)| self.at(&format!("[{place}]"), |it| what(it, element));
        elements.iter().enumerate().map(one).collect()
    }
}
