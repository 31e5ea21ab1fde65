//! The outbox of the Linear integration: the notes of each run, one JSON line each, and beside them the state of
//! the run's comment. It is stored in a folder that an agent's `git clean` does not remove.
//!
//! Hooks append each note under a lock. The delivering process holds a different lock during the whole delivery,
//! and never rewrites a file that a hook writes.

use crate::layout::is_plain_file_name;
use crate::lock::{self, Lock};
use crate::{Durability, Project, StoreError, disk, sessions};
use plimsoll_domain::RunId;
use plimsoll_domain::linear::{LinearBackoff, LinearComment, LinearNote};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The notes lock is held for about a millisecond.
const NOTES_LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const NOTES_SUFFIX: &str = ".notes.jsonl";

pub fn outbox_folder(project: &Project) -> PathBuf {
    project.copies_folder().join("linear")
}

/// Appends a note. If the lock is not available, appends it anyway, because one line is one write. Ignores a note
/// whose run id is not a plain file name.
pub fn append_note_with_best_effort_lock(project: &Project, note: &LinearNote) -> Result<(), StoreError> {
    if !is_plain_file_name(&note.run_id) {
        return Ok(());
    }
    let _lock = lock::acquire_at_current_location(project, |project| {
        lock::acquire(&outbox_folder(project).join("notes.lock"), NOTES_LOCK_TIMEOUT)
    });
    let Some(notes_path) = run_file_path(project, &note.run_id, NOTES_SUFFIX) else { return Ok(()) };
    disk::append_line(&notes_path, &to_json_or_empty(note))
}

/// Returns the runs that have notes, the run with the least recently modified file first.
pub fn runs_with_notes_oldest_first(project: &Project) -> Vec<RunId> {
    let folder = outbox_folder(project);
    let run_ids = disk::list_names(&folder)
        .into_iter()
        .filter_map(|name| Some(RunId::from(name.strip_suffix(NOTES_SUFFIX)?)));
    let mut runs: Vec<RunId> = run_ids.collect();
    runs.sort_by_key(|run| disk::modified_at(&folder.join(format!("{run}{NOTES_SUFFIX}"))));
    runs
}

/// Returns the notes of a run, oldest first. Skips lines that do not parse.
pub fn read_notes(project: &Project, run_id: &RunId) -> Result<Vec<LinearNote>, StoreError> {
    let Some(path) = run_file_path(project, run_id, NOTES_SUFFIX) else { return Ok(Vec::new()) };
    let text = disk::read_text(&path)?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Loads the saved state of a run's comment. Returns `None` if nothing has been sent, or if the file cannot be
/// read.
pub fn load_comment_state(project: &Project, run_id: &RunId) -> Option<LinearComment> {
    sessions::read_json_if_valid(&run_file_path(project, run_id, ".comment.json")?)
}

/// Saves the state of a run's comment. Callers save it before and after they send the comment.
pub fn save_comment_state(
    project: &Project,
    run_id: &RunId,
    comment: &LinearComment,
) -> Result<(), StoreError> {
    let Some(path) = run_file_path(project, run_id, ".comment.json") else { return Ok(()) };
    disk::replace(&path, to_json_or_empty(comment).as_bytes(), Durability::Durable)
}

/// Returns how many notes of a run have not been delivered.
pub fn undelivered_note_count(project: &Project, run_id: &RunId) -> usize {
    // The difference of the counts is correct, because notes are only appended. It saturates, because a truncated
    // or removed file may have fewer notes than were delivered.
    let note_count = read_notes(project, run_id).map_or(0, |notes| notes.len());
    note_count
        .saturating_sub(load_comment_state(project, run_id).map_or(0, |comment| comment.delivered_note_count))
}

/// Returns the number of undelivered notes of all runs.
pub fn undelivered_note_count_of_all_runs(project: &Project) -> usize {
    runs_with_notes_oldest_first(project).iter().map(|run| undelivered_note_count(project, run)).sum()
}

/// Loads the time at which Linear may be called again. Returns `None` if the last delivery did not fail.
pub fn load_backoff(project: &Project) -> Option<LinearBackoff> {
    sessions::read_json_if_valid(&backoff_path(project))
}

/// Saves the time at which Linear may be called again; removes the file if `backoff` is `None`.
pub fn save_or_remove_backoff(project: &Project, backoff: Option<&LinearBackoff>) -> Result<(), StoreError> {
    match backoff {
        // Not synced: if a power cut loses the backoff, one attempt is made too early.
        Some(backoff) => {
            disk::replace(&backoff_path(project), to_json_or_empty(backoff).as_bytes(), Durability::Lazy)
        }
        None => disk::remove_if_exists(&backoff_path(project)),
    }
}

/// Acquires the delivery lock. Two processes that deliver at the same time would overwrite each other's comment.
pub fn lock_delivery(project: &Project, timeout: Duration) -> Result<Lock, StoreError> {
    lock::acquire_at_current_location(project, |project| {
        lock::acquire(&outbox_folder(project).join("delivery.lock"), timeout)
    })
}

fn backoff_path(project: &Project) -> PathBuf {
    outbox_folder(project).join("wait.json")
}

/// Returns the path of a run's file. Returns `None` if the id is not a plain file name.
fn run_file_path(project: &Project, run_id: &RunId, suffix: &str) -> Option<PathBuf> {
    // The id comes from files that an agent can write: `../x` must not name a file.
    is_plain_file_name(run_id).then(|| outbox_folder(project).join(format!("{run_id}{suffix}")))
}

fn to_json_or_empty(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_note_is_skipped_and_delivered_notes_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let note =
            |text: &str| LinearNote { run_id: "r1".into(), text: text.into(), ..LinearNote::default() };
        append_note_with_best_effort_lock(&project, &note("one")).unwrap();
        disk::append(&outbox_folder(&project).join("r1.notes.jsonl"), b"{\"words\":\"to").unwrap();
        append_note_with_best_effort_lock(&project, &note("three")).unwrap();
        let texts: Vec<String> =
            read_notes(&project, &"r1".into()).unwrap().into_iter().map(|note| note.text).collect();
        assert_eq!(texts, ["one", "three"]);
        assert_eq!(
            (runs_with_notes_oldest_first(&project), undelivered_note_count_of_all_runs(&project)),
            (vec!["r1".into()], 2)
        );
        let comment =
            LinearComment { delivered_note_count: 1, ..LinearComment::for_run(&"r1".into(), "ENG-1", 0) };
        save_comment_state(&project, &"r1".into(), &comment).unwrap();
        assert_eq!(
            (load_comment_state(&project, &"r1".into()), undelivered_note_count_of_all_runs(&project)),
            (Some(comment), 1)
        );
    }

    #[test]
    fn a_hostile_run_id_has_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        append_note_with_best_effort_lock(
            &project,
            &LinearNote { run_id: "../x".into(), ..LinearNote::default() },
        )
        .unwrap();
        assert!(
            runs_with_notes_oldest_first(&project).is_empty()
                && read_notes(&project, &"../x".into()).unwrap().is_empty()
        );
    }

    #[test]
    fn a_backoff_is_saved_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let backoff = LinearBackoff {
            retry_at: "2026-01-07T11:45:00Z".into(),
            failure_count: 2,
            ..LinearBackoff::default()
        };
        save_or_remove_backoff(&project, Some(&backoff)).unwrap();
        assert_eq!(load_backoff(&project), Some(backoff));
        save_or_remove_backoff(&project, None).unwrap();
        assert_eq!(load_backoff(&project), None);
    }

    #[test]
    fn only_one_process_can_hold_the_delivery_lock() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let lock = lock_delivery(&project, Duration::ZERO).unwrap();
        assert!(lock_delivery(&project, Duration::ZERO).is_err());
        drop(lock);
        assert!(lock_delivery(&project, Duration::ZERO).is_ok());
    }
}
