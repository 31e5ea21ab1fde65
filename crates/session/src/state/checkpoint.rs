//! The last checkpoint, as the state holds it.

use crate::level::Level;
use serde::{Deserialize, Serialize};

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
    pub timestamp: String,
    /// The handoff, relative to the project.
    pub handoff_file: String,
    /// What the session says it was doing: a claim, unverified.
    pub resume_summary: String,
    /// Files with uncommitted changes.
    pub files_in_progress: Vec<FileInProgress>,
    /// The first open item.
    pub current_todo_item: String,
    /// How far the session says it came: a claim, unverified.
    pub progress_on_item: String,
    /// The iteration it belongs to.
    pub iteration: u32,
    /// HEAD at that moment, to tell whether the handoff is stale.
    pub head: Option<String>,
    /// What became of the uncommitted work, in words; empty while nobody has touched it.
    pub work: String,
}

/// Why a checkpoint was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A level was reached.
    #[default]
    Level,
    /// A person or the model asked for it.
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
    /// As it stands in the file.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Level => "level",
            Cause::Manual => "manual",
            Cause::Compact => "compact",
            Cause::Budget => "budget",
            Cause::Step => "step",
            Cause::Crash => "crash",
            Cause::Unfinished => "unfinished",
        }
    }
}

/// A file with uncommitted changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInProgress {
    /// Relative to the project.
    pub path: String,
    /// Changed lines in the new file, such as `45-120`; several ranges are separated by `, `.
    pub lines: String,
    /// What kind of change.
    pub description: String,
}
