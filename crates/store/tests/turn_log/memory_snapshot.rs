//! The working memory that a turn leaves to the next one.

use crate::harness::{ID, Place, TIMEOUT, said};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::memory::Op;
use plimsoll_domain::turn::record::{Known, encode, encode_new};
use plimsoll_domain::{Timestamp, Turn};
use plimsoll_store::memory::{self, Past, Standing, hold};
use plimsoll_store::turn_log::NewRecord;
use plimsoll_store::{Project, disk};
use serde_json::{Map, Value};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// After every change.
const AT: &str = "2999-01-01T00:00:00Z";

fn turn(memory: Map<String, Value>) -> Turn {
    Turn::success(1, Vec::new(), None, Value::Null, Vec::new(), Vec::new(), memory, Map::new())
}

fn alloc(project: &Project, name: &str) {
    let op =
        Op::HeapAlloc { name: name.into(), content: format!("chunk {name}"), description: String::new() };
    memory::change(project, "mcp", &[op]).unwrap();
}

/// Records a turn as a hook does; answers whether its memory was that of the turn before. Its content is the same in any case.
fn is_kept(place: &Place, project: &Project) -> bool {
    let at = Timestamp::from(AT);
    let head = place.log.head().unwrap_or_default();
    let past = Past::of(Standing::of(project));
    let kept = place.log.noted_memory(&head).and_then(|noted| past.as_before(&at, noted));
    let whole = past.at(&at).map(|memory| memory.snapshot()).unwrap_or_default();
    let expected = encode(&turn(whole.clone())).content;
    let is_kept = kept.is_some();
    let brought = if is_kept { Map::new() } else { whole };
    let (encoded, packed) = encode_new(&turn(brought), &Known { memory: kept, ..Known::default() });
    assert_eq!(encoded.content, expected);
    let mut writer = place.log.write_lazily(Some(&head), TIMEOUT).unwrap();
    writer.append(&[NewRecord::new(RecordKind::Turn, at).holding(encoded)]).unwrap();
    if let Some(packed) = packed {
        writer.note_memory(past.to_note(packed));
    }
    writer.close().unwrap();
    // The time of a folder is that of the system's last tick.
    std::thread::sleep(Duration::from_millis(20));
    is_kept
}

fn pieces(place: &Place) -> Vec<PathBuf> {
    let folder = place.turns().join(format!("{ID}.blobs"));
    disk::names(&folder).into_iter().map(|name| folder.join(name)).collect()
}

#[test]
fn a_turn_has_the_memory_of_the_one_before_until_it_is_written_or_a_piece_is_gone() {
    let place = Place::new();
    let project = Project::at(place.folder.path());
    assert!(!is_kept(&place, &project), "there is none");
    alloc(&project, "a");
    assert!(!is_kept(&place, &project) && is_kept(&place, &project));
    let mut held = hold(&project, TIMEOUT).unwrap();
    held.answered(&"s".into());
    held.close().unwrap();
    assert!(is_kept(&place, &project), "only the step is another one");
    alloc(&project, "b");
    assert!(!is_kept(&place, &project) && is_kept(&place, &project));
    fs::remove_file(&pieces(&place)[0]).unwrap();
    assert!(!is_kept(&place, &project) && is_kept(&place, &project), "it is put there again");
    let report = place.verify();
    assert!(report.is_whole(), "{}", said(&report));
    // An older writer, which does not know the field, does not hide that a piece is gone.
    fs::remove_file(&pieces(&place)[0]).unwrap();
    place.append(&[NewRecord::new(RecordKind::SessionEnd, AT.into())]);
    assert!(!is_kept(&place, &project));
    assert!(place.verify().is_whole());
}

#[test]
fn what_was_erased_is_not_in_the_head() {
    let place = Place::new();
    let project = Project::at(place.folder.path());
    alloc(&project, "very-secret");
    assert!(!is_kept(&place, &project));
    assert!(fs::read_to_string(place.turns().join(format!("{ID}.head"))).unwrap().contains("very-secret"));
    place.log.erase(&[1].into(), TIMEOUT).unwrap();
    assert!(!place.holds("very-secret"));
}

#[test]
fn after_another_start_of_the_system_the_memory_is_read_again() {
    let place = Place::new();
    let project = Project::at(place.folder.path());
    alloc(&project, "a");
    assert!(!is_kept(&place, &project) && is_kept(&place, &project));
    let path = place.turns().join(format!("{ID}.head"));
    let head = fs::read_to_string(&path).unwrap();
    let boot = place.log.head().unwrap().unsynced.unwrap().boot;
    fs::write(&path, head.replace(&boot, "another start")).unwrap();
    place.log.check_after_restart(TIMEOUT).unwrap();
    assert!(!is_kept(&place, &project), "a power cut may have spoilt its pieces");
    assert!(place.verify().is_whole());
}
