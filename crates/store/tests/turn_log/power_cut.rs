//! What a power cut leaves of what was not put on the disk: files that are shorter, that have holes of zeros, old ones under new
//! names and none at all. Whoever reads on records again what is gone, and nothing twice.

use crate::harness::{Place, TIMEOUT, files, large, prompt, said};
use plimsoll_store::turn_log::{Head, NewRecord};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Records of a transcript: the nth is read up to byte n, and every third has a large piece.
fn records(numbers: Range<u64>) -> Vec<NewRecord> {
    let text = |n: u64| if n.is_multiple_of(3) { large(&format!("piece {n}")) } else { format!("text {n}") };
    let read = |n: u64| {
        let mut record = prompt(&text(n));
        record.header.read = Some(n);
        record
    };
    numbers.map(read).collect()
}

fn add_lazily(place: &Place, numbers: Range<u64>) {
    let mut writer = place.log.write_lazily(None, TIMEOUT).unwrap();
    writer.append(&records(numbers)).unwrap();
    writer.close().unwrap();
}

fn head_of(place: &Place) -> PathBuf {
    place.log.path().with_extension("head")
}

fn read_of(head: &Head) -> u64 {
    head.streams.get("main").map_or(0, |stream| stream.read)
}

/// Chance that comes again: xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }

    /// What is left of a file's bytes from a place on.
    fn spoil(&mut self, bytes: &mut Vec<u8>, from: usize) {
        const BLOCK: usize = 4_096;
        let is_cut = self.below(2) == 0;
        if is_cut {
            let room = bytes.len() as u64 - from as u64;
            bytes.truncate(from + self.below(room + 1) as usize);
        }
        if !is_cut || self.below(2) == 0 {
            let blocks = from / BLOCK..bytes.len().div_ceil(BLOCK);
            for block in blocks.filter(|_| self.below(2) == 0) {
                let end = bytes.len().min((block + 1) * BLOCK);
                let start = from.max(block * BLOCK).min(end);
                bytes[start..end].fill(0);
            }
        }
    }
}

/// Leaves of a log what was on the disk and, of everything else, as much as chance wants.
fn cut_the_power(place: &Place, dice: &mut Dice, durable: &[u8], heads: &[Vec<u8>], pieces: &[PathBuf]) {
    let mut log = place.bytes();
    dice.spoil(&mut log, durable.len());
    place.put(&log);
    // The head is renamed into its place: an old one, this one, or a name whose bytes never came.
    let head = match dice.below(4) {
        0 => vec![0; heads[0].len()],
        1 => Vec::new(),
        _ => heads[dice.below(heads.len() as u64) as usize].clone(),
    };
    fs::write(head_of(place), in_another_start(&head)).unwrap();
    for piece in pieces {
        match dice.below(4) {
            0 => fs::remove_file(piece).unwrap(),
            1 => fs::write(piece, "").unwrap(),
            2 => fs::write(piece, vec![0; fs::metadata(piece).unwrap().len() as usize]).unwrap(),
            _ => {}
        }
    }
}

/// A head as a later start of the system finds it.
fn in_another_start(head: &[u8]) -> Vec<u8> {
    let Ok(mut head) = serde_json::from_slice::<serde_json::Value>(head) else { return head.to_vec() };
    if let Some(boot) = head.pointer_mut("/unsynced/boot") {
        *boot = "another start".into();
    }
    serde_json::to_vec(&head).unwrap()
}

#[test]
fn after_a_power_cut_every_record_is_there_once_and_the_log_is_whole() {
    let mut lost = 0;
    for seed in 1..=400 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let place = Place::in_memory();
        place.append(&records(1..1 + 1 + dice.below(6)));
        let durable = place.bytes();
        let had = files(&place.turns());
        let mut heads = vec![fs::read(head_of(&place)).unwrap()];
        let mut next = read_of(&place.log.head().unwrap()) + 1;
        for _ in 0..=dice.below(4) {
            let end = next + 1 + dice.below(4);
            match dice.below(3) {
                // A hook that was killed before it could say how far the log goes.
                0 => place.log.write_lazily(None, TIMEOUT).unwrap().append(&records(next..end)).unwrap(),
                _ => add_lazily(&place, next..end),
            }
            next = end;
            heads.push(fs::read(head_of(&place)).unwrap());
        }
        let new = files(&place.turns()).into_iter().filter(|file| !had.contains(file));
        let pieces: Vec<PathBuf> = new.filter(|file| file.parent().is_some_and(is_of_pieces)).collect();
        cut_the_power(&place, &mut dice, &durable, &heads, &pieces);

        let mut writer = place.log.write(TIMEOUT).unwrap();
        let read = read_of(writer.head());
        lost += u64::from(read + 1 < next);
        writer.append(&records(read + 1..next)).unwrap();
        writer.close().unwrap();

        let report = place.verify();
        assert!(report.is_whole(), "seed {seed}: {}", said(&report));
        assert!(place.bytes().starts_with(&durable), "seed {seed}: what was on the disk stays");
        let texts = place.texts();
        let expected: Vec<String> = records(1..next).iter().map(text_of).collect();
        assert_eq!(texts, expected, "seed {seed}");
        assert!(place.log.head().unwrap().unsynced.is_none(), "seed {seed}");
    }
    assert!((100..400).contains(&lost), "{lost}: neither was everything lost nor nothing");
}

fn is_of_pieces(folder: &Path) -> bool {
    folder.extension().is_some_and(|extension| extension == "blobs")
}

fn text_of(record: &NewRecord) -> String {
    let fetch = |hash: &str| record.encoded.blobs.get(hash).map(|text| text.clone().into_bytes());
    let fields = plimsoll_domain::turn::record::decode_fields(&record.encoded.content, &fetch).unwrap();
    fields["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_log_is_believed_while_the_system_runs_and_checked_once_after_a_start() {
    let place = Place::with(1);
    add_lazily(&place, 2..5);
    let unsynced = place.log.head().unwrap().unsynced.unwrap();
    assert!(unsynced.from > 0 && unsynced.has_pieces, "{unsynced:?}");
    // A kill is no power cut.
    let whole = place.bytes();
    drop(place.log.write_lazily(None, TIMEOUT).unwrap());
    assert_eq!((place.bytes(), place.log.head().unwrap().unsynced), (whole.clone(), Some(unsynced)));

    let head = in_another_start(&fs::read(head_of(&place)).unwrap());
    fs::write(head_of(&place), head).unwrap();
    place.log.check_after_restart(TIMEOUT).unwrap();
    assert_eq!((place.bytes(), place.log.head().unwrap().unsynced), (whole, None), "nothing was spoilt");
}

#[test]
fn what_a_power_cut_has_spoilt_is_kept_beside_the_log_and_said() {
    let place = Place::with(1);
    let durable = place.bytes().len();
    add_lazily(&place, 2..3);
    let spoilt = place.bytes().len() - durable;
    let head = in_another_start(&fs::read(head_of(&place)).unwrap());
    fs::write(head_of(&place), head).unwrap();
    let mut bytes = place.bytes();
    bytes[durable + 4..].fill(0);
    place.put(&bytes);
    place.log.check_after_restart(TIMEOUT).unwrap();
    assert_eq!(place.texts(), ["text 1"]);
    let torn = fs::read(place.log.torn()).unwrap();
    assert_eq!(torn[..spoilt], bytes[durable..]);
    let said = said(&place.verify());
    assert!(said.contains(&format!("a torn end of {spoilt} bytes")), "{said}");
    assert!(said.contains("records 2 to 2 were lost here"), "{said}");
}

#[test]
fn the_first_lines_of_a_log_are_put_on_the_disk_and_what_is_left_to_later_is_bounded() {
    let place = Place::new();
    add_lazily(&place, 1..3);
    assert_eq!(place.log.head().unwrap().unsynced, None);
    let much = prompt(&"x".repeat(3_000));
    let mut most = 0;
    for _ in 0..60 {
        let mut writer = place.log.write_lazily(None, TIMEOUT).unwrap();
        writer.append(&vec![much.clone(); 50]).unwrap();
        writer.close().unwrap();
        let head = place.log.head().unwrap();
        most = most.max(head.unsynced.map_or(0, |unsynced| head.bytes - unsynced.from));
    }
    assert!((1_000_000..4 * 1024 * 1024).contains(&most), "{most}");
}
