//! The handoffs of ordinary sessions that no session has been offered yet: a small file for each, under the handoff's name.
//!
//! They lie among the user's state and not in the project: a repository that brings a handoff along has it offered to nobody.
//! Rule: a handoff is *unread* from each checkpoint that writes it until a session is offered it at its start. Whoever takes
//! the file away offers it, so of two sessions that start at once one does. Without a home there are none.

use crate::{Durability, Project, StoreError, disk, environment, layout, sessions};
use plimsoll_domain::SessionId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// A handoff that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadHandoff {
    /// The file.
    pub path: PathBuf,
    /// The session that left it.
    pub session_id: SessionId,
    /// How long ago it was written last; none if the clock went back.
    pub age: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    v: u32,
    session_id: SessionId,
}

/// The unread handoffs of one project.
#[derive(Debug, Clone)]
pub struct UnreadHandoffs {
    /// None without a home.
    folder: Option<PathBuf>,
    handoffs: PathBuf,
}

impl UnreadHandoffs {
    /// Those of a project, by the path that its links lead to.
    pub fn of(project: &Project) -> UnreadHandoffs {
        let root = disk::canonical(project.root());
        let hash = plimsoll_domain::digest::sha256(&[root.as_os_str().as_encoded_bytes()]);
        let folder = environment::state_home().map(|home| home.join("plimsoll/unread").join(&hash[..16]));
        UnreadHandoffs { folder, handoffs: project.handoffs() }
    }

    /// Says that a handoff was written, by its name. A name that is none of ours is passed over.
    pub fn add(&self, name: &str, session_id: &SessionId) -> Result<(), StoreError> {
        let Some(path) = self.path(name) else { return Ok(()) };
        let entry = Entry { v: 1, session_id: session_id.to_owned() };
        disk::replace(&path, &serde_json::to_vec(&entry).unwrap_or_default(), Durability::Lazy)
    }

    /// The names of all that are unread, the newest first: a handoff's name begins with the time of its first writing.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.folder.as_deref().map(disk::names).unwrap_or_default();
        names.retain(|name| is_handoff(name));
        names.reverse();
        names
    }

    /// What is known of one that is unread, if its handoff is still there as a plain file.
    pub fn find(&self, name: &str) -> Option<UnreadHandoff> {
        let path = self.path(name)?;
        let entry: Entry = sessions::load_parsed(&path)?;
        let handoff = self.handoffs.join(name);
        let is_there = disk::is_file(&handoff) && !disk::is_link(&handoff);
        let (session_id, age) = (entry.session_id, disk::age(&path));
        is_there.then_some(UnreadHandoff { path: handoff, session_id, age })
    }

    /// Takes it away: true for the one who did, and offers it.
    pub fn take(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| disk::take(&path))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        is_handoff(name).then(|| Some(self.folder.as_ref()?.join(name))).flatten()
    }
}

fn is_handoff(name: &str) -> bool {
    layout::is_plain(name) && name.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_takes_a_handoff_and_no_name_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let handoffs = folder.path().join("handoffs");
        let unread =
            UnreadHandoffs { folder: Some(folder.path().join("unread")), handoffs: handoffs.clone() };
        for name in ["../x.md", "a/b.md", ".hidden.md", "x", ""] {
            unread.add(name, &"s1".into()).unwrap();
        }
        assert_eq!(unread.names(), [""; 0]);
        for name in ["2026-01-07-1145.md", "2026-01-07-1146.md"] {
            unread.add(name, &"s1".into()).unwrap();
        }
        assert_eq!(unread.names(), ["2026-01-07-1146.md", "2026-01-07-1145.md"]);
        assert_eq!(unread.find("2026-01-07-1145.md"), None, "its handoff is gone");
        disk::create_folder(&handoffs).unwrap();
        disk::append(&handoffs.join("2026-01-07-1145.md"), b"x").unwrap();
        assert_eq!(unread.find("2026-01-07-1145.md").map(|found| found.session_id), Some("s1".into()));
        assert!(unread.take("2026-01-07-1145.md") && !unread.take("2026-01-07-1145.md"));
        assert_eq!(unread.names(), ["2026-01-07-1146.md"]);
        let homeless = UnreadHandoffs { folder: None, handoffs };
        homeless.add("2026-01-07-1145.md", &"s1".into()).unwrap();
        assert!(homeless.names().is_empty() && !homeless.take("2026-01-07-1145.md"));
    }
}
