//! Files of a newer version are refused by name and never overwritten; a file that a project forges does not
//! count as one.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests lay files down by hand")]

use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::memory::MemoryOp;
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord};
use plimsoll_store::turn_log::NewRecord;
use plimsoll_store::{
    Durability, Project, StoreError, TurnLog, disk, formats, ledger, memory, sessions, state_file,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RUN_ID: &str = "r1";
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates a project with a run of this version.
fn create_project_with_run(folder: &Path) -> Project {
    disk::create_folder(&folder.join(".git")).unwrap();
    let project = Project::with_local_files(folder).with_runs_folder(&folder.join("runs"));
    let state = RunState { run_id: RUN_ID.into(), iteration: 1, ..RunState::default() };
    state_file::create_ledger_and_write_initial_state(&project, &state).unwrap();
    ledger::enable_ledger_writes();
    project
}

/// Changes a document to the next format, with a field in a shape that this version does not know.
fn make_newer(path: &Path) -> Vec<u8> {
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(document["format"], 1, "{}", path.display());
    document["format"] = json!(2);
    document["iteration"] = json!({"of": "another shape"});
    let bytes = serde_json::to_vec(&document).unwrap();
    fs::write(path, &bytes).unwrap();
    bytes
}

fn assert_newer_format_error<T: std::fmt::Debug>(result: Result<T, StoreError>, file: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { format: 2, .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(file) && message.contains("format 2, of a newer Plimsoll"), "{message}");
    assert!(error.hint().contains("update Plimsoll"));
}

fn increment_iteration(project: &Project) -> Result<Option<u32>, StoreError> {
    state_file::update_state(project, Some(&RUN_ID.into()), Durability::Lazy, |state| {
        state.iteration += 1;
        state.iteration
    })
}

fn ledger_path(project: &Project) -> PathBuf {
    ledger::inherited_or_default_run_record_folder(project, &RunId::from(RUN_ID)).unwrap().join("ledger.json")
}

#[test]
fn a_newer_state_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let project = create_project_with_run(folder.path());
    let (state, ledger) = (make_newer(project.state_path()), make_newer(&ledger_path(&project)));
    assert_newer_format_error(state_file::load_state(&project, Some(&RUN_ID.into())), "ledger.json");
    assert_newer_format_error(state_file::load_state(&project, None), "ralph-state.json");
    assert_newer_format_error(increment_iteration(&project), "ralph-state.json");
    assert_eq!(
        (fs::read(project.state_path()).unwrap(), fs::read(ledger_path(&project)).unwrap()),
        (state, ledger)
    );
    let newer_files = formats::files_in_newer_format(&project);
    assert_eq!(newer_files, [project.state_path().to_owned(), ledger_path(&project)]);
}

/// An agent can write the project's file, and must not be able to stop its own run with it for good.
#[test]
fn a_newer_state_with_a_current_ledger_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let project = create_project_with_run(folder.path());
    let forged = make_newer(project.state_path());
    assert_eq!(increment_iteration(&project).unwrap(), Some(2));
    let names = disk::list_names(project.state_path().parent().unwrap());
    let set_aside_name = names.iter().find(|name| name.starts_with("ralph-state.json.corrupt-")).unwrap();
    assert_eq!(fs::read(project.state_path().with_file_name(set_aside_name)).unwrap(), forged);
    assert_eq!(state_file::load_state(&project, None).unwrap().unwrap().iteration, 2);
    assert!(formats::files_in_newer_format(&project).is_empty());
}

/// The monitor keeps measuring: a record that an agent has forged must not silence it.
#[test]
fn a_newer_record_of_a_session_is_kept_beside_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let project = create_project_with_run(folder.path());
    let id = SessionId::from("s1");
    let record = SessionRecord { session_id: id.clone(), compaction_count: 3, ..SessionRecord::default() };
    sessions::set_aside_invalid_and_save_record(&project, &record, Durability::Lazy).unwrap();
    let path = project.session_record_path(&id).unwrap();
    let newer = make_newer(&path);
    assert_eq!(formats::files_in_newer_format(&project), std::slice::from_ref(&path));
    assert_eq!(sessions::load_session_record(&project, &id).compaction_count, 0);
    assert_eq!(fs::read(&path).unwrap(), newer, "a reader moves nothing");
    sessions::update_session_record(&project, &id, LOCK_TIMEOUT, |record| record.compaction_count += 1)
        .unwrap();
    assert_eq!(sessions::load_session_record(&project, &id).compaction_count, 1);
    let names = disk::list_names(path.parent().unwrap());
    let set_aside_name = names.iter().find(|name| name.starts_with("s1.json.corrupt-")).unwrap();
    assert_eq!(fs::read(path.with_file_name(set_aside_name)).unwrap(), newer);
}

/// Appends a line of the next format to a log. With `with_head`, the head is also as the newer version leaves
/// it.
fn add_newer_line(path: &Path, with_head: bool) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let line = json!({"header": {"v": 2, "seq": 9, "kind": "of_another_kind"}, "content": [1], "link": "x"});
    bytes.extend(format!("{line}\n").bytes());
    fs::write(path, &bytes).unwrap();
    if with_head {
        let head_path = path.with_extension("head");
        let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&head_path).unwrap()).unwrap();
        document["format"] = json!(2);
        document["bytes"] = json!(bytes.len());
        fs::write(&head_path, document.to_string()).unwrap();
    }
    bytes
}

#[test]
fn a_newer_turn_log_is_neither_extended_nor_truncated() {
    for with_head in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = create_project_with_run(folder.path());
        let log = TurnLog::for_session_where_started_or_current(&project, &"s1".into()).unwrap();
        let record = NewRecord::event_now(RecordKind::SessionStart, &json!({"source": "startup"}));
        log.append_or_write_to_pending_file(&record, LOCK_TIMEOUT).unwrap();
        let newer = add_newer_line(&log.path(), with_head);
        assert_newer_format_error(log.open_writer(LOCK_TIMEOUT), "s1.jsonl");
        assert_newer_format_error(log.lock_and_open_writer_without_sync(None, LOCK_TIMEOUT), "s1.jsonl");
        assert_eq!(fs::read(log.path()).unwrap(), newer);
        assert!(!log.torn_path().exists());
        assert_eq!(formats::files_in_newer_format(&project), [log.path()]);
    }
}

#[test]
fn a_newer_memory_is_neither_shown_nor_changed() {
    for with_head in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = create_project_with_run(folder.path());
        let begin_run = |objective: &str| {
            memory::apply_changes_atomically(
                &project,
                "test",
                &[MemoryOp::BeginRun { objective: objective.to_owned() }],
            )
        };
        begin_run("Keep the API.").unwrap();
        let path = project.memory_folder().join("log.jsonl");
        let newer = add_newer_line(&path, with_head);
        assert_newer_format_error(memory::load_memory(&project), "log.jsonl");
        let message = begin_run("Something else.").unwrap_err().to_string();
        assert!(message.contains("format 2, of a newer Plimsoll"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), newer);
    }
}
