//! An index of the sessions whose transcripts may not be read completely: an empty file for each, so that a
//! starting session does not have to check all earlier sessions.
//!
//! The index is in the project beside the session records. A forged entry only costs a hook time. If an entry
//! is removed by someone else, `plimsoll turns sync` still reads the lines, because it checks all records. If the index
//! is missing, all records are checked once and the index is created.

use crate::{Project, StoreError, disk, layout, sessions};
use plimsoll_domain::SessionId;
use std::path::PathBuf;

/// The sessions that must be checked for unread transcript lines.
#[derive(Debug)]
pub struct UnreadSessions {
    /// Sorted by id.
    pub sessions: Vec<SessionId>,
    /// False if there is no complete index yet; `sessions` then has all sessions with a record.
    pub is_from_index: bool,
}

fn index_folder(project: &Project) -> PathBuf {
    project.data_folder().join("unsettled")
}

/// Returns the path of the file that marks the index as complete. No session has this name, because an id
/// does not start with a dot.
fn completion_marker_path(project: &Project) -> PathBuf {
    index_folder(project).join(".whole")
}

/// Returns the sessions that may have unread lines, or all sessions while there is no complete index.
pub fn load_unread_sessions_from_index_or_all(project: &Project) -> UnreadSessions {
    if !disk::exists(&completion_marker_path(project)) {
        return UnreadSessions { sessions: sessions::sessions_with_record(project), is_from_index: false };
    }
    let names =
        disk::list_names(&index_folder(project)).into_iter().filter(|name| layout::is_plain_file_name(name));
    UnreadSessions { sessions: names.map(SessionId::from).collect(), is_from_index: true }
}

/// Adds a session to the index, if it is not there yet.
pub fn add_unread_session(project: &Project, session_id: &SessionId) -> Result<(), StoreError> {
    if !layout::is_plain_file_name(session_id) {
        return Ok(());
    }
    disk::append(&index_folder(project).join(session_id.as_str()), b"")
}

/// Removes a session from the index.
pub fn remove_read_session(project: &Project, session_id: &SessionId) {
    if layout::is_plain_file_name(session_id) {
        // Errors are ignored: a session that stays is only checked once more.
        let _ = disk::remove_if_exists(&index_folder(project).join(session_id.as_str()));
    }
}

/// Marks the index as complete. Called after the last entry was added: a kill before it makes the next call
/// check all records again.
pub fn mark_index_complete(project: &Project) -> Result<(), StoreError> {
    disk::append(&completion_marker_path(project), b"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use plimsoll_domain::SessionRecord;

    #[test]
    fn without_an_index_all_sessions_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        for id in ["one", "two"] {
            let record = SessionRecord { session_id: id.into(), ..SessionRecord::default() };
            sessions::set_aside_invalid_and_save_record(&project, &record, Durability::Lazy).unwrap();
        }
        add_unread_session(&project, &"two".into()).unwrap();
        let unread = load_unread_sessions_from_index_or_all(&project);
        assert_eq!((unread.is_from_index, unread.sessions.len()), (false, 2), "not whole yet");
        mark_index_complete(&project).unwrap();
        assert_eq!(load_unread_sessions_from_index_or_all(&project).sessions, ["two"]);
        for id in ["two", "three", "../three", ""] {
            add_unread_session(&project, &id.into()).unwrap();
        }
        let unread = load_unread_sessions_from_index_or_all(&project);
        assert_eq!((unread.is_from_index, unread.sessions), (true, vec!["three".into(), "two".into()]));
        for id in ["two", "two", "../sessions/one.json"] {
            remove_read_session(&project, &id.into());
        }
        assert_eq!(load_unread_sessions_from_index_or_all(&project).sessions, ["three"]);
        assert_eq!(sessions::sessions_with_record(&project).len(), 2);
    }
}
