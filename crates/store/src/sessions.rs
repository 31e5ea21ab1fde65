//! The records of sessions.

use crate::layout::is_plain;
use crate::lock::{self, Lock};
use crate::{Durability, Project, StoreError, clock, disk};
use plimsoll_domain::record::{ClientSettings, StatusRecord};
use plimsoll_domain::text::json_text;
use plimsoll_domain::{SessionId, SessionRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// The record of a session; a new one if there is none. One that does not parse counts as none, and is set
/// aside by the one that writes next: a reader moves nothing, it may have come in the middle of a foreign write.
pub fn load(project: &Project, session_id: &SessionId) -> SessionRecord {
    load_to_change(project, session_id).unwrap_or_else(|_| fresh(session_id, false))
}

fn fresh(session_id: &SessionId, unreadable: bool) -> SessionRecord {
    SessionRecord { session_id: session_id.to_owned(), unreadable, ..SessionRecord::default() }
}

/// The same for the one that writes it back: one that is there and cannot be read now is not written over.
pub fn load_to_change(project: &Project, session_id: &SessionId) -> Result<SessionRecord, StoreError> {
    let Some(path) = project.session(session_id) else { return Ok(fresh(session_id, false)) };
    let Some(bytes) = disk::read(&path)? else { return Ok(fresh(session_id, false)) };
    // A file under this session's name that speaks of another one is not believed.
    let record = parse(&bytes).ok().filter(|record: &SessionRecord| record.session_id == *session_id);
    Ok(record.unwrap_or_else(|| fresh(session_id, true)))
}

/// The sessions that have a record, sorted by name.
pub fn ids(project: &Project) -> Vec<SessionId> {
    let id =
        |name: String| Some(name.strip_suffix(".json")?.to_owned()).filter(|id| !id.ends_with(".status"));
    disk::names(&project.own().join("sessions")).into_iter().filter_map(id).map(SessionId::from).collect()
}

/// Loads of the session's record only what the status line needs, which asks at every render: what the thresholds depend on, and
/// the transcript's path.
pub fn load_for_status_line(project: &Project, session_id: &SessionId) -> SessionRecord {
    #[derive(serde::Deserialize)]
    struct Glance<'a> {
        session_id: &'a str,
        #[serde(borrow, default)]
        transcript_path: Option<Cow<'a, str>>,
        client_settings: Option<ClientSettings>,
        #[serde(default)]
        largest_step: u64,
    }
    let bytes =
        project.session(session_id).and_then(|path| disk::read(&path).ok().flatten()).unwrap_or_default();
    match serde_json::from_str::<Glance<'_>>(std::str::from_utf8(&bytes).unwrap_or_default()) {
        Ok(Glance { session_id: own, transcript_path, client_settings, largest_step })
            if session_id == own =>
        {
            let mut record = SessionRecord::default();
            record.start.transcript_path = transcript_path.map(Cow::into_owned);
            record.start.client_settings = client_settings;
            record.usage.largest_step = largest_step;
            record
        }
        Ok(_) | Err(_) => SessionRecord::default(),
    }
}

/// Takes the session's lock; none for an id that has no record.
pub fn lock(
    project: &Project,
    session_id: &SessionId,
    timeout: Duration,
) -> Result<Option<Lock>, StoreError> {
    if !is_plain(session_id) {
        return Ok(None);
    }
    let path = |project: &Project| project.session(session_id).unwrap_or_default().with_extension("lock");
    lock::acquire_in(project, |project| lock::acquire(&path(project), timeout)).map(Some)
}

/// Writes the record. The caller holds the session's lock.
pub fn save(project: &Project, record: &SessionRecord, durability: Durability) -> Result<(), StoreError> {
    let Some(path) = project.session(&record.session_id) else { return Ok(()) };
    // Moved before the new one is written: a kill in between leaves no record, which counts as a new one,
    // and the old bytes under the other name.
    if record.unreadable {
        set_aside(&path)?;
    }
    write(&path, record, durability)
}

/// Changes the record under its lock; writes only if something has changed.
pub fn update<T>(
    project: &Project,
    session_id: &SessionId,
    timeout: Duration,
    change: impl FnOnce(&mut SessionRecord) -> T,
) -> Result<T, StoreError> {
    let _lock = lock(project, session_id, timeout)?;
    let before = load_to_change(project, session_id)?;
    let mut after = before.clone();
    let answer = change(&mut after);
    if after != before {
        save(project, &after, Durability::Lazy)?;
    }
    Ok(answer)
}

/// What the status line published about a session.
pub fn load_status(project: &Project, session_id: &SessionId) -> Option<StatusRecord> {
    load_parsed(&project.status_record(session_id)?)
        .filter(|record: &StatusRecord| record.session_id == *session_id)
}

/// Publishes the status line's figures. `known` is what was published of the session before.
pub fn save_status(
    project: &Project,
    known: Option<&StatusRecord>,
    record: &StatusRecord,
) -> Result<(), StoreError> {
    let Some(path) = project.status_record(&record.session_id) else { return Ok(()) };
    // What has just been read parses.
    if known.is_none() {
        clear_the_way(&path)?;
    }
    write(&path, record, Durability::Lazy)
}

fn write(path: &Path, record: &impl Serialize, durability: Durability) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(record).unwrap_or_default();
    disk::replace(path, &bytes, durability)
}

/// A file that parses.
pub(crate) fn load_parsed<T: DeserializeOwned>(path: &Path) -> Option<T> {
    parse(&disk::read(path).ok().flatten()?).ok()
}

/// What does not parse is never overwritten: it is moved out of the way and kept.
pub(crate) fn clear_the_way(path: &Path) -> Result<(), StoreError> {
    let damaged = disk::read(path)?
        .is_some_and(|bytes| parse::<serde_json::Map<String, serde_json::Value>>(&bytes).is_err());
    if damaged { set_aside(path).map(|_| ()) } else { Ok(()) }
}

/// Reads a document. Its letters are looked at once as a whole, which is cheaper than text by text.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        // serde would fill the fields from a list, in their order.
        return Err(serde::de::Error::custom("a list, not an object"));
    }
    serde_json::from_str(json_text(bytes)?)
}

/// Moves a file that does not parse out of the way, under a name that says when.
pub(crate) fn set_aside(path: &Path) -> Result<String, StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // To the millisecond: a rename onto the name of an earlier damaged file would replace that one.
    let moment = clock::now().format("%Y%m%dT%H%M%S%3fZ");
    let aside = path.with_file_name(format!("{name}.corrupt-{moment}"));
    disk::rename(path, &aside)?;
    Ok(aside.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_read_now_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let path = project.session(&"one".into()).unwrap();
        disk::create_folder(&path).unwrap();
        assert_eq!(load(&project, &"one".into()).session_id, "one");
        let refused = update(&project, &"one".into(), Duration::ZERO, |record| record.end.cancelled = true);
        assert!(refused.unwrap_err().to_string().contains("one.json"), "it is named");
        assert!(disk::is_folder(&path));
    }
}
