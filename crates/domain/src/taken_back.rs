//! Ticks that did not hold: a command that has to pass failed after the session that made them, or a review found something.

use crate::ids::SessionId;
use crate::protected::join_changes;
use crate::text::{clip, counted, one_line};
use serde::{Deserialize, Serialize};

/// The ticks of a session that were taken back, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TakenBack {
    /// The iteration that made them.
    pub iteration: u32,
    /// Its session.
    pub session_id: Option<SessionId>,
    /// Their items.
    pub items: Vec<String>,
    /// The commands that failed.
    pub failed: Vec<FailedCommand>,
    /// What a review found, if that is why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The changes of protected files, if they are why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
    /// The question to the user that each item gets, because no review gave a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// True from the decision until its iteration is judged.
    pub is_pending: bool,
}

/// A command that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedCommand {
    /// The command.
    pub command: String,
    /// How it ended and what it printed, shortened.
    pub words: String,
    /// How long it took.
    pub seconds: u64,
}

/// How much of an item and of a command stands in a sentence.
const ITEM: usize = 80;
const COMMAND: usize = 120;

impl TakenBack {
    /// What happened, in a sentence without its end.
    pub fn words(&self) -> String {
        let commands = self.failed.iter().map(|failed| failed.command.as_str());
        sentence(&self.items, commands, self.findings.len(), &self.protected)
    }
}

/// Returns a sentence that says that the ticks of these items were taken back, and why: these commands fail, a review has this many
/// findings, or these protected files have changed. Without any of that the review gave no verdict.
pub fn sentence<'a>(
    items: &[String],
    commands: impl IntoIterator<Item = &'a str>,
    findings: usize,
    protected: &[String],
) -> String {
    let item = |item: &String| format!("\"{}\"", clip(&one_line(item), ITEM));
    let named: Vec<String> = items.iter().map(item).collect();
    let command = |command: &str| format!("`{}`", clip(&one_line(command), COMMAND));
    let commands: Vec<String> = commands.into_iter().map(command).collect();
    let (ticks, were) = if named.len() == 1 { ("tick", "was") } else { ("ticks", "were") };
    let why = match commands.len() {
        0 if !protected.is_empty() => format!("protected files changed: {}", join_changes(protected)),
        0 if findings == 0 => "the review gave no verdict".to_owned(),
        0 => format!("the review has {}", counted(findings, "finding")),
        1 => format!("{} fails", commands.join(", ")),
        _ => format!("{} fail", commands.join(", ")),
    };
    format!("the {ticks} of {} {were} taken back: {why}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several_are_told_in_a_sentence() {
        let items = ["one\u{1b}[2J".to_owned(), "two".to_owned()];
        assert_eq!(
            sentence(&items[..1], ["make test"], 0, &[]),
            "the tick of \"one\\u{1b}[2J\" was taken back: `make test` fails"
        );
        assert_eq!(
            sentence(&items, ["a", "b"], 0, &[]),
            "the ticks of \"one\\u{1b}[2J\", \"two\" were taken back: `a`, `b` fail"
        );
        assert_eq!(
            sentence(&items[1..], [], 2, &[]),
            "the tick of \"two\" was taken back: the review has 2 findings"
        );
        assert_eq!(
            sentence(&items[1..], [], 0, &[]),
            "the tick of \"two\" was taken back: the review gave no verdict"
        );
        let protected: Vec<String> = (1..8).map(|number| format!("t/{number}.py")).collect();
        assert_eq!(
            sentence(&items[1..], [], 0, &protected),
            "the tick of \"two\" was taken back: protected files changed: t/1.py, t/2.py, t/3.py, t/4.py, t/5.py and 2 more"
        );
    }
}
