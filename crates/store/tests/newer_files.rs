//! Files of a newer version: refused by name, and never written over; and what a project forges does not count as one.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests lay files down by hand")]

use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::memory::Op;
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord};
use plimsoll_store::turn_log::NewRecord;
use plimsoll_store::{
    Durability, Project, StoreError, TurnLog, disk, formats, ledger, memory, sessions, state_file,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RUN: &str = "r1";
const SOON: Duration = Duration::from_secs(2);

/// A project with a run of this version.
fn project(folder: &Path) -> Project {
    disk::create_folder(&folder.join(".git")).unwrap();
    let project = Project::at(folder).with_runs_in(&folder.join("runs"));
    let state = RunState { run_id: RUN.into(), iteration: 1, ..RunState::default() };
    state_file::create(&project, &state).unwrap();
    ledger::keep();
    project
}

/// Makes a document one of the next format, with something that this version does not know.
fn make_newer(path: &Path) -> Vec<u8> {
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(document["format"], 1, "{}", path.display());
    document["format"] = json!(2);
    document["iteration"] = json!({"of": "another shape"});
    let bytes = serde_json::to_vec(&document).unwrap();
    fs::write(path, &bytes).unwrap();
    bytes
}

fn is_newer<T: std::fmt::Debug>(answer: Result<T, StoreError>, file: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, StoreError::Newer { format: 2, .. }), "{error:?}");
    let words = error.to_string();
    assert!(words.contains(file) && words.contains("format 2, of a newer Plimsoll"), "{words}");
    assert!(error.hint().contains("update Plimsoll"));
}

fn bump(project: &Project) -> Result<Option<u32>, StoreError> {
    state_file::update(project, Some(&RUN.into()), Durability::Lazy, |state| {
        state.iteration += 1;
        state.iteration
    })
}

fn ledger_of(project: &Project) -> PathBuf {
    ledger::folder(project, &RunId::from(RUN)).unwrap().join("ledger.json")
}

#[test]
fn a_newer_state_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let (state, kept) = (make_newer(project.state()), make_newer(&ledger_of(&project)));
    is_newer(state_file::load(&project, Some(&RUN.into())), "ledger.json");
    is_newer(state_file::load(&project, None), "ralph-state.json");
    is_newer(bump(&project), "ralph-state.json");
    assert_eq!((fs::read(project.state()).unwrap(), fs::read(ledger_of(&project)).unwrap()), (state, kept));
    let found = formats::newer(&project);
    assert_eq!(found, [project.state().to_owned(), ledger_of(&project)]);
}

/// An agent can write the project's file, and may not stop its own run by it for good.
#[test]
fn a_state_that_its_ledger_does_not_bear_out_is_set_aside_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let forged = make_newer(project.state());
    assert_eq!(bump(&project).unwrap(), Some(2));
    let names = disk::names(project.state().parent().unwrap());
    let aside = names.iter().find(|name| name.starts_with("ralph-state.json.corrupt-")).unwrap();
    assert_eq!(fs::read(project.state().with_file_name(aside)).unwrap(), forged);
    assert_eq!(state_file::load(&project, None).unwrap().unwrap().iteration, 2);
    assert!(formats::newer(&project).is_empty());
}

/// The monitor goes on measuring: a record that an agent has forged must not silence it.
#[test]
fn a_newer_record_of_a_session_is_kept_beside_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let id = SessionId::from("s1");
    let record = SessionRecord { session_id: id.clone(), compactions: 3, ..SessionRecord::default() };
    sessions::save(&project, &record, Durability::Lazy).unwrap();
    let path = project.session(&id).unwrap();
    let newer = make_newer(&path);
    assert_eq!(formats::newer(&project), std::slice::from_ref(&path));
    assert_eq!(sessions::load(&project, &id).compactions, 0);
    assert_eq!(fs::read(&path).unwrap(), newer, "a reader moves nothing");
    sessions::update(&project, &id, SOON, |record| record.compactions += 1).unwrap();
    assert_eq!(sessions::load(&project, &id).compactions, 1);
    let names = disk::names(path.parent().unwrap());
    let aside = names.iter().find(|name| name.starts_with("s1.json.corrupt-")).unwrap();
    assert_eq!(fs::read(path.with_file_name(aside)).unwrap(), newer);
}

/// A line of the next format behind those of a log; the head is what the newer version leaves.
fn add_newer_line(path: &Path, head: bool) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let line = json!({"header": {"v": 2, "seq": 9, "kind": "of_another_kind"}, "content": [1], "link": "x"});
    bytes.extend(format!("{line}\n").bytes());
    fs::write(path, &bytes).unwrap();
    if head {
        let place = path.with_extension("head");
        let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
        document["format"] = json!(2);
        document["bytes"] = json!(bytes.len());
        fs::write(&place, document.to_string()).unwrap();
    }
    bytes
}

#[test]
fn nothing_is_added_to_a_newer_turn_log_and_nothing_torn_off() {
    for head in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let log = TurnLog::of(&project, &"s1".into()).unwrap();
        let note = NewRecord::event(RecordKind::SessionStart, &json!({"source": "startup"}));
        log.note(&note, SOON).unwrap();
        let newer = add_newer_line(&log.path(), head);
        is_newer(log.write(SOON), "s1.jsonl");
        is_newer(log.write_lazily(None, SOON), "s1.jsonl");
        assert_eq!(fs::read(log.path()).unwrap(), newer);
        assert!(!log.torn().exists());
        assert_eq!(formats::newer(&project), [log.path()]);
    }
}

#[test]
fn a_newer_memory_is_neither_shown_nor_changed() {
    for head in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let set =
            |words: &str| memory::change(&project, "test", &[Op::BeginRun { objective: words.to_owned() }]);
        set("Keep the API.").unwrap();
        let path = project.memory().join("log.jsonl");
        let newer = add_newer_line(&path, head);
        is_newer(memory::load(&project), "log.jsonl");
        let refused = set("Something else.").unwrap_err().to_string();
        assert!(refused.contains("format 2, of a newer Plimsoll"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), newer);
    }
}
