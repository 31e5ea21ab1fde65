//! Files that an older version wrote, in a real run and by real commands, are read as they were meant.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests lay old files down by hand")]

use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::memory::{Memory, Register};
use plimsoll_store::{Project, TurnLog, disk, memory};
use std::fs;
use std::path::{Path, PathBuf};

fn old(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old").join(name)
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
    let document = fs::read_to_string(old("handoff.md")).unwrap();
    let notes = Notes::parse(&document);
    assert_eq!(notes.summary, "lines 1-80 of table.txt are converted");
    assert_eq!(notes.progress, "80 of 120 lines");
    assert_eq!(notes.replace(&document), document);
}
