//! One answer of the scripted model.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The model's answer to one request.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tools: Vec<Tool>,
    pub(super) input: u64,
    pub(super) cache_creation: u64,
    pub(super) cache_read: u64,
    pub(super) output: u64,
    /// Further fields of the usage, such as `speed`.
    pub(super) usage_fields: Map<String, Value>,
    pub(super) auto_usage: bool,
    pub(super) stop_reason: Option<String>,
    pub(super) delay: Duration,
    pub(super) chunks: usize,
    pub(super) chunk_delay: Duration,
    pub(super) error: Option<Failure>,
    pub(super) sse_error: Option<StreamError>,
    pub(super) cut: bool,
    pub(super) hang: Duration,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) model: Option<String>,
}

/// One tool call of an answer.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) input: Value,
}

/// An answer that is an API error.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) kind: Option<String>,
    pub(super) message: String,
}

/// An error event in the middle of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamError {
    pub(super) kind: String,
    pub(super) message: String,
}

impl Default for Step {
    fn default() -> Step {
        Step {
            text: None,
            thinking: None,
            tools: Vec::new(),
            input: 10,
            cache_creation: 0,
            cache_read: 0,
            output: 50,
            usage_fields: Map::new(),
            auto_usage: false,
            stop_reason: None,
            delay: Duration::ZERO,
            chunks: 1,
            chunk_delay: Duration::ZERO,
            error: None,
            sse_error: None,
            cut: false,
            hang: Duration::ZERO,
            headers: BTreeMap::new(),
            model: None,
        }
    }
}

impl Step {
    /// An answer with this text.
    pub fn text(text: impl Into<String>) -> Step {
        Step { text: Some(text.into()), ..Step::default() }
    }

    /// An answer that calls the Bash tool.
    pub fn bash(command: impl Into<String>) -> Step {
        let command = command.into();
        Step::default().tool("Bash", json!({ "command": command, "description": "scripted" }))
    }

    /// An API error with this HTTP status and message.
    pub fn error(status: u16, message: impl Into<String>) -> Step {
        let failure = Failure { status, kind: None, message: message.into() };
        Step { error: Some(failure), ..Step::default() }
    }

    /// Adds a thinking block before the text.
    pub fn thinking(self, text: impl Into<String>) -> Step {
        Step { thinking: Some(text.into()), ..self }
    }

    /// Adds text to an answer that has none yet, for example one made by [`Step::bash`].
    pub fn say(self, text: impl Into<String>) -> Step {
        Step { text: Some(text.into()), ..self }
    }

    /// Adds a tool call; several calls of one answer run in parallel.
    pub fn tool(mut self, name: impl Into<String>, input: Value) -> Step {
        self.tools.push(Tool { name: name.into(), input });
        self
    }

    /// Reports this many input tokens in all, nearly all of them read from the cache.
    pub fn usage(self, total_input_tokens: u64) -> Step {
        let fresh = total_input_tokens.min(10);
        self.usage_parts(fresh, 0, total_input_tokens - fresh)
    }

    /// Reports these three kinds of input tokens.
    pub fn usage_parts(self, input: u64, cache_creation: u64, cache_read: u64) -> Step {
        Step { input, cache_creation, cache_read, auto_usage: false, ..self }
    }

    /// Adds fields to the reported usage, or replaces them: `{"speed": "fast"}`.
    pub fn usage_fields(self, fields: &Value) -> Step {
        Step { usage_fields: fields.as_object().cloned().unwrap_or_default(), ..self }
    }

    /// The size of its text and calls.
    pub fn bytes(&self) -> usize {
        let calls: usize = self.tools.iter().map(|tool| tool.input.to_string().len()).sum();
        self.text.as_ref().map_or(0, String::len) + calls
    }

    /// Reports this many output tokens (50 unless told).
    pub fn output_tokens(self, output: u64) -> Step {
        Step { output, ..self }
    }

    /// Reports input tokens as the size of the real request: bytes / 4.
    pub fn auto_usage(self) -> Step {
        Step { auto_usage: true, ..self }
    }

    /// Reports this stop reason instead of `tool_use` or `end_turn`.
    pub fn stop_reason(self, reason: impl Into<String>) -> Step {
        Step { stop_reason: Some(reason.into()), ..self }
    }

    /// Waits before the first byte of the answer.
    pub fn delay(self, delay: Duration) -> Step {
        Step { delay, ..self }
    }

    /// Sends the text in this many pieces with a pause after each.
    pub fn chunks(self, chunks: usize, chunk_delay: Duration) -> Step {
        Step { chunks, chunk_delay, ..self }
    }

    /// Adds a response header, to an error as well as to a good answer.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Step {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the error type of a [`Step::error`] instead of the usual one for its status.
    pub fn error_type(mut self, kind: impl Into<String>) -> Step {
        self.error.as_mut().expect("error_type needs a Step::error").kind = Some(kind.into());
        self
    }

    /// Starts the stream, then sends an error event.
    pub fn sse_error(self, kind: impl Into<String>, message: impl Into<String>) -> Step {
        Step { sse_error: Some(StreamError { kind: kind.into(), message: message.into() }), ..self }
    }

    /// Closes the connection in the middle of the stream.
    pub fn cut(self) -> Step {
        Step { cut: true, ..self }
    }

    /// Starts the stream, says nothing for this long, then closes the connection.
    pub fn hang(self, hang: Duration) -> Step {
        Step { hang, ..self }
    }

    /// Reports this model instead of the one that was asked for.
    pub fn model(self, reported: impl Into<String>) -> Step {
        Step { model: Some(reported.into()), ..self }
    }
}
