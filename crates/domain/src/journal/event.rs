//! What the journal's file has, under the names and with the facts that it has there, and what is true of each kind of event.

use super::facts::{
    BreakerOpened, CheckpointWritten, IterationClosed, LevelReached, LinearDelivered, Planned, Room,
    RunBegun, SessionEnded, TicksTakenBack, VerdictReached, Verified, WipCommit,
};
use super::traits::{DECISION, EventTraits, NOTICE, RECORD, TROUBLE, Weight};
use super::workers::{Landed, SentBack, WorkerBegan, WorkerEnded};
use crate::marker::Marker;
use crate::review::Reviewed;
use crate::time::Timestamp;
use plimsoll_protocol::event::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantNames};

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
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

    /// An event of another version or another program: its name and facts, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl JournalEvent {
    /// The names of all events that the file can have.
    pub const NAMES: &[&str] = JournalEvent::VARIANTS;

    /// Its name in the file; empty for an unknown event that has none.
    pub fn name(&self) -> &str {
        match self {
            JournalEvent::Unknown(facts) => facts.get("event").and_then(Value::as_str).unwrap_or_default(),
            known => known.into(),
        }
    }

    /// Its facts, without its name.
    pub fn facts(&self) -> Map<String, Value> {
        super::facts_of(self)
    }

    /// What is true of every event of this kind: all that readers ask of events that they do not show.
    #[rustfmt::skip]
    pub fn traits(&self) -> EventTraits {
        use JournalEvent as E;
        match self {
            E::RunStarted(_) => EventTraits { weight: Weight::Milestone, ..DECISION }.in_stream(),
            E::Resumed(_) => DECISION.in_stream(),
            E::Planned(_) | E::Spawned { .. } | E::SessionStart { .. } | E::Verified(_) => RECORD,
            E::Adopted { .. } | E::Checkpoint(_) | E::ProvisionalVerdict { .. } => DECISION,
            E::Warning(_) | E::Ended(_) | E::CutOffByClient { .. } => NOTICE,
            E::Packed(_) | E::NotPacked(_) | E::NoRoomForStep(_) => DECISION,
            // Whether a promise was refused or a session broke off is in its facts.
            E::Verdict(_) => EventTraits { can_be_trouble: true, ..DECISION },
            E::SetAside { .. } | E::Parked { .. } | E::TicksTakenBack(_) => TROUBLE.after_verdict(),
            // Whether it found something is in its facts.
            E::Reviewed(_) => EventTraits { can_be_trouble: true, ..DECISION }.after_verdict(),
            // Its verdict is the decision.
            E::BreakerOpened(_) => {
                EventTraits { weight: Weight::Alarm, is_mere_record: true, ..TROUBLE }.after_verdict()
            }
            // The stream also has cost, tokens and ticks.
            E::IterationClosed(_) | E::SessionEnd(_) => RECORD.in_stream(),
            E::ClientEnded { .. } | E::LeftBehind { .. } => EventTraits { can_be_trouble: true, ..NOTICE },
            E::Unguarded { .. } | E::Fault { .. } | E::SentBack(_) => TROUBLE,
            // Whether there is a commit is in its facts.
            E::WipCommit(_) => EventTraits { can_be_trouble: true, ..DECISION },
            E::Cancelled | E::Landed(_) => EventTraits { weight: Weight::Milestone, ..DECISION },
            // Whether the program could be called is in its facts.
            E::Notified { .. } => EventTraits { can_be_trouble: true, ..RECORD },
            E::PromptMended { .. } | E::TodoMended { .. } | E::StateMended { .. } => NOTICE,
            E::LinearDelivered(_) | E::WorkerBegan(_) | E::WorkerEnded(_) => DECISION,
            // It is tried again, and a note that stays undelivered is told by `doctor`.
            E::LinearFailed { .. } => EventTraits { can_be_trouble: false, ..TROUBLE },
            // What could not be exported cannot be exported either.
            E::TelemetryLost { .. } => EventTraits { log_source: None, ..TROUBLE },
            E::Note { .. } => DECISION.in_stream(),
            // Only what one of our versions writes is exported.
            E::Unknown(_) => EventTraits { log_source: None, ..DECISION },
        }
    }
}
