//! The small files that hooks and the status line read in a project, and the files that locate its git folder.

use super::Target;
use crate::in_memory;
use crate::seeds::text_seeds;
use plimsoll_domain::SessionId;
use plimsoll_store::memory::load_shown_memory_state;
use plimsoll_store::{
    Project, TurnLog, config, context_windows, hook_failures, journal, layout, outbox, sessions, state_file,
};
use std::path::Path;
use tempfile::TempDir;

pub(super) const TARGET: Target =
    Target { name: "project_files", check_input, seeds, mutated_input_count: 300 };

const SESSION_ID: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
/// Files that are all filled with the input.
const FILES: [&str; 12] = [
    ".claude/plimsoll/faults.jsonl",
    ".claude/plimsoll/journal.jsonl",
    ".claude/plimsoll/memory/log.head",
    ".claude/plimsoll/memory/log.jsonl",
    ".claude/plimsoll/memory/seen/d8e9da22-d41b-4824-a1be-f318ff23689b.json",
    ".claude/plimsoll/memory/state.json",
    ".claude/plimsoll/sessions/d8e9da22-d41b-4824-a1be-f318ff23689b.json",
    ".claude/plimsoll/sessions/d8e9da22-d41b-4824-a1be-f318ff23689b.status.json",
    ".claude/plimsoll/turns/d8e9da22-d41b-4824-a1be-f318ff23689b.head",
    ".claude/plimsoll/windows.json",
    ".claude/settings.json",
    ".claude/plimsoll.json",
];

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        r#"{"session_id":"d8e9da22-d41b-4824-a1be-f318ff23689b","transcript_path":"/t","levels":{"l1":true},"used":5}"#,
        r#"{"claude-opus-5-5":1000000,"x":-1}"#,
        r#"{"seq":5,"bytes":100,"hash":"ab","streams":{"main":{"read":5,"number":1}}}"#,
        r#"{"seq":2,"memory":{"frames":[{"name":"root"}],"registers":{}}}"#,
        r#"{"at":"2026-01-01T00:00:00Z","event":"fault","error":"x"}"#,
        "gitdir: ../outside\n",
        "gitdir: .git\n",
        "ref: refs/heads/main\n",
    ])
}

fn check_input(bytes: &[u8]) {
    thread_local! {
        static FOLDER: TempDir = in_memory::temp_folder();
    }
    FOLDER.with(|folder| check_all_readers(folder.path(), bytes));
}

fn check_all_readers(folder: &Path, bytes: &[u8]) {
    for name in FILES {
        in_memory::write_creating_folders(&folder.join(name), bytes);
    }
    in_memory::write_creating_folders(&folder.join(".git"), bytes);
    let project = Project::with_local_files(folder).with_runs_folder(&folder.join("runs"));
    let record = sessions::load_session_record(&project, &SessionId::from(SESSION_ID));
    assert!(record.session_id.is_empty() || record.session_id == SESSION_ID, "{record:?}");
    let _ = (
        sessions::load_status_line_record(&project, &SessionId::from(SESSION_ID)),
        sessions::load_partial_record_for_status_line(&project, &SessionId::from(SESSION_ID)),
    );
    let _ = (
        context_windows::load_context_windows(&project),
        hook_failures::all_hook_failures(&project),
        outbox::undelivered_note_count_of_all_runs(&project),
    );
    let _ = (
        load_shown_memory_state(&project, &SessionId::from(SESSION_ID)),
        plimsoll_store::memory::load_memory(&project),
        config::load_settings(&project),
    );
    let _ = (state_file::load_state(&project, None), journal::read_entries(&project));
    if let Some(log) = TurnLog::for_session_where_started_or_current(&project, &SessionId::from(SESSION_ID)) {
        assert_eq!(log.current_head(), None, "a head of another length is no head");
    }
    // A file may name only an existing git folder.
    if let Some(git_folder) = layout::find_git_folder(folder) {
        assert!(git_folder.join("HEAD").exists(), "{}", git_folder.display());
    }
}
