//! The facts of the journal's events. What only the stream of `plimsoll run --json` has of them is marked so.

use crate::breaker::BreakerCause;
use crate::cost::CostBasis;
use crate::level::{Level, Thresholds};
use crate::marker::Marker;
use crate::reading::Reading;
use crate::state::Cause;
use crate::status::Status;
use crate::verdict::{Ending, Verdict};
use serde::{Deserialize, Serialize};

/// A run that begins or continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunBegun {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_name: Option<String>,
    /// The maximum number of sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// How many items the plan has, in words: `3 items`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
    /// Commands that must pass before completion is believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// Whether its sessions have the working memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<bool>,
    /// The branch on which it works, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What a resumed run's status was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Whether a resumed run's circuit breaker was reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_breaker: Option<bool>,
    /// Open items; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo_items: Option<Vec<String>>,
    /// Ticked items; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_items: Option<Vec<String>>,
}

/// An iteration that was planned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Planned {
    /// Whether it resumes a checkpoint.
    pub resuming: bool,
    /// The item that its prompt names.
    pub item: Option<String>,
    /// How many items are open; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<usize>,
    /// How many are ticked; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
}

/// A level that a session reached, with the figures that said so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelReached {
    /// The level.
    pub level: Level,
    /// The deciding figure, whole percent.
    pub percent: u64,
    /// The measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// Where the levels begin.
    #[serde(rename = "marks", skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
    /// How long the client's transcript writer was waited for, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// What the session was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointWritten {
    /// Why it was written; the stream does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The level at that moment.
    pub level: Level,
    /// The deciding figure, whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// The client's own figure, whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent_used: Option<u64>,
    /// The handoff, relative to the project.
    pub handoff: String,
    /// The files that the handoff names; the stream does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The item that it is credited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Items that the session had ticked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Vec<String>>,
    /// The measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// Where the levels begin.
    #[serde(rename = "marks", skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
    /// How long the client's transcript writer was waited for, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Why the state could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Whether what comes next fits into the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Room {
    /// The item; none if it is the session's own next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What it probably takes, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_tokens: Option<u64>,
    /// What the estimate is made of, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_source: Option<String>,
    /// What is free below L2, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_tokens: Option<u64>,
}

/// The gate's verdict and its evidence. A deadline that comes in a pause has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictReached {
    /// The verdict, as its marker says it.
    pub marker: Marker,
    /// How the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The run's status; in the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How many items are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<usize>,
    /// How many are ticked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
    /// Items that the iteration ticked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticked: Option<Vec<String>>,
    /// What the verify commands said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<Verification>>,
    /// What moved, in words: a commit, files, an item, a verify command, the working memory. Empty where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Vec<String>>,
    /// The iteration's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Iterations in a row without progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_change_count: Option<u32>,
    /// How often the same error came in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_errors: Option<usize>,
    /// US dollars that the run has cost so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How far that can be relied on.
    #[serde(default, skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// Tokens that the run has used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// True if nothing is known of the session's cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
}

impl VerdictReached {
    /// A verdict without its evidence.
    pub fn of(verdict: &Verdict) -> VerdictReached {
        VerdictReached {
            marker: verdict.marker(),
            ending: None,
            status: None,
            open: None,
            done: None,
            ticked: None,
            verify: None,
            progress: None,
            error: None,
            no_change_count: None,
            same_errors: None,
            cost_usd: None,
            cost_basis: CostBasis::Reported,
            tokens: None,
            cost_unknown: false,
        }
    }
}

/// What a verify command said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verification {
    /// The command.
    pub command: String,
    /// Whether it passed.
    pub passed: bool,
    /// The end of what it printed.
    pub words: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// Verify commands that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verified {
    /// What they said.
    pub verify: Vec<Verification>,
}

/// Ticks that did not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicksTakenBack {
    /// Their items.
    pub items: Vec<String>,
    /// The commands that failed.
    pub failed: Vec<String>,
    /// What a review found, if that is why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The changes of protected files, if they are why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
}

/// The circuit breaker opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerOpened {
    /// Which counter.
    pub cause: BreakerCause,
    /// How far it had come.
    #[serde(default)]
    pub count: u32,
    /// The evidence, in words.
    #[serde(default)]
    pub evidence: String,
}

/// The last figures of an iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationClosed {
    /// Its highest deciding figure, whole percent; 0 if none was read.
    pub peak_percent: u64,
    /// Whether its session wrote notes into its handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<bool>,
    /// How its session ended, in a word; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// US dollars; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// From its start to its end; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// How many items it ticked; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticked: Option<u32>,
}

/// The end of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionEnded {
    /// Why, in the client's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its highest deciding figure, whole percent; 0 if none was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_percent: Option<u64>,
    /// How often the client's transcript writer was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<u32>,
    /// How long in all, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// How it ended; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// US dollars; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens; in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A commit of uncommitted work: either the commit, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WipCommit {
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many files it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<usize>,
    /// Files that it leaves out: they look like secrets, or are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<String>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A comment on the Linear issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinearDelivered {
    /// The issue.
    pub issue: String,
    /// How many notes the comment contains.
    pub notes: usize,
    /// The comment's address.
    pub url: String,
    /// What Linear warned of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
