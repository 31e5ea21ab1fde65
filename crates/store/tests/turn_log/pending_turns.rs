//! What could not be written at once waits in files of its own, and comes into the log once.

use crate::harness::{Place, TIMEOUT, files, log_at, prompt, said, test_name};
use plimsoll_domain::SessionId;
use plimsoll_store::{Project, TurnLog, lock};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn held(place: &Place) -> lock::Lock {
    lock::acquire(&place.log.path().with_extension("lock"), Duration::ZERO).unwrap()
}

fn pending(place: &Place) -> Vec<std::path::PathBuf> {
    files(&place.turns().join("pending"))
}

#[test]
fn records_under_a_held_lock_wait_and_are_merged_once_in_order() {
    let place = Place::with(1);
    let held = held(&place);
    for n in 0..200 {
        place.log.note(&prompt(&format!("waited {n}")), Duration::ZERO).unwrap();
    }
    assert_eq!(pending(&place).len(), 200);
    assert_eq!(place.texts(), ["text 1"]);
    drop(held);
    place.append(&[prompt("last")]);
    let texts = place.texts();
    assert_eq!((texts.len(), texts[1].as_str(), texts[201].as_str()), (202, "waited 0", "last"));
    assert!(texts[1..201].iter().enumerate().all(|(n, text)| *text == format!("waited {n}")), "{texts:?}");
    assert!(pending(&place).is_empty() && place.verify().is_whole(), "{}", said(&place.verify()));
}

/// This program again: the named test below merges what waits in a folder, and does nothing in an ordinary run.
fn merge_in_another_process(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&test_name(module_path!(), "as_one_who_merges"), "--exact", "--test-threads=1"])
        .env("PLIMSOLL_MERGE", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn as_one_who_merges() {
    if let Some(folder) = std::env::var_os("PLIMSOLL_MERGE") {
        log_at(Path::new(&folder)).write(TIMEOUT).unwrap().close().unwrap();
    }
}

#[test]
fn a_kill_between_merging_and_removing_doubles_nothing() {
    const COUNT: usize = 300;
    let mut was_in_between = 0;
    for round in 0..40 {
        let place = Place::in_memory();
        place.append(&[prompt("text 1")]);
        let lock = held(&place);
        (0..COUNT).for_each(|n| place.log.note(&prompt(&format!("{n}")), Duration::ZERO).unwrap());
        drop(lock);
        let mut child = merge_in_another_process(place.folder.path());
        // Killed at a moment of its own in each round, counted in files that are gone.
        let gone = round * COUNT / 40;
        while child.try_wait().unwrap().is_none() && COUNT - pending(&place).len() < gone.max(1) {}
        let _ = child.kill();
        child.wait().unwrap();
        was_in_between += usize::from(!pending(&place).is_empty());
        if round % 2 == 0 {
            let _ = fs::remove_file(place.log.path().with_extension("head"));
        }
        place.append(&[prompt("last")]);
        let mut texts = place.texts();
        assert_eq!(texts.len(), COUNT + 2, "round {round}");
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), COUNT + 2, "round {round}");
        assert!(pending(&place).is_empty());
        assert!(place.verify().is_whole(), "{}", said(&place.verify()));
    }
    assert!(was_in_between > 10, "killed in between {was_in_between} times");
}

#[test]
fn a_session_takes_no_other_session_s_waiting_records() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::at(folder.path());
    let [short, long] = ["abc", "abc.def"].map(|id| TurnLog::of(&project, &SessionId::from(id)).unwrap());
    plimsoll_store::disk::create_folder(long.path().parent().unwrap()).unwrap();
    let held = lock::acquire(&long.path().with_file_name("abc.def.lock"), Duration::ZERO).unwrap();
    long.note(&prompt("of the long one"), Duration::ZERO).unwrap();
    drop(held);
    short.note(&prompt("of the short one"), TIMEOUT).unwrap();
    long.note(&prompt("again"), TIMEOUT).unwrap();
    assert_eq!(crate::harness::texts(&short), ["of the short one"]);
    assert_eq!(crate::harness::texts(&long), ["of the long one", "again"]);
}

#[test]
fn a_waiting_file_that_cannot_be_read_stays_and_stops_nobody() {
    let place = Place::with(1);
    let folder = place.turns().join("pending");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}.20260107T120000000000.1.0.json", place.log.session_id()));
    fs::write(&path, "{ torn").unwrap();
    place.append(&[prompt("last")]);
    assert!(path.exists());
    assert_eq!(log_at(place.folder.path()).head().unwrap().seq, 2);
}
