//! The turn: one response of the model with its tool calls and their results. It is created by one of two constructors and is
//! immutable afterwards: there is no setter, no default and no other way to create one.
//!
//! A turn has eight fields, always contains the raw response, and keeps programs and data in full (ARC-001,
//! ARC-010, DBG-001, DBG-002).

mod failure;
mod outline;
pub mod record;

pub use failure::{FailureReason, ToolCallOutcome, TurnFailure};
pub use outline::{ResponseOutline, ResponseOutlineBuilder, parse_response_outline};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One response of the model, with its tool calls and their results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    number: u64,
    raw_response: Vec<Block>,
    program: Option<String>,
    result: Value,
    prints: Vec<String>,
    tool_calls: Vec<ToolCall>,
    memory: Map<String, Value>,
    success: bool,
    ext: Map<String, Value>,
}

impl Turn {
    /// Creates a turn whose response is complete and whose calls all succeeded.
    #[expect(clippy::too_many_arguments, reason = "the seven of ARC-001, and what later times add")]
    pub fn new_success(
        number: u64,
        raw_response: Vec<Block>,
        program: Option<String>,
        result: Value,
        prints: Vec<String>,
        tool_calls: Vec<ToolCall>,
        memory: Map<String, Value>,
        ext: Map<String, Value>,
    ) -> Turn {
        Turn { number, raw_response, program, result, prints, tool_calls, memory, success: true, ext }
    }

    /// Creates a turn that failed, with the reason as its result.
    #[expect(clippy::too_many_arguments, reason = "the seven of ARC-001, and what later times add")]
    pub fn new_failure(
        number: u64,
        raw_response: Vec<Block>,
        program: Option<String>,
        failure: &TurnFailure,
        prints: Vec<String>,
        tool_calls: Vec<ToolCall>,
        memory: Map<String, Value>,
        ext: Map<String, Value>,
    ) -> Turn {
        let result = failure.to_value();
        Turn { number, raw_response, program, result, prints, tool_calls, memory, success: false, ext }
    }

    /// Returns the number of the turn in its stream, counted from 1 without gaps.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns every block of the response in order, as recorded.
    pub fn raw_response(&self) -> &[Block] {
        &self.raw_response
    }

    /// Returns the tool calls as text, one per line; `None` if the response contains no tool call.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// Returns the final text, the results of the calls, or the failure.
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// Returns the reason for the failure; `None` if the turn succeeded.
    pub fn parsed_failure(&self) -> Option<TurnFailure> {
        if self.success { None } else { TurnFailure::from_value(&self.result) }
    }

    /// Returns what the calls printed.
    pub fn prints(&self) -> &[String] {
        &self.prints
    }

    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    /// Returns the working memory at the end of the turn.
    pub fn memory(&self) -> &Map<String, Value> {
        &self.memory
    }

    /// Returns true for a turn created by [`Turn::new_success`].
    pub fn is_success(&self) -> bool {
        self.success
    }

    /// Returns additional data: the message's id, the model, usage, times, and the context added before the response.
    pub fn ext(&self) -> &Map<String, Value> {
        &self.ext
    }

    /// Returns the text blocks, joined with line ends.
    pub fn joined_text(&self) -> String {
        let text_of_block = |block: &Block| outline::text_of_block(block);
        self.raw_response.iter().filter_map(text_of_block).collect::<Vec<_>>().join("\n")
    }
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    pub name: String,
    pub args: Value,
    /// The result that the model got back; null until there is one.
    pub result: Value,
    /// Additional data: the call's id, whether it succeeded, its duration, and the subagent that it started.
    pub ext: Map<String, Value>,
}

impl ToolCall {
    /// Returns the client's id of the call; empty if it has none.
    pub fn id(&self) -> &str {
        self.ext.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns true if the call succeeded.
    pub fn is_ok(&self) -> bool {
        self.ext.get("ok").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the result that the model got back, as text.
    pub fn result_text(&self) -> Cow<'_, str> {
        outline::render_tool_result(&self.result)
    }
}

/// One block of a response: JSON, kept byte for byte as it was recorded.
#[derive(Debug, Clone)]
pub struct Block(Box<RawValue>);

impl Block {
    /// Creates a block from the JSON that the client wrote.
    pub fn new(json: Box<RawValue>) -> Block {
        Block(json)
    }

    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// Parses the JSON; returns null if it is invalid.
    pub fn parse_value(&self) -> Value {
        crate::text::parse_json_or_null(self.json())
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Block) -> bool {
        self.json() == other.json()
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
