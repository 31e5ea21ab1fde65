//! What each conversation has been told of the memory. Written by hooks that hold the memory, so that none writes over
//! another's word.

use super::Held;
use crate::sessions::load_parsed;
use crate::{Durability, Project, StoreError, disk};
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::Owner;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What the conversations of one session have been told: its own, and those of its frames' subagents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    streams: BTreeMap<String, SeenRevision>,
    /// How the session pushed its last frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Pushed>,
    /// The session has popped the root since it was last prompted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    /// Subagents that have ended: one that is woken up again works in no frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<String>,
}

/// How a frame was pushed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pushed {
    /// The model's call.
    pub call: String,
    /// By whom.
    pub owner: Owner,
}

/// What one conversation has been told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenRevision {
    /// Everything up to this revision.
    pub rev: u64,
    /// Where it was before the session's start told it everything: several hooks do so at once.
    pub before_start: Option<u64>,
    /// The oldest state that one of those hooks told: another writer may write between them.
    pub least: Option<u64>,
    /// Its session has ended since, and the client has kept what it was told: one that was killed may have lost it.
    pub is_kept: bool,
    /// Its model's calls since it was told all registers.
    pub calls: u32,
}

impl SeenRevision {
    /// Nothing up to here is news.
    pub fn knows(&self) -> u64 {
        self.least.map_or(self.rev, |least| least.min(self.rev))
    }

    /// The revision up to which a session that continues need not be told anything.
    pub fn kept(&self) -> u64 {
        self.before_start.unwrap_or(if self.is_kept { self.knows() } else { 0 })
    }
}

impl Seen {
    /// Of a conversation: `main`, or a subagent's id. None for one that was never told anything.
    pub fn of(&self, stream: &str) -> Option<SeenRevision> {
        self.streams.get(stream).copied()
    }

    /// Notes it.
    pub fn note(&mut self, stream: &str, sight: SeenRevision) {
        self.streams.insert(stream.to_owned(), sight);
    }

    /// The session has ended in order.
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

    /// A subagent that has ended is told nothing any more.
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

/// How many subagents are remembered at most.
const MOST_ENDED: usize = 100;
/// The client keeps its transcripts for thirty days; after that the session cannot be resumed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

fn folder(project: &Project) -> PathBuf {
    project.memory().join("seen")
}

/// The one who pushed a frame with that call, of all sessions.
pub fn pusher(project: &Project, call: &str) -> Option<Owner> {
    let folder = folder(project);
    let of = |name: &String| load_parsed::<Seen>(&folder.join(name))?.pushed;
    let pushed = disk::names(&folder).iter().filter_map(of).find(|pushed| pushed.call == call);
    pushed.map(|pushed| pushed.owner)
}

/// Removes the records of sessions that can no longer be resumed.
pub fn sweep_seen(project: &Project) {
    let folder = folder(project);
    for path in disk::names(&folder).into_iter().map(|name| folder.join(name)) {
        if disk::age(&path).is_some_and(|age| age > KEPT) {
            // One that stays takes a hundred bytes.
            let _ = disk::remove(&path);
        }
    }
}

fn path(project: &Project, session_id: &SessionId) -> Option<PathBuf> {
    let name = project.session(session_id)?.file_name()?.to_owned();
    Some(folder(project).join(name))
}

/// What a session has been told.
pub fn seen(project: &Project, session_id: &SessionId) -> Seen {
    path(project, session_id).and_then(|path| load_parsed(&path)).unwrap_or_default()
}

impl Held<'_> {
    /// Changes what is noted of a session; written only if it is something else by then.
    pub fn note_seen(
        &self,
        session_id: &SessionId,
        change: impl FnOnce(&mut Seen),
    ) -> Result<(), StoreError> {
        let Some(path) = path(self.project, session_id) else { return Ok(()) };
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
            // While a start is under way its hooks all go by what was so before it.
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
