//! The last checkpoint, as it is stored in the state.

use crate::level::Level;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The text in a checkpoint for anything the session did not report.
pub const UNKNOWN: &str = "unknown";
/// The text for the progress on an item on which no work has started.
pub const NOT_STARTED: &str = "not begun";

/// The last checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// True until a prompt has resumed it.
    pub active: bool,
    /// Why it was written.
    pub cause: CheckpointCause,
    /// The threshold level at that moment.
    pub level: Level,
    /// The usage that determined the level, in whole percent.
    pub percent_at_checkpoint: Option<u64>,
    /// The usage that the client showed at that moment, in whole percent.
    pub percent_used: Option<u64>,
    /// When it was written, RFC 3339 UTC.
    pub timestamp: Timestamp,
    /// Path of the handoff, relative to the project.
    pub handoff_file: String,
    /// What the session says it was doing; an unverified claim.
    pub resume_summary: String,
    /// Files changed for the current item, most recently edited first.
    pub files_in_progress: Vec<FileInProgress>,
    /// The item that the next session works on: this session's item, or the next open one if that is ticked.
    pub current_todo_item: String,
    /// How far the session says it got; an unverified claim.
    pub progress_on_item: String,
    /// What the session says comes next; an unverified claim, empty if it said nothing.
    pub next_step: String,
    /// The work on the current item, according to git and the plan.
    pub item_work: ItemWork,
    pub iteration: u32,
    /// HEAD at that moment, to see whether the handoff is stale.
    pub head: Option<String>,
    /// Describes what happened to the uncommitted work; empty while it is unchanged.
    #[serde(rename = "work")]
    pub work_outcome: String,
    /// The notes of an earlier session about the item, as long as no later session has reported any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_notes: Option<EarlierNotes>,
    /// The handoff of an earlier session at the same item, relative to the project; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub earlier_handoff: String,
}

/// The notes of an earlier session about an item. They are kept because the next session ended before it could report
/// anything, and notes that are in no file would be lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierNotes {
    pub iteration: u32,
    /// What the session says it was doing; an unverified claim.
    pub summary: String,
    /// How far the session says it got; an unverified claim.
    pub progress: String,
    /// What the session says comes next; an unverified claim.
    pub next_step: String,
}

/// Why a checkpoint was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckpointCause {
    /// A usage threshold was reached.
    #[default]
    Level,
    /// The user or the model asked for it.
    Manual,
    /// The client was about to compact.
    Compact,
    /// A fresh conversation was about to continue the work.
    Clear,
    /// The next item would not have fitted into the context window.
    Budget,
    /// A step had been committed, and the next step would probably not have fitted.
    Step,
    /// The session ended abruptly in the middle of its work.
    Crash,
    /// The session ended its turn with changes, and its item was still open.
    Unfinished,
}

impl CheckpointCause {
    /// Returns the name that is written to the file.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the text shown to people. [`CheckpointCause::Crash`] is shown as "cut short", because sessions also end
    /// abruptly at a limit, an API error or Ctrl-C, which are no crashes.
    pub fn display_text(self) -> &'static str {
        match self {
            CheckpointCause::Crash => "cut short",
            cause => cause.as_str(),
        }
    }

    /// Returns true if the session had already ended when the checkpoint was written.
    pub fn is_written_after_session_end(self) -> bool {
        match self {
            CheckpointCause::Crash | CheckpointCause::Unfinished => true,
            CheckpointCause::Level
            | CheckpointCause::Manual
            | CheckpointCause::Compact
            | CheckpointCause::Clear
            | CheckpointCause::Budget
            | CheckpointCause::Step => false,
        }
    }
}

/// The work done for an item up to a checkpoint, according to git, the files and the plan. Nothing here is a claim of the
/// session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemWork {
    /// The item that the session worked on; the checkpoint counts for this item.
    #[serde(rename = "own_item")]
    pub session_item: String,
    /// Items that the session ticked, in the order of the plan.
    #[serde(rename = "finished")]
    pub ticked_items: Vec<String>,
    /// False if nothing has been changed for the current item, so that the next session begins it.
    pub is_begun: bool,
    /// The commit on which the work on the item began; `None` outside git and in a repository that had no commit then.
    #[serde(rename = "base")]
    pub base_commit: Option<String>,
    /// The relation of that commit to HEAD.
    #[serde(skip_serializing_if = "BaseRelation::is_ancestor")]
    pub base_relation: BaseRelation,
    /// When the work on the item began, RFC 3339 UTC.
    pub began_at: Option<Timestamp>,
    /// The newest commits of that work.
    pub commits: Vec<CommitRef>,
    /// The number of all commits of that work; `commits` may hold fewer.
    pub commit_count: usize,
    /// Those of the commits that others made between two sessions of the item.
    #[serde(rename = "by_others")]
    pub commits_by_others: Vec<String>,
    #[serde(rename = "uncommitted")]
    pub uncommitted_files: Vec<String>,
    /// The checks that the session ran last, with their failures.
    pub checks: Vec<CheckResult>,
}

impl Checkpoint {
    /// Returns true if the checkpoint is for this item, and work on the item has begun.
    pub fn has_work_on_item(&self, item: &str) -> bool {
        self.current_todo_item == item && self.item_work.is_begun
    }

    /// Copies the handoff of an earlier checkpoint, and its notes if this checkpoint has none. Does nothing unless the earlier
    /// checkpoint has work on the same item.
    pub fn inherit_notes_and_handoff_if_same_item(&mut self, earlier_checkpoint: &Checkpoint) {
        if self.current_todo_item.is_empty() || !earlier_checkpoint.has_work_on_item(&self.current_todo_item)
        {
            return;
        }
        // A session may write its checkpoint several times; then the previous handoff is from the same session, not an earlier one.
        let is_of_same_session = earlier_checkpoint.iteration == self.iteration;
        self.earlier_handoff = if is_of_same_session {
            earlier_checkpoint.earlier_handoff.clone()
        } else {
            earlier_checkpoint.handoff_file.clone()
        };
        if !self.has_progress_or_next_step() {
            self.earlier_notes = earlier_checkpoint.latest_notes_before(self.iteration);
        }
    }

    /// Returns the latest notes about the item that come from a session before `iteration`. That is the iteration that wrote this
    /// checkpoint, or the one that resumes it.
    pub fn latest_notes_before(&self, iteration: u32) -> Option<EarlierNotes> {
        let reported_notes = self.notes_if_reported().filter(|_| self.iteration != iteration);
        reported_notes.or_else(|| self.earlier_notes.clone())
    }

    /// Returns true if the session reported its progress or its next step. A summary alone does not count, because it may be
    /// generated from the session's last message.
    pub fn has_progress_or_next_step(&self) -> bool {
        let progress = self.progress_on_item.as_str();
        !self.next_step.is_empty() || !["", UNKNOWN, NOT_STARTED].contains(&progress)
    }

    fn notes_if_reported(&self) -> Option<EarlierNotes> {
        let notes = EarlierNotes {
            iteration: self.iteration,
            summary: self.resume_summary.clone(),
            progress: self.progress_on_item.clone(),
            next_step: self.next_step.clone(),
        };
        self.has_progress_or_next_step().then_some(notes)
    }
}

impl Default for ItemWork {
    /// The default for a checkpoint that another tool wrote without this data: its item counts as begun.
    fn default() -> ItemWork {
        ItemWork {
            session_item: String::new(),
            ticked_items: Vec::new(),
            is_begun: true,
            base_commit: None,
            base_relation: BaseRelation::Ancestor,
            began_at: None,
            commits: Vec::new(),
            commit_count: 0,
            commits_by_others: Vec::new(),
            uncommitted_files: Vec::new(),
            checks: Vec::new(),
        }
    }
}

/// The relation to HEAD of the commit on which the work on an item began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseRelation {
    /// The commit is HEAD or an ancestor of HEAD.
    #[default]
    Ancestor,
    /// HEAD no longer contains the commit, which was amended, rebased or reset.
    Rewritten,
    /// The commit no longer exists in git. The work is compared with a later commit.
    Missing,
}

impl BaseRelation {
    fn is_ancestor(&self) -> bool {
        *self == BaseRelation::Ancestor
    }
}

/// A commit id with its subject, to name the commit in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitRef {
    pub id: String,
    /// The first line of the commit message.
    pub subject: String,
}

impl CommitRef {
    /// Returns the first 7 characters of the id.
    pub fn short_id(&self) -> String {
        short_id(&self.id)
    }

    /// Returns true for a commit that Plimsoll made of a session's unfinished work: `ralph: checkpoint …`.
    pub fn is_checkpoint_commit(&self) -> bool {
        self.subject.to_lowercase().starts_with("ralph: checkpoint")
    }

    /// Returns true for a commit of unfinished work, made by Plimsoll or by the session: `wip: …`, `ralph: checkpoint …`.
    pub fn is_unfinished_work_commit(&self) -> bool {
        let subject = self.subject.to_lowercase();
        let character_after_wip = subject.strip_prefix("wip").map(|suffix| suffix.chars().next());
        character_after_wip
            .is_some_and(|next_character| next_character.is_none_or(|character| !character.is_alphanumeric()))
            || self.is_checkpoint_commit()
    }
}

/// Returns the first 7 letters and digits of a commit id.
pub fn short_id(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).take(7).collect()
}

/// The result of a command that checks the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckResult {
    pub command: String,
    /// True if the command exited with 0.
    pub passed: bool,
    /// The lines of its output that describe what failed.
    pub failures: Vec<String>,
    /// True if the session edited a file after this check.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_before_edit: bool,
}

/// A file changed for an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInProgress {
    /// Path relative to the project.
    pub path: String,
    /// The lines that were changed last, such as `45-120`; several ranges are separated by `, `.
    #[serde(rename = "lines")]
    pub touched_lines: String,
    /// The number of lines that all work on the item added; `None` if they were not counted.
    #[serde(rename = "added", skip_serializing_if = "Option::is_none")]
    pub added_lines: Option<u64>,
    /// The number of lines that all work on the item removed; `None` if they were not counted.
    #[serde(rename = "removed", skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<u64>,
    /// The kind of change, and the function or section where it was made.
    pub description: String,
    /// A digest of the content at the checkpoint, to detect later changes; `None` for a file that was deleted or is too large
    /// to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_unfinished_work_is_recognized_by_its_subject() {
        for (subject, expected) in [
            ("wip: the parser", true),
            ("WIP", true),
            ("Wip the parser", true),
            ("ralph: checkpoint iter 5 (L2 at 85%)", true),
            ("Wipe the disk", false),
            ("Finish the wip parser", false),
        ] {
            let commit = CommitRef { subject: subject.into(), ..CommitRef::default() };
            assert_eq!(commit.is_unfinished_work_commit(), expected, "{subject}");
        }
    }

    #[test]
    fn an_item_of_an_older_checkpoint_counts_as_begun() {
        let old: Checkpoint =
            serde_json::from_str(r#"{"active": true, "current_todo_item": "two"}"#).unwrap();
        assert!(old.item_work.is_begun && old.item_work.ticked_items.is_empty());
    }
}
