//! Which handoffs the sessions of this user wrote, and what became of each: a small file for each, under the handoff's name.
//!
//! The files are among the user's state and not in the project, so a handoff that a repository brings along is in no index: it is
//! offered to nobody, and nothing continues from it by itself. Handoffs of runs are not in it either, because the run reads them.
//!
//! A handoff is *unread* from each checkpoint that writes it, *offered* once a session was offered it at its start, and *read*
//! once a session has opened it. The file moves from one folder to the next, so of two sessions that start at once only one
//! offers the handoff. Without a home there is no index.

use crate::{Durability, Project, StoreError, disk, environment, layout, sessions};
use plimsoll_domain::SessionId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What became of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffState {
    /// No session was offered it.
    Unread,
    /// A session was offered it at its start.
    Offered,
    /// A session has opened it.
    Read,
}

impl HandoffState {
    /// All, in the order in which a handoff goes through them.
    const ALL: [HandoffState; 3] = [HandoffState::Unread, HandoffState::Offered, HandoffState::Read];

    /// The word for it, which is also the name of its folder.
    pub fn word(self) -> &'static str {
        match self {
            HandoffState::Unread => "unread",
            HandoffState::Offered => "offered",
            HandoffState::Read => "read",
        }
    }
}

/// A handoff that waits for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadHandoff {
    /// The file.
    pub path: PathBuf,
    /// The session that left it.
    pub session_id: SessionId,
    /// How long ago it was written last; none if the clock went back.
    pub age: Option<Duration>,
}

/// What the index has of one handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedHandoff {
    /// What became of it.
    pub state: HandoffState,
    /// The session that left it.
    pub session_id: SessionId,
    /// When it was written last.
    pub written_at: Option<SystemTime>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    v: u32,
    session_id: SessionId,
}

/// The index of one project.
#[derive(Debug, Clone)]
pub struct HandoffIndex {
    /// The user's state folder of ours; none without a home.
    home: Option<PathBuf>,
    /// The project's name in it.
    project_name: String,
    project: Project,
}

impl HandoffIndex {
    /// The index of a project, which is found by the path that the project's links lead to.
    pub fn of(project: &Project) -> HandoffIndex {
        let root = disk::canonical(project.root());
        let hash = plimsoll_domain::digest::sha256(&[root.as_os_str().as_encoded_bytes()]);
        HandoffIndex {
            home: environment::state_home().map(|home| home.join("plimsoll")),
            project_name: hash[..16].to_owned(),
            project: project.clone(),
        }
    }

    /// Records that a session wrote this handoff, which makes it unread again. A name that is none of ours is passed over.
    pub fn add(&self, name: &str, session_id: &SessionId) -> Result<(), StoreError> {
        let Some(path) = self.entry(HandoffState::Unread, name) else { return Ok(()) };
        let entry = Entry { v: 1, session_id: session_id.to_owned() };
        disk::replace(&path, &serde_json::to_vec(&entry).unwrap_or_default(), Durability::Lazy)
    }

    /// The names in this state, the newest first: a handoff's name begins with the time of its first writing.
    pub fn names(&self, state: HandoffState) -> Vec<String> {
        let mut names = self.folder(state).as_deref().map(disk::names).unwrap_or_default();
        names.retain(|name| is_handoff(name));
        names.reverse();
        names
    }

    /// Finds an unread handoff that is still there as a plain file.
    pub fn find_unread(&self, name: &str) -> Option<UnreadHandoff> {
        let path = self.entry(HandoffState::Unread, name)?;
        let entry: Entry = sessions::load_parsed(&path)?;
        let is_plain = |handoff: &PathBuf| disk::is_file(handoff) && !disk::is_link(handoff);
        let folders = self.project.handoff_folders().into_iter();
        let handoff = folders.map(|folder| folder.join(name)).find(is_plain)?;
        Some(UnreadHandoff { path: handoff, session_id: entry.session_id, age: disk::age(&path) })
    }

    /// Finds what the index has of a handoff; `None` if no session of this user is known to have written it.
    pub fn find(&self, name: &str) -> Option<IndexedHandoff> {
        HandoffState::ALL.into_iter().find_map(|state| {
            let path = self.entry(state, name)?;
            let entry: Entry = sessions::load_parsed(&path)?;
            Some(IndexedHandoff { state, session_id: entry.session_id, written_at: disk::modified(&path) })
        })
    }

    /// Marks an unread handoff as offered: true for the process that did it, which offers it.
    pub fn mark_offered(&self, name: &str) -> bool {
        self.move_entry(name, HandoffState::Unread, HandoffState::Offered)
    }

    /// Marks a handoff as read.
    pub fn mark_read(&self, name: &str) {
        for state in [HandoffState::Offered, HandoffState::Unread] {
            self.move_entry(name, state, HandoffState::Read);
        }
    }

    /// Removes a handoff from the index.
    pub fn forget(&self, name: &str) {
        for path in HandoffState::ALL.into_iter().filter_map(|state| self.entry(state, name)) {
            disk::take(&path);
        }
    }

    fn move_entry(&self, name: &str, from: HandoffState, to: HandoffState) -> bool {
        let (Some(from), Some(to)) = (self.entry(from, name), self.entry(to, name)) else { return false };
        if !disk::exists(&from) {
            return false;
        }
        let created = to.parent().map(disk::create_folder);
        created.is_some_and(|created| created.is_ok()) && disk::rename(&from, &to).is_ok()
    }

    fn folder(&self, state: HandoffState) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(state.word()).join(&self.project_name))
    }

    fn entry(&self, state: HandoffState, name: &str) -> Option<PathBuf> {
        if is_handoff(name) { Some(self.folder(state)?.join(name)) } else { None }
    }
}

fn is_handoff(name: &str) -> bool {
    layout::is_plain(name) && name.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "2026-01-07-1145.md";
    const NEW: &str = "2026-01-07-1146.md";

    fn index(folder: &std::path::Path) -> HandoffIndex {
        HandoffIndex {
            home: Some(folder.join("state")),
            project_name: "p".to_owned(),
            project: Project::at(&folder.join("project")),
        }
    }

    #[test]
    fn one_session_offers_a_handoff_and_no_name_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        for name in ["../x.md", "a/b.md", ".hidden.md", "x", ""] {
            index.add(name, &"s1".into()).unwrap();
        }
        assert_eq!(index.names(HandoffState::Unread), [""; 0]);
        for name in [OLD, NEW] {
            index.add(name, &"s1".into()).unwrap();
        }
        assert_eq!(index.names(HandoffState::Unread), [NEW, OLD]);
        assert_eq!(index.find_unread(OLD), None, "its handoff is gone");
        disk::create_new(&index.project.handoffs().join(OLD), b"x").unwrap();
        assert_eq!(index.find_unread(OLD).map(|found| found.session_id), Some("s1".into()));
        assert!(index.mark_offered(OLD) && !index.mark_offered(OLD));
        assert_eq!(index.names(HandoffState::Unread), [NEW]);
        let homeless = HandoffIndex { home: None, ..index };
        homeless.add(OLD, &"s1".into()).unwrap();
        assert!(homeless.names(HandoffState::Unread).is_empty() && !homeless.mark_offered(OLD));
    }

    #[test]
    fn a_handoff_is_read_only_after_it_was_opened_and_unread_when_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        let state = || index.find(OLD).map(|found| found.state);
        assert_eq!(state(), None);
        index.add(OLD, &"s1".into()).unwrap();
        assert_eq!(state(), Some(HandoffState::Unread));
        index.mark_offered(OLD);
        assert_eq!(state(), Some(HandoffState::Offered));
        index.mark_read(OLD);
        assert_eq!(state(), Some(HandoffState::Read));
        index.add(OLD, &"s1".into()).unwrap();
        assert_eq!(state(), Some(HandoffState::Unread));
        index.mark_read(OLD);
        assert_eq!((state(), index.names(HandoffState::Unread).len()), (Some(HandoffState::Read), 0));
        index.forget(OLD);
        assert_eq!(state(), None);
    }
}
