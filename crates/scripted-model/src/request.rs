//! One request as the model received it.

use serde_json::Value;
use std::time::SystemTime;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A turn of the session itself.
    Main,
    /// A turn of a subagent (its billing header says `cc_is_subagent=true`).
    Subagent,
    /// The summarizer of a compaction, of the session or of a subagent.
    Compaction,
    /// Anything without tools: titles, classifiers and the like.
    Side,
}

/// A request that was POSTed to `/v1/messages`.
#[derive(Clone, Debug)]
pub struct Request {
    /// Counts from 1 in the order of arrival.
    pub number: usize,
    /// When it arrived.
    pub at: SystemTime,
    /// The path with its query.
    pub path: String,
    /// The model it asks for.
    pub model: String,
    /// What it is for.
    pub kind: RequestKind,
    /// All its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole request; `null` if it was not JSON.
    pub body: Value,
    pub(super) size: usize,
}

/// The sentence all summarizer prompts of the client share, for a whole conversation and for a part of it.
const SUMMARIZER_PROMPT: &str = "Your task is to create a detailed summary of";

impl Request {
    pub(super) fn new(number: usize, path: String, headers: Vec<(String, String)>, raw: &[u8]) -> Request {
        let body: Value = serde_json::from_slice(raw).unwrap_or_default();
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let kind = kind_of(&body);
        Request { number, at: SystemTime::now(), path, model, kind, headers, body, size: raw.len() }
    }

    /// Everything the model sees: system text and all messages, joined by line ends.
    pub fn text(&self) -> String {
        let mut parts = vec![self.system_text()];
        parts.extend(messages(&self.body).iter().map(|message| text_of(&message["content"])));
        parts.join("\n")
    }

    /// The system prompt.
    pub fn system_text(&self) -> String {
        text_of(&self.body["system"])
    }

    /// The text of all messages after the last assistant message.
    pub fn last_text(&self) -> String {
        let texts: Vec<_> = latest(&self.body).iter().map(|message| text_of(&message["content"])).collect();
        texts.join("\n")
    }

    /// The text of the first message: it tells sessions and subagents apart.
    pub fn first_text(&self) -> String {
        messages(&self.body).first().map(|message| text_of(&message["content"])).unwrap_or_default()
    }

    /// How many answers the conversation holds already.
    pub fn answers(&self) -> usize {
        messages(&self.body).iter().filter(|message| message["role"] == "assistant").count()
    }

    /// The names of the tools that it offers.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// Id and text of every tool result, oldest first.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let blocks =
            messages(&self.body).iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let id = |block: &Value| block["tool_use_id"].as_str().unwrap_or_default().to_owned();
        results.map(|block| (id(block), text_of(&block["content"]))).collect()
    }

    /// The size of the request's body.
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// The value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn kind_of(body: &Value) -> RequestKind {
    let prompts = latest(body).iter().any(|message| has_summarizer_prompt(&message["content"]));
    if prompts {
        RequestKind::Compaction
    } else if body["tools"].as_array().is_none_or(Vec::is_empty) {
        RequestKind::Side
    } else if text_of(&body["system"]).contains("cc_is_subagent=true") {
        RequestKind::Subagent
    } else {
        RequestKind::Main
    }
}

/// Looks at text blocks only: a tool may well print a file that holds the prompt.
fn has_summarizer_prompt(content: &Value) -> bool {
    let says = |text: &Value| text.as_str().is_some_and(|text| text.contains(SUMMARIZER_PROMPT));
    says(content) || content.as_array().is_some_and(|blocks| blocks.iter().any(|block| says(&block["text"])))
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn latest(body: &Value) -> &[Value] {
    let all = messages(body);
    let start = all.iter().rposition(|message| message["role"] == "assistant").map_or(0, |last| last + 1);
    &all[start..]
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn block_text(block: &Value) -> Option<String> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str().map(str::to_owned),
        "tool_result" => Some(text_of(&block["content"])),
        "tool_use" => Some(block["input"].to_string()),
        _ => None,
    }
}
