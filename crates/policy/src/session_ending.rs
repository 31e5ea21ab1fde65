//! How a session ended, by `is_error` and `terminal_reason` of its result. The `subtype` and the exit status prove nothing: the
//! client (2.1.329) writes `success` for an API error, and exits with 0 after SIGINT.

use plimsoll_domain::fatal::{Fatal, FatalKind};
use plimsoll_domain::{Ending, Exit};
use plimsoll_protocol::result::RunResult;

/// The ending that the result and the exit prove together.
pub fn session_ending(result: Option<&RunResult>, exit: Exit) -> Ending {
    match result {
        Some(result) if result.is_error => error(result),
        Some(result) => success(result),
        None => Ending::Crashed(without_result(exit)),
    }
}

fn success(result: &RunResult) -> Ending {
    // A session that a hook has ended looks like success (exit 0, `is_error` false): only this field tells (2.1.329).
    // 1.0.128 and 2.0.77 have no such field.
    match result.terminal_reason.as_deref() {
        Some("hook_stopped" | "stop_hook_prevented") => Ending::HookStopped,
        Some("completed") | None => Ending::Completed,
        Some(other) => Ending::Failed(other.to_owned()),
    }
}

fn error(result: &RunResult) -> Ending {
    let reason = result.terminal_reason.as_deref().unwrap_or_default();
    let words = result.result.clone().unwrap_or_else(|| result.errors.join("; "));
    match (reason, result.subtype.as_deref().unwrap_or_default()) {
        ("blocking_limit" | "prompt_too_long" | "rapid_refill_breaker", _) => {
            Ending::WindowFull(reason.to_owned())
        }
        (_, "error_max_turns") => Ending::ClientLimit("--max-turns".to_owned()),
        (_, "error_max_budget_usd") => Ending::ClientLimit("--max-budget-usd".to_owned()),
        // SIGINT ends `-p` with exit code 0 (2.1.329), so the code cannot tell.
        (reason, _) if reason.starts_with("aborted") => Ending::Interrupted,
        _ if words.to_lowercase().starts_with("prompt is too long") => {
            Ending::WindowFull("prompt_too_long".to_owned())
        }
        // The client's own name for a plan's limit; older clients have only their words.
        _ if result.api_error.as_deref() == Some("usage_limit_reached") => Ending::Limit(words),
        _ => match result.api_error_status.or_else(|| status_in(&words)) {
            None | Some(200) if crate::reset_clock::find(&words).is_some() => Ending::Limit(words),
            // Clients before 2.1.207 name neither a status nor a reason here.
            None if words.starts_with("Invalid API key") || words.contains("run /login") => {
                Ending::Fatal(Fatal::new(FatalKind::Credentials, &words))
            }
            None if words.starts_with("Credit balance is too low") => {
                Ending::Fatal(Fatal::new(FatalKind::Billing, &words))
            }
            None if words.contains("context window limit") => {
                Ending::WindowFull("window_exceeded".to_owned())
            }
            // The service works: the answer was too long, or refused by the usage policy that it names.
            None if result.api_error.as_deref() == Some("max_output_tokens") => Ending::Failed(words),
            None if words.contains("anthropic.com/legal/aup") => Ending::Failed(words),
            None if words.contains("output token maximum") => Ending::Failed(words),
            // No status at all: the network is away, and every session of the run would fail like this one.
            None if reason == "api_error" || words.starts_with("API Error") => Ending::Overloaded(words),
            status => api_error(status, words),
        },
    }
}

fn api_error(status: Option<u64>, words: String) -> Ending {
    match status {
        Some(401 | 403) => Ending::Fatal(Fatal::new(FatalKind::Credentials, &words)),
        Some(404) => Ending::Fatal(Fatal::new(FatalKind::Model, &words)),
        Some(400) if words.to_lowercase().contains("credit balance") => {
            Ending::Fatal(Fatal::new(FatalKind::Billing, &words))
        }
        Some(402) => Ending::Fatal(Fatal::new(FatalKind::Billing, &words)),
        Some(429) => Ending::Limit(words),
        Some(408 | 409 | 500..) => Ending::Overloaded(words),
        _ => Ending::Failed(words),
    }
}

/// Clients before 2.1 name the status only in their words: `API Error: 529 …`.
fn status_in(words: &str) -> Option<u64> {
    words.strip_prefix("API Error: ")?.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn without_result(exit: Exit) -> String {
    match (exit.signal, exit.code) {
        (Some(signal), _) => format!("ended by signal {signal}, without a result"),
        (None, Some(code)) => format!("ended with exit code {code}, without a result"),
        (None, None) => "vanished without a result".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api_error_of(status: Option<u64>, words: &str) -> Ending {
        let result = RunResult {
            is_error: true,
            terminal_reason: Some("api_error".into()),
            api_error_status: status,
            result: Some(words.into()),
            ..RunResult::default()
        };
        session_ending(Some(&result), Exit::default())
    }

    #[test]
    fn an_old_clients_error_is_known_by_its_words() {
        let of = |words: &str| {
            let result = RunResult { is_error: true, result: Some(words.into()), ..RunResult::default() };
            session_ending(Some(&result), Exit::default())
        };
        for words in [
            "Invalid API key · Fix external API key",
            "Invalid API key · Please run /login",
            "OAuth token revoked · Please run /login",
            "Credit balance is too low",
        ] {
            assert!(matches!(of(words), Ending::Fatal(_)), "{words}: {:?}", of(words));
        }
        assert!(matches!(of("API Error: 529 Overloaded"), Ending::Overloaded(_)));
        assert!(matches!(of("something else"), Ending::Failed(_)));
    }

    #[test]
    fn an_answer_that_was_too_long_is_no_lost_network() {
        let long = "API Error: Claude's response exceeded the 32000 output token maximum.";
        assert!(matches!(api_error_of(None, long), Ending::Failed(_)));
    }

    #[test]
    fn an_error_of_the_api_is_known_by_its_status_and_a_lost_network_pauses() {
        assert!(matches!(api_error_of(Some(401), "x"), Ending::Fatal(_)));
        assert!(matches!(api_error_of(Some(404), "x"), Ending::Fatal(_)));
        assert!(matches!(api_error_of(Some(400), "Your credit balance is too low"), Ending::Fatal(_)));
        assert!(matches!(api_error_of(Some(400), "other"), Ending::Failed(_)));
        assert!(matches!(api_error_of(Some(429), "x"), Ending::Limit(_)));
        assert!(matches!(api_error_of(Some(529), "x"), Ending::Overloaded(_)));
        assert!(matches!(api_error_of(None, "API Error: Connection error."), Ending::Overloaded(_)));
        assert!(matches!(api_error_of(None, "API Error: 429 slow down"), Ending::Limit(_)));
    }
}
