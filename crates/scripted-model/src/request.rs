//! Requests that the model received.

use serde_json::Value;
use std::time::SystemTime;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A turn of the main session.
    Main,
    /// A turn of a subagent (its billing header contains `cc_is_subagent=true`).
    Subagent,
    /// The summary for a compaction of the session or of a subagent.
    Compaction,
    /// Any other request without tools, such as title generation or a classifier.
    Auxiliary,
}

/// A request that was POSTed to `/v1/messages`.
#[derive(Clone, Debug)]
pub struct Request {
    /// Position in the order of arrival, starting at 1.
    pub number: usize,
    pub arrived_at: SystemTime,
    /// The path, including the query string.
    pub path: String,
    /// The requested model.
    pub model: String,
    pub kind: RequestKind,
    /// All headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The request body; `null` if it was not JSON.
    pub body: Value,
    pub(super) body_bytes: usize,
}

/// A phrase in every summarizer prompt of the client, for both full and partial compactions.
const SUMMARIZER_PROMPT: &str = "Your task is to create a detailed summary of";

impl Request {
    pub(super) fn new(
        number: usize,
        path: String,
        headers: Vec<(String, String)>,
        raw_body: &[u8],
    ) -> Request {
        let body: Value = serde_json::from_slice(raw_body).unwrap_or_default();
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let kind = classify_request(&body);
        Request {
            number,
            arrived_at: SystemTime::now(),
            path,
            model,
            kind,
            headers,
            body,
            body_bytes: raw_body.len(),
        }
    }

    /// Returns all text that the model sees: the system prompt and all messages, joined by line breaks.
    pub fn full_text(&self) -> String {
        let mut parts = vec![self.system_text()];
        parts.extend(messages(&self.body).iter().map(|message| content_text(&message["content"])));
        parts.join("\n")
    }

    pub fn system_text(&self) -> String {
        content_text(&self.body["system"])
    }

    /// Returns the text of all messages after the last assistant message.
    pub fn text_since_last_assistant_message(&self) -> String {
        let message_texts: Vec<_> = messages_since_last_assistant_message(&self.body)
            .iter()
            .map(|message| content_text(&message["content"]))
            .collect();
        message_texts.join("\n")
    }

    /// Returns the text of the first message. It identifies the session or subagent that sent the request.
    pub fn first_message_text(&self) -> String {
        messages(&self.body).first().map(|message| content_text(&message["content"])).unwrap_or_default()
    }

    /// Returns the number of assistant messages in the conversation.
    pub fn assistant_message_count(&self) -> usize {
        messages(&self.body).iter().filter(|message| message["role"] == "assistant").count()
    }

    /// Returns the names of the tools that the request makes available.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// Returns the tool call id and the text of every tool result in the conversation, oldest first.
    pub fn all_tool_results(&self) -> Vec<(String, String)> {
        let blocks =
            messages(&self.body).iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let tool_use_id = |block: &Value| block["tool_use_id"].as_str().unwrap_or_default().to_owned();
        results.map(|block| (tool_use_id(block), content_text(&block["content"]))).collect()
    }

    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Returns the value of a header. The name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn classify_request(body: &Value) -> RequestKind {
    let is_compaction = messages_since_last_assistant_message(body)
        .iter()
        .any(|message| has_summarizer_prompt(&message["content"]));
    if is_compaction {
        RequestKind::Compaction
    } else if body["tools"].as_array().is_none_or(Vec::is_empty) {
        RequestKind::Auxiliary
    } else if content_text(&body["system"]).contains("cc_is_subagent=true") {
        RequestKind::Subagent
    } else {
        RequestKind::Main
    }
}

/// Returns true if a text block contains the summarizer prompt. Tool results are ignored, because a tool may print a file
/// that contains it.
fn has_summarizer_prompt(content: &Value) -> bool {
    let contains_prompt = |text: &Value| text.as_str().is_some_and(|text| text.contains(SUMMARIZER_PROMPT));
    contains_prompt(content)
        || content.as_array().is_some_and(|blocks| blocks.iter().any(|block| contains_prompt(&block["text"])))
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn messages_since_last_assistant_message(body: &Value) -> &[Value] {
    let all_messages = messages(body);
    let first_new_index = all_messages
        .iter()
        .rposition(|message| message["role"] == "assistant")
        .map_or(0, |last_assistant_index| last_assistant_index + 1);
    &all_messages[first_new_index..]
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(block_text_or_tool_input).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn block_text_or_tool_input(block: &Value) -> Option<String> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str().map(str::to_owned),
        "tool_result" => Some(content_text(&block["content"])),
        "tool_use" => Some(block["input"].to_string()),
        _ => None,
    }
}
