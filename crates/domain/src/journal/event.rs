//! What can happen, under the names and with the facts that the file has. A reader matches on all of it, without a
//! catch-all: a new event does not compile until each reader has a word for it.

use super::workers::{Landed, SentBack, WorkerBegan, WorkerEnded};
use crate::breaker::BreakerCause;
use crate::cost::CostBasis;
use crate::level::{Level, Thresholds};
use crate::marker::Marker;
use crate::reading::Reading;
use crate::review::Reviewed;
use crate::state::Cause;
use crate::status::Status;
use crate::time::Timestamp;
use crate::verdict::{Ending, Verdict};
use plimsoll_protocol::event::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JournalEvent {
    /// A run began.
    RunStarted(RunBegun),
    /// A run continues: `plimsoll run --resume`.
    Resumed(RunBegun),
    /// An iteration was planned and its prompt written.
    Planned(Planned),
    /// Its client was started.
    Spawned {
        /// Its process; none if it ended before it was seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// The model that it was started with; none for its own choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A client that outlived its `plimsoll run` is followed by the next one.
    Adopted {
        /// Its process.
        #[serde(default)]
        pid: u32,
    },
    /// SessionStart came.
    SessionStart {
        /// Why the session begins.
        #[serde(default)]
        source: Source,
    },
    /// A session was warned at L1.
    Warning(LevelReached),
    /// A checkpoint was written.
    Checkpoint(CheckpointWritten),
    /// A session was told to end at L2 or L3.
    Ended(LevelReached),
    /// There was no room for the next item in the same session.
    NotPacked(Room),
    /// The session continues with the next item.
    Packed(Room),
    /// There was no room for the session's next step, so it was told to stop at its commit.
    NoRoomForStep(Room),
    /// The client ended the turn after the gate had told the session to continue.
    CutOffByClient {
        /// The item it was to begin.
        #[serde(default)]
        item: String,
        /// How often the session had been told to continue.
        #[serde(default)]
        continuations: u32,
    },
    /// The Stop hook judged, before the verify commands had run.
    ProvisionalVerdict {
        /// Its verdict.
        marker: Marker,
    },
    /// The gate judged an iteration.
    Verdict(Box<VerdictReached>),
    /// An item is passed over from now on.
    SetAside {
        /// The item.
        #[serde(default)]
        item: String,
    },
    /// An item waits for the user's answer, and is passed over until then.
    Parked {
        /// The item.
        #[serde(default)]
        item: String,
        /// What the session asked.
        #[serde(default)]
        question: String,
    },
    /// Ticks of the iteration were taken back.
    TicksTakenBack(TicksTakenBack),
    /// Ticked items were reviewed, or could not be.
    Reviewed(Box<Reviewed>),
    /// Verify commands ran before a session, to know which of them pass; in the stream also those after one.
    Verified(Verified),
    /// The circuit breaker opened.
    BreakerOpened(BreakerOpened),
    /// An iteration's last figures are known.
    IterationClosed(IterationClosed),
    /// A session ended.
    SessionEnd(SessionEnded),
    /// We ended a client.
    ClientEnded {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Our hooks did not run in a session.
    Unguarded {
        /// The client's version.
        #[serde(default)]
        client_version: String,
    },
    /// A session left processes behind.
    LeftBehind {
        /// Each with its pid and command.
        #[serde(default)]
        processes: Vec<String>,
    },
    /// Uncommitted work was committed at a checkpoint, or could not be.
    WipCommit(WipCommit),
    /// Something on this machine failed.
    Fault {
        /// What.
        #[serde(default)]
        error: String,
        /// What is done about it.
        #[serde(default)]
        then: String,
        /// In how many seconds it is tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
    },
    /// The run was cancelled.
    Cancelled,
    /// The user's `--notify` program was called.
    Notified {
        /// What the program was called for: `ended`, `paused` or `question`.
        #[serde(default)]
        what: String,
        /// The program with its arguments.
        #[serde(default)]
        program: Vec<String>,
        /// What went wrong.
        #[serde(default)]
        trouble: Option<String>,
    },
    /// PROMPT.md had lost the task and was written again.
    PromptMended {
        /// Where the damaged file was put.
        #[serde(default)]
        old_file: String,
    },
    /// The plan was gone and was written again.
    TodoMended {
        /// The plan, relative to the project.
        #[serde(default)]
        file: String,
    },
    /// The state was damaged and was repaired.
    StateMended {
        /// What was repaired.
        #[serde(default)]
        what: String,
    },
    /// A comment on the Linear issue was written.
    LinearDelivered(LinearDelivered),
    /// A comment on the Linear issue could not be written.
    LinearFailed {
        /// Why.
        #[serde(default)]
        trouble: String,
        /// When it is tried again, RFC 3339 UTC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Spans and logs of the run did not reach the user's collector.
    TelemetryLost {
        /// How many spans.
        #[serde(default)]
        spans: u64,
        /// How many logs.
        #[serde(default)]
        logs: u64,
        /// What went wrong last.
        #[serde(default)]
        trouble: String,
    },

    // What follows is only in the stream of `plimsoll run --json`.
    /// A client has said what it is.
    Client {
        /// The model.
        #[serde(default)]
        model: String,
        /// The client's version.
        #[serde(default)]
        version: String,
    },
    /// The model called a tool.
    Tool {
        /// The tool.
        #[serde(default)]
        name: String,
        /// What it was called with, in brief.
        #[serde(default)]
        detail: String,
    },
    /// The client retries a request.
    Retry {
        /// The HTTP status; 0 if the API could not be reached.
        #[serde(default)]
        status: u64,
        /// Since when, RFC 3339 UTC.
        #[serde(default)]
        since: Timestamp,
    },
    /// The run ends after this session.
    StopRequested,
    /// The client refused tools.
    ToolsDenied {
        /// The tools.
        #[serde(default)]
        tools: Vec<String>,
        /// The command that allows them.
        #[serde(default)]
        command: Option<String>,
    },
    /// The client compacted the session.
    Compacted,
    /// A session's figures changed.
    Reading(ReadingChanged),
    /// The run waits.
    Pause {
        /// Until when, RFC 3339 UTC.
        #[serde(default)]
        until: Timestamp,
        /// How long.
        #[serde(default)]
        seconds: u64,
        /// What for.
        #[serde(default)]
        reason: String,
    },
    /// The run no longer waits.
    PauseOver,
    /// A worker of a parallel run begins with an item, or goes on with it.
    WorkerBegan(WorkerBegan),
    /// The run of its item has ended.
    WorkerEnded(WorkerEnded),
    /// Items of a parallel run are in its branch.
    Landed(Landed),
    /// An item of a parallel run is open again, or set aside: it could not be done, or not be merged.
    SentBack(SentBack),
    /// Something worth knowing.
    Note {
        /// What.
        #[serde(default)]
        words: String,
    },
    /// The run's process is done with it.
    RunEnded(RunEnded),

    /// An event of another version or another program: its name and facts, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl JournalEvent {
    /// Its name in the file; empty for an unknown event that has none.
    pub fn name(&self) -> &str {
        match self {
            JournalEvent::Unknown(facts) => facts.get("event").and_then(Value::as_str).unwrap_or_default(),
            known => known.into(),
        }
    }

    /// Its facts, without its name.
    pub fn facts(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut facts)) => {
                facts.shift_remove("event");
                facts
            }
            _ => Map::new(),
        }
    }
}

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

/// A session's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadingChanged {
    /// The deciding figure, whole percent.
    pub percent: Option<u64>,
    /// The client's own figure, whole percent.
    pub percent_used: Option<u64>,
    /// The level that was announced.
    pub level: Level,
}

/// The end of `plimsoll run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnded {
    /// The run's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How many items are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<usize>,
    /// How many are ticked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How many reviews there were, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviews: Option<u32>,
    /// What of the cost was for them, US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_cost_usd: Option<f64>,
    /// What of the tokens was for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_tokens: Option<u64>,
    /// The last verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// Why `plimsoll run` failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its exit code.
    pub exit_code: u8,
}
