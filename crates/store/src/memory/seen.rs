//! Which revision of the memory each conversation has been shown. Only hooks that hold the memory's lock write it, so that
//! none overwrites what another has recorded.

use super::{Held, Standing, steps};
use crate::sessions::load_parsed;
use crate::{Durability, Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::Owner;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What the conversations of one session have been shown: its own, and those of its frames' subagents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    streams: BTreeMap<String, SeenRevision>,
    /// What the session's own conversation has been told while there was no frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// How the session pushed its last frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Pushed>,
    /// True if the session has popped the root frame since its last prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    /// Subagents that have ended. One that is resumed later works in no frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<String>,
}

/// A memory of which a conversation has been told everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The link of the log's last line.
    pub link: String,
    /// How many answers of models had been counted by then.
    pub steps: u64,
}

/// The call that pushed a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pushed {
    /// The id of the model's tool call.
    pub call: String,
    /// The agent that made it.
    pub owner: Owner,
}

/// How much of the memory one conversation has been shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenRevision {
    /// It has been shown everything up to this revision.
    pub rev: u64,
    /// The revision before SessionStart showed everything. Several hooks do so at once, and each needs the state before the
    /// first of them.
    pub before_start: Option<u64>,
    /// The oldest revision that one of those hooks showed: another process may write between them.
    pub least: Option<u64>,
    /// True if the session has ended in order since: then the client has stored what was shown. One that was killed may
    /// have lost it.
    pub is_kept: bool,
    /// The model's calls since all registers were shown.
    pub calls: u32,
}

impl SeenRevision {
    /// The revision up to which there is nothing new for the conversation.
    pub fn knows(&self) -> u64 {
        self.least.map_or(self.rev, |least| least.min(self.rev))
    }

    /// The revision up to which a resumed session needs to be shown nothing.
    pub fn kept(&self) -> u64 {
        self.before_start.unwrap_or(if self.is_kept { self.knows() } else { 0 })
    }
}

impl Seen {
    /// What a conversation (`main`, or a subagent's id) has been shown; none if nothing.
    pub fn of(&self, stream: &str) -> Option<SeenRevision> {
        self.streams.get(stream).copied()
    }

    /// Records what a conversation has been shown.
    pub fn note(&mut self, stream: &str, sight: SeenRevision) {
        self.streams.insert(stream.to_owned(), sight);
    }

    /// Records that the session has ended in order.
    pub fn end(&mut self) {
        for sight in self.streams.values_mut() {
            *sight = SeenRevision {
                rev: sight.knows(),
                calls: sight.calls,
                is_kept: true,
                ..SeenRevision::default()
            };
        }
    }

    /// Records that a subagent has ended: it is shown nothing more.
    pub fn forget(&mut self, stream: &str) {
        self.streams.remove(stream);
        self.ended.push(stream.to_owned());
        if self.ended.len() > MOST_ENDED {
            self.ended.remove(0);
        }
    }

    /// True for a subagent that works or has worked in a frame.
    pub fn knows(&self, agent: &str) -> bool {
        self.streams.contains_key(agent) || self.ended.iter().any(|ended| ended == agent)
    }

    /// The call with which the session pushed its last frame.
    pub fn pushed_call(&self) -> Option<&str> {
        self.pushed.as_ref().map(|pushed| pushed.call.as_str())
    }
}

/// The maximum number of ended subagents that are remembered.
const MOST_ENDED: usize = 100;
/// The client keeps its transcripts for thirty days; after that the session cannot be resumed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

fn folder(project: &Project) -> PathBuf {
    project.memory().join("seen")
}

/// The agent, of any session, that pushed a frame with this call.
pub fn pusher(project: &Project, call: &str) -> Option<Owner> {
    let folder = folder(project);
    let of = |name: &String| load_parsed::<Seen>(&folder.join(name))?.pushed;
    let pushed = disk::names(&folder).iter().filter_map(of).find(|pushed| pushed.call == call);
    pushed.map(|pushed| pushed.owner)
}

/// How often it is looked for such records: there may be one for each session of a month.
const SWEPT: Duration = Duration::from_secs(24 * 3_600);

/// Removes the records of sessions that can no longer be resumed, once a day.
pub fn sweep_seen(project: &Project) {
    let folder = folder(project);
    let swept = project.memory().join("seen.swept");
    if disk::age(&swept).is_some_and(|age| age < SWEPT) {
        return;
    }
    // Before the sweep: what a kill leaves is there tomorrow.
    if disk::replace(&swept, b"", Durability::Lazy).is_err() {
        return;
    }
    for path in disk::names(&folder).into_iter().map(|name| folder.join(name)) {
        if disk::age(&path).is_some_and(|age| age > KEPT) {
            // A record that cannot be removed costs a hundred bytes.
            let _ = disk::remove(&path);
        }
    }
}

/// True if the memory is as a session's own conversation was told it, and fewer than so many of its calls ago: then its
/// answer is counted, and that is all. No lock is taken, so a change that was written since it was looked at is told with the
/// next call.
pub fn is_as_told<'m>(
    project: &Project,
    memory: impl FnOnce() -> &'m Standing,
    (session_id, stream): (&SessionId, &str),
    most_calls: u32,
) -> bool {
    let seen = seen(project, session_id);
    let (Some(told), Some(sight)) = (&seen.told, seen.of(stream)) else { return false };
    let (own, next) = steps::own_and_next(project, session_id, told.steps);
    let calls = u64::from(sight.calls) + own + 1;
    let is_same =
        calls < u64::from(most_calls) && memory().head.as_ref().is_some_and(|head| head.link == told.link);
    if let Some(next) = next.filter(|_| is_same) {
        next.add(session_id);
    }
    is_same
}

impl Seen {
    /// How many calls a session's own conversation has made since it was told everything, of those that wrote nothing here.
    pub fn calls_since_told(&self, project: &Project, session_id: &SessionId) -> u32 {
        let since = self.told.as_ref().map(|told| steps::own(project, session_id, told.steps));
        since.and_then(|calls| u32::try_from(calls).ok()).unwrap_or(0)
    }
}

/// What the conversations of a session have been shown; empty if there is no record.
pub fn seen(project: &Project, session_id: &SessionId) -> Seen {
    project.seen(session_id).and_then(|path| load_parsed(&path)).unwrap_or_default()
}

impl Held<'_> {
    /// Changes a session's record; writes it only if something has changed.
    pub fn note_seen(
        &self,
        session_id: &SessionId,
        change: impl FnOnce(&mut Seen),
    ) -> Result<(), StoreError> {
        let Some(path) = self.project.seen(session_id) else { return Ok(()) };
        let before = seen(self.project, session_id);
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(());
        }
        disk::replace(&path, &serde_json::to_vec(&after).unwrap_or_default(), Durability::Lazy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_knows_is_what_its_slowest_hook_told_and_only_an_end_in_order_keeps_it() {
        let sight = SeenRevision { rev: 5, ..SeenRevision::default() };
        for (sight, knows, kept) in [
            (sight, 5, 0),
            (SeenRevision { is_kept: true, ..sight }, 5, 5),
            (SeenRevision { least: Some(4), is_kept: true, ..sight }, 4, 4),
            (SeenRevision { least: Some(6), ..sight }, 5, 0),
            // During a start all of its hooks use the revision from before it.
            (SeenRevision { before_start: Some(3), ..sight }, 5, 3),
        ] {
            assert_eq!((sight.knows(), sight.kept()), (knows, kept), "{sight:?}");
            let mut seen = Seen::default();
            seen.note("main", sight);
            seen.end();
            let ended = seen.of("main").unwrap();
            assert_eq!((ended.knows(), ended.kept()), (knows, knows), "{sight:?}, ended");
        }
    }
}
