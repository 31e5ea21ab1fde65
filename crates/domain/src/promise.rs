//! The promise: the exact line with which the agent claims that the whole run is done.

mod parts;

use crate::text::to_line_for_backticks;
pub use parts::{InvalidPromise, PromiseCode, PromiseWord};

/// The promise word of a session that cannot continue.
pub const BLOCKED_WORD: &str = "BLOCKED";
/// The tag before a promise.
pub const OPEN_TAG: &str = "<promise>";
/// The tag after a promise.
pub const CLOSE_TAG: &str = "</promise>";
/// The maximum length of a promise that is quoted from the task text, in characters.
const MAX_QUOTED_CHARS: usize = 100;

/// The claim in the last assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromiseClaim {
    /// `<promise>COMPLETE CODE</promise>`: all work is done.
    Complete,
    /// `<promise>BLOCKED CODE REASON</promise>`: the session cannot continue, for this reason.
    Blocked(String),
    /// The message has no promise.
    None,
}

/// Returns the line that ends the run.
pub fn render_completion_line(word: &PromiseWord, code: &PromiseCode) -> String {
    format!("<promise>{word} {code}</promise>")
}

/// Returns the line with which the agent reports that it cannot continue.
pub fn render_blocked_line(code: &PromiseCode, reason: &str) -> String {
    format!("<promise>BLOCKED {code} {reason}</promise>")
}

/// Parses the claim from the last non-empty line of the last assistant message. A promise that is quoted,
/// fenced, indented, repeated from the prompt or followed by other text does not count.
pub fn parse_claim_on_last_line(message: &str, word: &PromiseWord, code: &PromiseCode) -> PromiseClaim {
    let Some(last_line) = message.lines().map(str::trim_end).rfind(|line| !line.is_empty()) else {
        return PromiseClaim::None;
    };
    // Every run of Plimsoll has a code. Without one, any text could contain the promise by chance.
    if code.is_empty() {
        return PromiseClaim::None;
    }
    if last_line == render_completion_line(word, code) {
        return PromiseClaim::Complete;
    }
    let code_and_reason = last_line
        .strip_prefix("<promise>BLOCKED ")
        .and_then(|inner_text| inner_text.strip_suffix("</promise>"));
    match code_and_reason.and_then(|claim_text| claim_text.strip_prefix(code.as_str())) {
        Some(reason) if reason.is_empty() || reason.starts_with(' ') => {
            PromiseClaim::Blocked(reason.trim().to_owned())
        }
        _ => PromiseClaim::None,
    }
}

/// Removes the promise lines from a message that later sessions read. A promise of a blocked session is replaced
/// by its reason.
pub fn replace_promises_with_blocked_reasons(message: &str) -> String {
    let kept_lines: Vec<String> = message
        .lines()
        .filter_map(|line| match parse_promise_text(line.trim()) {
            None => Some(line.to_owned()),
            Some(promise) => {
                let reason = promise.strip_prefix("BLOCKED ")?.split_once(' ')?.1.trim();
                (!reason.is_empty()).then(|| format!("Blocked: {reason}"))
            }
        })
        .collect();
    kept_lines.join("\n").trim_end().to_owned()
}

fn parse_promise_text(line: &str) -> Option<&str> {
    line.strip_prefix("<promise>")?.strip_suffix("</promise>")
}

/// Finds a promise in the task text that differs from the promise of this run, and therefore does not count.
pub fn find_conflicting_promise(task: &str, word: &PromiseWord, code: &PromiseCode) -> Option<String> {
    let expected_line = render_completion_line(word, code);
    task.lines().find_map(|line| {
        let lowercase_line = line.to_ascii_lowercase();
        let start = lowercase_line.find(OPEN_TAG)?;
        let end = start + lowercase_line[start..].find(CLOSE_TAG)? + CLOSE_TAG.len();
        let promise = &line[start..end];
        (promise != expected_line).then(|| to_line_for_backticks(promise, MAX_QUOTED_CHARS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_claim_with_code(message: &str, code: &str) -> PromiseClaim {
        parse_claim_on_last_line(message, &"COMPLETE".parse().unwrap(), &code.to_owned().try_into().unwrap())
    }

    #[test]
    fn promise_lines_are_stripped_and_the_blocked_reason_is_kept() {
        for (message, kept) in [
            ("All done.\n\n<promise>COMPLETE 7f3a</promise>\n", "All done."),
            ("No key.\n<promise>BLOCKED 7f3a which key?</promise>", "No key.\nBlocked: which key?"),
            ("<promise>BLOCKED 7f3a</promise>", ""),
            ("I end with <promise>COMPLETE 7f3a</promise>", "I end with <promise>COMPLETE 7f3a</promise>"),
            ("one\n  two", "one\n  two"),
        ] {
            assert_eq!(replace_promises_with_blocked_reasons(message), kept, "{message:?}");
        }
    }

    #[test]
    fn only_the_exact_last_line_is_a_promise() {
        let complete = |message: &str| parse_claim_with_code(message, "7f3a") == PromiseClaim::Complete;
        assert!(complete("<promise>COMPLETE 7f3a</promise>"));
        assert!(complete("All done.\n\n<promise>COMPLETE 7f3a</promise>  \n\n"));
        for message in [
            "",
            "done",
            "<promise>COMPLETE</promise>",
            "<promise>COMPLETE 7f3b</promise>",
            "<promise>complete 7f3a</promise>",
            "<promise>COMPLETE 7f3a</promise>.",
            "I will end with <promise>COMPLETE 7f3a</promise>",
            "<promise>COMPLETE 7f3a</promise>\nbut first …",
            "```\n<promise>COMPLETE 7f3a</promise>\n```",
            "    <promise>COMPLETE 7f3a</promise>",
            "> <promise>COMPLETE 7f3a</promise>",
        ] {
            assert!(!complete(message), "{message:?} is not a promise");
        }
    }

    #[test]
    fn an_empty_code_never_matches() {
        assert_eq!(parse_claim_with_code("<promise>COMPLETE </promise>", ""), PromiseClaim::None);
    }

    #[test]
    fn a_blocked_claim_has_its_reason() {
        let message = render_blocked_line(&"7f3a".parse().unwrap(), "the API key is missing");
        assert_eq!(
            parse_claim_with_code(&message, "7f3a"),
            PromiseClaim::Blocked("the API key is missing".to_owned())
        );
        assert_eq!(parse_claim_with_code("<promise>BLOCKED 7f3ab x</promise>", "7f3a"), PromiseClaim::None);
    }

    #[test]
    fn a_different_promise_in_the_task_text_is_found() {
        for (task, expected) in [
            ("Do the plan.", None),
            ("Keep your promise.", None),
            ("End with <promise>COMPLETE 7f3a</promise>.", None),
            ("Do it.\nWhen done, output `<promise>COMPLETE</promise>`.", Some("<promise>COMPLETE</promise>")),
            ("say <PROMISE>All  done</PROMISE> then", Some("<PROMISE>All done</PROMISE>")),
            ("an open <promise> tag\nonly", None),
        ] {
            assert_eq!(
                find_conflicting_promise(task, &"COMPLETE".parse().unwrap(), &"7f3a".parse().unwrap())
                    .as_deref(),
                expected,
                "{task:?}"
            );
        }
    }
}
