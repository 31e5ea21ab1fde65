//! Records which handoffs the sessions of this user wrote, and the state of each. The index has one small file
//! per handoff, with the handoff's file name.
//!
//! The index is stored in the user's state folder and not in the project, so a handoff that comes with a
//! repository is in no index: it is never offered, and no session continues from it automatically. Handoffs
//! of runs are not in it either, because the run reads them.
//!
//! A handoff is *unread* after each checkpoint that writes it, *offered* after it was offered to a session at
//! its start, and *read* after a session has opened it. Its index file moves from one folder to the next, so
//! if two sessions start at the same time, only one offers the handoff. Without a home there is no index.

use crate::{Durability, Project, StoreError, disk, environment, layout, sessions};
use plimsoll_domain::SessionId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The history of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffState {
    /// It has not been offered to any session.
    Unread,
    /// It was offered to a session at its start.
    Offered,
    /// A session has opened it.
    Read,
}

impl HandoffState {
    /// All states, in the order in which a handoff goes through them.
    const ALL: [HandoffState; 3] = [HandoffState::Unread, HandoffState::Offered, HandoffState::Read];

    /// Returns the name of the state, which is also the name of its folder.
    pub fn as_str(self) -> &'static str {
        match self {
            HandoffState::Unread => "unread",
            HandoffState::Offered => "offered",
            HandoffState::Read => "read",
        }
    }
}

/// A handoff that has not been offered to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadHandoff {
    pub path: PathBuf,
    /// The session that wrote it.
    pub session_id: SessionId,
    /// How long ago it was last written; `None` if the clock was set back.
    pub age: Option<Duration>,
}

/// The index entry of one handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedHandoff {
    pub state: HandoffState,
    /// The session that wrote it.
    pub session_id: SessionId,
    pub written_at: Option<SystemTime>,
}

#[derive(Serialize, Deserialize)]
struct HandoffEntry {
    v: u32,
    session_id: SessionId,
}

/// The handoff index of one project.
#[derive(Debug, Clone)]
pub struct HandoffIndex {
    /// Our folder in the user's state; `None` without a home.
    state_folder: Option<PathBuf>,
    /// The name of the project's folders in the index.
    project_folder_name: String,
    project: Project,
}

impl HandoffIndex {
    /// Opens the index of a project, which is identified by its path with all links resolved.
    pub fn for_project(project: &Project) -> HandoffIndex {
        let root = disk::canonicalize_or_keep(project.root());
        let hash = plimsoll_domain::digest::sha256_hex(&[root.as_os_str().as_encoded_bytes()]);
        HandoffIndex {
            state_folder: environment::state_home().map(|home| home.join("plimsoll")),
            project_folder_name: hash[..16].to_owned(),
            project: project.clone(),
        }
    }

    /// Records that a session wrote this handoff, which makes it unread again. Ignores a name that is not a
    /// handoff's.
    pub fn mark_unread(&self, handoff_name: &str, session_id: &SessionId) -> Result<(), StoreError> {
        let Some(path) = self.entry_path(HandoffState::Unread, handoff_name) else { return Ok(()) };
        let entry = HandoffEntry { v: 1, session_id: session_id.to_owned() };
        disk::replace(&path, &serde_json::to_vec(&entry).unwrap_or_default(), Durability::Lazy)
    }

    /// Returns the names of the handoffs in this state, newest first. Names begin with the time of the first
    /// write, so they sort by it.
    pub fn names_in_state(&self, state: HandoffState) -> Vec<String> {
        let mut names = self.folder_of_state(state).as_deref().map(disk::list_names).unwrap_or_default();
        names.retain(|name| is_handoff_name(name));
        names.reverse();
        names
    }

    /// Finds an unread handoff that still exists as a plain file.
    pub fn find_unread_with_existing_file(&self, handoff_name: &str) -> Option<UnreadHandoff> {
        let path = self.entry_path(HandoffState::Unread, handoff_name)?;
        let entry: HandoffEntry = sessions::read_json_if_valid(&path)?;
        let is_plain_file = |handoff: &PathBuf| disk::is_file(handoff) && !disk::is_link(handoff);
        let folders = self.project.handoff_folders().into_iter();
        let handoff = folders.map(|folder| folder.join(handoff_name)).find(is_plain_file)?;
        Some(UnreadHandoff {
            path: handoff,
            session_id: entry.session_id,
            age: disk::time_since_modified(&path),
        })
    }

    /// Finds the index entry of a handoff in any state; `None` if no session of this user recorded it.
    pub fn find_in_any_state(&self, handoff_name: &str) -> Option<IndexedHandoff> {
        HandoffState::ALL.into_iter().find_map(|state| {
            let path = self.entry_path(state, handoff_name)?;
            let entry: HandoffEntry = sessions::read_json_if_valid(&path)?;
            Some(IndexedHandoff { state, session_id: entry.session_id, written_at: disk::modified_at(&path) })
        })
    }

    /// Marks an unread handoff as offered. Only one of several concurrent calls returns true; its caller then
    /// offers the handoff.
    pub fn mark_offered(&self, handoff_name: &str) -> bool {
        self.move_between_states(handoff_name, HandoffState::Unread, HandoffState::Offered)
    }

    pub fn mark_read(&self, handoff_name: &str) {
        for state in [HandoffState::Offered, HandoffState::Unread] {
            self.move_between_states(handoff_name, state, HandoffState::Read);
        }
    }

    pub fn remove(&self, handoff_name: &str) {
        for path in HandoffState::ALL.into_iter().filter_map(|state| self.entry_path(state, handoff_name)) {
            disk::remove_existing(&path);
        }
    }

    fn move_between_states(
        &self,
        handoff_name: &str,
        from_state: HandoffState,
        to_state: HandoffState,
    ) -> bool {
        let (Some(from_path), Some(to_path)) =
            (self.entry_path(from_state, handoff_name), self.entry_path(to_state, handoff_name))
        else {
            return false;
        };
        if !disk::exists(&from_path) {
            return false;
        }
        let folder_result = to_path.parent().map(disk::create_folder);
        folder_result.is_some_and(|result| result.is_ok()) && disk::rename(&from_path, &to_path).is_ok()
    }

    fn folder_of_state(&self, state: HandoffState) -> Option<PathBuf> {
        Some(self.state_folder.as_ref()?.join(state.as_str()).join(&self.project_folder_name))
    }

    fn entry_path(&self, state: HandoffState, handoff_name: &str) -> Option<PathBuf> {
        if is_handoff_name(handoff_name) {
            Some(self.folder_of_state(state)?.join(handoff_name))
        } else {
            None
        }
    }
}

fn is_handoff_name(name: &str) -> bool {
    layout::is_plain_file_name(name) && name.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "2026-01-07-1145.md";
    const NEW: &str = "2026-01-07-1146.md";

    fn index(folder: &std::path::Path) -> HandoffIndex {
        HandoffIndex {
            state_folder: Some(folder.join("state")),
            project_folder_name: "p".to_owned(),
            project: Project::with_local_files(&folder.join("project")),
        }
    }

    #[test]
    fn one_session_offers_a_handoff_and_no_name_leads_outside() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        for name in ["../x.md", "a/b.md", ".hidden.md", "x", ""] {
            index.mark_unread(name, &"s1".into()).unwrap();
        }
        assert_eq!(index.names_in_state(HandoffState::Unread), [""; 0]);
        for name in [OLD, NEW] {
            index.mark_unread(name, &"s1".into()).unwrap();
        }
        assert_eq!(index.names_in_state(HandoffState::Unread), [NEW, OLD]);
        assert_eq!(index.find_unread_with_existing_file(OLD), None, "its handoff is gone");
        disk::create_new(&index.project.handoffs_folder().join(OLD), b"x").unwrap();
        assert_eq!(
            index.find_unread_with_existing_file(OLD).map(|handoff| handoff.session_id),
            Some("s1".into())
        );
        assert!(index.mark_offered(OLD) && !index.mark_offered(OLD));
        assert_eq!(index.names_in_state(HandoffState::Unread), [NEW]);
        let index_without_home = HandoffIndex { state_folder: None, ..index };
        index_without_home.mark_unread(OLD, &"s1".into()).unwrap();
        assert!(
            index_without_home.names_in_state(HandoffState::Unread).is_empty()
                && !index_without_home.mark_offered(OLD)
        );
    }

    #[test]
    fn a_handoff_is_read_only_after_it_was_opened_and_unread_when_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        let state = || index.find_in_any_state(OLD).map(|handoff| handoff.state);
        assert_eq!(state(), None);
        index.mark_unread(OLD, &"s1".into()).unwrap();
        assert_eq!(state(), Some(HandoffState::Unread));
        index.mark_offered(OLD);
        assert_eq!(state(), Some(HandoffState::Offered));
        index.mark_read(OLD);
        assert_eq!(state(), Some(HandoffState::Read));
        index.mark_unread(OLD, &"s1".into()).unwrap();
        assert_eq!(state(), Some(HandoffState::Unread));
        index.mark_read(OLD);
        assert_eq!(
            (state(), index.names_in_state(HandoffState::Unread).len()),
            (Some(HandoffState::Read), 0)
        );
        index.remove(OLD);
        assert_eq!(state(), None);
    }
}
