//! The record of one session: the last reading, the announced levels, and the evidence of the session's end. It is
//! written by the hooks, and never used for another session.

mod groups;
mod stored;

pub use groups::{
    CheckpointProgress, LastUsage, LevelAnnouncement, SessionEndEvidence, StartFacts, WriterWaits,
};
pub use plimsoll_protocol::client_settings::CompactionWindow;

use crate::forecast::UsageSample;
use crate::ids::SessionId;
use crate::level::Level;
use crate::status::RunStatus;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The content of `.claude/plimsoll/sessions/<session>.json`. Absent values are not written, to keep the file short:
/// every hook reads it.
// In the file the fields of all groups are on one level. `serde(flatten)` would read them through a map,
// which would slow down every hook.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "stored::StoredRecord")]
pub struct SessionRecord {
    pub session_id: SessionId,
    /// True if the existing file could not be read. It is moved aside before this record is written.
    pub was_unreadable: bool,
    /// The values that were recorded at SessionStart.
    pub start: StartFacts,
    /// The last known usage of the context window.
    pub usage: LastUsage,
    /// The highest level announced since the last compaction.
    pub highest_announcement: LevelAnnouncement,
    /// The number of compactions so far.
    pub compaction_count: u32,
    /// The checkpoint that is being written, and the work since the last one.
    pub checkpoint_progress: CheckpointProgress,
    /// The commits of this session. The work between two of them is one step.
    pub own_commits: SessionCommits,
    /// The gate's last notice that the session may continue with the next item.
    pub continuation: Option<ContinuationNotice>,
    /// The monitor's waits for the client's transcript writer.
    pub writer_waits: WriterWaits,
    /// How the session ended, or why it has to end.
    pub end: SessionEndEvidence,
}

/// A client's process. A pid can be reused, but not together with the same start time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientProcess {
    /// The process id.
    pub pid: u32,
    /// The start time, in the system's own ticks since boot.
    #[serde(rename = "started")]
    pub started_at_ticks: u64,
}

/// The client's settings for compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientCompactionSettings {
    /// `autoCompactEnabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compact_enabled: Option<bool>,
    /// Every `autoCompactWindow`, in the client's order of precedence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compaction_windows: Vec<CompactionWindow>,
    /// The modification times of the settings files, in nanoseconds since 1970; 0 for a missing file. They are
    /// compared because `/autocompact` changes a settings file during a session.
    #[serde(rename = "written", skip_serializing_if = "are_times_unknown")]
    pub modified_times_ns: [u64; 3],
}

fn are_times_unknown(written: &[u64; 3]) -> bool {
    *written == [0; 3]
}

/// The commits that a session of a run has made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionCommits {
    /// HEAD after the last commit; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The context usage at the last commits since the last compaction, in tokens, oldest first.
    #[serde(rename = "fills")]
    pub usage_samples: Vec<u64>,
    /// True if the session was asked to end after a commit.
    #[serde(rename = "told", skip_serializing_if = "std::ops::Not::not")]
    pub was_asked_to_end: bool,
}

impl SessionCommits {
    /// Records a commit and the context usage at that time. Returns false if the commit is already recorded. If the
    /// usage is unknown, all samples are cleared, because two steps would look like one.
    pub fn record_commit_if_new(&mut self, head: &str, usage_tokens: Option<u64>) -> bool {
        let is_new = self.head.as_deref() != Some(head);
        if is_new {
            self.head = Some(head.to_owned());
            match usage_tokens {
                Some(used_tokens) => self.usage_samples.push(used_tokens),
                None => self.usage_samples.clear(),
            }
            let excess_count = self.usage_samples.len().saturating_sub(MAX_USAGE_SAMPLES);
            self.usage_samples.drain(..excess_count);
        }
        is_new
    }
}

/// A checkpoint that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointClaim {
    /// The level that triggered it.
    pub level: Level,
    /// The projected usage in percent.
    pub percent: u64,
    /// The process that writes it.
    pub pid: u32,
    /// The time, RFC 3339 UTC with milliseconds.
    #[serde(rename = "at")]
    pub claimed_at: Timestamp,
}

/// The gate's notice that the session may continue with the next item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContinuationNotice {
    /// The next item.
    pub item: String,
    /// The number of ticked items at that time.
    #[serde(rename = "done")]
    pub done_count: usize,
    /// The context usage at that time, in tokens.
    #[serde(rename = "tokens")]
    pub usage_tokens: u64,
    /// How many times the session has received such a notice.
    #[serde(rename = "count")]
    pub sent_count: u32,
    /// The time, RFC 3339 UTC with milliseconds.
    #[serde(rename = "at")]
    pub sent_at: Timestamp,
    /// True until the session ends its turn again.
    #[serde(rename = "open")]
    pub is_open: bool,
}

/// The gate's record of a Stop event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopEvidence {
    /// The time, RFC 3339 UTC.
    #[serde(rename = "at")]
    pub stopped_at: Timestamp,
    /// The end of the last assistant message.
    #[serde(rename = "last_words")]
    pub end_of_last_message: String,
    /// The number of tasks that were still running in the background.
    pub background_tasks: usize,
    /// The number of wakeups that were still scheduled.
    pub session_crons: usize,
}

/// The content of a StopFailure event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureEvidence {
    /// The time, RFC 3339 UTC.
    #[serde(rename = "at")]
    pub failed_at: Timestamp,
    /// The name that the client gives the error.
    #[serde(rename = "error")]
    pub error_kind: String,
    /// The client's message to the user, or the message of the API if there is none.
    pub details: String,
}

/// The client's values for one session, as recorded by the status line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusLineRecord {
    pub session_id: SessionId,
    /// The model, with its `[1m]` suffix.
    pub model: Option<String>,
    /// The window in tokens.
    #[serde(rename = "window")]
    pub window_tokens: Option<u64>,
    /// The input tokens of the last request.
    #[serde(rename = "used")]
    pub used_tokens: Option<u64>,
    /// The output tokens of the response.
    #[serde(rename = "output")]
    pub output_tokens: Option<u64>,
    /// When these values were first seen, RFC 3339 UTC with milliseconds.
    #[serde(rename = "at")]
    pub first_seen_at: Timestamp,
    /// The context usage after each of the last responses since the last compaction, oldest first, in tokens.
    #[serde(rename = "fills", skip_serializing_if = "Vec::is_empty")]
    pub usage_samples: Vec<u64>,
    /// When each of these samples was first seen, in seconds since 1970.
    #[serde(rename = "fill_times", skip_serializing_if = "Vec::is_empty")]
    pub usage_sample_times: Vec<i64>,
    /// The last result of `git status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitRecord>,
    /// The project's run, as of the last read of its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<StatusLineRun>,
}

/// The part of a run's state that the status line shows. It is cached, because the plan may be long and the client
/// runs the status line command at every render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLineRun {
    /// The change stamp of the state file at the last read.
    #[serde(rename = "file")]
    pub state_file_stamp: String,
    /// The status of the run.
    pub status: RunStatus,
    /// The current session's number.
    pub iteration: u32,
    /// The maximum number of sessions.
    pub max_iterations: u32,
    /// The number of open items.
    #[serde(rename = "open")]
    pub open_count: usize,
    /// The number of ticked items.
    #[serde(rename = "done")]
    pub done_count: usize,
    /// The current item, truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The end of the pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The context usage in percent at the checkpoint that is to be resumed.
    #[serde(rename = "checkpoint", default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_percent: Option<u64>,
}

/// The maximum number of usage samples that are kept.
pub const MAX_USAGE_SAMPLES: usize = 25;

impl StatusLineRecord {
    /// Records the context usage after a response, unless it equals the last sample. A lower usage means that the
    /// context was compacted or cleared, so the older samples are dropped: they do not predict future usage.
    pub fn record_usage_if_changed_clearing_on_decrease(&mut self, used_tokens: u64, now_seconds: i64) {
        match self.usage_samples.last() {
            Some(last_sample) if *last_sample == used_tokens => return,
            Some(last_sample) if *last_sample > used_tokens => {
                self.usage_samples.clear();
                self.usage_sample_times.clear();
            }
            _ => {}
        }
        self.usage_samples.push(used_tokens);
        self.usage_sample_times.push(now_seconds);
        let excess_count = self.usage_samples.len().saturating_sub(MAX_USAGE_SAMPLES);
        self.usage_samples.drain(..excess_count);
        let excess_count = self.usage_sample_times.len().saturating_sub(MAX_USAGE_SAMPLES);
        self.usage_sample_times.drain(..excess_count);
    }

    /// Returns the usage samples with their times.
    pub fn timed_usage_samples(&self) -> Vec<UsageSample> {
        self.usage_samples
            .iter()
            .zip(&self.usage_sample_times)
            .map(|(used_tokens, sampled_at)| UsageSample {
                used_tokens: *used_tokens,
                unix_seconds: Some(*sampled_at),
            })
            .collect()
    }
}

/// The last result of `git status`, and the state of the repository that it describes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitRecord {
    /// The working directory.
    pub folder: String,
    /// The content and the modification times of HEAD and the index.
    #[serde(rename = "state")]
    pub head_and_index_stamp: String,
    /// The counts; `None` if git has always timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<GitCounts>,
    /// When git was last run, in milliseconds since 1970.
    #[serde(rename = "asked_at")]
    pub queried_at_ms: i64,
    /// True if git timed out in that run.
    #[serde(rename = "late", skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The branch that git reported, if it cannot be read from the files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch: String,
}

/// The counts of one `git status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitCounts {
    /// Commits that upstream lacks.
    pub ahead: u64,
    /// Commits that only upstream has.
    pub behind: u64,
    /// Files in conflict.
    pub conflicts: u64,
    /// Files with changes in the index.
    pub staged: u64,
    /// Files with changes that are not in the index.
    pub modified: u64,
    /// New files and folders.
    pub untracked: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a real session, completed with the fields that this session did not write.
    const STORED_RECORD: &str = include_str!("record/written.json");

    #[test]
    fn a_record_is_written_with_all_fields_on_one_level_in_order() {
        let record: SessionRecord = serde_json::from_str(STORED_RECORD).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), STORED_RECORD.trim_end());
        let fresh = SessionRecord { was_unreadable: true, ..SessionRecord::default() };
        let written = serde_json::to_string(&fresh).unwrap();
        assert_eq!(written, r#"{"format":1,"session_id":"","peak_percent":0,"waits":0,"waited_ms":0}"#);
        assert_eq!(serde_json::from_str::<SessionRecord>(&written).unwrap(), SessionRecord::default());
        assert_eq!(serde_json::from_str::<SessionRecord>("{}").unwrap(), SessionRecord::default());
        let mut record_with_usage = fresh;
        record_with_usage.usage.largest_step = 5;
        let written = serde_json::to_string(&record_with_usage).unwrap();
        let expected =
            r#"{"format":1,"session_id":"","peak_percent":0,"largest_step":5,"waits":0,"waited_ms":0}"#;
        assert_eq!(written, expected);
    }
}
