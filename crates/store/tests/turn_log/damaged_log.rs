//! What a kill or a hand may do to the log's bytes is repaired or named; nothing that was acknowledged is lost.

use crate::harness::{Place, contains, large, log_at, prompt, said};
use plimsoll_domain::log_line::{Header, LogLine, NO_LINK, line};
use std::fs;

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("text {n}")).collect()
}

#[test]
fn arc_002_a_log_cut_at_any_byte_of_its_last_record_is_mended_and_loses_nothing_else() {
    let place = Place::with(3);
    let whole = place.bytes();
    let head = place.log.path().with_extension("head");
    let head_of_three = fs::read(&head).unwrap();
    let start = place.lines()[..2].concat().len();
    // As a kill leaves it: the head speaks of the two records that were acknowledged.
    let two = Place::with(2);
    let head_of_two = fs::read(two.log.path().with_extension("head")).unwrap();
    for (known, acknowledged) in [(head_of_two, 2), (head_of_three, 3)] {
        for cut in start..whole.len() {
            let _ = fs::remove_file(place.log.torn());
            place.put(&whole[..cut]);
            fs::write(&head, &known).unwrap();
            let before = place.verify();
            assert_eq!(before.is_whole(), acknowledged == 2, "{cut}: {}", said(&before));
            place.append(&[prompt("afterwards")]);
            assert_eq!(place.texts(), ["text 1", "text 2", "afterwards"], "cut at {cut}");
            let torn = fs::read(place.log.torn()).unwrap_or_default();
            assert_eq!(torn.is_empty(), cut == start, "cut at {cut}");
            assert!(contains(&torn, &whole[start..cut]) || cut == start, "the torn bytes are kept");
            let report = place.verify();
            assert!(report.is_whole(), "{cut}: {}", said(&report));
            let repairs = report.findings.len();
            assert_eq!(repairs, usize::from(cut > start) + (acknowledged - 2), "{cut}: {}", said(&report));
        }
    }
}

#[test]
fn a_log_cut_at_any_byte_without_a_head_is_mended() {
    let place = Place::with(3);
    let whole = place.bytes();
    let head = place.log.path().with_extension("head");
    for cut in (0..whole.len()).step_by(7) {
        place.put(&whole[..cut]);
        let _ = fs::remove_file(&head);
        place.append(&[prompt("afterwards")]);
        let kept = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(place.texts(), [numbers(kept), vec!["afterwards".to_owned()]].concat());
        assert!(place.verify().is_whole(), "{}", said(&place.verify()));
    }
}

#[test]
fn dbg_001_every_flipped_bit_of_a_middle_record_is_named_and_the_rest_is_read() {
    let place = Place::with(3);
    let whole = place.bytes();
    let lines = place.lines();
    let (start, end) = (lines[0].len(), lines[0].len() + lines[1].len());
    for at in start..end {
        for bit in [0, 5] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            place.put(&bytes);
            let report = place.verify();
            let named = report.findings.iter().any(|found| found.is_bad && (2..=3).contains(&found.line));
            assert!(named, "byte {} of the line, bit {bit}: {}", at - start, said(&report));
            assert!(place.texts().contains(&"text 1".to_owned()), "what is sound is read");
        }
    }
    // A writer adds behind a spoiled record, and it stays named.
    let mut bytes = whole;
    bytes[start + 3] = b'#';
    place.put(&bytes);
    place.append(&[prompt("afterwards")]);
    assert_eq!(place.texts(), ["text 1", "text 3", "afterwards"]);
    assert!(!place.verify().is_whole());
}

#[test]
fn swapped_deleted_doubled_and_forged_lines_are_named() {
    let place = Place::with(4);
    let lines = place.lines();
    let [one, two, three, four] = [0, 1, 2, 3].map(|place| lines[place].as_str());
    let forged = forged(two, one);
    let cases: [(&str, Vec<&str>); 8] = [
        ("swapped", vec![one, three, two, four]),
        ("deleted", vec![one, three, four]),
        ("the first deleted", vec![two, three, four]),
        ("doubled", vec![one, two, two, three, four]),
        ("the last doubled", vec![one, two, three, four, four]),
        ("a line put in", vec![one, two, "{\"text\":\"hello\"}\n", three, four]),
        ("a forged record put in", vec![one, &forged, two, three, four]),
        ("a forged record in its place", vec![one, &forged, three, four]),
    ];
    for (what, lines) in cases {
        place.put(lines.concat());
        let report = place.verify();
        assert!(!report.is_whole(), "{what} is not seen");
        assert!(report.findings.iter().all(|found| !found.is_bad || found.line > 0), "{}", said(&report));
    }
}

/// A record with a link of its own that follows `before` correctly.
fn forged(like: &str, before: &str) -> String {
    let link = LogLine::parse(before.trim_end().as_bytes()).unwrap().link.to_owned();
    let header: Header = LogLine::parse(like.trim_end().as_bytes()).unwrap().header;
    line(&link, header, "{\"text\":\"forged\"}").0
}

#[test]
fn an_end_that_was_cut_off_and_a_log_written_anew_are_seen_by_the_head() {
    let place = Place::with(4);
    let lines = place.lines();
    for left in 0..4 {
        place.put(lines[..left].concat());
        let report = place.verify();
        assert!(said(&report).contains("the end has been cut off"), "{left}: {}", said(&report));
        assert!(!report.is_whole());
    }
    let before = lines[2].as_str();
    place.put([&lines[..3].concat(), forged(&lines[3], before).as_str()].concat());
    assert!(said(&place.verify()).contains("the last record is not the one"), "{}", said(&place.verify()));
    fs::remove_file(place.log.path()).unwrap();
    assert!(!place.verify().is_whole(), "a log that is gone altogether");
    assert!(LogLine::parse(lines[0].trim_end().as_bytes()).unwrap().follows(NO_LINK));
}

#[test]
fn a_large_piece_that_was_changed_or_taken_away_is_named() {
    let place = Place::new();
    place.append(&[prompt("small"), prompt(&large("piece")), prompt("small")]);
    assert!(place.verify().is_whole());
    let blobs = place.log.path().with_extension("blobs");
    let blob = fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&blob).unwrap();
    bytes[100] ^= 1;
    fs::write(&blob, &bytes).unwrap();
    assert!(said(&place.verify()).contains("has been changed"), "{}", said(&place.verify()));
    fs::remove_file(&blob).unwrap();
    assert!(said(&place.verify()).contains("is missing"), "{}", said(&place.verify()));
    // The same piece again heals it.
    place.append(&[prompt(&large("piece"))]);
    assert!(place.verify().is_whole(), "{}", said(&place.verify()));
}

#[test]
fn no_garbage_makes_a_reader_panic() {
    let place = Place::with(2);
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
        place.put(bytes);
        place.verify();
        assert!(place.texts().is_empty());
        assert!(log_at(place.folder.path()).backwards().unwrap().all(|line| line.is_ok()));
        place.append(&[prompt("afterwards")]);
        assert_eq!(place.texts().last().map(String::as_str), Some("afterwards"), "{bytes:?}");
    }
}
