//! Extracts the user's requests from transcript lines, as the user wrote them.

use crate::handoff_message::{HandoffMessageKind, parse_quoted_requests};
use crate::lenient;
use crate::transcript::{Message, TranscriptEntry};
use serde::Deserialize;

/// Every line that contains a request has one of these markers. Checked before parsing.
pub const LINE_MARKERS: [&str; 2] = ["\"type\":\"user\"", "\"queued_command\""];
/// Marks user lines with tool results, which are most of them. The user's text cannot contain this marker, because its
/// quotation marks are escaped.
pub const EXCLUDED_MARKER: &str = "\"type\":\"tool_result\"";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestLine {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_sidechain: bool,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_meta: bool,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_compact_summary: bool,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_visible_in_transcript_only: bool,
    #[serde(deserialize_with = "lenient::field_or_default")]
    origin: RequestOrigin,
    #[serde(deserialize_with = "lenient::field_or_default")]
    message: Message,
    #[serde(deserialize_with = "lenient::field_or_default")]
    attachment: QueuedCommand,
}

/// The author of a line: `human`, or another value that the client defines. Older clients and `claude -p` omit it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestOrigin {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    /// The plugin, if its module has submitted the prompt.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    name: Option<String>,
}

impl RequestOrigin {
    fn is_user(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "human")
    }

    /// `claude plugin` names a plugin of the user's skills `plimsoll@skills-dir`.
    fn is_plimsoll(&self) -> bool {
        let plugin = self.name.as_deref().and_then(|name| name.split('@').next());
        self.kind.as_deref() == Some("plugin") && plugin == Some("plimsoll")
    }
}

/// A prompt that the user typed while the model was working. It reaches the model as an attachment next to a tool
/// result (2.1.329).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct QueuedCommand {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::raw_json")]
    prompt: Option<Box<serde_json::value::RawValue>>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    command_mode: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    origin: RequestOrigin,
}

/// The user's words in one transcript line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserWords {
    Request(String),
    /// The requests that a handoff message quotes, oldest first. They are all that is known of the conversation before it.
    QuotedByHandoff(Vec<String>),
}

/// Returns the user's request in a transcript line. Returns `None` if the line has no request, or if the client or a
/// handoff wrote it.
pub fn parse_user_request(line_bytes: &[u8]) -> Option<String> {
    match parse_user_words(line_bytes)? {
        UserWords::Request(request) => Some(request),
        UserWords::QuotedByHandoff(_) => None,
    }
}

/// Returns the user's request in a transcript line, or the requests that a handoff message in it quotes.
pub fn parse_user_words(line_bytes: &[u8]) -> Option<UserWords> {
    let line: RequestLine = crate::parse_json_object(line_bytes).ok()?;
    let is_written_by_client =
        line.is_sidechain || line.is_meta || line.is_compact_summary || line.is_visible_in_transcript_only;
    if is_written_by_client {
        return None;
    }
    let text = message_text(&line.message).unwrap_or_default();
    if line.kind.as_deref() == Some("user") && HandoffMessageKind::of_message(&text).is_some() {
        // Our module's name is the origin of a message that it submits.
        let is_ours = line.origin.is_user() || line.origin.is_plimsoll();
        return is_ours.then(|| UserWords::QuotedByHandoff(parse_quoted_requests(&text)));
    }
    request_of_user(line).map(UserWords::Request)
}

/// Returns the user's request in the text of a prompt; `None` if the client or a handoff wrote the text.
pub fn parse_request_in_prompt(text: &str) -> Option<String> {
    let is_handoff = HandoffMessageKind::of_message(text).is_some();
    user_text_or_slash_command_with_arguments(text).filter(|_| !is_handoff)
}

fn request_of_user(line: RequestLine) -> Option<String> {
    if !line.origin.is_user() {
        return None;
    }
    match line.kind.as_deref()? {
        "user" => user_text_or_slash_command_with_arguments(&message_text(&line.message)?),
        "attachment" => {
            let QueuedCommand { kind, prompt, command_mode, origin } = line.attachment;
            let is_prompt = command_mode.as_deref().is_none_or(|mode| mode == "prompt");
            let is_queued = kind.as_deref() == Some("queued_command") && is_prompt && origin.is_user();
            let message = Message { content: prompt.filter(|_| is_queued), ..Message::default() };
            user_text_or_slash_command_with_arguments(&message_text(&message)?)
        }
        _ => None,
    }
}

/// Returns the text of a message, or `None` if it contains a tool result.
fn message_text(message: &Message) -> Option<String> {
    let blocks = message.blocks();
    let has_tool_result = blocks.iter().any(|block| block.kind.as_deref() == Some("tool_result"));
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text.as_deref()).collect();
    (!has_tool_result && !texts.is_empty()).then(|| texts.join("\n"))
}

/// The starts of text that the client writes into user lines: command output, a shell command that the user entered with
/// `!`, a background task's notification, an interruption, and what a hook of the `Stop` event answered.
const CLIENT_TEXT_PREFIXES: [&str; 8] = [
    "<local-command-",
    "<bash-",
    "<task-notification",
    "<user-memory-",
    "<system-reminder",
    "<command-",
    INTERRUPTION_PREFIX,
    "Stop hook feedback:",
];

/// The start of the text that the client writes after the user interrupted a request.
const INTERRUPTION_PREFIX: &str = "[Request interrupted";

/// Returns true for the line that the client writes after the user interrupted a request.
pub fn is_interruption(line: &TranscriptEntry) -> bool {
    line.kind.as_deref() == Some("user")
        && message_text(&line.message).is_some_and(|text| text.starts_with(INTERRUPTION_PREFIX))
}

/// Returns the part of a text that the user wrote; for a slash command its name and arguments. Returns `None` for text
/// that the client wrote, and for a command without arguments, such as `/context`, which is not a request.
fn user_text_or_slash_command_with_arguments(text: &str) -> Option<String> {
    let text = strip_system_reminders(text);
    let text = text.trim();
    if let Some(name) = command_tag_content(text, "command-name") {
        let arguments =
            command_tag_content(text, "command-args").filter(|arguments| !arguments.is_empty())?;
        return Some(format!("{name} {arguments}"));
    }
    let is_client_text = CLIENT_TEXT_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
    (!is_client_text && !text.is_empty()).then(|| text.to_owned())
}

fn command_tag_content<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    // The client writes these tags only at the start; a user may quote one inside a request.
    text.starts_with("<command-").then_some(())?;
    let (_, after_tag) = text.split_once(&format!("<{tag}>"))?;
    after_tag.split_once(&format!("</{tag}>")).map(|(content, _)| content.trim())
}

/// Removes the reminders that the client appends to the user's text for older models.
fn strip_system_reminders(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once("</system-reminder>")).fold(first, |text, (_, tail)| text + tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_contains_only_what_the_user_wrote() {
        let line = |content: serde_json::Value| json!({"type": "user", "message": {"content": content}});
        let line_with_flag = |content: &str, field: &str| {
            let mut line = line(content.into());
            line[field] = true.into();
            line
        };
        let queued = |mode: &str| json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "And the docs.", "commandMode": mode}});
        let line_with_origin =
            |kind: &str| json!({"type": "user", "origin": {"kind": kind}, "message": {"content": "Fix it."}});
        for (line, expected) in [
            (line("Fix the parser.\n\nThen the docs.".into()), Some("Fix the parser.\n\nThen the docs.")),
            (line(json!([{"type": "image"}, {"type": "text", "text": "What is this?"}])), Some("What is this?")),
            (line("Fix it.<system-reminder>\nplan mode\n</system-reminder>".into()), Some("Fix it.")),
            (line("<div>is not closed</div>".into()), Some("<div>is not closed</div>")),
            (
                line("<command-message>fix is running</command-message>\n<command-name>/fix</command-name>\n<command-args>issue 12</command-args>".into()),
                Some("/fix issue 12"),
            ),
            (line("<command-name>/clear</command-name>\n<command-args></command-args>".into()), None),
            (line("<local-command-stdout>Set model</local-command-stdout>".into()), None),
            (line("<bash-input>ls</bash-input>".into()), None),
            (line("[Request interrupted by user]".into()), None),
            (line("Stop hook feedback:\nlint failed".into()), None),
            (line(json!([{"type": "tool_result", "content": "x"}, {"type": "text", "text": "y"}])), None),
            (line("   ".into()), None),
            (line_with_flag("Stop hook feedback", "isMeta"), None),
            (line_with_flag("Summary", "isCompactSummary"), None),
            (line_with_flag("Do a part.", "isSidechain"), None),
            (line_with_origin("human"), Some("Fix it.")),
            (line_with_origin("task-notification"), None),
            (queued("prompt"), Some("And the docs.")),
            (queued("bash"), None),
            (json!({"type": "assistant", "message": {"content": "Done."}}), None),
        ] {
            assert_eq!(parse_user_request(line.to_string().as_bytes()).as_deref(), expected, "{line}");
        }
        assert_eq!(parse_user_request(b"torn {"), None);
    }

    #[test]
    fn a_handoff_message_is_no_request_and_returns_the_requests_that_it_quotes() {
        let text = format!(
            "{}\n\n## What the user asked for (oldest first)\n\n> Fix it.\n>\n> Twice.\n\n> Then the docs.\n\n# Handoff\n",
            HandoffMessageKind::FreshConversation.marker_line()
        );
        let quoted =
            UserWords::QuotedByHandoff(vec!["Fix it.\n\nTwice.".to_owned(), "Then the docs.".to_owned()]);
        for content in [json!(text), json!([{"type": "text", "text": text}])] {
            for origin in [json!(null), json!({"kind": "plugin", "name": "plimsoll"})] {
                let line =
                    json!({"type": "user", "origin": origin, "message": {"content": content}}).to_string();
                assert_eq!(parse_user_request(line.as_bytes()), None, "{line}");
                assert_eq!(parse_user_words(line.as_bytes()), Some(quoted.clone()), "{line}");
            }
        }
        let of_subagent =
            json!({"type": "user", "isSidechain": true, "message": {"content": text}}).to_string();
        assert_eq!(parse_user_words(of_subagent.as_bytes()), None);
    }

    #[test]
    fn only_a_user_line_written_by_the_client_is_an_interruption() {
        let interrupted = "[Request interrupted by user for tool use]";
        let tool_result =
            json!([{"type": "tool_result", "content": interrupted}, {"type": "text", "text": interrupted}]);
        for (kind, content, expected) in [
            ("user", json!([{"type": "text", "text": interrupted}]), true),
            ("user", json!("[Request interrupted by user]"), true),
            ("user", json!("Why was the [Request interrupted by user]?"), false),
            ("user", tool_result, false),
            ("assistant", json!([{"type": "text", "text": interrupted}]), false),
        ] {
            let line = json!({"type": kind, "message": {"content": content}}).to_string();
            assert_eq!(
                is_interruption(&crate::parse_json_object(line.as_bytes()).unwrap()),
                expected,
                "{line}"
            );
        }
    }
}
