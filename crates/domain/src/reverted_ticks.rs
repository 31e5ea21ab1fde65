//! Reverted ticks: after the session that ticked these items, a required command failed, a review had findings, or protected files
//! had changed.

use crate::ids::SessionId;
use crate::protected::list_first_changes;
use crate::text::{count_with_noun, to_safe_single_line, truncate_end};
use serde::{Deserialize, Serialize};

/// The ticks of a session that were reverted, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RevertedTicks {
    /// The iteration that made the ticks.
    pub iteration: u32,
    /// The session of that iteration.
    pub session_id: Option<SessionId>,
    /// The items that had been ticked.
    pub items: Vec<String>,
    /// The commands that failed.
    #[serde(rename = "failed")]
    pub failed_commands: Vec<FailedCommand>,
    /// The findings of a review, if they are the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The changes of protected files, if they are the reason.
    #[serde(rename = "protected", skip_serializing_if = "Vec::is_empty")]
    pub protected_changes: Vec<String>,
    /// The question to the user that is added to each item because no review gave a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// True from the decision until its iteration is judged.
    pub is_pending: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedCommand {
    pub command: String,
    /// How the command ended and what it printed, shortened.
    #[serde(rename = "words")]
    pub output_excerpt: String,
    /// How long the command took.
    pub seconds: u64,
}

// In characters: longer items and commands are truncated in the sentence.
const MAX_ITEM_CHARS: usize = 80;
const MAX_COMMAND_CHARS: usize = 120;

impl RevertedTicks {
    /// Describes the ticks and the reason in a sentence without a full stop.
    pub fn describe_revert(&self) -> String {
        let commands = self.failed_commands.iter().map(|failed_command| failed_command.command.as_str());
        describe_reverted_ticks(&self.items, commands, self.findings.len(), &self.protected_changes)
    }
}

/// Describes the reverted ticks and the first reason that applies, in a sentence without a full stop: commands failed, protected
/// files changed, or a review has findings. Without any of these reasons, the review gave no verdict.
pub fn describe_reverted_ticks<'a>(
    items: &[String],
    failed_commands: impl IntoIterator<Item = &'a str>,
    finding_count: usize,
    protected_changes: &[String],
) -> String {
    let quote_item =
        |item: &String| format!("\"{}\"", truncate_end(&to_safe_single_line(item), MAX_ITEM_CHARS));
    let quoted_items: Vec<String> = items.iter().map(quote_item).collect();
    let quote_command =
        |command: &str| format!("`{}`", truncate_end(&to_safe_single_line(command), MAX_COMMAND_CHARS));
    let quoted_commands: Vec<String> = failed_commands.into_iter().map(quote_command).collect();
    let (ticks, verb) = if quoted_items.len() == 1 { ("tick", "was") } else { ("ticks", "were") };
    let reason = match quoted_commands.len() {
        0 if !protected_changes.is_empty() => {
            format!("protected files changed: {}", list_first_changes(protected_changes))
        }
        0 if finding_count == 0 => "the review gave no verdict".to_owned(),
        0 => format!("the review has {}", count_with_noun(finding_count, "finding")),
        1 => format!("{} fails", quoted_commands.join(", ")),
        _ => format!("{} fail", quoted_commands.join(", ")),
    };
    format!("the {ticks} of {} {verb} taken back: {reason}", quoted_items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_items_and_reason_in_singular_or_plural() {
        let items = ["one\u{1b}[2J".to_owned(), "two".to_owned()];
        assert_eq!(
            describe_reverted_ticks(&items[..1], ["make test"], 0, &[]),
            "the tick of \"one\\u{1b}[2J\" was taken back: `make test` fails"
        );
        assert_eq!(
            describe_reverted_ticks(&items, ["a", "b"], 0, &[]),
            "the ticks of \"one\\u{1b}[2J\", \"two\" were taken back: `a`, `b` fail"
        );
        assert_eq!(
            describe_reverted_ticks(&items[1..], [], 2, &[]),
            "the tick of \"two\" was taken back: the review has 2 findings"
        );
        assert_eq!(
            describe_reverted_ticks(&items[1..], [], 0, &[]),
            "the tick of \"two\" was taken back: the review gave no verdict"
        );
        let protected_changes: Vec<String> = (1..8).map(|number| format!("t/{number}.py")).collect();
        assert_eq!(
            describe_reverted_ticks(&items[1..], [], 0, &protected_changes),
            "the tick of \"two\" was taken back: protected files changed: t/1.py, t/2.py, t/3.py, t/4.py, t/5.py and 2 more"
        );
    }
}
