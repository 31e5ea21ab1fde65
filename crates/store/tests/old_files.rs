//! Files that an older version wrote, in a real run and by real commands, are read as they were meant.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests lay old files down by hand")]

use plimsoll_domain::format::Format;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::linear::{Comment, Note, NoteKind, Wait};
use plimsoll_domain::memory::{Memory, Register};
use plimsoll_domain::record::{GitCounts, GitRecord, StatusRecord};
use plimsoll_domain::{Fault, RunId, SessionId, Status};
use plimsoll_store::ledger::{self, Record};
use plimsoll_store::{
    Durability, Project, TurnLog, disk, faults, memory, outbox, sessions, state_file, windows,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The run whose files these are.
const RUN: &str = "ed90f3a4-9c6d-4b09-a8ad-56a8d1f12ed4";
/// Its project's folder at that time.
const THERE: &str = "/tmp/plimsoll-test-CCn1tv/project";

fn old(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old").join(name)
}

fn old_text(name: &str) -> String {
    fs::read_to_string(old(name)).unwrap()
}

fn put(name: &str, to: &Path) {
    disk::create_folder(to.parent().unwrap()).unwrap();
    fs::copy(old(name), to).unwrap();
}

fn project(folder: &Path) -> Project {
    disk::create_folder(&folder.join(".git")).unwrap();
    Project::at(folder)
}

#[test]
fn a_turn_log_holds_its_chain_its_turns_and_its_large_pieces() {
    const BLOB: &str = "0532b09cda57f11a138f703ee4fa3b0f6f1e18356fd4f5cefc9b6bf1b00a444c";
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let id = SessionId::from("bf94a2ae-48f4-45f1-814d-0b738f68b9fb");
    put("turns.jsonl", &project.turns().join(format!("{id}.jsonl")));
    put("turns.head", &project.turns().join(format!("{id}.head")));
    put(&format!("blobs/{BLOB}"), &project.turns().join(format!("{id}.blobs/{BLOB}")));
    let log = TurnLog::of(&project, &id).unwrap();
    let report = log.verify().unwrap();
    assert_eq!((report.records, report.turns, report.findings.len()), (14, 2, 0), "{report:?}");
    let head = log.head().unwrap();
    assert_eq!((head.seq, log.read_of("main")), (14, 157_693));
}

#[test]
fn a_memory_is_the_same_by_its_snapshot_and_by_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let place = project.memory();
    put("memory-log.jsonl", &place.join("log.jsonl"));
    let folded = memory::load(&project).unwrap();
    put("memory-log.head", &place.join("log.head"));
    put("memory.json", &place.join("state.json"));
    let loaded = memory::load(&project).unwrap();
    for memory in [&folded, &loaded] {
        let Memory { rev, heap, .. } = memory;
        let chunks: Vec<(&str, &str)> =
            heap.iter().map(|chunk| (chunk.name.as_str(), chunk.content.as_str())).collect();
        assert_eq!((*rev, chunks), (3, vec![("api-spec", "the spec, again")]));
        assert_eq!(memory.register(Register::Constraints), "Keep the public API.");
    }
    assert_eq!(memory::history(&project).unwrap().len(), 3);
}

#[test]
fn the_notes_of_a_handoff_are_found() {
    let document = old_text("handoff.md");
    let notes = Notes::parse(&document);
    assert_eq!(notes.summary, "lines 1-80 of table.txt are converted");
    assert_eq!(notes.progress, "80 of 120 lines");
    assert_eq!(notes.replace(&document), document);
}

/// A project whose run has the record and the ledger of that time, as if it had always been in this folder.
fn project_of_run(folder: &Path) -> Project {
    let project = project(folder).with_runs_in(&folder.join("runs"));
    let place = disk::canonical(folder).display().to_string();
    let kept = ledger::folder(&project, &RUN.into()).unwrap();
    disk::create_folder(&kept).unwrap();
    fs::write(kept.join("record.json"), old_text("run-record.json").replace(THERE, &place)).unwrap();
    put("run-ledger.json", &kept.join("ledger.json"));
    project
}

#[test]
fn the_record_of_a_run_names_its_project_and_its_command() {
    let record: Record = serde_json::from_str(&old_text("run-record.json")).unwrap();
    let (first, last) = (&record.command[..4], record.command.last().unwrap());
    assert_eq!(first, ["/tmp/plimsoll-programs/plimsoll", "run", "--objective", "Do the plan."]);
    assert_eq!((record.command.len(), last.as_str()), (33, "opus"));
    let Record { run_id, project, command: _, started_at, format: _ } = &record;
    assert_eq!(
        (run_id.as_str(), project.as_str(), started_at.as_str()),
        (RUN, THERE, "2026-11-24T00:44:00Z")
    );
    let numbered = old_text("run-record.json").replacen("{\n", "{\n  \"format\": 1,\n", 1);
    assert_eq!(serde_json::to_string_pretty(&record).unwrap(), numbered);

    let folder = tempfile::tempdir().unwrap();
    let project = project_of_run(folder.path());
    assert!(ledger::knows(&project, &RUN.into()));
    assert_eq!(ledger::record(&project, &RUN.into()).unwrap().command, record.command);
}

#[test]
fn a_ledger_is_read_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (project, id) = (project_of_run(folder.path()), RunId::from(RUN));
    let state = ledger::load(&project, &id).unwrap().unwrap();
    assert_eq!((state.lifecycle.status(), state.iteration, state.revision), (Status::Cancelled, 3, 33));
    assert_eq!(state.lifecycle.ended_at().unwrap().as_str(), "2026-11-24T00:44:16Z");
    assert_eq!((state.options.limits.max_cost_usd, state.items.completed_items.len()), (Some(20.5), 1));
    let mut known: Value = serde_json::from_str(&old_text("run-ledger.json")).unwrap();
    // The place to continue at, which no prompt names any more.
    known["context_checkpoint"]["item_work"].as_object_mut().unwrap().shift_remove("place");
    let mut now = serde_json::to_value(&state).unwrap();
    // Fields that it did not have.
    let newer = [
        "format",
        "parked",
        "verify_each",
        "plan_checks",
        "verify_passed",
        "taken_back",
        "verify_seconds",
        "branch",
        "branch_before",
        "review_every",
        "review_model",
        "reviews",
        "review_count",
        "review_cost_usd",
        "review_tokens",
        "cost_is_at_most",
    ];
    newer.iter().for_each(|field| drop(now.as_object_mut().unwrap().shift_remove(*field)));
    now["limits"].as_object_mut().unwrap().shift_remove("max_cost_per_day_usd");
    for field in ["is_cost_unknown", "measured_growth"] {
        now["iteration_record"].as_object_mut().unwrap().shift_remove(field);
    }
    assert_eq!(now, known, "every field of it is known and keeps its value");

    ledger::keep();
    // The project's own file is missing: the ledger replaces it, and is written with it.
    state_file::update(&project, Some(&id), Durability::Lazy, |_| ()).unwrap().unwrap();
    let written = ledger::load(&project, &id).unwrap().unwrap();
    assert_eq!((written.revision, plimsoll_domain::RunState { revision: 33, ..written }), (34, state));
}

#[test]
fn windows_are_known_and_a_new_one_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    put("windows.json", &project.windows());
    let of = |model: &str| windows::load(&project).get(model).copied();
    assert_eq!((of("claude-haiku-4-5"), of("claude-sonnet-4-5[1m]")), (Some(200_000), Some(1_000_000)));
    windows::learn(&project, "claude-haiku-4-5", 200_000).unwrap();
    assert_eq!(fs::read_to_string(project.windows()).unwrap(), old_text("windows.json"), "nothing new");
    windows::learn(&project, "a", 300_000).unwrap();
    let windows: Vec<u64> = windows::load(&project).into_values().collect();
    assert_eq!(windows, [300_000, 200_000, 1_000_000]);
}

#[test]
fn what_the_status_line_published_is_read() {
    const SESSION: &str = "142aec79-8f8a-449b-a995-acdf93792e1b";
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let path = project.status_record(&SESSION.into()).unwrap();
    put("session-status.json", &path);
    let expected = StatusRecord {
        session_id: SESSION.into(),
        model: Some("claude-sonnet-4-5[1m]".to_owned()),
        window: Some(1_000_000),
        used: Some(140_000),
        output: Some(12),
        at: "2026-11-24T00:44:10.188Z".into(),
        fills: vec![55_000, 140_000],
        fill_times: vec![1_795_481_043, 1_795_481_049],
        git: Some(GitRecord {
            folder: "/tmp/plimsoll-test-CCn1tv/home/tables".to_owned(),
            state: "ref: refs/heads/.invalid 1795481043948110099".to_owned(),
            counts: Some(GitCounts {
                ahead: 2,
                behind: 1,
                conflicts: 1,
                staged: 1,
                modified: 1,
                untracked: 2,
            }),
            asked_at: 1_795_481_049_975,
            late: true,
            branch: "main".to_owned(),
        }),
        run: None,
    };
    assert_eq!(sessions::load_status(&project, &SESSION.into()), Some(expected.clone()));
    disk::remove(&path).unwrap();
    sessions::save_status(&project, None, &expected).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), old_text("session-status.json"));
}

#[test]
fn the_notes_of_the_outbox_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (project, id) = (project(folder.path()), RunId::from(RUN));
    let path = outbox::folder(&project).join(format!("{RUN}.notes.jsonl"));
    put("linear-notes.jsonl", &path);
    assert_eq!(outbox::runs(&project), std::slice::from_ref(&id));
    let notes = outbox::notes(&project, &id).unwrap();
    let known: Vec<(u32, NoteKind)> = notes.iter().map(|note| (note.iteration, note.kind)).collect();
    let of = |iteration| (iteration, NoteKind::Checkpoint);
    assert_eq!(known, [of(1), of(1), of(2), of(3), (3, NoteKind::End)]);
    let last = Note {
        at: "2026-11-24T00:44:16Z".into(),
        run_id: id.clone(),
        task: "Dates".to_owned(),
        issue: "ENG-123".to_owned(),
        iteration: 3,
        kind: NoteKind::End,
        words: "the run ended: cancelled. 1 item done, 1 open; 3 sessions, $0.03, 0 tokens.".to_owned(),
    };
    assert_eq!(notes.last(), Some(&last));
    disk::remove(&path).unwrap();
    notes.iter().for_each(|note| outbox::add(&project, note).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), old_text("linear-notes.jsonl"));
}

#[test]
fn a_runs_comment_is_known_and_the_wait_for_linear() {
    let folder = tempfile::tempdir().unwrap();
    let (project, id) = (project(folder.path()), RunId::from(RUN));
    let place = outbox::folder(&project);
    let (comment_file, wait_file) = (place.join(format!("{RUN}.comment.json")), place.join("wait.json"));
    put("linear-comment.json", &comment_file);
    put("linear-wait.json", &wait_file);
    put("linear-notes.jsonl", &place.join(format!("{RUN}.notes.jsonl")));
    let comment = Comment {
        format: Format,
        issue: "ENG-123".to_owned(),
        id: "12070f24-e58b-48ae-9c66-1a828c004fbe".to_owned(),
        generation: 1,
        is_there: true,
        delivered: 5,
        url: Some("https://linear.app/test/issue/ENG-123#comment-12070f24".to_owned()),
    };
    let wait = Wait {
        until: "2026-11-24T06:00:00Z".into(),
        is_limit: true,
        failures: 1,
        trouble: "Linear asks us to wait: too many requests".to_owned(),
    };
    assert_eq!(outbox::comment(&project, &id), Some(comment.clone()));
    assert_eq!(outbox::wait(&project), Some(wait.clone()));
    assert_eq!(outbox::undelivered(&project, &id), 0, "all of its notes are in the comment");
    assert_eq!(Comment::of(&id, "ENG-123", 1).id, comment.id, "the id still follows from the run");
    outbox::save_comment(&project, &id, &comment).unwrap();
    outbox::save_wait(&project, Some(&wait)).unwrap();
    let numbered = old_text("linear-comment.json").replacen('{', "{\"format\":1,", 1);
    assert_eq!(fs::read_to_string(comment_file).unwrap(), numbered);
    assert_eq!(fs::read_to_string(wait_file).unwrap(), old_text("linear-wait.json"));
}

#[test]
fn the_faults_of_our_hooks_are_read() {
    const SESSION: &str = "142aec79-8f8a-449b-a995-acdf93792e1b";
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    put("faults.jsonl", &project.faults());
    let lock = format!("{THERE}/.claude/plimsoll/sessions/{SESSION}.lock");
    let fault = |at: &str, program: &str| Fault {
        at: at.into(),
        program: program.to_owned(),
        session_id: SESSION.into(),
        what: format!(
            "cannot open {lock}: Not a directory (os error 20); check the path, its permissions and the free space"
        ),
    };
    let expected = [
        fault("2026-11-24T00:44:16.215Z", "plimsoll-session-start"),
        fault("2026-11-24T00:44:16.222Z", "plimsoll-session-end"),
    ];
    let known = faults::all(&project);
    assert_eq!(known, expected);
    let lines: String = known.iter().map(|fault| serde_json::to_string(fault).unwrap() + "\n").collect();
    assert_eq!(lines, old_text("faults.jsonl"));
    faults::note(&project, &known[0]).unwrap();
    let noted = faults::last(&project).unwrap();
    assert_eq!(Fault { at: known[0].at.clone(), ..noted }, known[0]);
}
