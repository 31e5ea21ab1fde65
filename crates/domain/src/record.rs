//! What is remembered about one session: the last reading, what has been announced, and the evidence of its
//! end. Hooks write it; nothing in it is ever used for another session.

use crate::forecast::Fill;
use crate::ids::{RunId, SessionId};
use crate::level::Level;
use crate::reading::Reading;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `.claude/plimsoll/sessions/<session>.json`. What is absent is not written: every hook reads the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRecord {
    /// The session.
    pub session_id: SessionId,
    /// True when the file that was there could not be read: it is set aside before this one is written.
    #[serde(skip)]
    pub unreadable: bool,
    /// The run that owns it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its iteration in that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The transcript, as the client named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_path: Option<String>,
    /// The client's process, as it named it at SessionStart; none if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientProcess>,
    /// When SessionStart came, RFC 3339 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// HEAD at that moment: what was committed since is work of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_at_start: Option<String>,
    /// What the client's settings said about compaction when the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_settings: Option<ClientSettings>,
    /// The last reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// Its deciding figure, whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// Its client's figure, whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent_used: Option<u64>,
    /// The highest deciding figure of the session.
    pub peak_percent: u64,
    /// The most tokens that came from one reading to the next: L2 leaves room for such a step. Readings that do not move
    /// the whole percent are not kept, so it may be up to one percent of the window too large.
    #[serde(skip_serializing_if = "is_default")]
    pub largest_step: u64,
    /// The highest level announced since the last compaction.
    #[serde(skip_serializing_if = "is_default")]
    pub announced: Level,
    /// The deciding figure at which that level was announced, whole percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced_percent: Option<u64>,
    /// Compactions so far.
    #[serde(skip_serializing_if = "is_default")]
    pub compactions: u32,
    /// The measured fill in tokens when the checkpoint was announced.
    #[serde(skip_serializing_if = "is_default")]
    pub checkpoint_tokens: u64,
    /// Batches of tools since then.
    #[serde(skip_serializing_if = "is_default")]
    pub batches_since_checkpoint: u32,
    /// The message whose tools were counted last, on clients that report each tool apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_message: Option<String>,
    /// Its own commits: from one to the next is a step.
    #[serde(skip_serializing_if = "is_default")]
    pub commits: Commits,
    /// A checkpoint that has been claimed and not yet committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The last handoff, relative to the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// True once the run was cancelled with `plimsoll stop`: the session's next hook ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Why a hook of ours ended the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by_us: Option<String>,
    /// What the gate saw at Stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopEvidence>,
    /// What StopFailure said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureEvidence>,
    /// The gate's last word that the session may continue with the next item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// How often the monitor waited for the client's transcript writer.
    pub waits: u32,
    /// How long in all, milliseconds.
    pub waited_ms: u64,
    /// When SessionEnd came, RFC 3339 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why, in the client's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientSettings {
    /// `autoCompactEnabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compact_enabled: Option<bool>,
    /// `autoCompactWindow`, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compact_window: Option<u64>,
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
}

/// How many fills are kept at most.
pub const FILLS_KEPT: usize = 25;

impl StatusRecord {
    /// Notes the fill after a response. A window that has become emptier was compacted or cleared: what was before
    /// says nothing of what comes.
    pub fn note_fill(&mut self, used: u64, now: i64) {
        match self.fills.last() {
            Some(last) if *last == used => return,
            Some(last) if *last > used => self.fills.clear(),
            _ => {}
        }
        // An older version of ours kept no times.
        let timed = self.fill_times.len().min(self.fills.len());
        self.fill_times.drain(..self.fill_times.len() - timed);
        self.fills.push(used);
        self.fill_times.push(now);
        let surplus = self.fills.len().saturating_sub(FILLS_KEPT);
        self.fills.drain(..surplus);
        let surplus = self.fill_times.len().saturating_sub(FILLS_KEPT);
        self.fill_times.drain(..surplus);
    }

    /// The fills with their times, as far as these are known.
    pub fn timed_fills(&self) -> Vec<Fill> {
        let untimed = self.fills.len().saturating_sub(self.fill_times.len());
        let times = std::iter::repeat_n(None, untimed).chain(self.fill_times.iter().copied().map(Some));
        self.fills.iter().zip(times).map(|(used, at)| Fill { used: *used, at }).collect()
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
    use serde_json::Value;

    /// A record as the version before the present types wrote it: of a real session, with what that session did not meet
    /// put in.
    const OLD: &str = include_str!("record/old.json");

    #[test]
    fn a_record_of_an_older_version_is_read_and_loses_nothing() {
        let old: Value = serde_json::from_str(OLD).unwrap();
        let record: SessionRecord = serde_json::from_str(OLD).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), old);
    }
}
