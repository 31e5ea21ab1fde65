//! Groups of fields of a session's record that are read and written together. In the file the fields of all
//! groups are on one level.

use super::{CheckpointClaim, ClientCompactionSettings, ClientProcess, FailureEvidence, StopEvidence};
use crate::ids::RunId;
use crate::level::Level;
use crate::reading::UsageReading;
use crate::time::Timestamp;

/// The facts from SessionStart: the session's run, its client, and the state of the project.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartFacts {
    /// The run that owns the session, if one does.
    pub run_id: Option<RunId>,
    /// The iteration of that run.
    pub iteration: Option<u32>,
    /// The path of the transcript, as given by the client.
    pub transcript_path: Option<String>,
    /// The client's process; `None` if it is unknown.
    pub client: Option<ClientProcess>,
    /// The client's settings about compaction.
    pub client_compaction_settings: Option<ClientCompactionSettings>,
    /// When SessionStart first fired, RFC 3339 UTC.
    pub started_at: Option<Timestamp>,
    /// HEAD at that time. Everything that was committed since is work of this session.
    pub head_at_start: Option<String>,
}

/// The usage of the context window, as the monitor last read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastUsage {
    pub last_reading: Option<UsageReading>,
    /// Its projected usage, in whole percent.
    pub projected_percent: Option<u64>,
    /// The usage as the client shows it, in whole percent.
    pub percent_used_by_client: Option<u64>,
    /// The highest projected usage of the session, in whole percent.
    pub peak_projected_percent: u64,
    /// The largest increase in tokens between two readings; L2 leaves room for such a step. Readings that do
    /// not change the whole percent are not kept, so the value may be too large by up to one percent of the
    /// window.
    pub largest_step: u64,
}

/// The highest level announced since the last compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelAnnouncement {
    /// The level; L0 if none was announced.
    pub level: Level,
    /// The projected usage at the announcement, in whole percent; `None` if no level was announced.
    pub projected_percent: Option<u64>,
}

/// The checkpoint: the one being written, and the work since the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointProgress {
    /// A checkpoint that has been claimed and not yet committed.
    pub open_claim: Option<CheckpointClaim>,
    /// The path of the last handoff, relative to the project.
    pub last_handoff: Option<String>,
    /// True if a fresh conversation began with that handoff, so that it is not offered to a later session.
    pub is_handoff_continued: bool,
    /// The measured usage in tokens when the checkpoint was announced.
    pub announced_at_tokens: u64,
    /// The number of tool batches since then.
    pub tool_batches_since: u32,
    /// The message whose tools were counted last, for clients that report each tool separately.
    pub counted_message: Option<String>,
}

/// The monitor's waits for the client's transcript writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterWaits {
    /// The number of waits.
    pub count: u32,
    /// The total time of all waits, in milliseconds.
    pub total_ms: u64,
}

/// How the session ended, or why it has to end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionEndEvidence {
    /// True once the run was canceled with `plimsoll stop`. The session's next hook then ends the session.
    pub is_canceled: bool,
    /// The reason, if a hook of Plimsoll ended the session.
    pub hook_end_reason: Option<String>,
    /// What the gate recorded when Stop fired.
    pub stop: Option<StopEvidence>,
    /// What StopFailure reported.
    pub failure: Option<FailureEvidence>,
    /// When SessionEnd fired, RFC 3339 UTC.
    pub ended_at: Option<Timestamp>,
    /// The client's reason for the end of the session.
    pub client_end_reason: Option<String>,
}
