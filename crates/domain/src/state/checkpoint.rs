//! The last checkpoint, as the state holds it.

use crate::level::Level;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// What a checkpoint holds where the session said nothing.
pub const UNKNOWN: &str = "unknown";
/// The progress on an item that nothing was changed for.
pub const NOT_BEGUN: &str = "not begun";

/// The last checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// True until a prompt has carried it on.
    pub active: bool,
    /// Why it was written.
    pub cause: Cause,
    /// The level at that moment.
    pub level: Level,
    /// The deciding figure at that moment, whole percent.
    pub percent_at_checkpoint: Option<u64>,
    /// The client's own figure at that moment, whole percent.
    pub percent_used: Option<u64>,
    /// RFC 3339 UTC.
    pub timestamp: Timestamp,
    /// The handoff, relative to the project.
    pub handoff_file: String,
    /// What the session says it was doing: a claim, unverified.
    pub resume_summary: String,
    /// Files changed for the current item, the one edited last first.
    pub files_in_progress: Vec<FileInProgress>,
    /// The item that the next session works on: the session's own, or the next open one once that is ticked.
    pub current_todo_item: String,
    /// How far the session says it came: a claim, unverified.
    pub progress_on_item: String,
    /// What the session says comes next: a claim, unverified; empty if it said nothing.
    pub next_step: String,
    /// What git and the list say about the work on the current item.
    pub item_work: ItemWork,
    /// The iteration it belongs to.
    pub iteration: u32,
    /// HEAD at that moment, to see whether the handoff is stale.
    pub head: Option<String>,
    /// What became of the uncommitted work, in words; empty while it is untouched.
    pub work: String,
    /// What an earlier session said of the item, as long as no later one has said anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_notes: Option<EarlierNotes>,
    /// The handoff of an earlier session at the same item, relative to the project; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub earlier_handoff: String,
}

/// What an earlier session said of an item. Its successor broke off before it could say anything, and what is in no file
/// would be lost with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlierNotes {
    /// The iteration of that session.
    pub iteration: u32,
    /// What it says it was doing: a claim, unverified.
    pub summary: String,
    /// How far it says it came: a claim, unverified.
    pub progress: String,
    /// What it says comes next: a claim, unverified.
    pub next_step: String,
}

/// Why a checkpoint was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// A level was reached.
    #[default]
    Level,
    /// The user or the model asked for it.
    Manual,
    /// The client was about to compact.
    Compact,
    /// The next item would not have fitted.
    Budget,
    /// A step had been committed, and the next one would probably not have fitted.
    Step,
    /// The session broke off in the middle of its work.
    Crash,
    /// The session ended its turn with changes, and its item was still open.
    Unfinished,
}

impl Cause {
    /// As written in the file.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// As shown to people. Sessions break off at a limit, an error of the API or a Ctrl-C, too: that is no crash.
    pub fn shown_word(self) -> &'static str {
        match self {
            Cause::Crash => "cut short",
            other => other.word(),
        }
    }

    /// True where the session had ended by then.
    pub fn is_after_the_session(self) -> bool {
        match self {
            Cause::Crash | Cause::Unfinished => true,
            Cause::Level | Cause::Manual | Cause::Compact | Cause::Budget | Cause::Step => false,
        }
    }
}

/// What was done for an item up to a checkpoint, as git, the files and the list show it. Nothing here is a claim of the
/// session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemWork {
    /// The item that the session was about: what its checkpoint is credited to.
    pub own_item: String,
    /// Items that the session ticked, in the list's order.
    pub finished: Vec<String>,
    /// False if nothing was changed for the current item: the next session begins it.
    pub is_begun: bool,
    /// The commit on which the work on the item began; none outside git and in a repository that had no commit then.
    pub base: Option<String>,
    /// How that commit stands to HEAD.
    #[serde(skip_serializing_if = "BaseRelation::is_ancestor")]
    pub base_relation: BaseRelation,
    /// When that was, RFC 3339 UTC.
    pub began_at: Option<Timestamp>,
    /// Commits of that work.
    pub commits: Vec<CommitRef>,
    /// Commits of that work in all: `commits` names the newest.
    pub commit_count: usize,
    /// Commits by others among them, made between two of its sessions.
    pub by_others: Vec<String>,
    /// Files of that work that were not committed.
    pub uncommitted: Vec<String>,
    /// The checks that the session ran last, with what failed.
    pub checks: Vec<Check>,
}

impl Checkpoint {
    /// True if it is of this item, and some of that was done.
    pub fn is_half_done(&self, item: &str) -> bool {
        self.current_todo_item == item && self.item_work.is_begun
    }

    /// Keeps what an earlier checkpoint of the same item has and this one has not: the words of the last session that said
    /// anything, and the handoff.
    pub fn keep_earlier(&mut self, before: &Checkpoint) {
        if self.current_todo_item.is_empty() || !before.is_half_done(&self.current_todo_item) {
            return;
        }
        // The same session writes its checkpoint several times.
        let is_of_same_session = before.iteration == self.iteration;
        self.earlier_handoff =
            if is_of_same_session { before.earlier_handoff.clone() } else { before.handoff_file.clone() };
        if !self.has_notes() {
            self.earlier_notes = before.notes_before(self.iteration);
        }
    }

    /// Returns what the last session said of the item that said anything, for the session of an iteration that takes over this
    /// checkpoint or has written it.
    pub fn notes_before(&self, iteration: u32) -> Option<EarlierNotes> {
        let said = self.notes().filter(|_| self.iteration != iteration);
        said.or_else(|| self.earlier_notes.clone())
    }

    /// True if its session said how far it came or what comes next. A summary alone may be made of its last words.
    pub fn has_notes(&self) -> bool {
        let progress = self.progress_on_item.as_str();
        !self.next_step.is_empty() || !["", UNKNOWN, NOT_BEGUN].contains(&progress)
    }

    fn notes(&self) -> Option<EarlierNotes> {
        let notes = EarlierNotes {
            iteration: self.iteration,
            summary: self.resume_summary.clone(),
            progress: self.progress_on_item.clone(),
            next_step: self.next_step.clone(),
        };
        self.has_notes().then_some(notes)
    }
}

impl Default for ItemWork {
    /// A checkpoint of another tool knows nothing of this: its item counts as begun.
    fn default() -> ItemWork {
        ItemWork {
            own_item: String::new(),
            finished: Vec::new(),
            is_begun: true,
            base: None,
            base_relation: BaseRelation::Ancestor,
            began_at: None,
            commits: Vec::new(),
            commit_count: 0,
            by_others: Vec::new(),
            uncommitted: Vec::new(),
            checks: Vec::new(),
        }
    }
}

/// How the commit on which the work on an item began stands to HEAD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseRelation {
    /// It is HEAD, or HEAD contains it.
    #[default]
    Ancestor,
    /// HEAD does not contain it anymore: it was amended, rebased or reset.
    Rewritten,
    /// git does not find it anymore. The work is compared with a later commit.
    Missing,
}

impl BaseRelation {
    fn is_ancestor(&self) -> bool {
        *self == BaseRelation::Ancestor
    }
}

/// A commit, as a text names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitRef {
    /// Its full id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl CommitRef {
    /// The id as people write it: 7 characters.
    pub fn short(&self) -> String {
        short_id(&self.id)
    }

    /// True for a commit that Plimsoll made of a session's unfinished work: `ralph: checkpoint …`.
    pub fn is_checkpoint(&self) -> bool {
        self.subject.to_lowercase().starts_with("ralph: checkpoint")
    }

    /// True for a commit of unfinished work, by us or by the session: `wip: …`, `ralph: checkpoint …`.
    pub fn is_work_in_progress(&self) -> bool {
        let subject = self.subject.to_lowercase();
        let behind = subject.strip_prefix("wip").map(|rest| rest.chars().next());
        behind.is_some_and(|next| next.is_none_or(|letter| !letter.is_alphanumeric())) || self.is_checkpoint()
    }
}

/// A commit's id as people write it: 7 characters.
pub fn short_id(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).take(7).collect()
}

/// A command that checks the work, and what it said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Check {
    /// The command line.
    pub command: String,
    /// True when it exited with 0.
    pub passed: bool,
    /// The lines of its output that name what failed.
    pub failures: Vec<String>,
    /// True if the session edited a file afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_before_edit: bool,
}

/// A file changed for an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInProgress {
    /// Relative to the project.
    pub path: String,
    /// The lines that were touched last, such as `45-120`; several ranges are separated by `, `.
    pub lines: String,
    /// Lines that all work on the item added; none if nobody counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines that all work on the item removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// What kind of change, and in which function or section.
    pub description: String,
    /// A digest of its content at the checkpoint, to see whether it has changed since; none for a file that is gone, or too
    /// large to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_unfinished_work_is_known_by_its_subject() {
        for (subject, expected) in [
            ("wip: the parser", true),
            ("WIP", true),
            ("Wip the parser", true),
            ("ralph: checkpoint iter 5 (L2 at 85%)", true),
            ("Wipe the disk", false),
            ("Finish the wip parser", false),
        ] {
            let commit = CommitRef { subject: subject.into(), ..CommitRef::default() };
            assert_eq!(commit.is_work_in_progress(), expected, "{subject}");
        }
    }

    #[test]
    fn an_item_of_an_older_checkpoint_counts_as_begun() {
        let old: Checkpoint =
            serde_json::from_str(r#"{"active": true, "current_todo_item": "two"}"#).unwrap();
        assert!(old.item_work.is_begun && old.item_work.finished.is_empty());
    }
}
