//! Plays harder nights, keeps how each went in `target/handovers.jsonl`, and writes their part of `docs/nights.md` of what is
//! kept there: `handovers NAME FIRST LAST` (`scripts/nights.sh --harder`). The programs of
//! `PLIMSOLL_BIN_DIR` are called NAME: `before` and `now` are compared.

use plimsoll_research::handovers::{Outcome, SESSIONS, play, section, with_section};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// The rows of the table.
const COMPARED: [&str; 2] = ["before", "now"];
/// Nights wait more than they work.
const AT_ONCE: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok());
    let name = words.first().cloned().unwrap_or_else(|| "now".to_owned());
    let (first, last): (u64, u64) = (number(1).unwrap_or(1), number(2).unwrap_or(1));
    let kept = plimsoll_testkit::target_dir().join("handovers.jsonl");
    let start = Instant::now();
    play_all(&name, first, last, &kept);
    let outcomes = read(&kept);
    let rows: Vec<&str> =
        COMPARED.into_iter().filter(|row| outcomes.iter().any(|one| one.programs == *row)).collect();
    let part = section(&outcomes, &rows);
    println!("{part}");
    if rows.len() == COMPARED.len() {
        let page = plimsoll_testkit::workspace_root().join("docs/nights.md");
        let text = fs::read_to_string(&page).expect("the page is there");
        fs::write(&page, with_section(&text, &part)).expect("docs/ is writable");
    }
    println!("{:.0} s", start.elapsed().as_secs_f64());
}

fn read(kept: &Path) -> Vec<Outcome> {
    let text = fs::read_to_string(kept).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Keeps one night at once: what was played is not lost with one that breaks.
fn keep(kept: &Path, outcome: Outcome) {
    let mut outcomes = read(kept);
    outcomes.retain(|one| (&one.programs, one.seed) != (&outcome.programs, outcome.seed));
    outcomes.push(outcome);
    outcomes.sort_by_key(|outcome| (outcome.programs.clone(), outcome.seed));
    let line = |outcome: &Outcome| serde_json::to_string(outcome).expect("JSON") + "\n";
    fs::write(kept, outcomes.iter().map(line).collect::<String>()).expect("target/ is writable");
}

fn play_all(name: &str, first: u64, last: u64, kept: &Path) {
    let (left, file) = (Mutex::new(first..=last), Mutex::new(()));
    let work = || {
        loop {
            let Some(seed) = left.lock().expect("no panic").next() else { break };
            let Ok(outcome) = std::panic::catch_unwind(|| play(seed, name, SESSIONS)) else {
                eprintln!("seed {seed}: not played to its end");
                continue;
            };
            tell(&outcome);
            let _one_at_a_time = file.lock().expect("no panic");
            keep(kept, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
}

fn tell(outcome: &Outcome) {
    let right = outcome.resumes.iter().filter(|resume| resume.is_right()).count();
    eprintln!(
        "seed {}: {right} of {} right, {:?}, exit {:?}, {:.0} s",
        outcome.seed,
        outcome.resumes.len(),
        outcome.morning,
        outcome.code,
        outcome.seconds
    );
    for resume in &outcome.resumes {
        for wrong in &resume.wrong {
            eprintln!("  session {} ({}, after {}): {wrong}", resume.session, resume.class, resume.after);
        }
    }
}
