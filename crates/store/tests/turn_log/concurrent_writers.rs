//! Sixteen processes write one log and are killed at random: every acknowledged record is there exactly once.

use crate::harness::{
    SESSION_ID, TIMEOUT, TestLog, log_in_folder, prompt_record, render_findings, test_name,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const WORKER_COUNT: usize = 16;
const RECORDS_PER_WORKER: usize = 200;

/// Starts this program again as a worker: it runs the test below, which does nothing in an ordinary run.
fn spawn_worker(folder: &Path, number: usize, first_record: usize, timeout_ms: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&test_name(module_path!(), "as_a_worker"), "--exact", "--nocapture", "--test-threads=1"])
        .env("PLIMSOLL_CROWD", format!("{}|{number}|{first_record}|{timeout_ms}", folder.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn as_a_worker() {
    let Ok(arguments) = std::env::var("PLIMSOLL_CROWD") else { return };
    let parts: Vec<&str> = arguments.split('|').collect();
    let [number, first_record, timeout]: [u64; 3] = [1, 2, 3].map(|index| parts[index].parse().unwrap());
    let log = log_in_folder(&PathBuf::from(parts[0]));
    for record in first_record..RECORDS_PER_WORKER as u64 {
        // Each attempt has a unique name, because a record that was not acknowledged may or may not be there.
        let name = format!("{number}/{record}/{}", std::process::id());
        log.append_or_write_to_pending_file(&prompt_record(&name), Duration::from_millis(timeout)).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nACK {name}").unwrap();
        out.flush().unwrap();
    }
}

/// Runs the workers and kills one of them every now and then. Returns the acknowledged records.
fn run_workers_with_kills(folder: &Path, timeout_ms: u64) -> Vec<String> {
    let (sender, receiver): (Sender<(usize, Option<String>)>, Receiver<_>) = channel();
    let start_worker = |number: usize, first_record: usize| {
        let mut child = spawn_worker(folder, number, first_record, timeout_ms);
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
        (0..WORKER_COUNT).map(|number| (number, start_worker(number, 0))).collect();
    let mut done_counts = [0; WORKER_COUNT];
    let mut acknowledged = Vec::new();
    let mut seed = 88_172_645_463_325_252_u64;
    let mut kills = 0;
    let mut last_kill = Instant::now();
    while !children.is_empty() {
        match receiver.recv_timeout(Duration::from_millis(5)) {
            Ok((number, Some(name))) => {
                done_counts[number] += 1;
                acknowledged.push(name);
            }
            Ok((number, None)) => {
                children.remove(&number).unwrap().wait().unwrap();
                if done_counts[number] < RECORDS_PER_WORKER {
                    children.insert(number, start_worker(number, done_counts[number]));
                }
            }
            Err(_) => {}
        }
        if last_kill.elapsed() > Duration::from_millis(8) && kills < 60 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            if let Some(child) = children.get_mut(&(seed as usize % WORKER_COUNT)) {
                child.kill().unwrap();
                kills += 1;
            }
            last_kill = Instant::now();
        }
    }
    assert!(kills >= 10, "only {kills} were killed");
    acknowledged
}

fn check_log(test_log: &TestLog, acknowledged: &[String]) {
    test_log.append(&[prompt_record("last")]);
    let texts = test_log.prompt_texts();
    let unique_texts: BTreeSet<&String> = texts.iter().collect();
    assert_eq!(unique_texts.len(), texts.len(), "nothing is there twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|name| !unique_texts.contains(name)).collect();
    assert!(lost.is_empty(), "{} lost: {lost:?}", lost.len());
    assert_eq!(acknowledged.len(), WORKER_COUNT * RECORDS_PER_WORKER);
    let report = test_log.verify();
    assert!(report.is_intact(), "{}", render_findings(&report));
    // Killed writers leave half-written heads behind; the next repair removes them.
    std::fs::remove_file(test_log.log.path().with_extension("head")).unwrap();
    test_log.append(&[prompt_record("mended")]);
    let is_draft = |path: &&PathBuf| path.to_string_lossy().ends_with("plimsoll-draft");
    let files = crate::harness::files_below(&test_log.turns_folder());
    let drafts: Vec<&PathBuf> =
        files.iter().filter(is_draft).filter(|path| !path.to_string_lossy().contains("pending")).collect();
    assert!(drafts.is_empty(), "{drafts:?}");
    let waiting = crate::harness::files_below(&test_log.turns_folder().join("pending"));
    assert!(waiting.iter().all(|path| !path.to_string_lossy().ends_with(".json")), "{waiting:?}");
}

#[test]
fn killed_writers_that_wait_for_the_lock_lose_and_duplicate_nothing() {
    let test_log = TestLog::in_memory();
    let acknowledged = run_workers_with_kills(test_log.folder.path(), 60_000);
    check_log(&test_log, &acknowledged);
}

#[test]
fn killed_writers_that_defer_records_lose_and_duplicate_nothing() {
    let test_log = TestLog::in_memory();
    std::fs::create_dir_all(test_log.turns_folder()).unwrap();
    let lock_path = test_log.turns_folder().join(format!("{SESSION_ID}.lock"));
    let folder = test_log.folder.path().to_owned();
    let holder = std::thread::spawn(move || {
        for _ in 0..4 {
            let lock = plimsoll_store::lock::acquire(&lock_path, TIMEOUT).unwrap();
            std::thread::sleep(Duration::from_millis(700));
            drop(lock);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let acknowledged = run_workers_with_kills(&folder, 1);
    holder.join().unwrap();
    check_log(&test_log, &acknowledged);
}
