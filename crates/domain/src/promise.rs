//! The promise: the exact line by which the agent claims that the whole run is done.

mod near_miss;

pub use near_miss::{NearMiss, near_miss, rival};

/// The word of a session that cannot continue.
const BLOCKED: &str = "BLOCKED";

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
pub fn line(word: &str, nonce: &str) -> String {
    format!("<promise>{word} {nonce}</promise>")
}

/// The line by which the agent gives up honestly.
pub fn blocked_line(nonce: &str, reason: &str) -> String {
    format!("<promise>BLOCKED {nonce} {reason}</promise>")
}

/// Reads the claim off the last non-empty line of the last assistant message, and nowhere else: a promise
/// that is quoted, fenced, indented, repeated from the prompt or followed by anything is none.
pub fn claim(message: &str, word: &str, nonce: &str) -> Claim {
    let Some(last) = message.lines().map(str::trim_end).rfind(|line| !line.is_empty()) else {
        return Claim::None;
    };
    // No run of ours is without one, and without it any text could have the promise in it.
    if nonce.is_empty() {
        return Claim::None;
    }
    if last == line(word, nonce) {
        return Claim::Complete;
    }
    let blocked = last.strip_prefix("<promise>BLOCKED ").and_then(|rest| rest.strip_suffix("</promise>"));
    match blocked.and_then(|rest| rest.strip_prefix(nonce)) {
        Some(reason) if reason.is_empty() || reason.starts_with(' ') => {
            Claim::Blocked(reason.trim().to_owned())
        }
        _ => Claim::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_last_line_is_a_promise() {
        let complete = |message: &str| claim(message, "COMPLETE", "7f3a") == Claim::Complete;
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
    fn an_empty_nonce_never_matches() {
        assert_eq!(claim("<promise>COMPLETE </promise>", "COMPLETE", ""), Claim::None);
    }

    #[test]
    fn blocked_carries_its_reason() {
        let message = blocked_line("7f3a", "the API key is missing");
        assert_eq!(claim(&message, "COMPLETE", "7f3a"), Claim::Blocked("the API key is missing".to_owned()));
        assert_eq!(claim("<promise>BLOCKED 7f3ab x</promise>", "COMPLETE", "7f3a"), Claim::None);
    }
}
