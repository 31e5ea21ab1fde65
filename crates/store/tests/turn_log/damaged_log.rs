//! Damage to the log's bytes by a kill or by hand is repaired or reported; no acknowledged record is lost.

use crate::harness::{TestLog, contains_bytes, large_text, log_in_folder, prompt_record, render_findings};
use plimsoll_domain::log_line::{EMPTY_CHAIN_HASH, LogLine, RecordHeader, render_line_and_chain_hash};
use std::fs;

fn numbered_texts(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("text {n}")).collect()
}

#[test]
fn arc_002_a_log_cut_within_its_last_record_loses_only_that_record() {
    let test_log = TestLog::with_records(3);
    let log_bytes = test_log.log_bytes();
    let head = test_log.log.path().with_extension("head");
    let head_of_three = fs::read(&head).unwrap();
    let start = test_log.log_lines()[..2].concat().len();
    // As after a kill: the head covers the two acknowledged records.
    let log_of_two = TestLog::with_records(2);
    let head_of_two = fs::read(log_of_two.log.path().with_extension("head")).unwrap();
    for (head_bytes, acknowledged) in [(head_of_two, 2), (head_of_three, 3)] {
        for cut in start..log_bytes.len() {
            let _ = fs::remove_file(test_log.log.torn_path());
            test_log.overwrite_log(&log_bytes[..cut]);
            fs::write(&head, &head_bytes).unwrap();
            let before = test_log.verify();
            assert_eq!(before.is_intact(), acknowledged == 2, "{cut}: {}", render_findings(&before));
            test_log.append(&[prompt_record("afterwards")]);
            assert_eq!(test_log.prompt_texts(), ["text 1", "text 2", "afterwards"], "cut at {cut}");
            let torn = fs::read(test_log.log.torn_path()).unwrap_or_default();
            assert_eq!(torn.is_empty(), cut == start, "cut at {cut}");
            assert!(contains_bytes(&torn, &log_bytes[start..cut]) || cut == start, "the torn bytes are kept");
            let report = test_log.verify();
            assert!(report.is_intact(), "{cut}: {}", render_findings(&report));
            let repairs = report.findings.len();
            assert_eq!(
                repairs,
                usize::from(cut > start) + (acknowledged - 2),
                "{cut}: {}",
                render_findings(&report)
            );
        }
    }
}

#[test]
fn a_log_cut_at_any_byte_is_repaired_without_a_head() {
    let test_log = TestLog::with_records(3);
    let log_bytes = test_log.log_bytes();
    let head = test_log.log.path().with_extension("head");
    for cut in (0..log_bytes.len()).step_by(7) {
        test_log.overwrite_log(&log_bytes[..cut]);
        let _ = fs::remove_file(&head);
        test_log.append(&[prompt_record("afterwards")]);
        let complete_lines = log_bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(
            test_log.prompt_texts(),
            [numbered_texts(complete_lines), vec!["afterwards".to_owned()]].concat()
        );
        assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
    }
}

#[test]
fn dbg_001_each_flipped_bit_is_reported_and_the_rest_is_read() {
    let test_log = TestLog::with_records(3);
    let log_bytes = test_log.log_bytes();
    let lines = test_log.log_lines();
    let (start, end) = (lines[0].len(), lines[0].len() + lines[1].len());
    for position in start..end {
        for bit in [0, 5] {
            let mut bytes = log_bytes.clone();
            bytes[position] ^= 1 << bit;
            test_log.overwrite_log(&bytes);
            let report = test_log.verify();
            let is_reported = report
                .findings
                .iter()
                .any(|finding| finding.is_error && (2..=3).contains(&finding.line_number));
            assert!(
                is_reported,
                "byte {} of the line, bit {bit}: {}",
                position - start,
                render_findings(&report)
            );
            assert!(test_log.prompt_texts().contains(&"text 1".to_owned()), "what is sound is read");
        }
    }
    // A writer appends after a damaged record, and the damage is still reported.
    let mut bytes = log_bytes;
    bytes[start + 3] = b'#';
    test_log.overwrite_log(&bytes);
    test_log.append(&[prompt_record("afterwards")]);
    assert_eq!(test_log.prompt_texts(), ["text 1", "text 3", "afterwards"]);
    assert!(!test_log.verify().is_intact());
}

#[test]
fn swapped_deleted_duplicated_and_forged_lines_are_reported() {
    let test_log = TestLog::with_records(4);
    let lines = test_log.log_lines();
    let [line1, line2, line3, line4] = [0, 1, 2, 3].map(|index| lines[index].as_str());
    let forged_line = forge_line(line2, line1);
    let cases: [(&str, Vec<&str>); 8] = [
        ("swapped", vec![line1, line3, line2, line4]),
        ("deleted", vec![line1, line3, line4]),
        ("the first deleted", vec![line2, line3, line4]),
        ("doubled", vec![line1, line2, line2, line3, line4]),
        ("the last doubled", vec![line1, line2, line3, line4, line4]),
        ("a line put in", vec![line1, line2, "{\"text\":\"hello\"}\n", line3, line4]),
        ("a forged record put in", vec![line1, &forged_line, line2, line3, line4]),
        ("a forged record in its place", vec![line1, &forged_line, line3, line4]),
    ];
    for (case, lines) in cases {
        test_log.overwrite_log(lines.concat());
        let report = test_log.verify();
        assert!(!report.is_intact(), "{case} is not seen");
        assert!(
            report.findings.iter().all(|finding| !finding.is_error || finding.line_number > 0),
            "{}",
            render_findings(&report)
        );
    }
}

/// Returns a forged record with a correct link after `before`.
fn forge_line(template: &str, before: &str) -> String {
    let link = LogLine::parse(before.trim_end().as_bytes()).unwrap().chain_hash.to_owned();
    let header: RecordHeader = LogLine::parse(template.trim_end().as_bytes()).unwrap().header;
    render_line_and_chain_hash(&link, header, "{\"text\":\"forged\"}").0
}

#[test]
fn a_missing_end_and_a_rewritten_log_are_detected_by_the_head() {
    let test_log = TestLog::with_records(4);
    let lines = test_log.log_lines();
    for kept_lines in 0..4 {
        test_log.overwrite_log(lines[..kept_lines].concat());
        let report = test_log.verify();
        assert!(
            render_findings(&report).contains("the end has been cut off"),
            "{kept_lines}: {}",
            render_findings(&report)
        );
        assert!(!report.is_intact());
    }
    let before = lines[2].as_str();
    test_log.overwrite_log([&lines[..3].concat(), forge_line(&lines[3], before).as_str()].concat());
    assert!(
        render_findings(&test_log.verify()).contains("the last record is not the one"),
        "{}",
        render_findings(&test_log.verify())
    );
    fs::remove_file(test_log.log.path()).unwrap();
    assert!(!test_log.verify().is_intact(), "a log that is gone altogether");
    assert!(LogLine::parse(lines[0].trim_end().as_bytes()).unwrap().is_chained_to(EMPTY_CHAIN_HASH));
}

#[test]
fn a_changed_or_missing_blob_is_reported() {
    let test_log = TestLog::new();
    test_log.append(&[prompt_record("small"), prompt_record(&large_text("piece")), prompt_record("small")]);
    assert!(test_log.verify().is_intact());
    let blobs = test_log.log.path().with_extension("blobs");
    let blob = fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&blob).unwrap();
    bytes[100] ^= 1;
    fs::write(&blob, &bytes).unwrap();
    assert!(
        render_findings(&test_log.verify()).contains("has been changed"),
        "{}",
        render_findings(&test_log.verify())
    );
    fs::remove_file(&blob).unwrap();
    assert!(
        render_findings(&test_log.verify()).contains("is missing"),
        "{}",
        render_findings(&test_log.verify())
    );
    // Adding the same content again writes the blob again.
    test_log.append(&[prompt_record(&large_text("piece"))]);
    assert!(test_log.verify().is_intact(), "{}", render_findings(&test_log.verify()));
}

#[test]
fn garbage_does_not_make_a_reader_panic() {
    let test_log = TestLog::with_records(2);
    let garbage: [&[u8]; 7] = [
        b"",
        b"\n",
        b"\n\n\n",
        b"\0\0\0\0",
        b"{}\n{}\n",
        b"\xff\xfe\n",
        b"{\"header\":[],\"content\":1,\"link\":2}\n",
    ];
    for bytes in garbage {
        test_log.overwrite_log(bytes);
        test_log.verify();
        assert!(test_log.prompt_texts().is_empty());
        assert!(log_in_folder(test_log.folder.path()).backward_lines().unwrap().all(|line| line.is_ok()));
        test_log.append(&[prompt_record("afterwards")]);
        assert_eq!(test_log.prompt_texts().last().map(String::as_str), Some("afterwards"), "{bytes:?}");
    }
}
