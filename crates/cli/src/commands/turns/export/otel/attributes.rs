//! Builds the attributes of OpenTelemetry spans.

use crate::commands::turns::export::exported_session::SYNTHETIC_MODEL;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use serde_json::{Map, Value, json};

/// A list of attributes in the JSON format of OTLP.
#[derive(Default)]
pub(super) struct SpanAttributes(Vec<Value>);

impl SpanAttributes {
    pub(super) fn with_text(self, key: &str, value: &str) -> SpanAttributes {
        self.with_otlp_any_value(key, json!({"stringValue": value}))
    }

    /// Adds an integer. OTLP writes 64-bit integers as strings, because JSON numbers lose precision.
    pub(super) fn with_integer(self, key: &str, value: u64) -> SpanAttributes {
        self.with_otlp_any_value(key, json!({"intValue": value.to_string()}))
    }

    pub(super) fn with_number(self, key: &str, value: f64) -> SpanAttributes {
        self.with_otlp_any_value(key, json!({"doubleValue": value}))
    }

    fn with_texts(self, key: &str, values: &[&str]) -> SpanAttributes {
        let values: Vec<Value> = values.iter().map(|value| json!({"stringValue": value})).collect();
        self.with_otlp_any_value(key, json!({"arrayValue": {"values": values}}))
    }

    /// Adds the value if it is a string.
    fn with_text_if_string(self, key: &str, value: Option<&Value>) -> SpanAttributes {
        match value.and_then(Value::as_str) {
            Some(value) => self.with_text(key, value),
            None => self,
        }
    }

    fn with_otlp_any_value(mut self, key: &str, any_value: Value) -> SpanAttributes {
        self.0.push(Value::Object(Map::from_iter([
            ("key".to_owned(), json!(key)),
            ("value".to_owned(), any_value),
        ])));
        self
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.0
    }
}

/// Returns the attributes of a response's span.
pub(super) fn chat_attributes(record: &LoggedRecord, session_id: &str) -> SpanAttributes {
    let mut attributes = SpanAttributes::default()
        .with_text("gen_ai.operation.name", "chat")
        .with_text("gen_ai.provider.name", "anthropic")
        .with_text("gen_ai.conversation.id", session_id)
        .with_integer("plimsoll.seq", record.header.sequence_number)
        .with_integer("plimsoll.turn.number", record.header.turn_number.unwrap_or(0));
    if let Some(usage) = record.header.usage {
        // For Anthropic, the conventions also count cached tokens as input.
        attributes = attributes
            .with_integer("gen_ai.usage.input_tokens", usage.total_input())
            .with_integer("gen_ai.usage.output_tokens", usage.output)
            .with_integer("gen_ai.usage.cache_read.input_tokens", usage.cache_read)
            .with_integer("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation);
    }
    let turn = match &record.body {
        RecordBody::Turn(turn) => turn,
        RecordBody::DecodeError(reason) => return attributes.with_text("plimsoll.unsound", reason),
        _ => return attributes.with_text("plimsoll.erased", "[erased]"),
    };
    let ext = turn.ext();
    let model_in_ext = |name: &str| ext.get(name).filter(|model| *model != SYNTHETIC_MODEL);
    attributes = attributes
        .with_text_if_string("gen_ai.response.id", ext.get("message"))
        .with_text_if_string(
            "gen_ai.request.model",
            model_in_ext("requested_model").or_else(|| model_in_ext("model")),
        )
        .with_text_if_string("gen_ai.response.model", model_in_ext("model"));
    let stop_reason = ext.get("stop_reason").and_then(Value::as_str);
    if let Some(stop) = stop_reason {
        attributes = attributes.with_texts("gen_ai.response.finish_reasons", &[stop]);
    }
    let parts: Vec<Value> =
        turn.raw_response().iter().map(|block| block_to_otel_message_part(&block.parse_value())).collect();
    let message =
        json!([{"role": "assistant", "parts": parts, "finish_reason": stop_reason.unwrap_or("unknown")}]);
    attributes.with_text("gen_ai.output.messages", &message.to_string())
}

/// Converts a content block of a response to a message part of the OpenTelemetry conventions.
fn block_to_otel_message_part(block: &Value) -> Value {
    match block["type"].as_str().unwrap_or_default() {
        "text" => json!({"type": "text", "content": block["text"]}),
        "thinking" => json!({"type": "reasoning", "content": block["thinking"]}),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            json!({"type": "tool_call", "id": block["id"], "name": block["name"], "arguments": block["input"]})
        }
        _ => block.clone(),
    }
}

/// Returns the attributes of a tool call's span.
pub(super) fn tool_call_attributes(
    call: &ToolCall,
    turn_number: Option<u64>,
    session_id: &str,
) -> SpanAttributes {
    let attributes = SpanAttributes::default()
        .with_text("gen_ai.operation.name", "execute_tool")
        .with_text("gen_ai.conversation.id", session_id)
        .with_text("gen_ai.tool.name", &call.name)
        .with_text("gen_ai.tool.call.id", call.id())
        .with_text("gen_ai.tool.type", "function")
        .with_text("gen_ai.tool.call.arguments", &call.args.to_string())
        .with_integer("plimsoll.turn.number", turn_number.unwrap_or(0));
    if call.result.is_null() {
        attributes
    } else {
        attributes.with_text("gen_ai.tool.call.result", &call.result_text())
    }
}
