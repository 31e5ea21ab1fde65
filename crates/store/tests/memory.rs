//! The working memory on a disk that somebody else writes to.

#![expect(clippy::expect_used, reason = "helpers of tests")]

use plimsoll_domain::memory::{Memory, Op, Register};
use plimsoll_store::memory::{change, forget_copy, history, hold, keep, load};
use plimsoll_store::{Durability, Project, disk};
use std::path::Path;
use std::time::Duration;

fn project(folder: &Path) -> Project {
    disk::create_folder(&folder.join(".git")).expect("a folder");
    Project::at(folder)
}

fn alloc(name: &str) -> Op {
    Op::HeapAlloc { name: name.into(), content: format!("content of {name}"), description: String::new() }
}

fn set(register: Register, text: &str) -> Op {
    Op::UpdateRegisters { values: [(register, text.to_owned())].into(), strict: false, everywhere: false }
}

fn names(memory: &Memory) -> Vec<&str> {
    memory.heap.iter().map(|chunk| chunk.name.as_str()).collect()
}

#[test]
fn what_is_written_after_a_clean_does_not_replace_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    forget_copy(&project).unwrap();
    change(&project, "mcp", &[alloc("a"), set(Register::Constraints, "no network")]).unwrap();
    keep(&project).unwrap();
    disk::rename(project.own(), &folder.path().join("cleaned")).unwrap();
    // The session continues and writes, as it is told to in every step.
    change(&project, "mcp", &[set(Register::Status, "on")]).unwrap();
    keep(&project).unwrap();
    let memory = load(&project).unwrap();
    assert_eq!(names(&memory), ["a"], "the copy was overwritten by what began anew");
    assert_eq!(memory.register(Register::Constraints), "no network");
}

fn with_snapshot(text: &str) -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().expect("a folder");
    let project = project(folder.path());
    change(&project, "mcp", &[set(Register::Goal, "g")]).expect("it is written");
    disk::replace(&project.memory().join("state.json"), text.as_bytes(), Durability::Lazy)
        .expect("it is written");
    (folder, project)
}

#[test]
fn a_snapshot_without_a_memory_in_it_is_not_believed() {
    let (_folder, project) = with_snapshot(r#"{"seq":1}"#);
    assert_eq!(load(&project).unwrap().register(Register::Goal), "g", "the log has it");
}

#[test]
fn a_snapshot_without_a_root_is_not_believed() {
    let (_folder, project) =
        with_snapshot(r#"{"seq":1,"link":"","bytes":0,"at":"","steps":0,"memory":{"rev":1,"frames":[]}}"#);
    assert_eq!(
        load(&project).unwrap().frames.len(),
        1,
        "the stack is never empty: every reader counts on it"
    );
}

#[test]
fn a_damaged_record_makes_no_revision_come_twice() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    for op in [set(Register::Goal, "g"), alloc("a"), set(Register::Constraints, "no network")] {
        change(&project, "mcp", &[op]).unwrap();
    }
    let log = project.memory().join("log.jsonl");
    let text = disk::read_text(&log).unwrap().unwrap();
    disk::replace(&log, text.replacen("{\"", "##", 1).as_bytes(), Durability::Lazy).unwrap();
    disk::remove(&project.memory().join("state.json")).unwrap();
    let before = load(&project).map_or(0, |memory| memory.rev);
    change(&project, "mcp", &[set(Register::Next, "n")]).unwrap();
    let revisions: Vec<u64> = history(&project).unwrap().iter().map(|change| change.rev).collect();
    assert!(before >= 3 && revisions == [2, 3, 4], "stands at {before}, told as {revisions:?}");
    drop(hold(&project, Duration::from_secs(1)).unwrap());
}
