//! Sixteen processes write one log and are killed at random: what was acknowledged is there, once.

use crate::harness::{ID, Place, TIMEOUT, log_at, prompt, said, test_name};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const WORKERS: usize = 16;
const RECORDS: usize = 200;

/// This program again, as a worker: the named test below, which does nothing in an ordinary run.
fn worker(folder: &Path, number: usize, from: usize, patience_ms: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&test_name(module_path!(), "as_a_worker"), "--exact", "--nocapture", "--test-threads=1"])
        .env("PLIMSOLL_CROWD", format!("{}|{number}|{from}|{patience_ms}", folder.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn as_a_worker() {
    let Ok(order) = std::env::var("PLIMSOLL_CROWD") else { return };
    let parts: Vec<&str> = order.split('|').collect();
    let [number, from, timeout]: [u64; 3] = [1, 2, 3].map(|place| parts[place].parse().unwrap());
    let log = log_at(&PathBuf::from(parts[0]));
    for record in from..RECORDS as u64 {
        // Each try has a name of its own: what was not acknowledged may be there, or not.
        let name = format!("{number}/{record}/{}", std::process::id());
        log.note(&prompt(&name), Duration::from_millis(timeout)).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nACK {name}").unwrap();
        out.flush().unwrap();
    }
}

/// Runs the crowd, killing one of it every now and then; answers with what was acknowledged.
fn run_crowd(folder: &Path, patience_ms: u64) -> Vec<String> {
    let (sender, receiver): (Sender<(usize, Option<String>)>, Receiver<_>) = channel();
    let start = |number: usize, from: usize| {
        let mut child = worker(folder, number, from, patience_ms);
        let (lines, sender) = (BufReader::new(child.stdout.take().unwrap()), sender.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if let Some(name) = line.strip_prefix("ACK ") {
                    sender.send((number, Some(name.to_owned()))).unwrap();
                }
            }
            sender.send((number, None)).unwrap();
        });
        child
    };
    let mut children: BTreeMap<usize, Child> =
        (0..WORKERS).map(|number| (number, start(number, 0))).collect();
    let mut done = [0; WORKERS];
    let mut acknowledged = Vec::new();
    let mut seed = 88_172_645_463_325_252_u64;
    let mut kills = 0;
    let mut last_kill = Instant::now();
    while !children.is_empty() {
        match receiver.recv_timeout(Duration::from_millis(5)) {
            Ok((number, Some(name))) => {
                done[number] += 1;
                acknowledged.push(name);
            }
            Ok((number, None)) => {
                children.remove(&number).unwrap().wait().unwrap();
                if done[number] < RECORDS {
                    children.insert(number, start(number, done[number]));
                }
            }
            Err(_) => {}
        }
        if last_kill.elapsed() > Duration::from_millis(8) && kills < 60 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            if let Some(child) = children.get_mut(&(seed as usize % WORKERS)) {
                child.kill().unwrap();
                kills += 1;
            }
            last_kill = Instant::now();
        }
    }
    assert!(kills >= 10, "only {kills} were killed");
    acknowledged
}

fn check(place: &Place, acknowledged: &[String]) {
    place.append(&[prompt("last")]);
    let texts = place.texts();
    let once: BTreeSet<&String> = texts.iter().collect();
    assert_eq!(once.len(), texts.len(), "nothing is there twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|name| !once.contains(name)).collect();
    assert!(lost.is_empty(), "{} lost: {lost:?}", lost.len());
    assert_eq!(acknowledged.len(), WORKERS * RECORDS);
    let report = place.verify();
    assert!(report.is_whole(), "{}", said(&report));
    // The dead leave half-written heads behind; the next repairing takes them away.
    std::fs::remove_file(place.log.path().with_extension("head")).unwrap();
    place.append(&[prompt("mended")]);
    let is_draft = |path: &&PathBuf| path.to_string_lossy().ends_with("plimsoll-draft");
    let files = crate::harness::files(&place.turns());
    let drafts: Vec<&PathBuf> =
        files.iter().filter(is_draft).filter(|path| !path.to_string_lossy().contains("pending")).collect();
    assert!(drafts.is_empty(), "{drafts:?}");
    let waiting = crate::harness::files(&place.turns().join("pending"));
    assert!(waiting.iter().all(|path| !path.to_string_lossy().ends_with(".json")), "{waiting:?}");
}

#[test]
fn sixteen_processes_that_wait_their_turn_and_are_killed_lose_and_double_nothing() {
    let place = Place::in_memory();
    let acknowledged = run_crowd(place.folder.path(), 60_000);
    check(&place, &acknowledged);
}

#[test]
fn sixteen_processes_under_a_lock_held_for_seconds_lose_and_double_nothing() {
    let place = Place::in_memory();
    std::fs::create_dir_all(place.turns()).unwrap();
    let lock = place.turns().join(format!("{ID}.lock"));
    let folder = place.folder.path().to_owned();
    let holder = std::thread::spawn(move || {
        for _ in 0..4 {
            let held = plimsoll_store::lock::acquire(&lock, TIMEOUT).unwrap();
            std::thread::sleep(Duration::from_millis(700));
            drop(held);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let acknowledged = run_crowd(&folder, 1);
    holder.join().unwrap();
    check(&place, &acknowledged);
}
