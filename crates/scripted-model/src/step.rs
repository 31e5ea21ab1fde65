//! Scripted responses of the model.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The model's response to one request.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) input_tokens: u64,
    pub(super) cache_creation_tokens: u64,
    pub(super) cache_read_tokens: u64,
    pub(super) output_tokens: u64,
    /// Additional usage fields, such as `speed`.
    pub(super) extra_usage_fields: Map<String, Value>,
    pub(super) derives_input_tokens_from_request_size: bool,
    pub(super) stop_reason: Option<String>,
    pub(super) delay: Duration,
    pub(super) text_delta_count: usize,
    pub(super) delta_delay: Duration,
    pub(super) api_error: Option<ApiError>,
    pub(super) stream_error: Option<StreamError>,
    pub(super) is_stream_cut_off: bool,
    pub(super) hang_time: Duration,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) model: Option<String>,
}

/// A tool call in a response.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) input: Value,
}

/// An API error, sent instead of a message.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) error_type: Option<String>,
    pub(super) message: String,
}

/// An error event in the middle of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamError {
    pub(super) error_type: String,
    pub(super) message: String,
}

impl Default for Step {
    fn default() -> Step {
        Step {
            text: None,
            thinking: None,
            tool_calls: Vec::new(),
            input_tokens: 10,
            cache_creation_tokens: 0,
            cache_read_tokens: 0,
            output_tokens: 50,
            extra_usage_fields: Map::new(),
            derives_input_tokens_from_request_size: false,
            stop_reason: None,
            delay: Duration::ZERO,
            text_delta_count: 1,
            delta_delay: Duration::ZERO,
            api_error: None,
            stream_error: None,
            is_stream_cut_off: false,
            hang_time: Duration::ZERO,
            headers: BTreeMap::new(),
            model: None,
        }
    }
}

impl Step {
    /// Creates a response with this text.
    pub fn from_text(text: impl Into<String>) -> Step {
        Step { text: Some(text.into()), ..Step::default() }
    }

    /// Creates a response that calls the Bash tool.
    pub fn bash_call(command: impl Into<String>) -> Step {
        let command = command.into();
        Step::default().with_tool_call("Bash", json!({ "command": command, "description": "scripted" }))
    }

    /// Creates an API error with this HTTP status and message.
    pub fn api_error(status: u16, message: impl Into<String>) -> Step {
        let api_error = ApiError { status, error_type: None, message: message.into() };
        Step { api_error: Some(api_error), ..Step::default() }
    }

    /// Adds a thinking block before the text.
    pub fn with_thinking(self, text: impl Into<String>) -> Step {
        Step { thinking: Some(text.into()), ..self }
    }

    /// Sets the text of a response, for example of one created by [`Step::bash_call`].
    pub fn with_text(self, text: impl Into<String>) -> Step {
        Step { text: Some(text.into()), ..self }
    }

    /// Adds a tool call. The client runs the tool calls of one response in parallel.
    pub fn with_tool_call(mut self, name: impl Into<String>, input: Value) -> Step {
        self.tool_calls.push(ToolCall { name: name.into(), input });
        self
    }

    /// Reports this many input tokens in total, all but 10 of them read from the cache.
    pub fn with_input_tokens(self, total_input_tokens: u64) -> Step {
        let uncached_tokens = total_input_tokens.min(10);
        self.with_input_token_breakdown(uncached_tokens, 0, total_input_tokens - uncached_tokens)
    }

    /// Sets the uncached, cache write and cache read input tokens to report.
    pub fn with_input_token_breakdown(
        self,
        input_tokens: u64,
        cache_creation_tokens: u64,
        cache_read_tokens: u64,
    ) -> Step {
        Step {
            input_tokens,
            cache_creation_tokens,
            cache_read_tokens,
            derives_input_tokens_from_request_size: false,
            ..self
        }
    }

    /// Sets additional fields of the reported usage, such as `{"speed": "fast"}`. They override the fields of the same name.
    pub fn with_extra_usage_fields(self, fields: &Value) -> Step {
        Step { extra_usage_fields: fields.as_object().cloned().unwrap_or_default(), ..self }
    }

    /// Returns the size in bytes of the text and of the inputs of the tool calls.
    pub fn content_bytes(&self) -> usize {
        let call_bytes: usize =
            self.tool_calls.iter().map(|tool_call| tool_call.input.to_string().len()).sum();
        self.text.as_ref().map_or(0, String::len) + call_bytes
    }

    /// Reports this many output tokens (default: 50).
    pub fn with_output_tokens(self, output_tokens: u64) -> Step {
        Step { output_tokens, ..self }
    }

    /// Reports a quarter of the request's size in bytes as input tokens.
    pub fn with_input_tokens_from_request_size(self) -> Step {
        Step { derives_input_tokens_from_request_size: true, ..self }
    }

    /// Reports this stop reason instead of `tool_use` or `end_turn`.
    pub fn with_stop_reason(self, reason: impl Into<String>) -> Step {
        Step { stop_reason: Some(reason.into()), ..self }
    }

    /// Waits before the first byte of the response.
    pub fn with_delay(self, delay: Duration) -> Step {
        Step { delay, ..self }
    }

    /// Sends the text in at most this many delta events, with a pause after each.
    pub fn with_text_in_deltas(self, text_delta_count: usize, delta_delay: Duration) -> Step {
        Step { text_delta_count, delta_delay, ..self }
    }

    /// Adds a header to the response, which may be an error.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Step {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Overrides the default error type for the status of a [`Step::api_error`]. Panics for any other step.
    pub fn with_error_type(mut self, error_type: impl Into<String>) -> Step {
        self.api_error.as_mut().expect("error_type needs a Step::error").error_type = Some(error_type.into());
        self
    }

    /// Starts the stream, then sends an error event.
    pub fn with_stream_error(self, error_type: impl Into<String>, message: impl Into<String>) -> Step {
        Step {
            stream_error: Some(StreamError { error_type: error_type.into(), message: message.into() }),
            ..self
        }
    }

    /// Closes the connection in the middle of the stream.
    pub fn with_cut_off_stream(self) -> Step {
        Step { is_stream_cut_off: true, ..self }
    }

    /// Starts the stream, sends nothing for this long, then closes the connection.
    pub fn with_hang(self, hang_time: Duration) -> Step {
        Step { hang_time, ..self }
    }

    /// Reports this model instead of the requested one.
    pub fn with_model(self, model: impl Into<String>) -> Step {
        Step { model: Some(model.into()), ..self }
    }
}
