//! The attributes of spans.

use crate::commands::turns::export::exported::SYNTHETIC;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::{Map, Value, json};

/// A list of attributes in the making.
#[derive(Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub(super) fn text(self, key: &str, value: &str) -> Attributes {
        self.with(key, json!({"stringValue": value}))
    }

    /// 64 bits are written as text: JSON's own numbers lose some.
    pub(super) fn integer(self, key: &str, value: u64) -> Attributes {
        self.with(key, json!({"intValue": value.to_string()}))
    }

    pub(super) fn number(self, key: &str, value: f64) -> Attributes {
        self.with(key, json!({"doubleValue": value}))
    }

    fn texts(self, key: &str, values: &[&str]) -> Attributes {
        let values: Vec<Value> = values.iter().map(|value| json!({"stringValue": value})).collect();
        self.with(key, json!({"arrayValue": {"values": values}}))
    }

    /// A text that may not be known.
    fn maybe(self, key: &str, value: Option<&Value>) -> Attributes {
        match value.and_then(Value::as_str) {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    fn with(mut self, key: &str, value: Value) -> Attributes {
        self.0.push(Value::Object(Map::from_iter([
            ("key".to_owned(), json!(key)),
            ("value".to_owned(), value),
        ])));
        self
    }

    pub(super) fn list(self) -> Vec<Value> {
        self.0
    }
}

/// Of a response.
pub(super) fn chat(record: &Recorded, session: &str) -> Attributes {
    let mut attributes = Attributes::default()
        .text("gen_ai.operation.name", "chat")
        .text("gen_ai.provider.name", "anthropic")
        .text("gen_ai.conversation.id", session)
        .integer("plimsoll.seq", record.header.seq)
        .integer("plimsoll.turn.number", record.header.number.unwrap_or(0));
    if let Some(usage) = record.header.usage {
        // For this provider the conventions count what came from the cache as input too.
        attributes = attributes
            .integer("gen_ai.usage.input_tokens", usage.sent())
            .integer("gen_ai.usage.output_tokens", usage.output)
            .integer("gen_ai.usage.cache_read.input_tokens", usage.cache_read)
            .integer("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation);
    }
    let turn = match &record.body {
        Body::Turn(turn) => turn,
        Body::DecodeError(why) => return attributes.text("plimsoll.unsound", why),
        _ => return attributes.text("plimsoll.erased", "[erased]"),
    };
    let ext = turn.ext();
    let model = |name: &str| ext.get(name).filter(|model| *model != SYNTHETIC);
    attributes = attributes
        .maybe("gen_ai.response.id", ext.get("message"))
        .maybe("gen_ai.request.model", model("requested_model").or_else(|| model("model")))
        .maybe("gen_ai.response.model", model("model"));
    let stop = ext.get("stop_reason").and_then(Value::as_str);
    if let Some(stop) = stop {
        attributes = attributes.texts("gen_ai.response.finish_reasons", &[stop]);
    }
    let parts: Vec<Value> = turn.raw_response().iter().map(|block| part(&block.value())).collect();
    let message = json!([{"role": "assistant", "parts": parts, "finish_reason": stop.unwrap_or("unknown")}]);
    attributes.text("gen_ai.output.messages", &message.to_string())
}

/// A block of a response, as the conventions spell it.
fn part(block: &Value) -> Value {
    match block["type"].as_str().unwrap_or_default() {
        "text" => json!({"type": "text", "content": block["text"]}),
        "thinking" => json!({"type": "reasoning", "content": block["thinking"]}),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            json!({"type": "tool_call", "id": block["id"], "name": block["name"], "arguments": block["input"]})
        }
        _ => block.clone(),
    }
}

/// Of a call.
pub(super) fn call(call: &ToolCall, number: Option<u64>, session: &str) -> Attributes {
    let attributes = Attributes::default()
        .text("gen_ai.operation.name", "execute_tool")
        .text("gen_ai.conversation.id", session)
        .text("gen_ai.tool.name", &call.name)
        .text("gen_ai.tool.call.id", call.id())
        .text("gen_ai.tool.type", "function")
        .text("gen_ai.tool.call.arguments", &call.args.to_string())
        .integer("plimsoll.turn.number", number.unwrap_or(0));
    if call.result.is_null() {
        attributes
    } else {
        attributes.text("gen_ai.tool.call.result", &call.result_text())
    }
}
