//! Determines how a session ended from `is_error` and `terminal_reason` of its result. The `subtype` and the exit status are
//! not reliable: the client (2.1.329) writes `success` for an API error and exits with 0 after SIGINT.

use plimsoll_domain::fatal_error::{FatalError, FatalErrorKind};
use plimsoll_domain::{ProcessExit, SessionEnding};
use plimsoll_protocol::result::ClientResult;

/// Returns how a session ended, from its result and its exit status. Without a result it crashed.
pub fn classify_ending(result: Option<&ClientResult>, exit: ProcessExit) -> SessionEnding {
    match result {
        Some(result) if result.is_error => classify_error_result(result),
        Some(result) => classify_non_error_by_terminal_reason(result),
        None => SessionEnding::Crashed(describe_missing_result(exit)),
    }
}

fn classify_non_error_by_terminal_reason(result: &ClientResult) -> SessionEnding {
    // A session that was ended by a hook looks like success (exit 0, `is_error` false); only this field shows it (2.1.329).
    // Clients 1.0.128 and 2.0.77 do not have the field.
    match result.terminal_reason.as_deref() {
        Some("hook_stopped" | "stop_hook_prevented") => SessionEnding::HookStopped,
        Some("completed") | None => SessionEnding::Completed,
        Some(reason) => SessionEnding::Failed(reason.to_owned()),
    }
}

fn classify_error_result(result: &ClientResult) -> SessionEnding {
    let terminal_reason = result.terminal_reason.as_deref().unwrap_or_default();
    let message = result.result.clone().unwrap_or_else(|| result.errors.join("; "));
    match (terminal_reason, result.subtype.as_deref().unwrap_or_default()) {
        ("blocking_limit" | "prompt_too_long" | "rapid_refill_breaker", _) => {
            SessionEnding::WindowFull(terminal_reason.to_owned())
        }
        (_, "error_max_turns") => SessionEnding::ClientLimit("--max-turns".to_owned()),
        (_, "error_max_budget_usd") => SessionEnding::ClientLimit("--max-budget-usd".to_owned()),
        // The exit code does not show an interruption: after SIGINT, `-p` exits with 0 (2.1.329).
        (reason, _) if reason.starts_with("aborted") => SessionEnding::Interrupted,
        _ if message.to_lowercase().starts_with("prompt is too long") => {
            SessionEnding::WindowFull("prompt_too_long".to_owned())
        }
        // The client's code for a subscription's usage limit. Older clients state it only in the message.
        _ if result.api_error.as_deref() == Some("usage_limit_reached") => SessionEnding::Limit(message),
        _ => match result.api_error_status.or_else(|| parse_api_error_status(&message)) {
            None | Some(200) if crate::reset_clock::parse_reset_time(&message).is_some() => {
                SessionEnding::Limit(message)
            }
            // Clients before 2.1.207 report neither a status nor a reason for these errors.
            None if message.starts_with("Invalid API key") || message.contains("run /login") => {
                SessionEnding::Fatal(FatalError::new(FatalErrorKind::Credentials, &message))
            }
            None if message.starts_with("Credit balance is too low") => {
                SessionEnding::Fatal(FatalError::new(FatalErrorKind::Billing, &message))
            }
            None if message.contains("context window limit") => {
                SessionEnding::WindowFull("window_exceeded".to_owned())
            }
            // The service works. The response was too long, or it violated the usage policy that the message links to.
            None if result.api_error.as_deref() == Some("max_output_tokens") => {
                SessionEnding::Failed(message)
            }
            None if message.contains("anthropic.com/legal/aup") => SessionEnding::Failed(message),
            None if message.contains("output token maximum") => SessionEnding::Failed(message),
            // Without a status the network is unreachable, and every session of the run would fail like this one.
            None if terminal_reason == "api_error" || message.starts_with("API Error") => {
                SessionEnding::Overloaded(message)
            }
            status => classify_by_api_status(status, message),
        },
    }
}

fn classify_by_api_status(status: Option<u64>, message: String) -> SessionEnding {
    match status {
        Some(401 | 403) => SessionEnding::Fatal(FatalError::new(FatalErrorKind::Credentials, &message)),
        Some(404) => SessionEnding::Fatal(FatalError::new(FatalErrorKind::Model, &message)),
        Some(400) if message.to_lowercase().contains("credit balance") => {
            SessionEnding::Fatal(FatalError::new(FatalErrorKind::Billing, &message))
        }
        Some(402) => SessionEnding::Fatal(FatalError::new(FatalErrorKind::Billing, &message)),
        Some(429) => SessionEnding::Limit(message),
        Some(408 | 409 | 500..) => SessionEnding::Overloaded(message),
        _ => SessionEnding::Failed(message),
    }
}

/// Parses the HTTP status from a message such as `API Error: 529 …`. Clients before 2.1 report it only there.
fn parse_api_error_status(message: &str) -> Option<u64> {
    message
        .strip_prefix("API Error: ")?
        .split(|character: char| !character.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

fn describe_missing_result(exit: ProcessExit) -> String {
    match (exit.signal, exit.code) {
        (Some(signal), _) => format!("ended by signal {signal}, without a result"),
        (None, Some(code)) => format!("ended with exit code {code}, without a result"),
        (None, None) => "vanished without a result".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify_api_error_result(status: Option<u64>, message: &str) -> SessionEnding {
        let result = ClientResult {
            is_error: true,
            terminal_reason: Some("api_error".into()),
            api_error_status: status,
            result: Some(message.into()),
            ..ClientResult::default()
        };
        classify_ending(Some(&result), ProcessExit::default())
    }

    #[test]
    fn errors_of_old_clients_are_classified_by_their_message() {
        let classify = |message: &str| {
            let result =
                ClientResult { is_error: true, result: Some(message.into()), ..ClientResult::default() };
            classify_ending(Some(&result), ProcessExit::default())
        };
        for message in [
            "Invalid API key · Fix external API key",
            "Invalid API key · Please run /login",
            "OAuth token revoked · Please run /login",
            "Credit balance is too low",
        ] {
            assert!(
                matches!(classify(message), SessionEnding::Fatal(_)),
                "{message}: {:?}",
                classify(message)
            );
        }
        assert!(matches!(classify("API Error: 529 Overloaded"), SessionEnding::Overloaded(_)));
        assert!(matches!(classify("something else"), SessionEnding::Failed(_)));
    }

    #[test]
    fn a_response_that_was_too_long_is_not_a_network_failure() {
        let message = "API Error: Claude's response exceeded the 32000 output token maximum.";
        assert!(matches!(classify_api_error_result(None, message), SessionEnding::Failed(_)));
    }

    #[test]
    fn api_errors_are_classified_by_status_and_a_network_failure_is_overload() {
        assert!(matches!(classify_api_error_result(Some(401), "x"), SessionEnding::Fatal(_)));
        assert!(matches!(classify_api_error_result(Some(404), "x"), SessionEnding::Fatal(_)));
        assert!(matches!(
            classify_api_error_result(Some(400), "Your credit balance is too low"),
            SessionEnding::Fatal(_)
        ));
        assert!(matches!(classify_api_error_result(Some(400), "other"), SessionEnding::Failed(_)));
        assert!(matches!(classify_api_error_result(Some(429), "x"), SessionEnding::Limit(_)));
        assert!(matches!(classify_api_error_result(Some(529), "x"), SessionEnding::Overloaded(_)));
        assert!(matches!(
            classify_api_error_result(None, "API Error: Connection error."),
            SessionEnding::Overloaded(_)
        ));
        assert!(matches!(
            classify_api_error_result(None, "API Error: 429 slow down"),
            SessionEnding::Limit(_)
        ));
    }
}
