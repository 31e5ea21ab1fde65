//! Simulates the runs with a harder task, stores their outcomes in `target/handovers.jsonl`, and writes the
//! section of `docs/nights.md` about all stored outcomes: `handovers NAME FIRST LAST`
//! (`scripts/nights.sh --harder`). NAME labels the programs in `PLIMSOLL_BIN_DIR`; the page shows the label
//! `now`, and the terminal the label of the command.

use plimsoll_research::handovers::{
    MAX_SESSIONS, SimulationOutcome, render_harder_simulations_section,
    replace_or_append_harder_simulations_section, simulate_run_with_real_client,
};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// The label of the programs that the page shows.
const PUBLISHED_PROGRAMS_LABEL: &str = "now";
/// The number of simulations that run at the same time. They mostly wait, so several share a processor.
const PARALLEL_SIMULATIONS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number_arg = |index: usize| args.get(index).and_then(|arg| arg.parse().ok());
    let programs_label = args.first().cloned().unwrap_or_else(|| "now".to_owned());
    let (first_seed, last_seed): (u64, u64) = (number_arg(1).unwrap_or(1), number_arg(2).unwrap_or(1));
    let outcomes_file = plimsoll_testkit::target_dir().join("handovers.jsonl");
    let started_at = Instant::now();
    simulate_seeds_and_store_outcomes(&programs_label, first_seed, last_seed, &outcomes_file);
    let outcomes = read_outcomes(&outcomes_file);
    let section = render_harder_simulations_section(&outcomes, &programs_label);
    println!("{section}");
    if programs_label == PUBLISHED_PROGRAMS_LABEL {
        let page_path = plimsoll_testkit::workspace_root().join("docs/nights.md");
        let old_page = fs::read_to_string(&page_path).expect("the page is there");
        fs::write(&page_path, replace_or_append_harder_simulations_section(&old_page, &section))
            .expect("docs/ is writable");
    }
    println!("{:.0} s", started_at.elapsed().as_secs_f64());
}

fn read_outcomes(outcomes_file: &Path) -> Vec<SimulationOutcome> {
    let text = fs::read_to_string(outcomes_file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Stores an outcome, replacing an earlier one with the same label and seed. Called after each simulation,
/// so that a later crash does not lose its outcome.
fn upsert_outcome_in_file(outcomes_file: &Path, outcome: SimulationOutcome) {
    let mut outcomes = read_outcomes(outcomes_file);
    outcomes.retain(|stored| (&stored.programs, stored.seed) != (&outcome.programs, outcome.seed));
    outcomes.push(outcome);
    outcomes.sort_by_key(|outcome| (outcome.programs.clone(), outcome.seed));
    let to_json_line = |outcome: &SimulationOutcome| serde_json::to_string(outcome).expect("JSON") + "\n";
    fs::write(outcomes_file, outcomes.iter().map(to_json_line).collect::<String>())
        .expect("target/ is writable");
}

fn simulate_seeds_and_store_outcomes(
    programs_label: &str,
    first_seed: u64,
    last_seed: u64,
    outcomes_file: &Path,
) {
    let (remaining_seeds, outcomes_file_lock) = (Mutex::new(first_seed..=last_seed), Mutex::new(()));
    let simulate_remaining_seeds = || {
        loop {
            let Some(seed) = remaining_seeds.lock().expect("no panic").next() else { break };
            let Ok(outcome) = std::panic::catch_unwind(|| {
                simulate_run_with_real_client(seed, programs_label, MAX_SESSIONS)
            }) else {
                eprintln!("seed {seed}: not played to its end");
                continue;
            };
            print_outcome_and_mistakes_to_stderr(&outcome);
            let _outcomes_file_guard = outcomes_file_lock.lock().expect("no panic");
            upsert_outcome_in_file(outcomes_file, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_SIMULATIONS {
            scope.spawn(simulate_remaining_seeds);
        }
    });
}

fn print_outcome_and_mistakes_to_stderr(outcome: &SimulationOutcome) {
    let correct_count = outcome.resumes.iter().filter(|resume| resume.is_fully_correct()).count();
    eprintln!(
        "seed {}: {correct_count} of {} right, {:?}, exit {:?}, {:.0} s",
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
