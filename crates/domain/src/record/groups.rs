//! The parts of a session's record that are read and written together. In the file their fields stand side by side.

use super::{Claim, ClientProcess, ClientSettings, FailureEvidence, StopEvidence};
use crate::ids::RunId;
use crate::level::Level;
use crate::reading::Reading;
use crate::time::Timestamp;

/// What SessionStart found: the session's run, its client, and how the project stood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartFacts {
    /// The run that owns the session, if one does.
    pub run_id: Option<RunId>,
    /// Its iteration in that run.
    pub iteration: Option<u32>,
    /// The transcript, as the client named it.
    pub transcript_path: Option<String>,
    /// The client's process; none if the client did not name it.
    pub client: Option<ClientProcess>,
    /// What the client's settings said about compaction.
    pub client_settings: Option<ClientSettings>,
    /// When SessionStart first came, RFC 3339 UTC.
    pub started_at: Option<Timestamp>,
    /// HEAD at that moment: what was committed since is work of this session.
    pub head_at_start: Option<String>,
}

/// The usage of the context window, as the monitor last read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageSeen {
    /// The last reading.
    pub reading: Option<Reading>,
    /// Its deciding figure, whole percent.
    pub percent: Option<u64>,
    /// Its client's figure, whole percent.
    pub percent_used: Option<u64>,
    /// The highest deciding figure of the session.
    pub peak_percent: u64,
    /// The most tokens that came from one reading to the next: L2 leaves room for such a step. Readings that do not move
    /// the whole percent are not kept, so it may be up to one percent of the window too large.
    pub largest_step: u64,
}

/// The highest level announced since the last compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced {
    /// The level; L0 if none was announced.
    pub level: Level,
    /// The deciding figure at which it was announced, whole percent; none if none was announced.
    pub percent: Option<u64>,
}

/// The checkpoint: the one being written, and the work since the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointProgress {
    /// A checkpoint that has been claimed and not yet committed.
    pub claim: Option<Claim>,
    /// The last handoff, relative to the project.
    pub handoff: Option<String>,
    /// The measured usage in tokens when the checkpoint was announced.
    pub tokens: u64,
    /// Batches of tools since then.
    pub batches_since: u32,
    /// The message whose tools were counted last, on clients that report each tool apart.
    pub counted_message: Option<String>,
}

/// The monitor's waits for the client's transcript writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterWaits {
    /// How often it waited.
    pub count: u32,
    /// How long in all, milliseconds.
    pub total_ms: u64,
}

/// How the session ended, or is to end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndEvidence {
    /// True once the run was cancelled with `plimsoll stop`: the session's next hook ends it.
    pub cancelled: bool,
    /// Why a hook of ours ended the session.
    pub ended_by_us: Option<String>,
    /// What the gate saw at Stop.
    pub stop: Option<StopEvidence>,
    /// What StopFailure said.
    pub failure: Option<FailureEvidence>,
    /// When SessionEnd came, RFC 3339 UTC.
    pub ended_at: Option<Timestamp>,
    /// Why, in the client's word.
    pub end_reason: Option<String>,
}
