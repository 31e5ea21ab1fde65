//! The working memory that one turn passes on to the next in the head of the log.

use crate::harness::{SESSION_ID, TIMEOUT, TestLog, render_findings};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::memory::MemoryOp;
use plimsoll_domain::turn::record::{EncodingHints, encode_turn, encode_turn_and_memory};
use plimsoll_domain::{Timestamp, Turn};
use plimsoll_store::memory::{self, MemoryHead, PastMemory, lock_memory};
use plimsoll_store::turn_log::NewRecord;
use plimsoll_store::{Project, disk};
use serde_json::{Map, Value};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A time after every change.
const AFTER_ALL_CHANGES: &str = "2999-01-01T00:00:00Z";

fn turn_with_memory(memory: Map<String, Value>) -> Turn {
    Turn::new_success(1, Vec::new(), None, Value::Null, Vec::new(), Vec::new(), memory, Map::new())
}

fn alloc_chunk(project: &Project, name: &str) {
    let op = MemoryOp::HeapAlloc {
        name: name.into(),
        content: format!("chunk {name}"),
        description: String::new(),
    };
    memory::apply_changes_atomically(project, "mcp", &[op]).unwrap();
}

/// Records a turn as a hook does. Returns whether it reused the memory of the turn before; its content is the
/// same in any case.
fn record_turn_and_check_reuse(test_log: &TestLog, project: &Project) -> bool {
    let at = Timestamp::from(AFTER_ALL_CHANGES);
    let head = test_log.log.current_head().unwrap_or_default();
    let past_memory = PastMemory::from_head_or_log_else_empty(MemoryHead::load(project));
    let reused_memory = test_log.log.head_memory_if_blobs_unchanged(&head).and_then(|recorded_memory| {
        past_memory.unchanged_previous_memory_json_with_new_step(&at, recorded_memory)
    });
    let full_memory =
        past_memory.memory_at(&at).map(|memory| memory.current_frame_and_heap_to_json()).unwrap_or_default();
    let expected = encode_turn(&turn_with_memory(full_memory.clone())).content;
    let is_reused = reused_memory.is_some();
    let memory_fields = if is_reused { Map::new() } else { full_memory };
    let (encoded, packed) = encode_turn_and_memory(
        &turn_with_memory(memory_fields),
        &EncodingHints { memory_json: reused_memory, ..EncodingHints::default() },
    );
    assert_eq!(encoded.content, expected);
    let mut writer = test_log.log.lock_and_open_writer_without_sync(Some(&head), TIMEOUT).unwrap();
    writer
        .append_records_or_roll_back(&[
            NewRecord::empty_in_main_stream(RecordKind::Turn, at).with_content(encoded)
        ])
        .unwrap();
    if let Some(packed) = packed {
        writer.set_memory(past_memory.to_recorded_memory_if_current(packed));
    }
    writer.close().unwrap();
    // A folder's modification time has the resolution of the system tick.
    std::thread::sleep(Duration::from_millis(20));
    is_reused
}

fn blob_paths(test_log: &TestLog) -> Vec<PathBuf> {
    let folder = test_log.turns_folder().join(format!("{SESSION_ID}.blobs"));
    disk::list_names(&folder).into_iter().map(|name| folder.join(name)).collect()
}

#[test]
fn a_turn_reuses_memory_until_it_changes_or_a_blob_is_missing() {
    let test_log = TestLog::new();
    let project = Project::with_local_files(test_log.folder.path());
    assert!(!record_turn_and_check_reuse(&test_log, &project), "there is none");
    alloc_chunk(&project, "a");
    assert!(
        !record_turn_and_check_reuse(&test_log, &project) && record_turn_and_check_reuse(&test_log, &project)
    );
    let mut memory = lock_memory(&project, TIMEOUT).unwrap();
    memory.count_response_on_release(&"s".into());
    memory.save_changes_and_unlock().unwrap();
    assert!(record_turn_and_check_reuse(&test_log, &project), "only the step is another one");
    alloc_chunk(&project, "b");
    assert!(
        !record_turn_and_check_reuse(&test_log, &project) && record_turn_and_check_reuse(&test_log, &project)
    );
    fs::remove_file(&blob_paths(&test_log)[0]).unwrap();
    assert!(
        !record_turn_and_check_reuse(&test_log, &project) && record_turn_and_check_reuse(&test_log, &project),
        "it is put there again"
    );
    let report = test_log.verify();
    assert!(report.is_intact(), "{}", render_findings(&report));
    // An older writer, which does not know the field, does not hide that a blob is missing.
    fs::remove_file(&blob_paths(&test_log)[0]).unwrap();
    test_log.append(&[NewRecord::empty_in_main_stream(RecordKind::SessionEnd, AFTER_ALL_CHANGES.into())]);
    assert!(!record_turn_and_check_reuse(&test_log, &project));
    assert!(test_log.verify().is_intact());
}

#[test]
fn erased_contents_are_not_in_the_head() {
    let test_log = TestLog::new();
    let project = Project::with_local_files(test_log.folder.path());
    alloc_chunk(&project, "very-secret");
    assert!(!record_turn_and_check_reuse(&test_log, &project));
    assert!(
        fs::read_to_string(test_log.turns_folder().join(format!("{SESSION_ID}.head")))
            .unwrap()
            .contains("very-secret")
    );
    test_log.log.erase_records_and_finish_interrupted(&[1].into(), TIMEOUT).unwrap();
    assert!(!test_log.any_file_contains("very-secret"));
}

#[test]
fn after_a_system_restart_the_recorded_memory_is_not_reused() {
    let test_log = TestLog::new();
    let project = Project::with_local_files(test_log.folder.path());
    alloc_chunk(&project, "a");
    assert!(
        !record_turn_and_check_reuse(&test_log, &project) && record_turn_and_check_reuse(&test_log, &project)
    );
    let path = test_log.turns_folder().join(format!("{SESSION_ID}.head"));
    let head = fs::read_to_string(&path).unwrap();
    let boot_id = test_log.log.current_head().unwrap().unsynced.unwrap().boot_id;
    fs::write(&path, head.replace(&boot_id, "another start")).unwrap();
    test_log.log.repair_and_merge_pending_if_rebooted(TIMEOUT).unwrap();
    assert!(!record_turn_and_check_reuse(&test_log, &project), "a power cut may have spoilt its pieces");
    assert!(test_log.verify().is_intact());
}
