//! Determines whether and why a turn failed.

use super::OpenTurn;
use plimsoll_domain::turn::FailureReason;
use plimsoll_protocol::transcript_content::ToolResult;

/// Returns why the turn failed, with a message; `None` if it succeeded.
pub(super) fn classify_turn_failure(
    open_turn: &OpenTurn,
    response_text: &str,
) -> Option<(FailureReason, String)> {
    if let Some(error) = &open_turn.response.api_error {
        let message = if response_text.is_empty() { error.clone() } else { response_text.to_owned() };
        return Some((FailureReason::ApiError, message));
    }
    let unreturned_call = open_turn.outline.calls.iter().find(|(id, ..)| !open_turn.results.contains_key(id));
    let stopped_result = open_turn
        .results
        .values()
        .find(|returned| returned.result.tool_use_result.interrupted || returned.result.stopped_by_user);
    if open_turn.is_interrupted && unreturned_call.is_some()
        || stopped_result.is_some()
        || open_turn.response.aborted
    {
        return Some((FailureReason::Interrupted, "the user stopped it".to_owned()));
    }
    match open_turn.response.stop_reason.as_deref() {
        Some("max_tokens") => {
            return Some((FailureReason::MaxTokens, "the response reached its maximum length".into()));
        }
        Some("model_context_window_exceeded") => {
            return Some((
                FailureReason::MaxTokens,
                "the window was full in the middle of the response".into(),
            ));
        }
        Some("refusal") => return Some((FailureReason::Refusal, response_text.to_owned())),
        _ => {}
    }
    if let Some((_, name, _)) = unreturned_call {
        return Some((FailureReason::Abandoned, format!("{name} never returned")));
    }
    let failure_of_call = |(id, ..): &(String, String, _)| {
        let result = &open_turn.results.get(id)?.result;
        (result.is_error || result.denied).then(|| (classify_call_failure(result), result.content_as_text()))
    };
    if let Some((reason, message)) = open_turn.outline.calls.iter().find_map(failure_of_call) {
        return Some((reason, plimsoll_domain::text::truncate_end(&message, 2_000)));
    }
    match open_turn.response.stop_reason.as_deref() {
        None | Some("tool_use" | "end_turn" | "stop_sequence" | "pause_turn") => None,
        Some(stop_reason) => Some((FailureReason::ApiError, format!("the model stopped: {stop_reason}"))),
    }
}

/// Returns why a call failed. Most reasons can be recognized only by the text of the result: for example, the client
/// (2.1.329) reports a denial by a hook as `PreToolUse:Bash hook error: REASON`.
fn classify_call_failure(result: &ToolResult) -> FailureReason {
    let text = result.content_as_text();
    let contains = |phrase: &str| text.contains(phrase);
    if contains("No such tool available") {
        FailureReason::UnknownTool
    } else if contains("InputValidationError") || contains("could not be parsed") {
        FailureReason::ParseError
    } else if result.decision_source.as_deref() == Some("hook") && result.denied
        || contains("hook error") && contains("PreToolUse")
    {
        FailureReason::HookBlocked
    } else if contains("[Request interrupted by user") {
        FailureReason::Interrupted
    } else if result.denied || DENIAL_PHRASES.iter().any(|phrase| contains(phrase)) {
        FailureReason::ToolDenied
    } else {
        FailureReason::ToolError
    }
}

/// Phrases by which the client reports that a call was not allowed.
const DENIAL_PHRASES: [&str; 4] = [
    "requested permissions",
    "doesn't want to proceed with this tool use",
    "has been denied",
    "The user doesn't want to take this action",
];
