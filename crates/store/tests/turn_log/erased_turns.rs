//! Erased contents are in no file any more, the chain stays valid, and an interrupted erasure is reported and
//! can be finished.

use crate::harness::{TIMEOUT, TestLog, files_below, large_text, prompt_record, render_findings};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{LogLine, RecordKind, render_erased_line};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_store::turn_log::NewRecord;
use serde_json::{Map, json};
use std::fs;

const SECRET: &str = "sk-very-secret";

fn erase_records(test_log: &TestLog, sequence_numbers: &[u64]) -> usize {
    test_log
        .log
        .erase_records_and_finish_interrupted(&sequence_numbers.iter().copied().collect(), TIMEOUT)
        .unwrap()
}

fn log_with_secrets() -> TestLog {
    let test_log = TestLog::new();
    test_log.append(&[
        prompt_record("one"),
        prompt_record(SECRET),
        prompt_record(&large_text(SECRET)),
        prompt_record("four"),
    ]);
    test_log
}

fn erasure_record(sequence_numbers: &[u64]) -> NewRecord {
    let fields = Map::from_iter([("seqs".to_owned(), json!(sequence_numbers))]);
    NewRecord::empty_in_main_stream(RecordKind::Erasure, Timestamp::from("2026-01-07T12:00:00Z"))
        .with_content(encode_fields(&fields))
}

#[test]
fn erased_contents_are_in_no_file_and_the_chain_is_intact() {
    let test_log = log_with_secrets();
    fs::write(test_log.log.torn_path(), format!("{{\"content\":\"{SECRET}")).unwrap();
    let before = test_log.log_bytes().len();
    assert_eq!(erase_records(&test_log, &[2, 3]), 2);
    assert!(!test_log.any_file_contains(SECRET), "{:?}", files_below(&test_log.turns_folder()));
    assert_eq!(test_log.prompt_texts(), ["one", "four"]);
    let report = test_log.verify();
    assert!(report.is_intact() && report.erased_count == 2, "{}", render_findings(&report));
    assert!(test_log.log_bytes().len() > before, "each line is as long as before, and one was added");
    test_log.append(&[prompt_record("afterwards")]);
    assert_eq!(erase_records(&test_log, &[2]), 0, "once");
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn a_blob_that_another_record_names_is_kept() {
    let test_log = TestLog::new();
    test_log.append(&[prompt_record(&large_text("shared")), prompt_record(&large_text("shared"))]);
    erase_records(&test_log, &[1]);
    assert_eq!(test_log.prompt_texts(), [large_text("shared")]);
    assert!(test_log.verify().is_intact());
    erase_records(&test_log, &[2]);
    assert!(!test_log.any_file_contains("shared"));
}

#[test]
fn records_that_cannot_be_erased_leave_no_unfinished_erasure() {
    let test_log = log_with_secrets();
    erase_records(&test_log, &[2]);
    let erasure = 5;
    // An erasure record itself, the record that would be added next, and numbers not used yet.
    assert_eq!(erase_records(&test_log, &[erasure, 6, 7, 40]), 0);
    let more_records: Vec<NewRecord> = (0..50).map(|n| prompt_record(&format!("{n}"))).collect();
    test_log.append(&more_records);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn an_erasure_killed_after_its_record_is_finished_by_another() {
    let test_log = log_with_secrets();
    test_log.append(&[erasure_record(&[2, 3])]);
    let report = test_log.verify();
    assert!(!report.is_intact() && report.has_only_unfinished_erasures(), "{}", render_findings(&report));
    assert!(
        render_findings(&report)
            .contains("its erasure was interrupted; repeat it: plimsoll turns erase --session"),
        "{}",
        render_findings(&report)
    );
    let records = test_log.log_lines().len();
    assert_eq!(erase_records(&test_log, &[2]), 2, "with the one that was asked for the other one goes, too");
    assert_eq!(test_log.log_lines().len(), records, "what it takes away is known already");
    assert!(
        !test_log.any_file_contains(SECRET) && test_log.verify().is_intact(),
        "{}",
        render_findings(&test_log.verify())
    );
}

#[test]
fn an_erasure_killed_before_removing_blobs_is_finished_by_another() {
    let test_log = log_with_secrets();
    let blobs: Vec<_> = files_below(&test_log.log.path().with_extension("blobs"))
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    erase_records(&test_log, &[2, 3]);
    for (bytes, path) in blobs {
        fs::write(path, bytes).unwrap();
    }
    erase_records(&test_log, &[3]);
    assert!(
        !test_log.any_file_contains(SECRET),
        "no record names it any more: {:?}",
        files_below(&test_log.turns_folder())
    );
}

#[test]
fn a_draft_of_a_killed_erasure_is_removed() {
    let test_log = log_with_secrets();
    let name = test_log.log.path().file_name().unwrap().to_string_lossy().into_owned();
    for pid in [std::process::id(), 4_000_000] {
        let draft = test_log.turns_folder().join(format!("{name}.{pid}.0.plimsoll-draft"));
        fs::write(draft, test_log.log_bytes()).unwrap();
    }
    erase_records(&test_log, &[2, 3]);
    assert!(!test_log.any_file_contains(SECRET), "{:?}", files_below(&test_log.turns_folder()));
    assert_eq!(test_log.prompt_texts(), ["one", "four"]);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn an_erased_record_without_an_erasure_is_reported() {
    let test_log = log_with_secrets();
    let mut lines = test_log.log_lines();
    let line = lines[1].trim_end().to_owned();
    lines[1] = render_erased_line(&LogLine::parse(line.as_bytes()).unwrap(), line.len()) + "\n";
    test_log.overwrite_log(lines.concat());
    let report = test_log.verify();
    assert!(
        !report.is_intact() && render_findings(&report).contains("no erasure was recorded"),
        "{}",
        render_findings(&report)
    );
}

#[test]
fn erasing_in_a_damaged_log_keeps_the_damaged_record() {
    let test_log = log_with_secrets();
    let lines = test_log.log_lines();
    test_log.overwrite_log([&lines[0], &lines[1], "#", &lines[2], &lines[3]].concat());
    erase_records(&test_log, &[2]);
    assert!(
        test_log.any_file_contains(&large_text(SECRET)),
        "the piece of a record that cannot be read is evidence"
    );
    assert!(test_log.log_lines().iter().any(|line| line.starts_with('#')));
    assert_eq!(erase_records(&test_log, &[]), 0);
}

#[test]
fn a_record_that_names_an_outside_file_removes_nothing_there() {
    let test_log = log_with_secrets();
    let outside = test_log.turns_folder().join("mine");
    fs::write(&outside, "mine").unwrap();
    let mut forged = prompt_record("x");
    forged.encoded.content = r#"{"text":{"$blob":{"sha256":"../mine","bytes":1}}}"#.to_owned();
    test_log.append(&[forged]);
    erase_records(&test_log, &[5]);
    assert!(outside.exists());
}
