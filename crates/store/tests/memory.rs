//! The working memory when its files are changed by another program.

#![expect(clippy::expect_used, reason = "helpers of tests")]

use plimsoll_domain::memory::{Memory, MemoryOp, Register};
use plimsoll_store::memory::{
    apply_changes_atomically, load_memory, lock_memory, read_changes, remove_copy,
    restore_damaged_memory_and_create_copy,
};
use plimsoll_store::{Durability, Project, disk};
use std::path::Path;
use std::time::Duration;

fn create_project(folder: &Path) -> Project {
    disk::create_folder(&folder.join(".git")).expect("a folder");
    Project::with_local_files(folder)
}

fn alloc_op(name: &str) -> MemoryOp {
    MemoryOp::HeapAlloc {
        name: name.into(),
        content: format!("content of {name}"),
        description: String::new(),
    }
}

fn set_register_op(register: Register, text: &str) -> MemoryOp {
    MemoryOp::UpdateRegisters {
        values: [(register, text.to_owned())].into(),
        strict: false,
        in_all_frames: false,
    }
}

fn chunk_names(memory: &Memory) -> Vec<&str> {
    memory.heap.iter().map(|chunk| chunk.name.as_str()).collect()
}

#[test]
fn writes_after_a_git_clean_do_not_replace_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let project = create_project(folder.path());
    remove_copy(&project).unwrap();
    apply_changes_atomically(
        &project,
        "mcp",
        &[alloc_op("a"), set_register_op(Register::Constraints, "no network")],
    )
    .unwrap();
    restore_damaged_memory_and_create_copy(&project).unwrap();
    disk::rename(project.data_folder(), &folder.path().join("cleaned")).unwrap();
    // The session continues and writes, as its instructions tell it to do in every step.
    apply_changes_atomically(&project, "mcp", &[set_register_op(Register::Status, "on")]).unwrap();
    restore_damaged_memory_and_create_copy(&project).unwrap();
    let memory = load_memory(&project).unwrap();
    assert_eq!(chunk_names(&memory), ["a"], "the copy was overwritten by what began anew");
    assert_eq!(memory.register_text(Register::Constraints), "no network");
}

fn project_with_snapshot(text: &str) -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().expect("a folder");
    let project = create_project(folder.path());
    apply_changes_atomically(&project, "mcp", &[set_register_op(Register::Goal, "g")])
        .expect("it is written");
    disk::replace(&project.memory_folder().join("state.json"), text.as_bytes(), Durability::Lazy)
        .expect("it is written");
    (folder, project)
}

#[test]
fn a_snapshot_without_a_memory_is_ignored() {
    let (_folder, project) = project_with_snapshot(r#"{"seq":1}"#);
    assert_eq!(load_memory(&project).unwrap().register_text(Register::Goal), "g", "the log has it");
}

#[test]
fn a_snapshot_without_a_root_frame_is_ignored() {
    let (_folder, project) = project_with_snapshot(
        r#"{"seq":1,"link":"","bytes":0,"at":"","steps":0,"memory":{"rev":1,"frames":[]}}"#,
    );
    assert_eq!(
        load_memory(&project).unwrap().frames.len(),
        1,
        "the stack is never empty: every reader counts on it"
    );
}

#[test]
fn a_damaged_record_does_not_repeat_a_revision() {
    let folder = tempfile::tempdir().unwrap();
    let project = create_project(folder.path());
    for op in [
        set_register_op(Register::Goal, "g"),
        alloc_op("a"),
        set_register_op(Register::Constraints, "no network"),
    ] {
        apply_changes_atomically(&project, "mcp", &[op]).unwrap();
    }
    let log = project.memory_folder().join("log.jsonl");
    let text = disk::read_text(&log).unwrap().unwrap();
    disk::replace(&log, text.replacen("{\"", "##", 1).as_bytes(), Durability::Lazy).unwrap();
    disk::remove_if_exists(&project.memory_folder().join("state.json")).unwrap();
    let revision_before = load_memory(&project).map_or(0, |memory| memory.revision);
    apply_changes_atomically(&project, "mcp", &[set_register_op(Register::Next, "n")]).unwrap();
    let revisions: Vec<u64> = read_changes(&project).unwrap().iter().map(|change| change.rev).collect();
    assert!(
        revision_before >= 3 && revisions == [2, 3, 4],
        "stands at {revision_before}, told as {revisions:?}"
    );
    drop(lock_memory(&project, Duration::from_secs(1)).unwrap());
}
