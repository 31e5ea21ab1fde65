//! What was proved of a commit: which checks passed on its tree, for which items, and in which sessions.

use crate::format::Format;
use crate::git_names::CommitId;
use crate::ids::{RunId, SessionId};
use crate::text::one_line;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Names the run in a commit's message.
const RUN: &str = "Plimsoll-Run";
/// Names an item in a commit's message.
const ITEM: &str = "Plimsoll-Item";
/// Names the tree in a commit's message on which commands passed.
const VERIFIED: &str = "Plimsoll-Verified";

/// A tree on which commands passed. It is kept outside the project, where no session in the sandbox can write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The format of the record.
    pub format: Format,
    /// When they had passed.
    pub at: Timestamp,
    /// The run.
    pub run_id: RunId,
    /// The commit that was checked out.
    pub commit: CommitId,
    /// Its tree: other commits may have the same.
    pub tree: CommitId,
    /// The commands, as the user gave them.
    pub commands: Vec<String>,
    /// The items whose work it is, each with its sessions.
    pub items: Vec<ReceiptItem>,
}

/// An item whose work was checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiptItem {
    /// Its words in the plan.
    pub text: String,
    /// The sessions that worked on it here.
    pub sessions: Vec<SessionId>,
    /// What they cost, US dollars.
    pub cost_usd: f64,
}

/// The lines that a commit of a run has at the end of its message; `verified` is the tree on which so many commands passed.
pub fn trailers(run_id: &RunId, items: &[&str], verified: Option<(&CommitId, usize)>) -> Vec<String> {
    let items = items.iter().map(|item| format!("{ITEM}: {}", one_line(item)));
    let verified = verified.map(|(tree, count)| {
        format!("{VERIFIED}: {tree} {count} {}", if count == 1 { "command" } else { "commands" })
    });
    std::iter::once(format!("{RUN}: {run_id}")).chain(items).chain(verified).collect()
}

/// A commit's message with these trailers, each once, behind those that it has.
pub fn with_trailers(message: &str, trailers: &[String]) -> String {
    let message = message.trim_end();
    let last = message.rsplit("\n\n").next().unwrap_or_default();
    let is_trailer = |line: &str| {
        let key = line.split_once(": ").map(|(key, _)| key);
        key.is_some_and(|key| {
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    // The subject of a message without a body is none, whatever it looks like.
    let has_trailers = last.len() < message.len() && last.lines().all(is_trailer);
    let known: Vec<&str> = if has_trailers { last.lines().collect() } else { Vec::new() };
    let new: Vec<&str> =
        trailers.iter().map(String::as_str).filter(|trailer| !known.contains(trailer)).collect();
    if new.is_empty() {
        return format!("{message}\n");
    }
    format!("{message}{}{}\n", if has_trailers { "\n" } else { "\n\n" }, new.join("\n"))
}

/// The run that a commit's message names.
pub fn run_in_message(message: &str) -> Option<&str> {
    message.lines().rev().find_map(|line| line.strip_prefix(RUN)?.strip_prefix(": ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_stand_once_at_the_end_of_a_message() {
        let tree = CommitId::parse(&"a".repeat(40)).unwrap();
        let own = trailers(&"r1".into(), &["Item\none"], Some((&tree, 2)));
        assert_eq!(own[..2], ["Plimsoll-Run: r1", "Plimsoll-Item: Item one"]);
        assert_eq!(own[2], format!("Plimsoll-Verified: {tree} 2 commands"));
        let run = trailers(&"r1".into(), &[], None);
        for (message, expected) in [
            ("Subject", "Subject\n\nPlimsoll-Run: r1\n"),
            ("fix: subject\n", "fix: subject\n\nPlimsoll-Run: r1\n"),
            (
                "Subject\n\nBody: it is long\nand has lines\n",
                "Subject\n\nBody: it is long\nand has lines\n\nPlimsoll-Run: r1\n",
            ),
            (
                "Subject\n\nBody\n\nSigned-off-by: A <a@b>\n",
                "Subject\n\nBody\n\nSigned-off-by: A <a@b>\nPlimsoll-Run: r1\n",
            ),
            ("Subject\n\nPlimsoll-Run: r1\n", "Subject\n\nPlimsoll-Run: r1\n"),
        ] {
            assert_eq!(with_trailers(message, &run), expected);
        }
        assert_eq!(run_in_message(&with_trailers("Subject", &own)), Some("r1"));
        assert_eq!(run_in_message("Subject\n\nNothing"), None);
    }
}
