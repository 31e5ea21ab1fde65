//! The events of the journal, with their names and fields in the file, and the properties of each kind of
//! event.

use super::event_details::{
    BreakerOpened, CheckpointWritten, IterationClosed, IterationPlanned, LevelReached, LinearDelivered,
    NextStepSizeEstimate, RunStartDetails, SessionEnded, TicksReverted, VerdictReached, VerifyCommandsRan,
    WipCommit,
};
use super::traits::{DECISION, EventSeverity, EventTraits, NOTICE, PROBLEM, RECORD_ONLY};
use super::workers::{ItemReturned, ItemsMerged, WorkerEnded, WorkerStarted};
use crate::marker::Marker;
use crate::review::ReviewOutcome;
use crate::time::Timestamp;
use plimsoll_protocol::event::SessionSource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantNames};

/// An event of the journal. Attributes set the names in the file where they differ from the names here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JournalEvent {
    /// A run began.
    RunStarted(RunStartDetails),
    /// `plimsoll run --resume` continued a run.
    #[serde(rename = "resumed")]
    #[strum(serialize = "resumed")]
    RunResumed(RunStartDetails),
    /// An iteration was planned, and its prompt was written.
    Planned(IterationPlanned),
    /// The client of an iteration was started.
    #[serde(rename = "spawned")]
    #[strum(serialize = "spawned")]
    ClientStarted {
        /// The client's process; `None` if it ended before its pid was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// The model that was requested; `None` for the client's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A new `plimsoll run` took over a client that had outlived the previous one.
    #[serde(rename = "adopted")]
    #[strum(serialize = "adopted")]
    ClientAdopted {
        #[serde(default)]
        pid: u32,
    },
    /// The client sent the SessionStart event.
    SessionStart {
        /// Why the session begins.
        #[serde(default)]
        source: SessionSource,
    },
    /// A session was warned at L1.
    Warning(LevelReached),
    /// A checkpoint was written.
    Checkpoint(CheckpointWritten),
    /// A session was asked to end, at L2 or L3.
    #[serde(rename = "ended")]
    #[strum(serialize = "ended")]
    SessionEndRequested(LevelReached),
    /// The next item did not fit into the same session.
    #[serde(rename = "not_packed")]
    #[strum(serialize = "not_packed")]
    NextItemDoesNotFit(NextStepSizeEstimate),
    /// The session continues with the next item.
    #[serde(rename = "packed")]
    #[strum(serialize = "packed")]
    ContinuedWithNextItem(NextStepSizeEstimate),
    /// The session's next step did not fit, so the session was asked to stop after its commit.
    NoRoomForStep(NextStepSizeEstimate),
    /// The client ended the turn although the gate had asked the session to continue.
    CutOffByClient {
        /// The item that the session was asked to start.
        #[serde(default)]
        item: String,
        /// How many times the session had been asked to continue.
        #[serde(default)]
        continuations: u32,
    },
    /// The Stop hook's verdict, before the verify commands have run.
    ProvisionalVerdict { marker: Marker },
    /// The gate's verdict on an iteration.
    Verdict(Box<VerdictReached>),
    /// An item is skipped from now on.
    SetAside {
        #[serde(default)]
        item: String,
    },
    /// An item waits for the user's answer, and is skipped until then.
    Parked {
        #[serde(default)]
        item: String,
        /// The session's question.
        #[serde(default)]
        question: String,
    },
    /// Ticks of the iteration were removed.
    #[serde(rename = "ticks_taken_back")]
    #[strum(serialize = "ticks_taken_back")]
    TicksReverted(TicksReverted),
    /// Ticked items were reviewed, or the review failed.
    Reviewed(Box<ReviewOutcome>),
    /// Verify commands ran before a session, to record which of them pass. The stream also has those that ran
    /// after one.
    #[serde(rename = "verified")]
    #[strum(serialize = "verified")]
    VerifyCommandsRan(VerifyCommandsRan),
    /// The circuit breaker opened.
    BreakerOpened(BreakerOpened),
    /// An iteration was closed, with its final figures.
    IterationClosed(IterationClosed),
    /// A session ended.
    SessionEnd(SessionEnded),
    /// Plimsoll ended a client.
    ClientEnded {
        #[serde(default)]
        reason: String,
    },
    /// Plimsoll's hooks did not run in a session.
    #[serde(rename = "unguarded")]
    #[strum(serialize = "unguarded")]
    HooksDidNotRun {
        /// The client's version.
        #[serde(default)]
        client_version: String,
    },
    /// A session left processes running.
    #[serde(rename = "left_behind")]
    #[strum(serialize = "left_behind")]
    ProcessesLeftBehind {
        /// The processes, each with its pid and command.
        #[serde(default)]
        processes: Vec<String>,
    },
    /// Uncommitted work was committed at a checkpoint, or the commit failed.
    WipCommit(WipCommit),
    /// An operation on this machine failed.
    Fault {
        #[serde(default)]
        error: String,
        /// How Plimsoll reacts.
        #[serde(rename = "then", default)]
        action_taken: String,
        /// In how many seconds the operation is retried.
        #[serde(rename = "seconds", default, skip_serializing_if = "Option::is_none")]
        retry_in_seconds: Option<u64>,
    },
    /// The run was canceled.
    Cancelled,
    /// The user's `--notify` program was called.
    Notified {
        /// The reason for the call: `ended`, `paused` or `question`.
        #[serde(rename = "what", default)]
        reason: String,
        /// The program with its arguments.
        #[serde(default)]
        program: Vec<String>,
        /// Why the program failed, if it did.
        #[serde(rename = "trouble", default)]
        error: Option<String>,
    },
    /// PROMPT.md no longer had the task and was written again.
    #[serde(rename = "prompt_mended")]
    #[strum(serialize = "prompt_mended")]
    PromptRestored {
        /// The path to which the damaged file was moved.
        #[serde(default)]
        old_file: String,
    },
    /// The plan was missing and was written again.
    #[serde(rename = "todo_mended")]
    #[strum(serialize = "todo_mended")]
    PlanRestored {
        /// The plan, relative to the project.
        #[serde(rename = "file", default)]
        plan_path: String,
    },
    /// The state was damaged and was repaired.
    #[serde(rename = "state_mended")]
    #[strum(serialize = "state_mended")]
    StateRepaired {
        /// The part that was repaired.
        #[serde(rename = "what", default)]
        repaired_part: String,
    },
    /// A comment on the Linear issue was written.
    LinearDelivered(LinearDelivered),
    /// A comment on the Linear issue could not be written.
    LinearFailed {
        #[serde(rename = "trouble", default)]
        error: String,
        /// When it is retried, RFC 3339, UTC.
        #[serde(rename = "until", default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    },
    /// Spans and logs of the run did not reach the user's collector.
    TelemetryLost {
        /// The number of spans.
        #[serde(rename = "spans", default)]
        span_count: u64,
        /// The number of logs.
        #[serde(rename = "logs", default)]
        log_count: u64,
        /// The last error.
        #[serde(rename = "trouble", default)]
        last_error: String,
    },
    /// A worker of a parallel run started or resumed an item.
    WorkerBegan(WorkerStarted),
    /// The run of a worker's item ended.
    WorkerEnded(WorkerEnded),
    /// Items of a parallel run were merged into its branch.
    #[serde(rename = "landed")]
    #[strum(serialize = "landed")]
    ItemsMerged(ItemsMerged),
    /// An item of a parallel run is open again, or set aside, because it could not be finished or merged.
    #[serde(rename = "sent_back")]
    #[strum(serialize = "sent_back")]
    ItemReturned(ItemReturned),
    /// Any other message for the user.
    Note {
        #[serde(rename = "words", default)]
        text: String,
    },

    /// An event of another version or another program: its name and fields, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl JournalEvent {
    /// The names of all events that this version writes.
    pub const NAMES: &[&str] = JournalEvent::VARIANTS;

    /// Returns the name in the file; empty for an unknown event without a name.
    pub fn name(&self) -> &str {
        match self {
            JournalEvent::Unknown(fields) => fields.get("event").and_then(Value::as_str).unwrap_or_default(),
            event => event.into(),
        }
    }

    /// Returns the event's fields, without its name.
    pub fn fields_without_name(&self) -> Map<String, Value> {
        super::event_fields_without_name(self)
    }

    /// Returns the properties that all events of this kind share. Readers that do not show an event need only
    /// these.
    #[rustfmt::skip]
    pub fn traits(&self) -> EventTraits {
        use JournalEvent as E;
        match self {
            E::RunStarted(_) => EventTraits { severity: EventSeverity::Milestone, ..DECISION }.with_stream_as_log_source(),
            E::RunResumed(_) => DECISION.with_stream_as_log_source(),
            E::Planned(_) | E::ClientStarted { .. } | E::SessionStart { .. } | E::VerifyCommandsRan(_) => RECORD_ONLY,
            E::ClientAdopted { .. } | E::Checkpoint(_) | E::ProvisionalVerdict { .. } => DECISION,
            E::Warning(_) | E::SessionEndRequested(_) | E::CutOffByClient { .. } => NOTICE,
            E::ContinuedWithNextItem(_) | E::NextItemDoesNotFit(_) | E::NoRoomForStep(_) => DECISION,
            // The event's fields state whether a promise was refused or a session was aborted.
            E::Verdict(_) => EventTraits { can_be_problem: true, ..DECISION },
            E::SetAside { .. } | E::Parked { .. } | E::TicksReverted(_) => PROBLEM.following_verdict(),
            // The event's fields state whether the review found something.
            E::Reviewed(_) => EventTraits { can_be_problem: true, ..DECISION }.following_verdict(),
            // The decision is the verdict that precedes it.
            E::BreakerOpened(_) => {
                EventTraits { severity: EventSeverity::Alarm, is_record_only: true, ..PROBLEM }.following_verdict()
            }
            // The stream's entry also has cost, tokens and ticks.
            E::IterationClosed(_) | E::SessionEnd(_) => RECORD_ONLY.with_stream_as_log_source(),
            E::ClientEnded { .. } | E::ProcessesLeftBehind { .. } => EventTraits { can_be_problem: true, ..NOTICE },
            E::HooksDidNotRun { .. } | E::Fault { .. } | E::ItemReturned(_) => PROBLEM,
            // The event's fields state whether there is a commit.
            E::WipCommit(_) => EventTraits { can_be_problem: true, ..DECISION },
            E::Cancelled | E::ItemsMerged(_) => EventTraits { severity: EventSeverity::Milestone, ..DECISION },
            // The event's fields state whether the program could be called.
            E::Notified { .. } => EventTraits { can_be_problem: true, ..RECORD_ONLY },
            E::PromptRestored { .. } | E::PlanRestored { .. } | E::StateRepaired { .. } => NOTICE,
            E::LinearDelivered(_) | E::WorkerBegan(_) | E::WorkerEnded(_) => DECISION,
            // The delivery is retried, and `doctor` reports a note that stays undelivered.
            E::LinearFailed { .. } => EventTraits { can_be_problem: false, ..PROBLEM },
            // An export error cannot be exported itself.
            E::TelemetryLost { .. } => EventTraits { log_source: None, ..PROBLEM },
            E::Note { .. } => DECISION.with_stream_as_log_source(),
            // Only events that this version supports are exported.
            E::Unknown(_) => EventTraits { log_source: None, ..DECISION },
        }
    }
}
