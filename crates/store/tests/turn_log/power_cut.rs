//! Effects of a power cut on unsynced data: shorter files, holes of zeros, old files under new names, and
//! missing files. Reading on records again what is lost, and nothing twice.

use crate::harness::{TIMEOUT, TestLog, files_below, large_text, prompt_record, render_findings};
use plimsoll_store::turn_log::{LogHead, NewRecord};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Returns records of a transcript: the nth is read up to byte n, and every third has a blob.
fn numbered_records(numbers: Range<u64>) -> Vec<NewRecord> {
    let text_of_number =
        |n: u64| if n.is_multiple_of(3) { large_text(&format!("piece {n}")) } else { format!("text {n}") };
    let record_of_number = |n: u64| {
        let mut record = prompt_record(&text_of_number(n));
        record.header.transcript_offset = Some(n);
        record
    };
    numbers.map(record_of_number).collect()
}

fn add_lazily(test_log: &TestLog, numbers: Range<u64>) {
    let mut writer = test_log.log.lock_and_open_writer_without_sync(None, TIMEOUT).unwrap();
    writer.append_records_or_roll_back(&numbered_records(numbers)).unwrap();
    writer.close().unwrap();
}

fn head_path(test_log: &TestLog) -> PathBuf {
    test_log.log.path().with_extension("head")
}

fn main_stream_offset(head: &LogHead) -> u64 {
    head.streams.get("main").map_or(0, |stream| stream.transcript_offset)
}

/// A repeatable random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below_limit(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    /// Truncates or zeroes a file's bytes from a position on, at random.
    fn damage_after(&mut self, bytes: &mut Vec<u8>, damage_start: usize) {
        const BLOCK: usize = 4_096;
        let is_cut = self.below_limit(2) == 0;
        if is_cut {
            let remaining = bytes.len() as u64 - damage_start as u64;
            bytes.truncate(damage_start + self.below_limit(remaining + 1) as usize);
        }
        if !is_cut || self.below_limit(2) == 0 {
            let blocks = damage_start / BLOCK..bytes.len().div_ceil(BLOCK);
            for block in blocks.filter(|_| self.below_limit(2) == 0) {
                let end = bytes.len().min((block + 1) * BLOCK);
                let start = damage_start.max(block * BLOCK).min(end);
                bytes[start..end].fill(0);
            }
        }
    }
}

/// Simulates a power cut: keeps the synced part of a log, and a random part of everything else.
fn simulate_power_cut(
    test_log: &TestLog,
    random: &mut Random,
    durable: &[u8],
    heads: &[Vec<u8>],
    blobs: &[PathBuf],
) {
    let mut log = test_log.log_bytes();
    random.damage_after(&mut log, durable.len());
    test_log.overwrite_log(&log);
    // The head is renamed into place: an old one, this one, or a name whose bytes were never written.
    let head = match random.below_limit(4) {
        0 => vec![0; heads[0].len()],
        1 => Vec::new(),
        _ => heads[random.below_limit(heads.len() as u64) as usize].clone(),
    };
    fs::write(head_path(test_log), as_after_restart(&head)).unwrap();
    for blob in blobs {
        match random.below_limit(4) {
            0 => fs::remove_file(blob).unwrap(),
            1 => fs::write(blob, "").unwrap(),
            2 => fs::write(blob, vec![0; fs::metadata(blob).unwrap().len() as usize]).unwrap(),
            _ => {}
        }
    }
}

/// Returns the head as it looks after a restart of the system.
fn as_after_restart(head: &[u8]) -> Vec<u8> {
    let Ok(mut head) = serde_json::from_slice::<serde_json::Value>(head) else { return head.to_vec() };
    if let Some(boot_id) = head.pointer_mut("/unsynced/boot") {
        *boot_id = "another start".into();
    }
    serde_json::to_vec(&head).unwrap()
}

#[test]
fn after_a_power_cut_every_record_is_there_once() {
    let mut lost = 0;
    for seed in 1..=400 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let test_log = TestLog::in_memory();
        test_log.append(&numbered_records(1..1 + 1 + random.below_limit(6)));
        let durable = test_log.log_bytes();
        let files_before = files_below(&test_log.turns_folder());
        let mut heads = vec![fs::read(head_path(&test_log)).unwrap()];
        let mut next_number = main_stream_offset(&test_log.log.current_head().unwrap()) + 1;
        for _ in 0..=random.below_limit(4) {
            let end = next_number + 1 + random.below_limit(4);
            match random.below_limit(3) {
                // A hook that was killed before it could write the head.
                0 => test_log
                    .log
                    .lock_and_open_writer_without_sync(None, TIMEOUT)
                    .unwrap()
                    .append_records_or_roll_back(&numbered_records(next_number..end))
                    .unwrap(),
                _ => add_lazily(&test_log, next_number..end),
            }
            next_number = end;
            heads.push(fs::read(head_path(&test_log)).unwrap());
        }
        let new_files =
            files_below(&test_log.turns_folder()).into_iter().filter(|file| !files_before.contains(file));
        let blobs: Vec<PathBuf> =
            new_files.filter(|file| file.parent().is_some_and(is_blob_folder)).collect();
        simulate_power_cut(&test_log, &mut random, &durable, &heads, &blobs);

        let mut writer = test_log.log.open_writer(TIMEOUT).unwrap();
        let read_until = main_stream_offset(writer.head());
        lost += u64::from(read_until + 1 < next_number);
        writer.append_records_or_roll_back(&numbered_records(read_until + 1..next_number)).unwrap();
        writer.close().unwrap();

        let report = test_log.verify();
        assert!(report.is_intact(), "seed {seed}: {}", render_findings(&report));
        assert!(test_log.log_bytes().starts_with(&durable), "seed {seed}: what was on the disk stays");
        let texts = test_log.prompt_texts();
        let expected: Vec<String> = numbered_records(1..next_number).iter().map(record_text).collect();
        assert_eq!(texts, expected, "seed {seed}");
        assert!(test_log.log.current_head().unwrap().unsynced.is_none(), "seed {seed}");
    }
    assert!((100..400).contains(&lost), "{lost}: neither was everything lost nor nothing");
}

fn is_blob_folder(folder: &Path) -> bool {
    folder.extension().is_some_and(|extension| extension == "blobs")
}

fn record_text(record: &NewRecord) -> String {
    let fetch = |hash: &str| record.encoded.blobs.get(hash).map(|text| text.clone().into_bytes());
    let fields = plimsoll_domain::turn::record::decode_fields(&record.encoded.content, &fetch).unwrap();
    fields["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_log_is_trusted_until_a_restart_and_then_checked_once() {
    let test_log = TestLog::with_records(1);
    add_lazily(&test_log, 2..5);
    let unsynced = test_log.log.current_head().unwrap().unsynced.unwrap();
    assert!(unsynced.start_byte > 0 && unsynced.has_blobs, "{unsynced:?}");
    // A kill is not a power cut.
    let log_bytes = test_log.log_bytes();
    drop(test_log.log.lock_and_open_writer_without_sync(None, TIMEOUT).unwrap());
    assert_eq!(
        (test_log.log_bytes(), test_log.log.current_head().unwrap().unsynced),
        (log_bytes.clone(), Some(unsynced))
    );

    let head = as_after_restart(&fs::read(head_path(&test_log)).unwrap());
    fs::write(head_path(&test_log), head).unwrap();
    test_log.log.repair_and_merge_pending_if_rebooted(TIMEOUT).unwrap();
    assert_eq!(
        (test_log.log_bytes(), test_log.log.current_head().unwrap().unsynced),
        (log_bytes, None),
        "nothing was spoilt"
    );
}

#[test]
fn data_damaged_by_a_power_cut_is_kept_and_reported() {
    let test_log = TestLog::with_records(1);
    let durable = test_log.log_bytes().len();
    add_lazily(&test_log, 2..3);
    let damaged_bytes = test_log.log_bytes().len() - durable;
    let head = as_after_restart(&fs::read(head_path(&test_log)).unwrap());
    fs::write(head_path(&test_log), head).unwrap();
    let mut bytes = test_log.log_bytes();
    bytes[durable + 4..].fill(0);
    test_log.overwrite_log(&bytes);
    test_log.log.repair_and_merge_pending_if_rebooted(TIMEOUT).unwrap();
    assert_eq!(test_log.prompt_texts(), ["text 1"]);
    let torn = fs::read(test_log.log.torn_path()).unwrap();
    assert_eq!(torn[..damaged_bytes], bytes[durable..]);
    let findings = render_findings(&test_log.verify());
    assert!(findings.contains(&format!("a torn end of {damaged_bytes} bytes")), "{findings}");
    assert!(findings.contains("records 2 to 2 were lost here"), "{findings}");
}

#[test]
fn the_first_lines_are_synced_and_the_unsynced_end_is_bounded() {
    let test_log = TestLog::new();
    add_lazily(&test_log, 1..3);
    assert_eq!(test_log.log.current_head().unwrap().unsynced, None);
    let long_record = prompt_record(&"x".repeat(3_000));
    let mut max_unsynced = 0;
    for _ in 0..60 {
        let mut writer = test_log.log.lock_and_open_writer_without_sync(None, TIMEOUT).unwrap();
        writer.append_records_or_roll_back(&vec![long_record.clone(); 50]).unwrap();
        writer.close().unwrap();
        let head = test_log.log.current_head().unwrap();
        max_unsynced =
            max_unsynced.max(head.unsynced.map_or(0, |unsynced| head.log_bytes - unsynced.start_byte));
    }
    assert!((1_000_000..4 * 1024 * 1024).contains(&max_unsynced), "{max_unsynced}");
}
