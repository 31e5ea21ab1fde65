//! Verification receipts: which checks passed on the tree of a commit, for which items and sessions.

use crate::format::FormatVersion;
use crate::git_names::CommitId;
use crate::ids::{RunId, SessionId};
use crate::text::to_safe_single_line;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The trailer that names the run in a commit message.
const RUN_TRAILER_KEY: &str = "Plimsoll-Run";
/// The trailer that names an item in a commit message.
const ITEM_TRAILER_KEY: &str = "Plimsoll-Item";
/// The trailer that names the tree on which the verify commands passed.
const VERIFIED_TRAILER_KEY: &str = "Plimsoll-Verified";

/// A record of a tree on which the verify commands passed. It is stored outside the project, where no sandboxed
/// session can write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationReceipt {
    pub format: FormatVersion,
    /// The time at which the commands passed.
    #[serde(rename = "at")]
    pub verified_at: Timestamp,
    pub run_id: RunId,
    /// The commit that was checked out.
    pub commit: CommitId,
    /// The tree of the commit; other commits may have the same tree.
    pub tree: CommitId,
    /// The commands, as the user configured them.
    pub commands: Vec<String>,
    /// The items whose work was verified, each with its sessions.
    pub items: Vec<ReceiptItem>,
}

/// An item whose work was verified.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiptItem {
    /// The text of the item in the plan.
    pub text: String,
    /// The sessions of this run that worked on the item.
    pub sessions: Vec<SessionId>,
    /// The cost of these sessions in US dollars.
    pub cost_usd: f64,
}

/// Returns the trailers for a commit message of a run. `verified_tree_and_command_count` is the tree on which the
/// verify commands passed, and the number of these commands.
pub fn render_commit_trailers(
    run_id: &RunId,
    items: &[&str],
    verified_tree_and_command_count: Option<(&CommitId, usize)>,
) -> Vec<String> {
    let item_trailers = items.iter().map(|item| format!("{ITEM_TRAILER_KEY}: {}", to_safe_single_line(item)));
    let verified_trailer = verified_tree_and_command_count.map(|(tree, count)| {
        format!("{VERIFIED_TRAILER_KEY}: {tree} {count} {}", if count == 1 { "command" } else { "commands" })
    });
    std::iter::once(format!("{RUN_TRAILER_KEY}: {run_id}"))
        .chain(item_trailers)
        .chain(verified_trailer)
        .collect()
}

/// Appends the trailers that a commit message does not have yet.
pub fn append_missing_trailers(message: &str, trailers: &[String]) -> String {
    let message = message.trim_end();
    let last_paragraph = message.rsplit("\n\n").next().unwrap_or_default();
    let is_trailer = |line: &str| {
        let key = line.split_once(": ").map(|(key, _)| key);
        key.is_some_and(|key| {
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    // The subject of a message without a body is not a trailer, even if it looks like one.
    let has_trailers = last_paragraph.len() < message.len() && last_paragraph.lines().all(is_trailer);
    let existing_trailers: Vec<&str> =
        if has_trailers { last_paragraph.lines().collect() } else { Vec::new() };
    let new_trailers: Vec<&str> =
        trailers.iter().map(String::as_str).filter(|trailer| !existing_trailers.contains(trailer)).collect();
    if new_trailers.is_empty() {
        return format!("{message}\n");
    }
    format!("{message}{}{}\n", if has_trailers { "\n" } else { "\n\n" }, new_trailers.join("\n"))
}

/// Returns the run id from the last run trailer of a commit message.
pub fn parse_run_id_from_commit_message(message: &str) -> Option<&str> {
    message
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(RUN_TRAILER_KEY)?.strip_prefix(": "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_appended_once_at_the_end_of_a_message() {
        let tree = CommitId::parse(&"a".repeat(40)).unwrap();
        let item_trailers = render_commit_trailers(&"r1".into(), &["Item\none"], Some((&tree, 2)));
        assert_eq!(item_trailers[..2], ["Plimsoll-Run: r1", "Plimsoll-Item: Item one"]);
        assert_eq!(item_trailers[2], format!("Plimsoll-Verified: {tree} 2 commands"));
        let run_trailers = render_commit_trailers(&"r1".into(), &[], None);
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
            assert_eq!(append_missing_trailers(message, &run_trailers), expected);
        }
        assert_eq!(
            parse_run_id_from_commit_message(&append_missing_trailers("Subject", &item_trailers)),
            Some("r1")
        );
        assert_eq!(parse_run_id_from_commit_message("Subject\n\nNothing"), None);
    }
}
