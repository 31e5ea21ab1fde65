//! What waits to be delivered to Linear: the notes of each run, one JSON line each, and beside them what is known of
//! the run's comment. It lies where an agent's `git clean` does not reach.
//!
//! Notes are added by hooks under a lock that is held for one append. Who delivers holds another one, as long as it
//! takes, and rewrites nothing that a hook writes.

use crate::layout::is_plain;
use crate::lock::{self, Lock};
use crate::{Durability, Project, StoreError, disk, sessions};
use plimsoll_domain::RunId;
use plimsoll_domain::linear::{Comment, Note, Wait};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The lock of the notes is held for a millisecond.
const TIMEOUT: Duration = Duration::from_secs(2);
const NOTES: &str = ".notes.jsonl";

/// The folder of all of it.
pub fn folder(project: &Project) -> PathBuf {
    project.copies().join("linear")
}

/// Adds a note. Where the lock is not available it is added all the same: one line is one write.
pub fn add(project: &Project, note: &Note) -> Result<(), StoreError> {
    if !is_plain(&note.run_id) {
        return Ok(());
    }
    let _lock =
        lock::acquire_in(project, |project| lock::acquire(&folder(project).join("notes.lock"), TIMEOUT));
    let Some(path) = file(project, &note.run_id, NOTES) else { return Ok(()) };
    disk::append_line(&path, &json(note))
}

/// The runs that have notes, oldest file first.
pub fn runs(project: &Project) -> Vec<RunId> {
    let folder = folder(project);
    let names =
        disk::names(&folder).into_iter().filter_map(|name| Some(RunId::from(name.strip_suffix(NOTES)?)));
    let mut runs: Vec<RunId> = names.collect();
    runs.sort_by_key(|run| disk::modified(&folder.join(format!("{run}{NOTES}"))));
    runs
}

/// The notes of a run, oldest first; a torn line is left out.
pub fn notes(project: &Project, run_id: &RunId) -> Result<Vec<Note>, StoreError> {
    let Some(path) = file(project, run_id, NOTES) else { return Ok(Vec::new()) };
    let text = disk::read_text(&path)?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What is known of a run's comment; none if nothing has been sent, or what was known cannot be read.
pub fn comment(project: &Project, run_id: &RunId) -> Option<Comment> {
    sessions::load_parsed(&file(project, run_id, ".comment.json")?)
}

/// Remembers what is known of a run's comment, before and after it is sent.
pub fn save_comment(project: &Project, run_id: &RunId, comment: &Comment) -> Result<(), StoreError> {
    let Some(path) = file(project, run_id, ".comment.json") else { return Ok(()) };
    disk::replace(&path, json(comment).as_bytes(), Durability::Durable)
}

/// How many notes of a run have not been delivered.
pub fn undelivered(project: &Project, run_id: &RunId) -> usize {
    // By number: notes are only added. A file that was cut or cleaned away may have fewer than were delivered.
    let notes = notes(project, run_id).map_or(0, |notes| notes.len());
    notes.saturating_sub(comment(project, run_id).map_or(0, |comment| comment.delivered))
}

/// The same of all runs.
pub fn all_undelivered(project: &Project) -> usize {
    runs(project).iter().map(|run| undelivered(project, run)).sum()
}

/// When Linear may be asked again; none while nothing has gone wrong.
pub fn wait(project: &Project) -> Option<Wait> {
    sessions::load_parsed(&wait_file(project))
}

/// Remembers when Linear may be asked again.
pub fn save_wait(project: &Project, wait: Option<&Wait>) -> Result<(), StoreError> {
    match wait {
        // Lazy: a wait that a power cut takes away costs one try too early.
        Some(wait) => disk::replace(&wait_file(project), json(wait).as_bytes(), Durability::Lazy),
        None => disk::remove(&wait_file(project)),
    }
}

/// Only one delivers at a time: two would overwrite each other's words.
pub fn lock_delivery(project: &Project, timeout: Duration) -> Result<Lock, StoreError> {
    lock::acquire_in(project, |project| lock::acquire(&folder(project).join("delivery.lock"), timeout))
}

fn wait_file(project: &Project) -> PathBuf {
    folder(project).join("wait.json")
}

/// The file of a run; none for an id that is no plain name.
fn file(project: &Project, run_id: &RunId, ending: &str) -> Option<PathBuf> {
    // The id comes from files that an agent can write: `../x` must name nothing.
    is_plain(run_id).then(|| folder(project).join(format!("{run_id}{ending}")))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_note_costs_only_itself_and_what_was_delivered_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let note = |words: &str| Note { run_id: "r1".into(), words: words.into(), ..Note::default() };
        add(&project, &note("one")).unwrap();
        disk::append(&super::folder(&project).join("r1.notes.jsonl"), b"{\"words\":\"to").unwrap();
        add(&project, &note("three")).unwrap();
        let words: Vec<String> =
            notes(&project, &"r1".into()).unwrap().into_iter().map(|note| note.words).collect();
        assert_eq!(words, ["one", "three"]);
        assert_eq!((runs(&project), all_undelivered(&project)), (vec!["r1".into()], 2));
        let comment = Comment { delivered: 1, ..Comment::of(&"r1".into(), "ENG-1", 0) };
        save_comment(&project, &"r1".into(), &comment).unwrap();
        assert_eq!((super::comment(&project, &"r1".into()), all_undelivered(&project)), (Some(comment), 1));
    }

    #[test]
    fn a_hostile_run_id_has_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        add(&project, &Note { run_id: "../x".into(), ..Note::default() }).unwrap();
        assert!(runs(&project).is_empty() && notes(&project, &"../x".into()).unwrap().is_empty());
    }

    #[test]
    fn a_wait_is_remembered_until_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let wait = Wait { until: "2026-01-07T11:45:00Z".into(), failures: 2, ..Wait::default() };
        save_wait(&project, Some(&wait)).unwrap();
        assert_eq!(super::wait(&project), Some(wait));
        save_wait(&project, None).unwrap();
        assert_eq!(super::wait(&project), None);
    }

    #[test]
    fn of_two_deliverers_one_waits() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let held = lock_delivery(&project, Duration::ZERO).unwrap();
        assert!(lock_delivery(&project, Duration::ZERO).is_err());
        drop(held);
        assert!(lock_delivery(&project, Duration::ZERO).is_ok());
    }
}
