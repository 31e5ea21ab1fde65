//! What was erased is nowhere any more, the chain holds, and a kill on the way is seen and can be finished.

use crate::harness::{Place, TIMEOUT, files, large, prompt, said};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{LogLine, RecordKind, erased};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_store::turn_log::NewRecord;
use serde_json::{Map, json};
use std::fs;

const SECRET: &str = "sk-very-secret";

fn erase(place: &Place, seqs: &[u64]) -> usize {
    place.log.erase(&seqs.iter().copied().collect(), TIMEOUT).unwrap()
}

fn with_secrets() -> Place {
    let place = Place::new();
    place.append(&[prompt("one"), prompt(SECRET), prompt(&large(SECRET)), prompt("four")]);
    place
}

fn erase_event(seqs: &[u64]) -> NewRecord {
    let fields = Map::from_iter([("seqs".to_owned(), json!(seqs))]);
    NewRecord::new(RecordKind::Erase, Timestamp::from("2026-01-07T12:00:00Z")).holding(encode_fields(&fields))
}

#[test]
fn erased_contents_are_in_no_file_and_the_chain_is_whole() {
    let place = with_secrets();
    fs::write(place.log.torn(), format!("{{\"content\":\"{SECRET}")).unwrap();
    let before = place.bytes().len();
    assert_eq!(erase(&place, &[2, 3]), 2);
    assert!(!place.holds(SECRET), "{:?}", files(&place.turns()));
    assert_eq!(place.texts(), ["one", "four"]);
    let report = place.verify();
    assert!(report.is_whole() && report.erased == 2, "{}", said(&report));
    assert!(place.bytes().len() > before, "each line is as long as before, and one was added");
    place.append(&[prompt("afterwards")]);
    assert_eq!(erase(&place, &[2]), 0, "once");
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn a_piece_that_another_record_still_names_stays() {
    let place = Place::new();
    place.append(&[prompt(&large("shared")), prompt(&large("shared"))]);
    erase(&place, &[1]);
    assert_eq!(place.texts(), [large("shared")]);
    assert!(place.verify().is_whole());
    erase(&place, &[2]);
    assert!(!place.holds("shared"));
}

#[test]
fn what_cannot_be_erased_leaves_no_unfinished_erasure() {
    let place = with_secrets();
    erase(&place, &[2]);
    let erasure = 5;
    // An erasure itself, the record that will say so, and numbers that nobody has yet.
    assert_eq!(erase(&place, &[erasure, 6, 7, 40]), 0);
    let more: Vec<NewRecord> = (0..50).map(|n| prompt(&format!("{n}"))).collect();
    place.append(&more);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn an_erasure_killed_after_it_was_said_is_seen_and_finished_by_another() {
    let place = with_secrets();
    place.append(&[erase_event(&[2, 3])]);
    let report = place.verify();
    assert!(!report.is_whole() && report.is_only_unfinished(), "{}", said(&report));
    assert!(said(&report).contains("not finished: plimsoll turns erase --session"), "{}", said(&report));
    let records = place.lines().len();
    assert_eq!(erase(&place, &[2]), 2, "with the one that was asked for the other one goes, too");
    assert_eq!(place.lines().len(), records, "what it takes away is known already");
    assert!(!place.holds(SECRET) && place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn an_erasure_killed_before_its_pieces_were_dropped_is_finished_by_another() {
    let place = with_secrets();
    let blobs: Vec<_> = files(&place.log.path().with_extension("blobs"))
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    erase(&place, &[2, 3]);
    for (bytes, path) in blobs {
        fs::write(path, bytes).unwrap();
    }
    erase(&place, &[3]);
    assert!(!place.holds(SECRET), "no record names it any more: {:?}", files(&place.turns()));
}

#[test]
fn a_draft_that_a_killed_erasure_left_does_no_harm_and_keeps_no_secret() {
    let place = with_secrets();
    let name = place.log.path().file_name().unwrap().to_string_lossy().into_owned();
    for pid in [std::process::id(), 4_000_000] {
        let draft = place.turns().join(format!("{name}.{pid}.0.plimsoll-draft"));
        fs::write(draft, place.bytes()).unwrap();
    }
    erase(&place, &[2, 3]);
    assert!(!place.holds(SECRET), "{:?}", files(&place.turns()));
    assert_eq!(place.texts(), ["one", "four"]);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn an_erased_record_of_which_no_erasure_speaks_is_named() {
    let place = with_secrets();
    let mut lines = place.lines();
    let line = lines[1].trim_end().to_owned();
    lines[1] = erased(&LogLine::parse(line.as_bytes()).unwrap(), line.len()) + "\n";
    place.put(lines.concat());
    let report = place.verify();
    assert!(!report.is_whole() && said(&report).contains("no erasure was recorded"), "{}", said(&report));
}

#[test]
fn erasing_a_log_that_is_spoiled_inside_keeps_what_is_spoiled() {
    let place = with_secrets();
    let lines = place.lines();
    place.put([&lines[0], &lines[1], "#", &lines[2], &lines[3]].concat());
    erase(&place, &[2]);
    assert!(place.holds(&large(SECRET)), "the piece of a record that cannot be read is evidence");
    assert!(place.lines().iter().any(|line| line.starts_with('#')));
    assert_eq!(erase(&place, &[]), 0);
}

#[test]
fn a_record_that_names_a_file_outside_takes_nothing_away_there() {
    let place = with_secrets();
    let outside = place.turns().join("mine");
    fs::write(&outside, "mine").unwrap();
    let mut forged = prompt("x");
    forged.encoded.content = r#"{"text":{"$blob":{"sha256":"../mine","bytes":1}}}"#.to_owned();
    place.append(&[forged]);
    erase(&place, &[5]);
    assert!(outside.exists());
}
