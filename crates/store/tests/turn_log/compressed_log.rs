//! A compressed log reads as before, takes what comes after it, and is never the only form before it is whole.

use crate::harness::{ID, Place, TIMEOUT, files, large, prompt, said, texts};
use plimsoll_store::StoreError;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Lines and large pieces of a closed session, as old as this.
fn closed() -> (Place, SystemTime) {
    let place = Place::with(200);
    place.append(&[prompt(&large("a large piece")), prompt(&large("another one"))]);
    let written = SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for file in files(&place.turns()) {
        fs::File::options().append(true).open(file).unwrap().set_modified(written).unwrap();
    }
    (place, written)
}

fn packed(place: &Place) -> PathBuf {
    place.turns().join(format!("{ID}.jsonl.zst"))
}

fn size(place: &Place) -> u64 {
    files(&place.turns()).iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}

#[test]
fn a_compressed_log_is_smaller_and_reads_as_before() {
    let (place, written) = closed();
    let (texts_before, size_before, head) = (place.texts(), size(&place), place.log.head());
    let backwards = || {
        let lines = place.log.backwards().unwrap().map(|line| line.unwrap());
        lines.map(|line| (line.place.offset, line.bytes)).collect::<Vec<_>>()
    };
    let backwards_before = backwards();
    let saved = place.log.pack(TIMEOUT).unwrap();
    assert!(place.log.is_packed() && place.log.exists());
    assert_eq!(size(&place), size_before - saved);
    assert!(saved > size_before / 2, "{saved} of {size_before}");
    assert!(
        !place.log.path().exists()
            && files(&place.turns()).iter().all(|file| !file.to_string_lossy().ends_with("draft"))
    );
    assert_eq!((place.texts(), place.log.head()), (texts_before, head));
    assert_eq!(backwards(), backwards_before);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
    let days =
        |moment: SystemTime| moment.duration_since(written).map_or(0, |later| later.as_secs() / 86_400);
    assert_eq!(place.log.modified().map(days), Some(0), "nothing was written to it");
    assert_eq!(place.log.pack(TIMEOUT).unwrap(), 0, "a second time changes nothing");
}

#[test]
fn what_is_added_later_follows_what_was_compressed() {
    let (place, _) = closed();
    let before = place.texts();
    place.log.pack(TIMEOUT).unwrap();
    place.append(&[prompt("after it"), prompt(&large("a large piece"))]);
    assert!(!place.log.is_packed() && !packed(&place).exists());
    assert_eq!(place.texts(), [before, vec!["after it".to_owned(), large("a large piece")]].concat());
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
    place.log.pack(TIMEOUT).unwrap();
    assert!(place.log.is_packed() && place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn a_head_that_is_gone_is_made_again_from_the_compressed_log() {
    let (place, _) = closed();
    place.log.pack(TIMEOUT).unwrap();
    fs::remove_file(place.turns().join(format!("{ID}.head"))).unwrap();
    place.append(&[prompt("after it")]);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
    assert_eq!(place.texts().last().map(String::as_str), Some("after it"));
}

/// A kill between the two leaves both forms: the plain one counts, and may have grown since.
#[test]
fn of_two_forms_the_plain_one_counts() {
    let (place, _) = closed();
    let plain = place.bytes();
    place.log.pack(TIMEOUT).unwrap();
    place.put(&plain);
    assert!(!place.log.is_packed());
    place.append(&[prompt("after the kill")]);
    let texts_now = place.texts();
    assert_eq!(texts_now.last().map(String::as_str), Some("after the kill"));
    let project = plimsoll_store::Project::at(place.folder.path());
    assert_eq!(plimsoll_store::TurnLog::all(&project).len(), 1, "it is one log");
    place.log.pack(TIMEOUT).unwrap();
    assert_eq!(texts(&place.log), texts_now);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn a_damaged_one_is_named_and_its_next_writer_moves_it_aside() {
    let (place, _) = closed();
    place.log.pack(TIMEOUT).unwrap();
    let whole = fs::read(packed(&place)).unwrap();
    for damaged in [whole[..whole.len() / 2].to_vec(), b"no zstd".to_vec(), [&whole[..], b"more"].concat()] {
        let (place, _) = closed();
        place.log.pack(TIMEOUT).unwrap();
        fs::write(packed(&place), &damaged).unwrap();
        let words = place.log.forwards().map(|_| ()).unwrap_err().to_string();
        assert!(words.contains("jsonl.zst"), "{words}");
        assert_eq!(fs::read(packed(&place)).unwrap(), damaged, "a reader moves nothing");
        place.append(&[prompt("it goes on")]);
        assert_eq!(place.texts(), ["it goes on"]);
        let aside =
            files(&place.turns()).into_iter().find(|file| file.to_string_lossy().contains(".zst.corrupt-"));
        assert_eq!(fs::read(aside.expect("it is kept")).unwrap(), damaged);
        assert!(
            said(&place.verify()).contains("lost"),
            "what is missing is named: {}",
            said(&place.verify())
        );
        let project = plimsoll_store::Project::at(place.folder.path());
        plimsoll_store::records::remove_session(&project, &ID.into()).unwrap();
        let left =
            files(&place.turns()).into_iter().filter(|file| !file.to_string_lossy().ends_with(".lock"));
        assert_eq!(left.count(), 0, "it goes with its session");
    }
}

/// A clone may bring any file along: a small one fills neither memory nor disk, whoever reads it.
#[test]
fn a_file_that_would_become_huge_is_refused_by_whoever_opens_it() {
    let frame = vec![b'\n'; 4 * 1024 * 1024];
    let small = compress_to_vec(&frame[..], CompressionLevel::Fastest);
    let place = Place::new();
    fs::create_dir_all(place.turns()).unwrap();
    fs::write(packed(&place), small.repeat(500)).unwrap();
    let refused = place.log.forwards().map(|_| ()).unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
    place.append(&[prompt("it goes on")]);
    assert_eq!(place.texts(), ["it goes on"]);
    // So it is not made either.
    let same = "the same words ".repeat(100);
    let place = Place::new();
    (0..20).for_each(|_| place.append(&(0..1_000).map(|_| prompt(&same)).collect::<Vec<_>>()));
    let before = place.texts().len();
    place.log.pack(TIMEOUT).unwrap();
    assert_eq!(place.texts().len(), before, "packed or not, it is read");
}

/// The memory is written for as long as there is a project; a file that looks like its compressed log is nobody's.
#[test]
fn the_memorys_log_is_never_unpacked() {
    let place = Place::with(3);
    place.log.pack(TIMEOUT).unwrap();
    let project = plimsoll_store::Project::at(place.folder.path());
    fs::create_dir_all(project.memory()).unwrap();
    let forged = project.memory().join("log.jsonl.zst");
    fs::copy(packed(&place), &forged).unwrap();
    assert!(!plimsoll_store::memory::exists(&project));
    let op = plimsoll_domain::memory::Op::BeginRun { objective: "Do it.".to_owned() };
    plimsoll_store::memory::change(&project, "test", &[op]).unwrap();
    assert!(forged.exists() && plimsoll_store::memory::history(&project).unwrap().len() == 1);
}

#[test]
fn what_killed_packers_left_goes_with_the_next_one_and_with_an_erasure() {
    let secret = "sk-very-secret";
    let place = Place::new();
    place.append(&[prompt("one"), prompt(secret)]);
    let plain = place.bytes();
    let draft = place.turns().join(format!(".{ID}.jsonl.7.0123456789abcdef{}", plimsoll_store::disk::DRAFT));
    fs::write(&draft, &plain).unwrap();
    place.log.pack(TIMEOUT).unwrap();
    assert!(!draft.exists());
    // Killed between the two forms, and then told to forget.
    let compressed = fs::read(packed(&place)).unwrap();
    place.append(&[prompt("three")]);
    fs::write(packed(&place), compressed).unwrap();
    fs::write(&draft, &plain).unwrap();
    assert_eq!(place.log.erase(&[2].into(), TIMEOUT).unwrap(), 1);
    assert!(!place.holds(secret) && !packed(&place).exists() && !draft.exists());
    assert_eq!(place.texts(), ["one", "three"]);
}

#[test]
fn what_is_erased_from_a_compressed_log_is_in_no_file() {
    let secret = "sk-very-secret";
    let place = Place::new();
    place.append(&[prompt("one"), prompt(secret), prompt(&large(secret)), prompt("four")]);
    place.log.pack(TIMEOUT).unwrap();
    assert_eq!(place.log.erase(&[2, 3].into(), TIMEOUT).unwrap(), 2);
    assert!(!place.holds(secret) && !packed(&place).exists());
    let left = files(&place.turns()).into_iter().filter(|file| file.to_string_lossy().contains(".blobs/"));
    assert_eq!(left.count(), 0, "the compressed piece has gone too");
    assert_eq!(place.texts(), ["one", "four"]);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn a_log_that_is_being_written_is_not_compressed() {
    let (place, _) = closed();
    let _held = place.log.hold(TIMEOUT).unwrap();
    let refused = place.log.pack(Duration::ZERO).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
    assert!(place.log.path().exists() && !packed(&place).exists());
}
