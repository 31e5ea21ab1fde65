//! The client's Agent tool: what the model asks of it, and what it answers.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The tool's name.
pub const TOOL: &str = "Agent";

/// What the model asks of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCall {
    /// The kind of subagent.
    pub kind: String,
    /// A few words on what it is for.
    pub description: String,
    /// What it is told.
    pub prompt: String,
    input: Map<String, Value>,
}

impl AgentCall {
    /// Reads the tool's input.
    pub fn read(input: Option<&RawValue>) -> AgentCall {
        let input: Map<String, Value> =
            input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        AgentCall {
            kind: text("subagent_type"),
            description: text("description"),
            prompt: text("prompt"),
            input,
        }
    }

    /// The same call of that kind with other words, and waited for: by itself the tool answers at once and its subagent
    /// works in the background. The client looks for the kind only after its hooks have run.
    pub fn telling(&self, kind: &str, prompt: &str) -> Value {
        // All of it: the client puts `updatedInput` in the place of the whole input (2.1.329).
        let mut input = self.input.clone();
        input.insert("subagent_type".to_owned(), json!(kind));
        // All frames work on the same files.
        input.remove("isolation");
        input.insert("prompt".to_owned(), json!(prompt));
        // Else PostToolUse comes at the launch, with no answer to put the report in the place of (2.1.329).
        input.insert("run_in_background".to_owned(), json!(false));
        Value::Object(input)
    }
}

/// The tool's answer with other words in it; none if it has not the shape that the client expects back.
pub fn answer_telling(response: &RawValue, words: &str) -> Option<Value> {
    let mut answer: Map<String, Value> = serde_json::from_str(response.get()).ok()?;
    // An output that has not the tool's own shape is refused, and the original stays (2.1.329).
    answer.get("content")?.as_array()?;
    answer.insert("content".to_owned(), json!([{"type": "text", "text": words}]));
    Some(Value::Object(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_call_keeps_everything_but_its_words_and_is_waited_for() {
        let input = r#"{"description":"d","prompt":"p","subagent_type":"frame","model":"m","isolation":"worktree","run_in_background":true}"#;
        let call = AgentCall::read(Some(&raw(input)));
        assert_eq!(
            (call.kind.as_str(), call.description.as_str(), call.prompt.as_str()),
            ("frame", "d", "p")
        );
        let expected = json!({"description": "d", "prompt": "the brief", "subagent_type": "frame", "model": "m",
            "run_in_background": false});
        assert_eq!(call.telling("frame", "the brief"), expected);
        assert_eq!(AgentCall::read(Some(&raw("[1]"))), AgentCall::default());
    }

    #[test]
    fn an_answer_keeps_everything_but_its_words() {
        let response =
            raw(r#"{"status":"completed","content":[{"type":"text","text":"mine"}],"totalTokens":5}"#);
        let expected =
            json!({"status": "completed", "content": [{"type": "text", "text": "r"}], "totalTokens": 5});
        assert_eq!(answer_telling(&response, "r"), Some(expected));
        assert_eq!(answer_telling(&raw(r#"{"status":"async_launched"}"#), "r"), None);
        assert_eq!(answer_telling(&raw(r#""text""#), "r"), None);
    }
}
