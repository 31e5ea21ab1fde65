//! The promise: the exact line by which the agent claims that the whole run is done.

mod parts;

use crate::text::one_line_of_code;
pub use parts::{InvalidPromise, PromiseCode, PromiseWord};

/// The word of a session that cannot continue.
pub const BLOCKED: &str = "BLOCKED";
/// The tags around a promise.
pub const OPEN: &str = "<promise>";
/// The second of them.
pub const CLOSE: &str = "</promise>";
/// How much of another promise is quoted.
const QUOTED: usize = 100;

/// What the last assistant message claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// `<promise>COMPLETE nonce</promise>`: everything is done.
    Complete,
    /// `<promise>BLOCKED nonce reason</promise>`: the honest way out.
    Blocked(String),
    /// Nothing of the kind.
    None,
}

/// The line that ends the run.
pub fn line(word: &PromiseWord, code: &PromiseCode) -> String {
    format!("<promise>{word} {code}</promise>")
}

/// The line by which the agent gives up honestly.
pub fn blocked_line(code: &PromiseCode, reason: &str) -> String {
    format!("<promise>BLOCKED {code} {reason}</promise>")
}

/// Reads the claim off the last non-empty line of the last assistant message, and nowhere else: a promise
/// that is quoted, fenced, indented, repeated from the prompt or followed by anything is none.
pub fn claim(message: &str, word: &PromiseWord, code: &PromiseCode) -> Claim {
    let Some(last) = message.lines().map(str::trim_end).rfind(|line| !line.is_empty()) else {
        return Claim::None;
    };
    // No run of ours is without one, and without it any text could have the promise in it.
    if code.is_empty() {
        return Claim::None;
    }
    if last == line(word, code) {
        return Claim::Complete;
    }
    let blocked = last.strip_prefix("<promise>BLOCKED ").and_then(|rest| rest.strip_suffix("</promise>"));
    match blocked.and_then(|rest| rest.strip_prefix(code.as_str())) {
        Some(reason) if reason.is_empty() || reason.starts_with(' ') => {
            Claim::Blocked(reason.trim().to_owned())
        }
        _ => Claim::None,
    }
}

/// A message without its lines that are promises, for whoever reads it later: of a blocked session's line the reason stays.
pub fn without_lines(message: &str) -> String {
    let kept: Vec<String> = message
        .lines()
        .filter_map(|line| match promised(line.trim()) {
            None => Some(line.to_owned()),
            Some(promise) => {
                let reason = promise.strip_prefix("BLOCKED ")?.split_once(' ')?.1.trim();
                (!reason.is_empty()).then(|| format!("Blocked: {reason}"))
            }
        })
        .collect();
    kept.join("\n").trim_end().to_owned()
}

fn promised(line: &str) -> Option<&str> {
    line.strip_prefix("<promise>")?.strip_suffix("</promise>")
}

/// A promise line that the task text asks for and that does not count in this run.
pub fn rival(task: &str, word: &PromiseWord, code: &PromiseCode) -> Option<String> {
    let ours = line(word, code);
    task.lines().find_map(|text| {
        let lower = text.to_ascii_lowercase();
        let begin = lower.find(OPEN)?;
        let end = begin + lower[begin..].find(CLOSE)? + CLOSE.len();
        let named = &text[begin..end];
        (named != ours).then(|| one_line_of_code(named, QUOTED))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(message: &str, code: &str) -> Claim {
        claim(message, &"COMPLETE".parse().unwrap(), &code.to_owned().try_into().unwrap())
    }

    #[test]
    fn a_message_is_handed_on_without_its_promise_and_with_its_reason() {
        for (message, kept) in [
            ("All done.\n\n<promise>COMPLETE 7f3a</promise>\n", "All done."),
            ("No key.\n<promise>BLOCKED 7f3a which key?</promise>", "No key.\nBlocked: which key?"),
            ("<promise>BLOCKED 7f3a</promise>", ""),
            ("I end with <promise>COMPLETE 7f3a</promise>", "I end with <promise>COMPLETE 7f3a</promise>"),
            ("one\n  two", "one\n  two"),
        ] {
            assert_eq!(without_lines(message), kept, "{message:?}");
        }
    }

    #[test]
    fn only_the_exact_last_line_is_a_promise() {
        let complete = |message: &str| claimed(message, "7f3a") == Claim::Complete;
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
        assert_eq!(claimed("<promise>COMPLETE </promise>", ""), Claim::None);
    }

    #[test]
    fn blocked_carries_its_reason() {
        let message = blocked_line(&"7f3a".parse().unwrap(), "the API key is missing");
        assert_eq!(claimed(&message, "7f3a"), Claim::Blocked("the API key is missing".to_owned()));
        assert_eq!(claimed("<promise>BLOCKED 7f3ab x</promise>", "7f3a"), Claim::None);
    }

    #[test]
    fn the_task_texts_own_promise_is_named_unless_it_is_ours() {
        for (task, expected) in [
            ("Do the plan.", None),
            ("Keep your promise.", None),
            ("End with <promise>COMPLETE 7f3a</promise>.", None),
            ("Do it.\nWhen done, output `<promise>COMPLETE</promise>`.", Some("<promise>COMPLETE</promise>")),
            ("say <PROMISE>All  done</PROMISE> then", Some("<PROMISE>All done</PROMISE>")),
            ("an open <promise> tag\nonly", None),
        ] {
            assert_eq!(
                rival(task, &"COMPLETE".parse().unwrap(), &"7f3a".parse().unwrap()).as_deref(),
                expected,
                "{task:?}"
            );
        }
    }
}
