//! Records which revision of the memory each conversation has been shown. Only hooks that hold the memory's
//! lock write these records, so that no hook overwrites what another has recorded.

use super::{LockedMemory, MemoryHead, answer_marks};
use crate::sessions::read_json_if_valid;
use crate::{Durability, Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::FrameOwner;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What the conversations of one session have been shown: the session's own, and those of its frames'
/// subagents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownRecord {
    #[serde(rename = "streams")]
    revisions_by_conversation: BTreeMap<String, ShownRevision>,
    /// Up to where the session's own conversation had been shown everything while there was no frame.
    #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
    pub shown_position: Option<ShownPosition>,
    /// The call with which the session pushed its last frame.
    #[serde(rename = "pushed", skip_serializing_if = "Option::is_none")]
    pub last_push: Option<FramePush>,
    /// True if the session has popped the root frame since its last prompt.
    #[serde(rename = "done", skip_serializing_if = "std::ops::Not::not")]
    pub is_root_popped: bool,
    /// Subagents that have ended. One that is resumed later works in no frame.
    #[serde(rename = "ended", skip_serializing_if = "Vec::is_empty")]
    ended_subagents: Vec<String>,
}

/// The position of the memory up to which a conversation has been shown everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownPosition {
    /// The link of the log's last line.
    pub link: String,
    /// The number of model responses that had been counted.
    #[serde(rename = "steps")]
    pub answer_count: u64,
}

/// The call that pushed a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FramePush {
    /// The id of the model's tool call.
    #[serde(rename = "call")]
    pub call_id: String,
    /// The agent that made the call.
    pub owner: FrameOwner,
}

/// How much of the memory one conversation has been shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownRevision {
    /// It has been shown everything up to this revision.
    pub rev: u64,
    /// The value of `rev` before SessionStart showed everything. Several hooks do this at the same time, and
    /// each needs the value from before the first of them.
    #[serde(rename = "before_start")]
    pub rev_before_start: Option<u64>,
    /// The lowest revision that one of those hooks showed: another process may write between them.
    #[serde(rename = "least")]
    pub oldest_start_rev: Option<u64>,
    /// True if the session has ended normally since: then the client has stored what was shown. A session
    /// that was killed may have lost it.
    #[serde(rename = "is_kept")]
    pub was_stored_by_client: bool,
    /// The number of the model's calls since all registers were shown.
    #[serde(rename = "calls")]
    pub calls_since_registers: u32,
}

impl ShownRevision {
    /// Returns the revision up to which the conversation has been shown everything.
    pub fn shown_up_to(&self) -> u64 {
        self.oldest_start_rev.map_or(self.rev, |oldest| oldest.min(self.rev))
    }

    /// Returns the revision up to which a resumed session still has what it was shown.
    pub fn shown_up_to_after_resume(&self) -> u64 {
        self.rev_before_start.unwrap_or(if self.was_stored_by_client { self.shown_up_to() } else { 0 })
    }
}

impl ShownRecord {
    /// Returns what a conversation (`main`, or a subagent's id) has been shown; `None` if nothing.
    pub fn shown_to(&self, conversation: &str) -> Option<ShownRevision> {
        self.revisions_by_conversation.get(conversation).copied()
    }

    /// Records what a conversation has been shown.
    pub fn record_shown(&mut self, conversation: &str, revision: ShownRevision) {
        self.revisions_by_conversation.insert(conversation.to_owned(), revision);
    }

    /// Records that the session has ended normally.
    pub fn record_session_end(&mut self) {
        for revision in self.revisions_by_conversation.values_mut() {
            *revision = ShownRevision {
                rev: revision.shown_up_to(),
                calls_since_registers: revision.calls_since_registers,
                was_stored_by_client: true,
                ..ShownRevision::default()
            };
        }
    }

    /// Records that a subagent has ended, so that it is shown nothing more.
    pub fn record_subagent_end(&mut self, subagent: &str) {
        self.revisions_by_conversation.remove(subagent);
        self.ended_subagents.push(subagent.to_owned());
        if self.ended_subagents.len() > MAX_ENDED_SUBAGENTS {
            self.ended_subagents.remove(0);
        }
    }

    /// Returns true if a subagent works or has worked in a frame.
    pub fn has_worked_in_frame(&self, agent: &str) -> bool {
        self.revisions_by_conversation.contains_key(agent)
            || self.ended_subagents.iter().any(|ended| ended == agent)
    }

    /// Returns the id of the call with which the session pushed its last frame.
    pub fn last_push_call_id(&self) -> Option<&str> {
        self.last_push.as_ref().map(|pushed| pushed.call_id.as_str())
    }
}

/// The maximum number of ended subagents that are recorded.
const MAX_ENDED_SUBAGENTS: usize = 100;
/// The client keeps its transcripts for thirty days; after that the session cannot be resumed.
const RECORD_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3_600);

fn shown_records_folder(project: &Project) -> PathBuf {
    project.memory_folder().join("seen")
}

/// Finds the agent, of any session, that pushed a frame with this call.
pub fn find_frame_pusher(project: &Project, call_id: &str) -> Option<FrameOwner> {
    let folder = shown_records_folder(project);
    let last_push_in_file = |name: &String| read_json_if_valid::<ShownRecord>(&folder.join(name))?.last_push;
    let pushed = disk::list_names(&folder)
        .iter()
        .filter_map(last_push_in_file)
        .find(|pushed| pushed.call_id == call_id);
    pushed.map(|pushed| pushed.owner)
}

/// The interval between two cleanups. There may be a record for each session of a month.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// Removes the records of sessions that can no longer be resumed, at most once a day.
pub fn remove_expired_shown_records(project: &Project) {
    let folder = shown_records_folder(project);
    let cleanup_marker = project.memory_folder().join("seen.swept");
    if disk::time_since_modified(&cleanup_marker).is_some_and(|age| age < CLEANUP_INTERVAL) {
        return;
    }
    // Written before the cleanup: records that remain after a kill are removed the next day.
    if disk::replace(&cleanup_marker, b"", Durability::Lazy).is_err() {
        return;
    }
    for path in disk::list_names(&folder).into_iter().map(|name| folder.join(name)) {
        if disk::time_since_modified(&path).is_some_and(|age| age > RECORD_LIFETIME) {
            // An error is ignored: a remaining record takes a hundred bytes.
            let _ = disk::remove_if_exists(&path);
        }
    }
}

/// Counts the current model response and returns true if the memory is unchanged since the session's own
/// conversation was shown all of it, fewer than `most_calls` of its calls ago. Then the hook need do nothing
/// else. Takes no lock, so a change that is written during the check is shown with the next call.
pub fn count_answer_if_memory_unchanged<'m>(
    project: &Project,
    load_head: impl FnOnce() -> &'m MemoryHead,
    (session_id, conversation): (&SessionId, &str),
    most_calls: u32,
) -> bool {
    let record = load_shown_record(project, session_id);
    let (Some(position), Some(revision)) = (&record.shown_position, record.shown_to(conversation)) else {
        return false;
    };
    let (own_answers, appender) =
        answer_marks::answers_of_session_and_appender(project, session_id, position.answer_count);
    let calls = u64::from(revision.calls_since_registers) + own_answers + 1;
    let is_unchanged = calls < u64::from(most_calls)
        && load_head().head.as_ref().is_some_and(|head| head.link == position.link);
    if let Some(appender) = appender.filter(|_| is_unchanged) {
        appender.append_answer(session_id);
    }
    is_unchanged
}

impl ShownRecord {
    /// Returns how many calls the session's own conversation has made since it was shown everything, counting
    /// only calls that wrote nothing to this record.
    pub fn calls_since_shown_position(&self, project: &Project, session_id: &SessionId) -> u32 {
        let own_answers = self
            .shown_position
            .as_ref()
            .map(|told| answer_marks::answers_of_session(project, session_id, told.answer_count));
        own_answers.and_then(|calls| u32::try_from(calls).ok()).unwrap_or(0)
    }
}

/// Loads what the conversations of a session have been shown; empty if there is no record.
pub fn load_shown_record(project: &Project, session_id: &SessionId) -> ShownRecord {
    project.shown_record_path(session_id).and_then(|path| read_json_if_valid(&path)).unwrap_or_default()
}

impl LockedMemory<'_> {
    /// Changes a session's record, and writes it only if it is different.
    pub fn update_shown_record(
        &self,
        session_id: &SessionId,
        change: impl FnOnce(&mut ShownRecord),
    ) -> Result<(), StoreError> {
        let Some(path) = self.project.shown_record_path(session_id) else { return Ok(()) };
        let old_record = load_shown_record(self.project, session_id);
        let mut new_record = old_record.clone();
        change(&mut new_record);
        if new_record == old_record {
            return Ok(());
        }
        disk::replace(&path, &serde_json::to_vec(&new_record).unwrap_or_default(), Durability::Lazy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_normal_end_keeps_what_the_slowest_hook_showed() {
        let revision = ShownRevision { rev: 5, ..ShownRevision::default() };
        for (revision, expected, kept) in [
            (revision, 5, 0),
            (ShownRevision { was_stored_by_client: true, ..revision }, 5, 5),
            (ShownRevision { oldest_start_rev: Some(4), was_stored_by_client: true, ..revision }, 4, 4),
            (ShownRevision { oldest_start_rev: Some(6), ..revision }, 5, 0),
            // During a start all hooks use the revision from before it.
            (ShownRevision { rev_before_start: Some(3), ..revision }, 5, 3),
        ] {
            assert_eq!(
                (revision.shown_up_to(), revision.shown_up_to_after_resume()),
                (expected, kept),
                "{revision:?}"
            );
            let mut record = ShownRecord::default();
            record.record_shown("main", revision);
            record.record_session_end();
            let revision_after_end = record.shown_to("main").unwrap();
            assert_eq!(
                (revision_after_end.shown_up_to(), revision_after_end.shown_up_to_after_resume()),
                (expected, expected),
                "{revision:?}, ended"
            );
        }
    }
}
