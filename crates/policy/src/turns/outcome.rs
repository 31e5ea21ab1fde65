//! How did a turn go?

use super::OpenTurn;
use plimsoll_domain::turn::Reason;
use plimsoll_protocol::recording::ToolResult;

/// Why the turn failed, and in whose words; none if all went well.
pub(super) fn failure(open: &OpenTurn, text: &str) -> Option<(Reason, String)> {
    if let Some(error) = &open.answer.api_error {
        let words = if text.is_empty() { error.clone() } else { text.to_owned() };
        return Some((Reason::ApiError, words));
    }
    let missing = open.outline.calls.iter().find(|(id, ..)| !open.results.contains_key(id));
    let stopped = open.results.values().find(|back| back.result.behind.interrupted || back.result.stopped);
    if open.interrupted && missing.is_some() || stopped.is_some() || open.answer.aborted {
        return Some((Reason::Interrupted, "the user stopped it".to_owned()));
    }
    match open.answer.stop_reason.as_deref() {
        Some("max_tokens") => {
            return Some((Reason::MaxTokens, "the response reached its maximum length".into()));
        }
        Some("model_context_window_exceeded") => {
            return Some((Reason::MaxTokens, "the window was full in the middle of the response".into()));
        }
        Some("refusal") => return Some((Reason::Refusal, text.to_owned())),
        _ => {}
    }
    if let Some((_, name, _)) = missing {
        return Some((Reason::Abandoned, format!("{name} never returned")));
    }
    let failed = |(id, ..): &(String, String, _)| {
        let result = &open.results.get(id)?.result;
        (result.is_error || result.denied).then(|| (reason(result), result.text()))
    };
    if let Some((reason, words)) = open.outline.calls.iter().find_map(failed) {
        return Some((reason, plimsoll_domain::text::clip(&words, 2_000)));
    }
    match open.answer.stop_reason.as_deref() {
        None | Some("tool_use" | "end_turn" | "stop_sequence" | "pause_turn") => None,
        Some(other) => Some((Reason::ApiError, format!("the model stopped: {other}"))),
    }
}

/// Why a call failed. Most of it only the text of the result says: the client (2.1.329) words a denial by a hook as
/// `PreToolUse:Bash hook error: REASON`.
fn reason(result: &ToolResult) -> Reason {
    let text = result.text();
    let says = |words: &str| text.contains(words);
    if says("No such tool available") {
        Reason::UnknownTool
    } else if says("InputValidationError") || says("could not be parsed") {
        Reason::ParseError
    } else if result.decided_by.as_deref() == Some("hook") && result.denied
        || says("hook error") && says("PreToolUse")
    {
        Reason::HookBlocked
    } else if says("[Request interrupted by user") {
        Reason::Interrupted
    } else if result.denied || DENIALS.iter().any(|words| says(words)) {
        Reason::ToolDenied
    } else {
        Reason::ToolError
    }
}

/// How the client says that a call was not allowed.
const DENIALS: [&str; 4] = [
    "requested permissions",
    "doesn't want to proceed with this tool use",
    "has been denied",
    "The user doesn't want to take this action",
];
