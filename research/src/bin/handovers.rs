//! Plays harder nights, stores their outcomes in `target/handovers.jsonl`, and writes the part of
//! `docs/nights.md` about all stored outcomes: `handovers NAME FIRST LAST` (`scripts/nights.sh --harder`).
//! NAME labels the programs in `PLIMSOLL_BIN_DIR`; the page compares `before` with `now`.

use plimsoll_research::handovers::{MAX_SESSIONS, NightOutcome, play_night, render_section, with_section};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// The labels of the programs in the table, in this order.
const COMPARED_PROGRAMS: [&str; 2] = ["before", "now"];
/// Nights mostly wait, so several can run on each processor.
const PARALLEL_NIGHTS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number_at = |index: usize| args.get(index).and_then(|word| word.parse().ok());
    let programs = args.first().cloned().unwrap_or_else(|| "now".to_owned());
    let (first_seed, last_seed): (u64, u64) = (number_at(1).unwrap_or(1), number_at(2).unwrap_or(1));
    let outcomes_file = plimsoll_testkit::target_dir().join("handovers.jsonl");
    let start = Instant::now();
    play_seeds(&programs, first_seed, last_seed, &outcomes_file);
    let outcomes = read_outcomes(&outcomes_file);
    let rows: Vec<&str> = COMPARED_PROGRAMS
        .into_iter()
        .filter(|programs| outcomes.iter().any(|outcome| outcome.programs == *programs))
        .collect();
    let section = render_section(&outcomes, &rows);
    println!("{section}");
    if rows.len() == COMPARED_PROGRAMS.len() {
        let page_path = plimsoll_testkit::workspace_root().join("docs/nights.md");
        let text = fs::read_to_string(&page_path).expect("the page is there");
        fs::write(&page_path, with_section(&text, &section)).expect("docs/ is writable");
    }
    println!("{:.0} s", start.elapsed().as_secs_f64());
}

fn read_outcomes(outcomes_file: &Path) -> Vec<NightOutcome> {
    let text = fs::read_to_string(outcomes_file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Stores a night as soon as it has ended, so that a later crash does not lose it. Replaces an earlier
/// outcome of the same programs and seed.
fn store_outcome(outcomes_file: &Path, outcome: NightOutcome) {
    let mut outcomes = read_outcomes(outcomes_file);
    outcomes.retain(|stored| (&stored.programs, stored.seed) != (&outcome.programs, outcome.seed));
    outcomes.push(outcome);
    outcomes.sort_by_key(|outcome| (outcome.programs.clone(), outcome.seed));
    let line = |outcome: &NightOutcome| serde_json::to_string(outcome).expect("JSON") + "\n";
    fs::write(outcomes_file, outcomes.iter().map(line).collect::<String>()).expect("target/ is writable");
}

fn play_seeds(programs: &str, first_seed: u64, last_seed: u64, outcomes_file: &Path) {
    let (remaining_seeds, file_lock) = (Mutex::new(first_seed..=last_seed), Mutex::new(()));
    let play_next_seeds = || {
        loop {
            let Some(seed) = remaining_seeds.lock().expect("no panic").next() else { break };
            let Ok(outcome) = std::panic::catch_unwind(|| play_night(seed, programs, MAX_SESSIONS)) else {
                eprintln!("seed {seed}: not played to its end");
                continue;
            };
            print_outcome(&outcome);
            let _one_at_a_time = file_lock.lock().expect("no panic");
            store_outcome(outcomes_file, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_NIGHTS {
            scope.spawn(play_next_seeds);
        }
    });
}

fn print_outcome(outcome: &NightOutcome) {
    let right_count = outcome.resumes.iter().filter(|resume| resume.is_right()).count();
    eprintln!(
        "seed {}: {right_count} of {} right, {:?}, exit {:?}, {:.0} s",
        outcome.seed,
        outcome.resumes.len(),
        outcome.results,
        outcome.exit_code,
        outcome.seconds
    );
    for resume in &outcome.resumes {
        for mistake in &resume.mistakes {
            eprintln!(
                "  session {} ({}, after {}): {mistake}",
                resume.session, resume.item_state, resume.previous_session_end
            );
        }
    }
}
