//! The turn: one response of the model with its tool calls and their results. It is made once, by one of two
//! constructors, and nothing changes it afterwards: no setter, no default, no second way in.
//!
//! ARC-001: the eight fields. ARC-010: the raw response is always there. DBG-001, DBG-002: whole programs, complete
//! data.

mod failure;
mod outline;
pub mod record;

pub use failure::{CallOutcome, Failure, Reason};
pub use outline::{Outline, OutlineParts, outline};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One response of the model, with what came of it.
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
    /// A turn whose response came whole and whose calls all returned well.
    #[expect(clippy::too_many_arguments, reason = "the seven of ARC-001, and what later times add")]
    pub fn success(
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

    /// A turn that failed, and why.
    #[expect(clippy::too_many_arguments, reason = "the seven of ARC-001, and what later times add")]
    pub fn failure(
        number: u64,
        raw_response: Vec<Block>,
        program: Option<String>,
        error: &Failure,
        prints: Vec<String>,
        tool_calls: Vec<ToolCall>,
        memory: Map<String, Value>,
        ext: Map<String, Value>,
    ) -> Turn {
        let result = error.to_value();
        Turn { number, raw_response, program, result, prints, tool_calls, memory, success: false, ext }
    }

    /// Counts from 1 in its stream, without gaps.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Every block of the response in order, as recorded.
    pub fn raw_response(&self) -> &[Block] {
        &self.raw_response
    }

    /// The tool calls, one a line; none if the response held no action.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// The final text, what came of the calls, or the failure.
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// Why it failed, if it did.
    pub fn failure_of(&self) -> Option<Failure> {
        if self.success { None } else { Failure::from_value(&self.result) }
    }

    /// What the calls printed.
    pub fn prints(&self) -> &[String] {
        &self.prints
    }

    /// The calls.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    /// The working memory at the turn's close.
    pub fn memory(&self) -> &Map<String, Value> {
        &self.memory
    }

    /// True for a turn made by [`Turn::success`].
    pub fn is_success(&self) -> bool {
        self.success
    }

    /// What else is known: the message's id, the model, usage, times, what the model was told before.
    pub fn ext(&self) -> &Map<String, Value> {
        &self.ext
    }

    /// The text blocks, joined.
    pub fn text(&self) -> String {
        let text = |block: &Block| outline::text_of(block);
        self.raw_response.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it was asked.
    pub args: Value,
    /// What the model was given back; null while nothing came.
    pub result: Value,
    /// The call's id, how it went, how long it took, which subagent it started.
    pub ext: Map<String, Value>,
}

impl ToolCall {
    /// The client's id of the call.
    pub fn id(&self) -> &str {
        self.ext.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// True when it returned well.
    pub fn is_ok(&self) -> bool {
        self.ext.get("ok").and_then(Value::as_bool).unwrap_or(false)
    }

    /// What the model was given back, as words.
    pub fn result_text(&self) -> Cow<'_, str> {
        outline::words(&self.result)
    }
}

/// One block of a response: JSON, byte for byte as it was recorded.
#[derive(Debug, Clone)]
pub struct Block(Box<RawValue>);

impl Block {
    /// A block as the client wrote it.
    pub fn new(json: Box<RawValue>) -> Block {
        Block(json)
    }

    /// The JSON.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// The JSON, read; null if nothing can be made of it.
    pub fn value(&self) -> Value {
        crate::text::json_value(self.json())
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
