//! Compares what the next session is told with what the simulator knows to have been done, in a few short
//! simulations of those in docs/nights.md (`scripts/nights.sh --harder`).

use plimsoll_research::handovers::simulator::ResumeScore;
use plimsoll_research::handovers::{SimulationOutcome, simulate_run_with_replayed_client};

/// A run of this many sessions has one resume less.
const SESSIONS_PER_SIMULATION: u32 = 4;
/// Seeds with `--pack`, with sessions that only commit the work of another one, and with a checkpoint that
/// the agent makes.
const SEEDS: &[u64] = &[4, 7, 21];

/// Runs these simulations in parallel with the replayed client. What a resume says depends only on the
/// tested programs, and `scripts/nights.sh` runs the simulations with the real client. With the replayed
/// client every resume must be right.
fn run_simulations(seeds: &[u64]) -> Vec<SimulationOutcome> {
    std::thread::scope(|scope| {
        let simulations: Vec<_> = seeds
            .iter()
            .map(|seed| {
                scope.spawn(|| simulate_run_with_replayed_client(*seed, "now", SESSIONS_PER_SIMULATION))
            })
            .collect();
        simulations.into_iter().map(|simulation| simulation.join().expect("a night")).collect()
    })
}

#[test]
fn every_resume_names_the_right_item_file_line_and_next_step() {
    let outcomes = run_simulations(SEEDS);
    let resumes: Vec<(u64, &ResumeScore)> = outcomes
        .iter()
        .flat_map(|outcome| outcome.resumes.iter().map(|resume| (outcome.seed, resume)))
        .collect();
    let wrong_resumes: Vec<String> = resumes
        .iter()
        .filter(|(_, resume)| !resume.is_fully_correct() || resume.is_sent_twice)
        .map(|(seed, resume)| {
            format!(
                "seed {seed}, session {}: {:?}\n{}",
                resume.session, resume.mistakes, resume.resume_section
            )
        })
        .collect();
    // A run that ends at once would have no resumes and so no wrong ones.
    assert!(resumes.len() >= SEEDS.len() * 2, "{outcomes:#?}");
    assert!(
        wrong_resumes.is_empty(),
        "{} of {} resumes are wrong:\n{}",
        wrong_resumes.len(),
        resumes.len(),
        wrong_resumes.join("\n")
    );
    for outcome in &outcomes {
        let results = &outcome.results;
        let repeated_work =
            (results.restarted_items, results.returns_to_finished_items, results.ticked_with_missing_steps);
        assert_eq!(repeated_work, (0, 0, 0), "{outcome:#?}");
    }
}
