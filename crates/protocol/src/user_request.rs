//! What the user asked a session for, in their own words, as a transcript has it.

use crate::lenient;
use crate::transcript::{Line, Message};
use serde::Deserialize;

/// The marks by which a line that may hold a request is known without parsing it.
pub const MARKS: [&str; 2] = ["\"type\":\"user\"", "\"queued_command\""];
/// Most of a transcript's user lines hold what tools have answered. In the user's words the quotation marks are escaped.
pub const NOT_MARK: &str = "\"type\":\"tool_result\"";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestLine {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    is_sidechain: bool,
    #[serde(deserialize_with = "lenient::field")]
    is_meta: bool,
    #[serde(deserialize_with = "lenient::field")]
    is_compact_summary: bool,
    #[serde(deserialize_with = "lenient::field")]
    is_visible_in_transcript_only: bool,
    #[serde(deserialize_with = "lenient::field")]
    origin: Origin,
    #[serde(deserialize_with = "lenient::field")]
    message: Message,
    #[serde(deserialize_with = "lenient::field")]
    attachment: Queued,
}

/// Who wrote it: `human`, or the client's word for something else. Older clients, and `claude -p`, name nobody.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Origin {
    #[serde(deserialize_with = "lenient::text")]
    kind: Option<String>,
}

/// What the user typed while the model was working reaches it beside a tool's result, as an attachment (2.1.329).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Queued {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::raw")]
    prompt: Option<Box<serde_json::value::RawValue>>,
    #[serde(deserialize_with = "lenient::text")]
    command_mode: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    origin: Origin,
}

/// The request of one line; none if the line is something else, or the client's own words.
pub fn request(bytes: &[u8]) -> Option<String> {
    let line: RequestLine = crate::parse(bytes).ok()?;
    let is_others =
        line.is_sidechain || line.is_meta || line.is_compact_summary || line.is_visible_in_transcript_only;
    let is_users = |origin: &Origin| origin.kind.as_deref().is_none_or(|kind| kind == "human");
    if is_others || !is_users(&line.origin) {
        return None;
    }
    match line.kind.as_deref()? {
        "user" => own_words(&words(&line.message)?),
        "attachment" => {
            let Queued { kind, prompt, command_mode, origin } = line.attachment;
            let is_prompt = command_mode.as_deref().is_none_or(|mode| mode == "prompt");
            let is_queued = kind.as_deref() == Some("queued_command") && is_prompt && is_users(&origin);
            let message = Message { content: prompt.filter(|_| is_queued), ..Message::default() };
            own_words(&words(&message)?)
        }
        _ => None,
    }
}

/// The text of a message; none if a tool has answered in it.
fn words(message: &Message) -> Option<String> {
    let blocks = message.blocks();
    let is_answer = blocks.iter().any(|block| block.kind.as_deref() == Some("tool_result"));
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text.as_deref()).collect();
    (!is_answer && !texts.is_empty()).then(|| texts.join("\n"))
}

/// Tags in which the client wraps what it writes among the user's lines: what a command printed, a shell line begun with
/// `!`, a notice of a task in the background.
const OF_CLIENT: [&str; 6] =
    ["<local-command-", "<bash-", "<task-notification", "<user-memory-", "<system-reminder", "<command-"];

/// How the client's line begins when the user has interrupted a request.
const INTERRUPTED: &str = "[Request interrupted";

/// True for the line that the client writes when the user has interrupted a request.
pub fn is_interruption(line: &Line) -> bool {
    line.kind.as_deref() == Some("user")
        && words(&line.message).is_some_and(|words| words.starts_with(INTERRUPTED))
}

/// What the user wrote of it: of a slash command its name with its arguments. A command without any, such as `/context`, asks
/// for nothing.
fn own_words(text: &str) -> Option<String> {
    let text = without_reminders(text);
    let text = text.trim();
    if let Some(name) = tagged(text, "command-name") {
        let arguments = tagged(text, "command-args").filter(|arguments| !arguments.is_empty())?;
        return Some(format!("{name} {arguments}"));
    }
    let is_clients = OF_CLIENT.iter().any(|tag| text.starts_with(tag)) || text.starts_with(INTERRUPTED);
    (!is_clients && !text.is_empty()).then(|| text.to_owned())
}

fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    // Only where the client puts it: a user may quote one in the middle of a request.
    text.starts_with("<command-").then_some(())?;
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(words, _)| words.trim())
}

/// For older models the client appends its reminders to the user's text.
fn without_reminders(text: &str) -> String {
    let mut parts = text.split("<system-reminder>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once("</system-reminder>")).fold(first, |text, (_, rest)| text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_what_the_user_wrote_and_nothing_that_the_client_put_beside_it() {
        let line = |content: serde_json::Value| json!({"type": "user", "message": {"content": content}});
        let with = |content: &str, field: &str| {
            let mut line = line(content.into());
            line[field] = true.into();
            line
        };
        let queued = |mode: &str| json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "And the docs.", "commandMode": mode}});
        let of =
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
            (line(json!([{"type": "tool_result", "content": "x"}, {"type": "text", "text": "y"}])), None),
            (line("   ".into()), None),
            (with("Stop hook feedback", "isMeta"), None),
            (with("Summary", "isCompactSummary"), None),
            (with("Do a part.", "isSidechain"), None),
            (of("human"), Some("Fix it.")),
            (of("task-notification"), None),
            (queued("prompt"), Some("And the docs.")),
            (queued("bash"), None),
            (json!({"type": "assistant", "message": {"content": "Done."}}), None),
        ] {
            assert_eq!(request(line.to_string().as_bytes()).as_deref(), expected, "{line}");
        }
        assert_eq!(request(b"torn {"), None);
    }

    #[test]
    fn only_a_line_of_the_client_among_the_users_is_an_interruption() {
        let interrupted = "[Request interrupted by user for tool use]";
        let answer =
            json!([{"type": "tool_result", "content": interrupted}, {"type": "text", "text": interrupted}]);
        for (kind, content, expected) in [
            ("user", json!([{"type": "text", "text": interrupted}]), true),
            ("user", json!("[Request interrupted by user]"), true),
            ("user", json!("Why was the [Request interrupted by user]?"), false),
            ("user", answer, false),
            ("assistant", json!([{"type": "text", "text": interrupted}]), false),
        ] {
            let line = json!({"type": kind, "message": {"content": content}}).to_string();
            assert_eq!(is_interruption(&crate::parse(line.as_bytes()).unwrap()), expected, "{line}");
        }
    }
}
