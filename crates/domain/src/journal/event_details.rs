//! The details of the journal's events. Fields marked "stream only" appear only in the output of
//! `plimsoll run --json`.

use crate::breaker::BreakerCause;
use crate::cost::CostBasis;
use crate::level::{Level, Thresholds};
use crate::marker::Marker;
use crate::reading::UsageReading;
use crate::state::CheckpointCause;
use crate::status::RunStatus;
use crate::verdict::{SessionEnding, Verdict};
use serde::{Deserialize, Serialize};

/// The details of a run that starts or resumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStartDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// The number of items in the plan, as text: `3 items`.
    #[serde(rename = "items", skip_serializing_if = "Option::is_none")]
    pub item_count_text: Option<String>,
    /// The commands that must pass before a completion promise is accepted.
    #[serde(rename = "verify", skip_serializing_if = "Option::is_none")]
    pub verify_commands: Option<Vec<String>>,
    /// Whether its sessions have the working memory.
    #[serde(rename = "memory", skip_serializing_if = "Option::is_none")]
    pub has_memory: Option<bool>,
    /// The run's branch, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The status of the run before it was resumed.
    #[serde(rename = "status", skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<RunStatus>,
    /// Whether the circuit breaker of a resumed run was reset.
    #[serde(rename = "reset_breaker", skip_serializing_if = "Option::is_none")]
    pub is_breaker_reset: Option<bool>,
    /// Modules of other plugins that handle events of the run's sessions; journal only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_modules: Vec<OtherModule>,
    /// Open items; stream only.
    #[serde(rename = "todo_items", skip_serializing_if = "Option::is_none")]
    pub open_items: Option<Vec<String>>,
    /// Ticked items; stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_items: Option<Vec<String>>,
}

/// A module of another plugin, which the client runs inside its own process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherModule {
    /// The client's name for the plugin, such as `name@marketplace`.
    pub plugin: String,
    /// The events that it handles, of those that change a session.
    pub events: Vec<String>,
}

/// A planned iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationPlanned {
    /// Whether it resumes a checkpoint.
    #[serde(rename = "resuming")]
    pub resumes_checkpoint: bool,
    /// The item that its prompt names.
    pub item: Option<String>,
    /// The number of open items; stream only.
    #[serde(rename = "open", skip_serializing_if = "Option::is_none")]
    pub open_count: Option<usize>,
    /// The number of ticked items; stream only.
    #[serde(rename = "done", skip_serializing_if = "Option::is_none")]
    pub done_count: Option<usize>,
}

/// A level that a session reached, with the measurement behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelReached {
    pub level: Level,
    /// The usage that determined the level, in whole percent.
    pub percent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<UsageReading>,
    /// The thresholds of the levels.
    #[serde(rename = "marks", skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
    /// How long the hook waited for the client's transcript writer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// The message to the session.
    #[serde(rename = "reason", skip_serializing_if = "Option::is_none")]
    pub session_message: Option<String>,
}

/// A checkpoint that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointWritten {
    /// Why it was written; journal only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CheckpointCause>,
    /// The level when it was written.
    pub level: Level,
    /// The usage that determined the level, in whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// The usage that the client itself reports, in whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent_used: Option<u64>,
    /// The handoff, relative to the project.
    #[serde(rename = "handoff")]
    pub handoff_path: String,
    /// The files that the handoff names; journal only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The item to which the checkpoint is attributed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Items that the session had ticked.
    #[serde(rename = "finished", skip_serializing_if = "Option::is_none")]
    pub finished_items: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<UsageReading>,
    /// The thresholds of the levels.
    #[serde(rename = "marks", skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
    /// How long the hook waited for the client's transcript writer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Why the state could not be written, if that failed.
    #[serde(rename = "trouble", skip_serializing_if = "Option::is_none")]
    pub state_write_error: Option<String>,
}

/// The estimated size of the next item or step, and the tokens that are left for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NextStepSizeEstimate {
    /// The item; `None` for the session's next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The estimated size, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_tokens: Option<u64>,
    /// The data on which the estimate is based, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_source: Option<String>,
    /// The tokens left below L2.
    #[serde(rename = "room_tokens", skip_serializing_if = "Option::is_none")]
    pub free_tokens: Option<u64>,
}

/// The gate's verdict with its evidence. There is no evidence if a deadline passes during a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictReached {
    /// The verdict as a marker.
    pub marker: Marker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<SessionEnding>,
    /// The run's status; stream only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The number of open items.
    #[serde(rename = "open", default, skip_serializing_if = "Option::is_none")]
    pub open_count: Option<usize>,
    /// The number of ticked items.
    #[serde(rename = "done", default, skip_serializing_if = "Option::is_none")]
    pub done_count: Option<usize>,
    /// Items that the iteration ticked.
    #[serde(rename = "ticked", default, skip_serializing_if = "Option::is_none")]
    pub ticked_items: Option<Vec<String>>,
    /// The results of the verify commands.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verify_results: Option<Vec<VerifyResult>>,
    /// What changed, as text: a commit, files, an item, a verify command, the working memory. Empty without
    /// progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Iterations in a row without progress.
    #[serde(rename = "no_change_count", default, skip_serializing_if = "Option::is_none")]
    pub no_progress_count: Option<u32>,
    /// How many times the same error occurred in a row.
    #[serde(rename = "same_errors", default, skip_serializing_if = "Option::is_none")]
    pub same_error_count: Option<usize>,
    /// The run's cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How reliable the cost is.
    #[serde(default, skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// The tokens that the run has used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// True if the cost of the session is unknown.
    #[serde(rename = "cost_unknown", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cost_unknown: bool,
}

impl VerdictReached {
    /// Creates the details of a verdict, without evidence.
    pub fn from_verdict_without_evidence(verdict: &Verdict) -> VerdictReached {
        VerdictReached {
            marker: verdict.to_marker(),
            ending: None,
            status: None,
            open_count: None,
            done_count: None,
            ticked_items: None,
            verify_results: None,
            progress: None,
            error: None,
            no_progress_count: None,
            same_error_count: None,
            cost_usd: None,
            cost_basis: CostBasis::Reported,
            tokens: None,
            is_cost_unknown: false,
        }
    }
}

/// The result of a verify command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyResult {
    pub command: String,
    pub passed: bool,
    /// The end of its output.
    #[serde(rename = "words")]
    pub output_tail: String,
    /// How long it took, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// The results of verify commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyCommandsRan {
    #[serde(rename = "verify")]
    pub results: Vec<VerifyResult>,
}

/// Ticks that were removed because a check or a review failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicksReverted {
    /// The unticked items.
    pub items: Vec<String>,
    /// The commands that failed.
    #[serde(rename = "failed")]
    pub failed_commands: Vec<String>,
    /// The findings of a review, if a review failed.
    #[serde(rename = "findings", skip_serializing_if = "Vec::is_empty")]
    pub review_findings: Vec<String>,
    /// The changes to protected files, if these are the reason.
    #[serde(rename = "protected", skip_serializing_if = "Vec::is_empty")]
    pub protected_file_changes: Vec<String>,
}

/// Why the circuit breaker opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerOpened {
    pub cause: BreakerCause,
    /// The value of the failure counter at that time.
    #[serde(rename = "count", default)]
    pub failure_count: u32,
    /// The evidence, as text.
    #[serde(default)]
    pub evidence: String,
}

/// The final figures of an iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationClosed {
    /// The highest usage that determined a level, in whole percent; 0 if none was measured.
    pub peak_percent: u64,
    /// Whether its session wrote notes into its handoff.
    #[serde(rename = "notes", skip_serializing_if = "Option::is_none")]
    pub has_notes: Option<bool>,
    /// How its session ended, as one word; stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// Stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The iteration's duration; stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The number of items that it ticked; stream only.
    #[serde(rename = "ticked", skip_serializing_if = "Option::is_none")]
    pub ticked_count: Option<u32>,
}

/// The end of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionEnded {
    /// The reason that the client gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The highest usage that determined a level, in whole percent; 0 if none was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_percent: Option<u64>,
    /// How many times a hook waited for the client's transcript writer.
    #[serde(rename = "waits", skip_serializing_if = "Option::is_none")]
    pub wait_count: Option<u32>,
    /// The total of these waits, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// How it ended; stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<SessionEnding>,
    /// Stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A commit of uncommitted work, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WipCommit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The number of files in the commit.
    #[serde(rename = "files", skip_serializing_if = "Option::is_none")]
    pub file_count: Option<usize>,
    /// Files that it leaves out, because they look like secrets or are too large.
    #[serde(rename = "left_out", skip_serializing_if = "Option::is_none")]
    pub omitted_files: Option<Vec<String>>,
    /// Why there is no commit.
    #[serde(rename = "trouble", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The commit message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A comment on the Linear issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinearDelivered {
    pub issue: String,
    /// The number of notes in the comment.
    #[serde(rename = "notes")]
    pub note_count: usize,
    pub url: String,
    /// Warnings that Linear returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
