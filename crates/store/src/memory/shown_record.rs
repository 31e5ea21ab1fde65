//! Records which revision of the memory each conversation has been shown. Only hooks that hold the memory's
//! lock write these records, so that no hook overwrites what another has recorded.

use super::{LockedMemory, MemoryHead, response_counter};
use crate::sessions::read_json_if_valid;
use crate::{Durability, Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::FrameOwner;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The memory contents that the conversations of one session have been shown: the main conversation, and those of the
/// subagents that work in its frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownMemoryState {
    #[serde(rename = "streams")]
    revisions_by_conversation: BTreeMap<String, ShownRevision>,
    /// The position up to which the session's main conversation had been shown everything while there was no
    /// frame.
    #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
    pub shown_position: Option<ShownPosition>,
    /// The call with which the session pushed its last frame.
    #[serde(rename = "pushed", skip_serializing_if = "Option::is_none")]
    pub last_push: Option<FramePush>,
    /// True if the session has popped the root frame since its last prompt.
    #[serde(rename = "done", skip_serializing_if = "std::ops::Not::not")]
    pub is_root_popped: bool,
    /// The ids of subagents that have ended. A subagent that is resumed later works in no frame.
    #[serde(rename = "ended", skip_serializing_if = "Vec::is_empty")]
    ended_subagents: Vec<String>,
}

/// The position of the memory up to which a conversation has been shown everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownPosition {
    /// The chain hash of the log's last line.
    pub link: String,
    /// The number of model responses that had been counted.
    #[serde(rename = "steps")]
    pub response_count: u64,
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
    /// The revision up to which the conversation has been shown everything.
    pub rev: u64,
    /// The value of `rev` before SessionStart showed everything. Several hooks do this at the same time, and
    /// each needs the value from before the first of them.
    #[serde(rename = "before_start")]
    pub rev_before_start: Option<u64>,
    /// The lowest revision that one of those hooks showed. The hooks may show different revisions, because another
    /// process may write between them.
    #[serde(rename = "least")]
    pub oldest_start_rev: Option<u64>,
    /// True if the session ended normally after this was shown, so that the client has stored it. A session that
    /// was killed may have lost it.
    #[serde(rename = "is_kept")]
    pub was_stored_by_client: bool,
    /// The number of model responses since all registers were shown.
    #[serde(rename = "calls")]
    pub calls_since_registers_shown: u32,
}

impl ShownRevision {
    /// Returns the revision up to which every hook has shown the conversation everything.
    pub fn fully_shown_rev(&self) -> u64 {
        self.oldest_start_rev.map_or(self.rev, |oldest| oldest.min(self.rev))
    }

    /// Returns the revision up to which a resumed session still has what it was shown.
    pub fn fully_shown_rev_after_resume(&self) -> u64 {
        self.rev_before_start.unwrap_or(if self.was_stored_by_client { self.fully_shown_rev() } else { 0 })
    }
}

impl ShownMemoryState {
    /// Returns what a conversation (`main`, or a subagent's id) has been shown; `None` if nothing.
    pub fn revision_shown_to(&self, conversation_key: &str) -> Option<ShownRevision> {
        self.revisions_by_conversation.get(conversation_key).copied()
    }

    /// Records what a conversation has been shown.
    pub fn set_shown_revision(&mut self, conversation_key: &str, revision: ShownRevision) {
        self.revisions_by_conversation.insert(conversation_key.to_owned(), revision);
    }

    /// Records, when the session ends normally, that the client has stored what its conversations were shown.
    pub fn mark_all_shown_revisions_stored_by_client(&mut self) {
        for revision in self.revisions_by_conversation.values_mut() {
            *revision = ShownRevision {
                rev: revision.fully_shown_rev(),
                calls_since_registers_shown: revision.calls_since_registers_shown,
                was_stored_by_client: true,
                ..ShownRevision::default()
            };
        }
    }

    /// Removes the revision of a subagent that has ended and adds its id to the ended subagents.
    pub fn move_subagent_to_ended_list(&mut self, subagent_id: &str) {
        self.revisions_by_conversation.remove(subagent_id);
        self.ended_subagents.push(subagent_id.to_owned());
        if self.ended_subagents.len() > MAX_ENDED_SUBAGENTS {
            self.ended_subagents.remove(0);
        }
    }

    /// Returns true if a subagent works in a frame now or has worked in one.
    pub fn has_worked_in_frame(&self, agent_id: &str) -> bool {
        self.revisions_by_conversation.contains_key(agent_id)
            || self.ended_subagents.iter().any(|ended_id| ended_id == agent_id)
    }

    /// Returns the id of the call with which the session pushed its last frame.
    pub fn last_push_call_id(&self) -> Option<&str> {
        self.last_push.as_ref().map(|push| push.call_id.as_str())
    }
}

/// The maximum number of ended subagents that are recorded.
const MAX_ENDED_SUBAGENTS: usize = 100;
/// The client keeps its transcripts for 30 days; after that the session cannot be resumed.
const RECORD_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3_600);

fn shown_memory_folder(project: &Project) -> PathBuf {
    project.memory_folder().join("seen")
}

/// Finds the agent whose call pushed the last frame of any session. Returns `None` if
/// `call_id` is not such a call.
pub fn find_owner_of_last_push_by_call_id(project: &Project, call_id: &str) -> Option<FrameOwner> {
    let folder = shown_memory_folder(project);
    let last_push_in_file =
        |name: &String| read_json_if_valid::<ShownMemoryState>(&folder.join(name))?.last_push;
    let last_push =
        disk::list_names(&folder).iter().filter_map(last_push_in_file).find(|push| push.call_id == call_id);
    last_push.map(|push| push.owner)
}

/// The minimum interval between two cleanups. A cleanup checks the records of all sessions of a month.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// Removes the records of sessions that can no longer be resumed, at most once a day.
pub fn remove_expired_shown_records_once_a_day(project: &Project) {
    let folder = shown_memory_folder(project);
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

/// Counts the current model response and returns true if the memory is unchanged since this conversation was shown
/// all of it, and its registers were shown fewer than `max_calls` responses ago. The hook then has nothing else to
/// do. Takes no lock, so a change that is written during the check is shown with the next response.
pub fn count_response_if_memory_unchanged<'m>(
    project: &Project,
    load_head: impl FnOnce() -> &'m MemoryHead,
    (session_id, conversation_key): (&SessionId, &str),
    max_calls_since_registers_shown: u32,
) -> bool {
    let record = load_shown_memory_state(project, session_id);
    let (Some(position), Some(revision)) =
        (&record.shown_position, record.revision_shown_to(conversation_key))
    else {
        return false;
    };
    let (session_response_count, appender) = response_counter::count_session_responses_and_open_appender(
        project,
        session_id,
        position.response_count,
    );
    let calls_since_registers_shown =
        u64::from(revision.calls_since_registers_shown) + session_response_count + 1;
    let is_unchanged = calls_since_registers_shown < u64::from(max_calls_since_registers_shown)
        && load_head().head.as_ref().is_some_and(|head| head.link == position.link);
    if let Some(appender) = appender.filter(|_| is_unchanged) {
        appender.append_response(session_id);
    }
    is_unchanged
}

impl ShownMemoryState {
    /// Returns the number of model responses of the session that were counted after the shown position. Returns 0
    /// if there is no shown position.
    pub fn calls_since_shown_position(&self, project: &Project, session_id: &SessionId) -> u32 {
        let session_response_count = self.shown_position.as_ref().map(|position| {
            response_counter::count_session_responses(project, session_id, position.response_count)
        });
        session_response_count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
    }
}

/// Loads the record of what a session's conversations have been shown; empty if there is no valid record.
pub fn load_shown_memory_state(project: &Project, session_id: &SessionId) -> ShownMemoryState {
    project.shown_record_path(session_id).and_then(|path| read_json_if_valid(&path)).unwrap_or_default()
}

impl LockedMemory<'_> {
    /// Applies a change to a session's record, and writes the record only if it is different.
    pub fn update_shown_memory_state(
        &self,
        session_id: &SessionId,
        change: impl FnOnce(&mut ShownMemoryState),
    ) -> Result<(), StoreError> {
        let Some(path) = self.project.shown_record_path(session_id) else { return Ok(()) };
        let old_record = load_shown_memory_state(self.project, session_id);
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
                (revision.fully_shown_rev(), revision.fully_shown_rev_after_resume()),
                (expected, kept),
                "{revision:?}"
            );
            let mut record = ShownMemoryState::default();
            record.set_shown_revision("main", revision);
            record.mark_all_shown_revisions_stored_by_client();
            let revision_after_end = record.revision_shown_to("main").unwrap();
            assert_eq!(
                (revision_after_end.fully_shown_rev(), revision_after_end.fully_shown_rev_after_resume()),
                (expected, expected),
                "{revision:?}, ended"
            );
        }
    }
}
