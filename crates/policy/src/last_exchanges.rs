//! Renders the end of a conversation for the message that takes its place: the last exchanges as they were, and before
//! them what the model said in its own words. Everything here is text, not blocks of the Messages API: a kept tool call
//! without the thinking before it may be refused by the API.

use plimsoll_domain::text::{to_safe_single_line, truncate_end, truncate_middle};
use plimsoll_protocol::transcript_content::{
    COMPACT_SUMMARY, ResponsePart, ToolResult, TranscriptLine, TranscriptLineKind,
};
use serde_json::Value;

/// How much of a conversation is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// The maximum size of the last exchanges, in bytes.
    pub exchange_bytes: usize,
    /// The maximum size of what the model said before them, in bytes.
    pub earlier_text_bytes: usize,
}

/// The maximum lengths of one part, in characters. The newest result is usually what the model works on next.
const MAX_RESULT_CHARS: usize = 3_000;
const MAX_NEWEST_RESULT_CHARS: usize = 12_000;
const MAX_TEXT_CHARS: usize = 6_000;
const MAX_INPUT_VALUE_CHARS: usize = 1_500;
const MAX_SUMMARY_CHARS: usize = 8_000;
const MAX_EARLIER_TEXT_CHARS: usize = 600;

/// The rendered end of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationEnd {
    /// What the model said before the last exchanges, one list item for each message.
    pub earlier_texts: String,
    /// The last exchanges since the last compaction.
    pub exchanges: String,
}

/// Renders the end of a conversation from its transcript lines, oldest first. `redact` removes secrets from the full text
/// before it is cut, because a cut could hide a secret from the search.
pub fn render_conversation_end(
    lines: &[TranscriptLine],
    limits: ExchangeLimits,
    redact: &dyn Fn(&str) -> String,
) -> ConversationEnd {
    let mut renderer = ExchangeRenderer { redact, has_rendered_request: false, result_count: 0 };
    let mut exchange_parts = Vec::new();
    let mut used_bytes = 0;
    let mut lines = lines.iter().rev().filter(|line| !line.is_sidechain).peekable();
    while let Some(line) = lines.peek() {
        if matches!(line.kind, TranscriptLineKind::Compaction { .. }) {
            break;
        }
        let part = renderer.render_line(&line.kind);
        used_bytes += part.as_ref().map_or(0, |part| part.len() + 1);
        if used_bytes > limits.exchange_bytes {
            break;
        }
        exchange_parts.extend(part);
        lines.next();
    }
    exchange_parts.reverse();
    ConversationEnd {
        earlier_texts: render_earlier_assistant_texts(
            lines.map(|line| &line.kind),
            limits.earlier_text_bytes,
            redact,
        ),
        exchanges: exchange_parts.join("\n"),
    }
}

/// Renders what the model said, newest line first in `kinds`, as a list with the oldest message first.
fn render_earlier_assistant_texts<'a>(
    kinds: impl Iterator<Item = &'a TranscriptLineKind>,
    max_bytes: usize,
    redact: &dyn Fn(&str) -> String,
) -> String {
    let mut items = Vec::new();
    let mut used_bytes = 0;
    for kind in kinds {
        let TranscriptLineKind::Response(response) = kind else { continue };
        let text = redact(&joined_text_unless_api_error(response));
        let single_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if single_line.is_empty() {
            continue;
        }
        let item = format!("- {}\n", truncate_end(&single_line, MAX_EARLIER_TEXT_CHARS));
        used_bytes += item.len();
        if used_bytes > max_bytes {
            break;
        }
        items.push(item);
    }
    items.reverse();
    items.concat()
}

fn parse_blocks(response: &ResponsePart) -> impl Iterator<Item = Value> {
    response.blocks.iter().filter_map(|block| serde_json::from_str(block.get()).ok())
}

/// Returns the text of a text block; `None` for other blocks and for white space.
fn text_of_block(block: &Value) -> Option<&str> {
    let is_text = block["type"] == "text";
    block["text"].as_str().map(str::trim).filter(|text| is_text && !text.is_empty())
}

fn joined_text_unless_api_error(response: &ResponsePart) -> String {
    if response.api_error.is_some() {
        return String::new();
    }
    parse_blocks(response)
        .filter_map(|block| text_of_block(&block).map(str::to_owned))
        .collect::<Vec<_>>()
        .join("\n")
}

struct ExchangeRenderer<'a> {
    redact: &'a dyn Fn(&str) -> String,
    /// True once the user's last request is rendered; the lines come newest first.
    has_rendered_request: bool,
    /// The number of tool results rendered so far, newest first.
    result_count: usize,
}

impl ExchangeRenderer<'_> {
    fn render_line(&mut self, kind: &TranscriptLineKind) -> Option<String> {
        match kind {
            TranscriptLineKind::Response(response) => self.render_response_unless_api_error(response),
            TranscriptLineKind::ToolResults(results) => {
                let results =
                    results.iter().rev().map(|result| self.render_result(result)).collect::<Vec<_>>();
                Some(results.into_iter().rev().collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
            }
            // The requests are quoted whole elsewhere in the message.
            TranscriptLineKind::Prompt { is_meta: false, .. } => {
                let is_earlier = std::mem::replace(&mut self.has_rendered_request, true);
                let whose =
                    if is_earlier { "An earlier request of the user" } else { "The user's last request" };
                Some(format!("### {whose} (quoted above)\n"))
            }
            TranscriptLineKind::Context { source, text } if source == COMPACT_SUMMARY => Some(format!(
                "### Claude Code's summary of the conversation before\n\n{}",
                quote(&truncate_end(&(self.redact)(text), MAX_SUMMARY_CHARS))
            )),
            TranscriptLineKind::Prompt { .. }
            | TranscriptLineKind::Context { .. }
            | TranscriptLineKind::Compaction { .. }
            | TranscriptLineKind::SessionCost(_)
            | TranscriptLineKind::Other => None,
        }
    }

    fn render_response_unless_api_error(&self, response: &ResponsePart) -> Option<String> {
        if response.api_error.is_some() {
            return None;
        }
        let parts: Vec<String> =
            parse_blocks(response).filter_map(|block| self.render_block(&block)).collect();
        Some(parts.join("\n")).filter(|text| !text.is_empty())
    }

    fn render_block(&self, block: &Value) -> Option<String> {
        if let Some(text) = text_of_block(block) {
            let text = truncate_end(&(self.redact)(text), MAX_TEXT_CHARS);
            return Some(format!("### You said\n\n{}", quote(&text)));
        }
        let name = block["name"].as_str().filter(|_| block["type"] == "tool_use")?;
        Some(self.render_call(name, &block["input"]))
    }

    fn render_call(&self, name: &str, input: &Value) -> String {
        let mut rows = String::new();
        for (key, value) in input.as_object().into_iter().flatten() {
            let key = (self.redact)(&to_safe_single_line(key));
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = truncate_middle(&(self.redact)(&text), MAX_INPUT_VALUE_CHARS);
            if text.contains(['\n', '\r']) {
                rows.push_str(&format!("{key}:\n{}", quote(&text)));
            } else {
                rows.push_str(&format!("{key}: {text}\n"));
            }
        }
        format!("### You called {}\n\n{rows}", to_safe_single_line(name))
    }

    fn render_result(&mut self, result: &ToolResult) -> String {
        self.result_count += 1;
        let max_chars = if self.result_count == 1 { MAX_NEWEST_RESULT_CHARS } else { MAX_RESULT_CHARS };
        let outcome = match (result.stopped_by_user, result.denied, result.is_error) {
            (true, _, _) => "The user stopped the call",
            (_, true, _) => "The call was denied",
            (_, _, true) => "The call FAILED",
            _ => "Result",
        };
        let text = (self.redact)(&result.content_as_text());
        let text = truncate_middle(text.trim_end(), max_chars);
        if text.is_empty() {
            format!("### {outcome}\n")
        } else {
            format!("### {outcome}\n\n{}", quote(&text))
        }
    }
}

fn quote(text: &str) -> String {
    text.replace('\r', "\n").lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests;
