//! Reads and writes the records of sessions.

use crate::layout::is_plain_file_name;
use crate::lock::{self, Lock};
use crate::{Durability, Project, StoreError, clock, disk};
use plimsoll_domain::record::{ClientCompactionSettings, StatusLineRecord};
use plimsoll_domain::text::json_bytes_to_str;
use plimsoll_domain::{SessionId, SessionRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// Loads the record of a session, or returns a new record if there is none or it cannot be read. The file is not
/// moved, because another program may be writing it now; the next writer sets an invalid file aside.
pub fn load_session_record(project: &Project, session_id: &SessionId) -> SessionRecord {
    load_or_new_marked_if_invalid(project, session_id).unwrap_or_else(|_| new_record(session_id, false))
}

fn new_record(session_id: &SessionId, was_unreadable: bool) -> SessionRecord {
    SessionRecord { session_id: session_id.to_owned(), was_unreadable, ..SessionRecord::default() }
}

/// Loads a session's record for a caller that writes it back, or returns a new record if there is none or it is
/// invalid. Returns an error if the file exists and cannot be read, so that it is not overwritten.
pub fn load_or_new_marked_if_invalid(
    project: &Project,
    session_id: &SessionId,
) -> Result<SessionRecord, StoreError> {
    let Some(path) = project.session_record_path(session_id) else {
        return Ok(new_record(session_id, false));
    };
    let Some(bytes) = disk::read(&path)? else { return Ok(new_record(session_id, false)) };
    // A record with the id of another session counts as invalid.
    let record =
        parse_json_unless_list(&bytes).ok().filter(|record: &SessionRecord| record.session_id == *session_id);
    Ok(record.unwrap_or_else(|| new_record(session_id, true)))
}

/// Returns the sessions that have a record, sorted by id.
pub fn sessions_with_record(project: &Project) -> Vec<SessionId> {
    let parse_session_id =
        |name: String| Some(name.strip_suffix(".json")?.to_owned()).filter(|id| !id.ends_with(".status"));
    disk::list_names(&project.data_folder().join("sessions"))
        .into_iter()
        .filter_map(parse_session_id)
        .map(SessionId::from)
        .collect()
}

/// Loads only the fields that the status line needs at every render: the settings that the thresholds depend on,
/// the transcript's path and the largest step. All other fields have their default values.
pub fn load_partial_record_for_status_line(project: &Project, session_id: &SessionId) -> SessionRecord {
    #[derive(serde::Deserialize)]
    struct StatusLineFields<'a> {
        session_id: &'a str,
        #[serde(borrow, default)]
        transcript_path: Option<Cow<'a, str>>,
        client_settings: Option<ClientCompactionSettings>,
        #[serde(default)]
        largest_step: u64,
    }
    let bytes = project
        .session_record_path(session_id)
        .and_then(|path| disk::read(&path).ok().flatten())
        .unwrap_or_default();
    match serde_json::from_str::<StatusLineFields<'_>>(std::str::from_utf8(&bytes).unwrap_or_default()) {
        Ok(StatusLineFields { session_id: recorded_id, transcript_path, client_settings, largest_step })
            if session_id == recorded_id =>
        {
            let mut record = SessionRecord::default();
            record.start.transcript_path = transcript_path.map(Cow::into_owned);
            record.start.client_compaction_settings = client_settings;
            record.usage.largest_step = largest_step;
            record
        }
        Ok(_) | Err(_) => SessionRecord::default(),
    }
}

/// Acquires the session's lock. Returns `None` for an id that is not a plain file name and therefore has no record.
pub fn lock_session_if_id_is_file_name(
    project: &Project,
    session_id: &SessionId,
    timeout: Duration,
) -> Result<Option<Lock>, StoreError> {
    if !is_plain_file_name(session_id) {
        return Ok(None);
    }
    let lock_path = |project: &Project| {
        project.session_record_path(session_id).unwrap_or_default().with_extension("lock")
    };
    lock::acquire_at_current_location(project, |project| lock::acquire(&lock_path(project), timeout))
        .map(Some)
}

/// Writes the record, and first sets the existing file aside if it was invalid. The caller holds the
/// session's lock.
pub fn set_aside_invalid_and_save_record(
    project: &Project,
    record: &SessionRecord,
    durability: Durability,
) -> Result<(), StoreError> {
    let Some(path) = project.session_record_path(&record.session_id) else { return Ok(()) };
    // The file is renamed before the new record is written: a kill in between leaves the old bytes under the other
    // name and no record, as for a new session.
    if record.was_unreadable {
        set_aside_corrupt_file_and_return_path(&path)?;
    }
    write_as_json(&path, record, durability)
}

/// Applies a change to the record under the session's lock. Writes the record only if it is different.
pub fn update_session_record<T>(
    project: &Project,
    session_id: &SessionId,
    timeout: Duration,
    change: impl FnOnce(&mut SessionRecord) -> T,
) -> Result<T, StoreError> {
    let _lock = lock_session_if_id_is_file_name(project, session_id, timeout)?;
    let original_record = load_or_new_marked_if_invalid(project, session_id)?;
    let mut updated_record = original_record.clone();
    let result = change(&mut updated_record);
    if updated_record != original_record {
        set_aside_invalid_and_save_record(project, &updated_record, Durability::Lazy)?;
    }
    Ok(result)
}

/// Loads the record that the status line saved for a session.
pub fn load_status_line_record(project: &Project, session_id: &SessionId) -> Option<StatusLineRecord> {
    read_json_if_valid(&project.status_record_path(session_id)?)
        .filter(|record: &StatusLineRecord| record.session_id == *session_id)
}

/// Saves the status line's figures. `previous_if_valid` is the existing record, if it could be read; without one, an
/// existing invalid file is first set aside.
pub fn set_aside_invalid_and_save_status_line(
    project: &Project,
    previous_if_valid: Option<&StatusLineRecord>,
    record: &StatusLineRecord,
) -> Result<(), StoreError> {
    let Some(path) = project.status_record_path(&record.session_id) else { return Ok(()) };
    // If the previous record was read, the file is valid and needs no check.
    if previous_if_valid.is_none() {
        set_aside_if_invalid(&path)?;
    }
    write_as_json(&path, record, Durability::Lazy)
}

fn write_as_json(path: &Path, record: &impl Serialize, durability: Durability) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(record).unwrap_or_default();
    disk::replace(path, &bytes, durability)
}

/// Reads a JSON object from a file. Returns `None` if the file is missing or does not parse.
pub(crate) fn read_json_if_valid<T: DeserializeOwned>(path: &Path) -> Option<T> {
    parse_json_unless_list(&disk::read(path).ok().flatten()?).ok()
}

/// Sets a file aside if it is not a JSON object, so that it is not overwritten.
pub(crate) fn set_aside_if_invalid(path: &Path) -> Result<(), StoreError> {
    let is_invalid = disk::read(path)?.is_some_and(|bytes| {
        parse_json_unless_list::<serde_json::Map<String, serde_json::Value>>(&bytes).is_err()
    });
    if is_invalid { set_aside_corrupt_file_and_return_path(path).map(|_| ()) } else { Ok(()) }
}

/// Parses a JSON object. The text is validated as UTF-8 as a whole, which is cheaper than validating each string.
pub(crate) fn parse_json_unless_list<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        // serde would fill a struct's fields from a list, in order.
        return Err(serde::de::Error::custom("a list, not an object"));
    }
    serde_json::from_str(json_bytes_to_str(bytes)?)
}

/// Renames a file that does not parse to a name with the current time, and returns the new path.
pub(crate) fn set_aside_corrupt_file_and_return_path(path: &Path) -> Result<String, StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Millisecond precision: a rename onto the name of an earlier corrupt file would replace that one.
    let timestamp = clock::now().format("%Y%m%dT%H%M%S%3fZ");
    let new_path = path.with_file_name(format!("{name}.corrupt-{timestamp}"));
    disk::rename(path, &new_path)?;
    Ok(new_path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let path = project.session_record_path(&"one".into()).unwrap();
        disk::create_folder(&path).unwrap();
        assert_eq!(load_session_record(&project, &"one".into()).session_id, "one");
        let result = update_session_record(&project, &"one".into(), Duration::ZERO, |record| {
            record.end.is_canceled = true;
        });
        assert!(result.unwrap_err().to_string().contains("one.json"), "it is named");
        assert!(disk::is_folder(&path));
    }
}
