//! Removes secrets from decoded records before they are rendered, so that all formats are redacted in the
//! same way. Records without secrets are not changed.

use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_domain::turn::{Block, ToolCall, TurnFailure, parse_response_outline};
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use plimsoll_secrets::{SecretMatch, redaction_marker};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The place of a secret, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretLocation {
    /// Display name of the record: `session:number`.
    pub(crate) record: String,
    /// Path of the field.
    pub(crate) field: String,
    /// The detected kind of secret.
    pub(crate) kind: &'static str,
}

/// Removes secrets, and records where they were.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    record_name: String,
    field_path: Vec<String>,
    locations: Vec<SecretLocation>,
}

impl Redactor {
    /// Returns the locations of the secrets found so far.
    pub(crate) fn secret_locations(&self) -> &[SecretLocation] {
        &self.locations
    }

    /// Returns the record without its secrets.
    pub(crate) fn redact_record(&mut self, record: &LoggedRecord) -> LoggedRecord {
        self.record_name = record.short_session_id_and_number();
        if record.header.stream != MAIN_STREAM {
            self.record_name = format!("{} of agent {}", self.record_name, record.header.stream);
        }
        let body = match &record.body {
            RecordBody::Turn(turn) => RecordBody::Turn(Box::new(self.redact_turn(turn))),
            RecordBody::Event(fields) => RecordBody::Event(self.redact_map_keys_and_values(fields)),
            RecordBody::Erased => RecordBody::Erased,
            RecordBody::DecodeError(reason) => RecordBody::DecodeError(reason.clone()),
        };
        LoggedRecord { body, header: record.header.clone(), session_id: record.session_id.clone() }
    }

    fn redact_turn(&mut self, turn: &Turn) -> Turn {
        let redacted_blocks = self.with_path_segment("raw_response", |redactor| {
            redactor.redact_each(turn.raw_response(), Redactor::redact_block)
        });
        let program = self.redact_or_rederive_program(turn, &redacted_blocks);
        let full_results: Vec<String> =
            turn.tool_calls().iter().map(|call| call.result_text().into_owned()).collect();
        let calls = self.with_path_segment("tool_calls", |redactor| {
            redactor.redact_each(turn.tool_calls(), Redactor::redact_call)
        });
        let prints = self.with_path_segment("prints", |redactor| {
            redactor.redact_each(turn.prints(), |redactor, text| redactor.redact_text(text))
        });
        let memory =
            self.with_path_segment("memory", |redactor| redactor.redact_map_keys_and_values(turn.memory()));
        let ext = self.with_path_segment("ext", |redactor| redactor.redact_map_keys_and_values(turn.ext()));
        match turn.parsed_failure() {
            Some(failure) => {
                let failure = self.with_path_segment("result", |redactor| {
                    redactor.redact_failure_message_and_previews(&failure, &full_results)
                });
                Turn::new_failure(
                    turn.number(),
                    redacted_blocks,
                    program,
                    &failure,
                    prints,
                    calls,
                    memory,
                    ext,
                )
            }
            None => {
                let result = self.with_path_segment("result", |redactor| {
                    redactor.redact_result_value_or_call_previews(turn.result(), &full_results)
                });
                Turn::new_success(turn.number(), redacted_blocks, program, result, prints, calls, memory, ext)
            }
        }
    }

    fn redact_block(&mut self, block: &Block) -> Block {
        let value = block.parse_value();
        let redacted_value = self.redact_value(&value);
        if redacted_value == value {
            return block.clone();
        }
        RawValue::from_string(redacted_value.to_string()).map_or_else(|_| block.clone(), Block::new)
    }

    /// Redacts the program. If the program was derived from the tool calls, derives it again from the redacted
    /// blocks.
    fn redact_or_rederive_program(&mut self, turn: &Turn, redacted_blocks: &[Block]) -> Option<String> {
        let redacted_program = self.with_path_segment("program", |redactor| {
            turn.program().map(|program| redactor.redact_text(program))
        });
        let is_derived_from_calls =
            parse_response_outline(turn.raw_response()).program.as_deref() == turn.program();
        if is_derived_from_calls { parse_response_outline(redacted_blocks).program } else { redacted_program }
    }

    fn redact_call(&mut self, call: &ToolCall) -> ToolCall {
        let name = self.with_path_segment("name", |redactor| redactor.redact_text(&call.name));
        let args = self.with_path_segment("args", |redactor| redactor.redact_value(&call.args));
        let result = self.with_path_segment("result", |redactor| redactor.redact_value(&call.result));
        let mut ext = call.ext.clone();
        let error = ext.remove("error");
        let mut ext = self.with_path_segment("ext", |redactor| redactor.redact_map_keys_and_values(&ext));
        if let Some(error) = error {
            let full_result = call.result_text().into_owned();
            let redacted_error = match error.as_str() {
                Some(text) => self.with_path_segment("error", |redactor| {
                    json!(redactor.redact_truncated_text(text, std::slice::from_ref(&full_result)))
                }),
                None => self.with_path_segment("error", |redactor| redactor.redact_value(&error)),
            };
            ext.insert("error".to_owned(), redacted_error);
        }
        ToolCall { name, args, result, ext }
    }

    fn redact_failure_message_and_previews(
        &mut self,
        failure: &TurnFailure,
        full_results: &[String],
    ) -> TurnFailure {
        let message = self.with_path_segment("message", |redactor| {
            redactor.redact_truncated_text(&failure.message, full_results)
        });
        let mut redacted_failure = TurnFailure { message, ..failure.clone() };
        for (index, outcome) in redacted_failure.calls.iter_mut().enumerate() {
            let preview = self.with_path_segment(&format!("calls[{index}].preview"), |redactor| {
                redactor.redact_truncated_text(&outcome.preview, full_results)
            });
            if preview != outcome.preview {
                // A short secret could be guessed from its digest.
                outcome.full_result_sha256 = None;
            }
            outcome.preview = preview;
        }
        redacted_failure
    }

    /// Redacts a turn's result: only the previews of call outcomes, or any other value as a whole.
    fn redact_result_value_or_call_previews(&mut self, result: &Value, full_results: &[String]) -> Value {
        let Value::Array(outcomes) = result else { return self.redact_value(result) };
        let redact_outcome = |redactor: &mut Self, outcome: &Value| {
            let (Some(fields), Some(preview)) = (outcome.as_object(), outcome["preview"].as_str()) else {
                return redactor.redact_value(outcome);
            };
            let redacted_preview = redactor.with_path_segment("preview", |redactor| {
                redactor.redact_truncated_text(preview, full_results)
            });
            let mut fields = fields.clone();
            if redacted_preview != preview {
                fields.remove("blob");
                fields.insert("preview".to_owned(), json!(redacted_preview));
            }
            Value::Object(fields)
        };
        Value::Array(self.redact_each(outcomes, redact_outcome))
    }

    fn redact_map_keys_and_values(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        let is_image = fields.get("type").is_some_and(|kind| kind == "base64");
        let mut redacted_fields = Map::new();
        for (key, value) in fields {
            let redacted_key = self.redact_text(key);
            let redacted_value = self.with_path_segment(&redacted_key, |redactor| match value {
                Value::String(_) if is_image && key == "data" => value.clone(),
                Value::String(text) => json!(redactor.redact_text_with_key_as_fallback_hint(key, text)),
                other_value => redactor.redact_value(other_value),
            });
            redacted_fields.insert(redacted_key, redacted_value);
        }
        redacted_fields
    }

    fn redact_value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.redact_text(text)),
            Value::Array(elements) => Value::Array(self.redact_each(elements, Redactor::redact_value)),
            Value::Object(fields) => Value::Object(self.redact_map_keys_and_values(fields)),
            scalar => scalar.clone(),
        }
    }

    fn redact_text_with_key_as_fallback_hint(&mut self, key: &str, text: &str) -> String {
        let secrets_by_key =
            || plimsoll_secrets::match_whole_value_if_key_value_is_secret(key, text).into_iter().collect();
        let secrets = plimsoll_secrets::find_secrets(text);
        let secrets = if secrets.is_empty() { secrets_by_key() } else { secrets };
        if secrets.is_empty() {
            self.redact_escaped_json_in_text(text)
        } else {
            self.replace_and_record_secrets_up_to(text, &secrets, text.len())
        }
    }

    fn redact_text(&mut self, text: &str) -> String {
        let secrets = plimsoll_secrets::find_secrets(text);
        let redacted_text = self.replace_and_record_secrets_up_to(text, &secrets, text.len());
        self.redact_escaped_json_in_text(&redacted_text)
    }

    /// Redacts a text that is JSON with escapes, or has such lines, because escapes can hide a secret. Returns
    /// any other text unchanged.
    fn redact_escaped_json_in_text(&mut self, text: &str) -> String {
        let is_json_with_escapes = |text: &str| text.starts_with(['{', '[']) && text.contains('\\');
        let trimmed = text.trim();
        if is_json_with_escapes(trimmed)
            && let Ok(value) = serde_json::from_str::<Value>(trimmed)
        {
            let redacted_value = self.redact_value(&value);
            return if redacted_value == value { text.to_owned() } else { redacted_value.to_string() };
        }
        if !text.contains('\n') || !text.lines().any(|line| is_json_with_escapes(line.trim())) {
            return text.to_owned();
        }
        text.split('\n').map(|line| self.redact_escaped_json_in_text(line)).collect::<Vec<_>>().join("\n")
    }

    /// Redacts a truncated text. Uses the full text if there is one, because a truncated secret cannot be
    /// recognized.
    fn redact_truncated_text(&mut self, truncated_text: &str, full_results: &[String]) -> String {
        let prefix = truncated_text.strip_suffix('…');
        let full_result_with_prefix = |beginning: &str| {
            full_results.iter().find(|full_result| full_result.starts_with(beginning)).cloned()
        };
        match prefix.and_then(|beginning| Some((beginning.len(), full_result_with_prefix(beginning)?))) {
            Some((length, full_result)) => {
                let secrets = plimsoll_secrets::find_secrets(&full_result);
                self.replace_and_record_secrets_up_to(&full_result, &secrets, length) + "…"
            }
            None => self.redact_text(truncated_text),
        }
    }

    /// Returns the text up to `end_byte` with the secrets replaced, and records their locations.
    fn replace_and_record_secrets_up_to(
        &mut self,
        text: &str,
        secrets: &[SecretMatch],
        end_byte: usize,
    ) -> String {
        let mut redacted = String::new();
        let mut copied_end = 0;
        for secret in secrets.iter().filter(|secret| secret.range.start < end_byte) {
            redacted.push_str(&text[copied_end..secret.range.start]);
            redacted.push_str(&redaction_marker(secret.kind));
            copied_end = secret.range.end;
            self.locations.push(SecretLocation {
                record: self.record_name.clone(),
                field: self.joined_field_path(),
                kind: secret.kind,
            });
        }
        if copied_end < end_byte {
            redacted.push_str(&text[copied_end..end_byte]);
        }
        redacted
    }

    fn joined_field_path(&self) -> String {
        let mut field = String::new();
        for segment in &self.field_path {
            if !field.is_empty() && !segment.starts_with('[') {
                field.push('.');
            }
            field.push_str(segment);
        }
        field
    }

    fn with_path_segment<T>(&mut self, segment: &str, redact: impl FnOnce(&mut Self) -> T) -> T {
        self.field_path.push(segment.to_owned());
        let result = redact(self);
        self.field_path.pop();
        result
    }

    fn redact_each<T, U>(&mut self, elements: &[T], mut redact: impl FnMut(&mut Self, &T) -> U) -> Vec<U> {
        let redact_element = |(index, element)| {
            self.with_path_segment(&format!("[{index}]"), |redactor| redact(redactor, element))
        };
        elements.iter().enumerate().map(redact_element).collect()
    }
}
