//! The client's Agent tool: its input and its response.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub const TOOL_NAME: &str = "Agent";

/// The input of a call of the Agent tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCall {
    pub subagent_type: String,
    /// A short description of the task.
    pub description: String,
    /// The subagent's prompt.
    pub prompt: String,
    input: Map<String, Value>,
}

impl AgentCall {
    /// Parses the tool's input. An input that is not an object counts as empty.
    pub fn from_input(input: Option<&RawValue>) -> AgentCall {
        let input: Map<String, Value> =
            input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
        let string_field_or_empty =
            |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        AgentCall {
            subagent_type: string_field_or_empty("subagent_type"),
            description: string_field_or_empty("description"),
            prompt: string_field_or_empty("prompt"),
            input,
        }
    }

    /// Returns the input with another subagent type and prompt, without worktree isolation, and run in the foreground: by
    /// default the tool returns at once and its subagent works in the background. The client reads the type only after its
    /// hooks have run, so a hook may change it.
    pub fn foreground_input_without_isolation(&self, subagent_type: &str, prompt: &str) -> Value {
        // The complete input, because the client replaces the whole input with `updatedInput` (2.1.329).
        let mut input = self.input.clone();
        input.insert("subagent_type".to_owned(), json!(subagent_type));
        // All frames work on the same files, so none may have a worktree of its own.
        input.remove("isolation");
        input.insert("prompt".to_owned(), json!(prompt));
        // A background call triggers PostToolUse at its launch, before there is a result that the report could replace
        // (2.1.329).
        input.insert("run_in_background".to_owned(), json!(false));
        Value::Object(input)
    }
}

/// Returns the tool's response with this text as its only content. Returns `None` if the response has no `content` list,
/// because the client expects one.
pub fn replace_response_content_with_text(response: &RawValue, text: &str) -> Option<Value> {
    let mut output: Map<String, Value> = serde_json::from_str(response.get()).ok()?;
    // The client rejects an output without the tool's own shape and keeps the original (2.1.329).
    output.get("content")?.as_array()?;
    output.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
    Some(Value::Object(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_new_prompt_keeps_other_fields_and_runs_in_the_foreground() {
        let input = r#"{"description":"d","prompt":"p","subagent_type":"frame","model":"m","isolation":"worktree","run_in_background":true}"#;
        let call = AgentCall::from_input(Some(&raw(input)));
        assert_eq!(
            (call.subagent_type.as_str(), call.description.as_str(), call.prompt.as_str()),
            ("frame", "d", "p")
        );
        let expected = json!({"description": "d", "prompt": "the brief", "subagent_type": "frame", "model": "m",
            "run_in_background": false});
        assert_eq!(call.foreground_input_without_isolation("frame", "the brief"), expected);
        assert_eq!(AgentCall::from_input(Some(&raw("[1]"))), AgentCall::default());
    }

    #[test]
    fn a_replaced_response_text_keeps_the_other_fields() {
        let response =
            raw(r#"{"status":"completed","content":[{"type":"text","text":"mine"}],"totalTokens":5}"#);
        let expected =
            json!({"status": "completed", "content": [{"type": "text", "text": "r"}], "totalTokens": 5});
        assert_eq!(replace_response_content_with_text(&response, "r"), Some(expected));
        assert_eq!(replace_response_content_with_text(&raw(r#"{"status":"async_launched"}"#), "r"), None);
        assert_eq!(replace_response_content_with_text(&raw(r#""text""#), "r"), None);
    }
}
