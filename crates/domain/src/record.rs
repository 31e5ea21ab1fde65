//! What is remembered about one session: the last reading, what has been announced, and the evidence of its
//! end. Hooks write it; nothing in it is ever used for another session.

mod groups;
mod stored;

pub use groups::{Announced, CheckpointProgress, EndEvidence, StartFacts, UsageSeen, WriterWaits};
pub use plimsoll_protocol::client_settings::CompactionWindow;

use crate::forecast::Fill;
use crate::ids::SessionId;
use crate::level::Level;
use crate::status::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `.claude/plimsoll/sessions/<session>.json`. What is absent is not written: every hook reads the file.
// The file has the groups' fields side by side. `flatten` would read it through a map, which every hook would pay for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "stored::StoredRecord")]
pub struct SessionRecord {
    /// The session.
    pub session_id: SessionId,
    /// True when the file that was there could not be read: it is set aside before this one is written.
    pub unreadable: bool,
    /// What SessionStart found.
    pub start: StartFacts,
    /// The usage of the context window, as it was last read.
    pub usage: UsageSeen,
    /// The highest level announced since the last compaction.
    pub announced: Announced,
    /// Compactions so far.
    pub compactions: u32,
    /// The checkpoint: the one being written, and the work since the last one.
    pub checkpoint: CheckpointProgress,
    /// Its own commits: from one to the next is a step.
    pub commits: Commits,
    /// The gate's last word that the session may continue with the next item.
    pub continuation: Option<Continuation>,
    /// The monitor's waits for the client's transcript writer.
    pub waits: WriterWaits,
    /// How the session ended, or is to end.
    pub end: EndEvidence,
}

/// A client's process: a pid comes back, a pid with its start time does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientProcess {
    /// The process id.
    pub pid: u32,
    /// When it began, in the system's own ticks since boot.
    pub started: u64,
}

/// What the client's own settings say about compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientSettings {
    /// `autoCompactEnabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compact_enabled: Option<bool>,
    /// Every `autoCompactWindow`, in the order in which the client looks for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compaction_windows: Vec<CompactionWindow>,
    /// When the settings files were written last, in nanoseconds since 1970; 0 for a file that is not there. `/autocompact`
    /// writes one in the middle of a session.
    #[serde(skip_serializing_if = "is_unknown")]
    pub written: [u64; 3],
}

fn is_unknown(written: &[u64; 3]) -> bool {
    *written == [0; 3]
}

/// The commits that a session of a run has made itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Commits {
    /// HEAD after the last one; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The fill at each since the last compaction, in tokens; the last ones.
    pub fills: Vec<u64>,
    /// True once the session was told to end at one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

impl Commits {
    /// Adds one; false if it is known. If its usage is unknown, two steps would become one, so the list starts again.
    pub fn note(&mut self, head: &str, fill: Option<u64>) -> bool {
        let is_new = self.head.as_deref() != Some(head);
        if is_new {
            self.head = Some(head.to_owned());
            match fill {
                Some(fill) => self.fills.push(fill),
                None => self.fills.clear(),
            }
            let too_many = self.fills.len().saturating_sub(FILLS_KEPT);
            self.fills.drain(..too_many);
        }
        is_new
    }
}

/// A checkpoint in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The level that asked for it.
    pub level: Level,
    /// The deciding figure.
    pub percent: u64,
    /// The process that claimed it.
    pub pid: u32,
    /// When, RFC 3339 UTC with milliseconds.
    pub at: Timestamp,
}

/// The gate's word that the session may continue with the next item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Continuation {
    /// The item.
    pub item: String,
    /// How many items were ticked by then.
    pub done: usize,
    /// The fill at that moment, in tokens.
    pub tokens: u64,
    /// How often the session has been told this.
    pub count: u32,
    /// When, RFC 3339 UTC with milliseconds.
    pub at: Timestamp,
    /// True until the session has ended its turn again.
    pub open: bool,
}

/// What the gate saw at Stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopEvidence {
    /// When, RFC 3339 UTC.
    pub at: Timestamp,
    /// The end of the last assistant message.
    pub last_words: String,
    /// Tasks still running in the background.
    pub background_tasks: usize,
    /// Wakeups still scheduled.
    pub session_crons: usize,
}

/// What StopFailure said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureEvidence {
    /// When, RFC 3339 UTC.
    pub at: Timestamp,
    /// The client's word for the error.
    pub error: String,
    /// The client's message to the user, else the API's own words.
    pub details: String,
}

/// What the status line published: the client's own figures for one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusRecord {
    /// The session.
    pub session_id: SessionId,
    /// The model, with its `[1m]` suffix.
    pub model: Option<String>,
    /// The window in tokens.
    pub window: Option<u64>,
    /// Tokens sent with the last request.
    pub used: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
    /// When these figures were first seen, RFC 3339 UTC with milliseconds.
    pub at: Timestamp,
    /// The fill after each of the last responses since the last compaction, oldest first, in tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fills: Vec<u64>,
    /// When each of them was first seen, in seconds since 1970.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fill_times: Vec<i64>,
    /// What git said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitRecord>,
    /// What the project's run was like when its state was last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunGlance>,
}

/// As much of a run as the status line shows, and of which state: a plan may be long, and the line is asked for at every
/// render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGlance {
    /// The file that says so, as the file system knows its content.
    pub file: String,
    /// The status of the run.
    pub status: Status,
    /// The current session's number.
    pub iteration: u32,
    /// The last one allowed.
    pub max_iterations: u32,
    /// The number of open items.
    pub open: usize,
    /// The number of ticked items.
    pub done: usize,
    /// The current item, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Until when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The percent of a checkpoint that waits for its resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// How many fills are kept at most.
pub const FILLS_KEPT: usize = 25;

impl StatusRecord {
    /// Notes the fill after a response. A window that has become emptier was compacted or cleared: what was before
    /// says nothing of what comes.
    pub fn note_fill(&mut self, used: u64, now: i64) {
        match self.fills.last() {
            Some(last) if *last == used => return,
            Some(last) if *last > used => {
                self.fills.clear();
                self.fill_times.clear();
            }
            _ => {}
        }
        self.fills.push(used);
        self.fill_times.push(now);
        let surplus = self.fills.len().saturating_sub(FILLS_KEPT);
        self.fills.drain(..surplus);
        let surplus = self.fill_times.len().saturating_sub(FILLS_KEPT);
        self.fill_times.drain(..surplus);
    }

    /// The fills with their times.
    pub fn timed_fills(&self) -> Vec<Fill> {
        self.fills
            .iter()
            .zip(&self.fill_times)
            .map(|(used, at)| Fill { used: *used, at: Some(*at) })
            .collect()
    }
}

/// What git said, and of what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitRecord {
    /// The working directory.
    pub folder: String,
    /// HEAD and the index as they were: their text and time.
    pub state: String,
    /// The counts; none if it has never answered in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<GitCounts>,
    /// When it was asked last, milliseconds since 1970.
    pub asked_at: i64,
    /// True when it did not answer in time then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The branch as git named it, if the files do not contain it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch: String,
}

/// What one `git status` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitCounts {
    /// Commits that upstream lacks.
    pub ahead: u64,
    /// Commits that are missing here.
    pub behind: u64,
    /// Files in conflict.
    pub conflicts: u64,
    /// Files with changes in the index.
    pub staged: u64,
    /// Files with changes outside it.
    pub modified: u64,
    /// New files and folders.
    pub untracked: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a real session, with what that session did not meet put in.
    const WRITTEN: &str = include_str!("record/written.json");

    #[test]
    fn a_record_is_written_with_its_fields_side_by_side_in_the_same_order() {
        let record: SessionRecord = serde_json::from_str(WRITTEN).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), WRITTEN.trim_end());
        let fresh = SessionRecord { unreadable: true, ..SessionRecord::default() };
        let written = serde_json::to_string(&fresh).unwrap();
        assert_eq!(written, r#"{"format":1,"session_id":"","peak_percent":0,"waits":0,"waited_ms":0}"#);
        assert_eq!(serde_json::from_str::<SessionRecord>(&written).unwrap(), SessionRecord::default());
        assert_eq!(serde_json::from_str::<SessionRecord>("{}").unwrap(), SessionRecord::default());
        let mut grown = fresh;
        grown.usage.largest_step = 5;
        let written = serde_json::to_string(&grown).unwrap();
        let expected =
            r#"{"format":1,"session_id":"","peak_percent":0,"largest_step":5,"waits":0,"waited_ms":0}"#;
        assert_eq!(written, expected);
    }
}
