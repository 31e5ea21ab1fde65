//! The sessions of which something may still be unread: an empty file for each, so that a session that begins does not look
//! at all that ever were.
//!
//! It is an index of the records of sessions, and lies in a project beside them: whoever forges it costs a hook time, or
//! leaves to `plimsoll turns sync`, which looks at all records, what a crash has left unread. Without it all records are
//! looked at once, and it is made.

use crate::{Project, StoreError, disk, layout, sessions};
use plimsoll_domain::SessionId;
use std::path::PathBuf;

/// Which sessions are to be looked at.
#[derive(Debug)]
pub struct Unsettled {
    /// By name, sorted.
    pub sessions: Vec<SessionId>,
    /// False if there is no index yet: then these are all that have a record.
    pub is_index: bool,
}

fn folder(project: &Project) -> PathBuf {
    project.own().join("unsettled")
}

/// Says that the index is whole. No session has this name: an id does not begin with a dot.
fn mark(project: &Project) -> PathBuf {
    folder(project).join(".whole")
}

/// The sessions that are unsettled, or all while there is no index.
pub fn unsettled(project: &Project) -> Unsettled {
    if !disk::exists(&mark(project)) {
        return Unsettled { sessions: sessions::ids(project), is_index: false };
    }
    let names = disk::names(&folder(project)).into_iter().filter(|name| layout::is_plain(name));
    Unsettled { sessions: names.map(SessionId::from).collect(), is_index: true }
}

/// Adds a session; one that is there stays.
pub fn add(project: &Project, session_id: &SessionId) -> Result<(), StoreError> {
    if !layout::is_plain(session_id) {
        return Ok(());
    }
    disk::append(&folder(project).join(session_id.as_str()), b"")
}

/// Takes a session out.
pub fn settle(project: &Project, session_id: &SessionId) {
    if layout::is_plain(session_id) {
        // One that stays is looked at once more.
        let _ = disk::remove(&folder(project).join(session_id.as_str()));
    }
}

/// Says that whatever is unsettled is in the index. After its last entry: a kill before this has all records looked at again.
pub fn complete(project: &Project) -> Result<(), StoreError> {
    disk::append(&mark(project), b"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use plimsoll_domain::SessionRecord;

    #[test]
    fn without_an_index_all_sessions_are_looked_at_and_with_one_those_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        for id in ["one", "two"] {
            let record = SessionRecord { session_id: id.into(), ..SessionRecord::default() };
            sessions::save(&project, &record, Durability::Lazy).unwrap();
        }
        add(&project, &"two".into()).unwrap();
        let found = unsettled(&project);
        assert_eq!((found.is_index, found.sessions.len()), (false, 2), "not whole yet");
        complete(&project).unwrap();
        assert_eq!(unsettled(&project).sessions, ["two"]);
        for id in ["two", "three", "../three", ""] {
            add(&project, &id.into()).unwrap();
        }
        let found = unsettled(&project);
        assert_eq!((found.is_index, found.sessions), (true, vec!["three".into(), "two".into()]));
        for id in ["two", "two", "../sessions/one.json"] {
            settle(&project, &id.into());
        }
        assert_eq!(unsettled(&project).sessions, ["three"]);
        assert_eq!(sessions::ids(&project).len(), 2);
    }
}
