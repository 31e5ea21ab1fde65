//! What the next session is told, held against what the simulator knows to have been done: a few short nights of the
//! measure of docs/nights.md (`scripts/nights.sh --harder`).

use plimsoll_research::handovers::simulator::Resume;
use plimsoll_research::handovers::{Outcome, replay};

/// A night of so many sessions has one resume less.
const SESSIONS: u32 = 4;
/// With `--pack`, with sessions that only commit what another one left, and with a checkpoint that the agent asks for.
const SEEDS: &[u64] = &[4, 7, 21];

/// Plays these nights at the same time, with the replayed client: what a resume says depends on our programs, and
/// `scripts/nights.sh` plays them with the real one. Every resume must be right in this part.
fn played(seeds: &[u64]) -> Vec<Outcome> {
    std::thread::scope(|scope| {
        let nights: Vec<_> =
            seeds.iter().map(|seed| scope.spawn(|| replay(*seed, "now", SESSIONS))).collect();
        nights.into_iter().map(|night| night.join().expect("a night")).collect()
    })
}

#[test]
fn item_file_line_and_next_step_of_every_resume_are_true() {
    let outcomes = played(SEEDS);
    let resumes: Vec<(u64, &Resume)> =
        outcomes.iter().flat_map(|one| one.resumes.iter().map(|resume| (one.seed, resume))).collect();
    let wrong: Vec<String> = resumes
        .iter()
        .filter(|(_, resume)| !resume.is_right() || resume.is_sent_twice)
        .map(|(seed, resume)| {
            format!("seed {seed}, session {}: {:?}\n{}", resume.session, resume.wrong, resume.told)
        })
        .collect();
    // A night that breaks off at once would score nothing, and be right.
    assert!(resumes.len() >= SEEDS.len() * 2, "{outcomes:#?}");
    assert!(
        wrong.is_empty(),
        "{} of {} resumes are wrong:\n{}",
        wrong.len(),
        resumes.len(),
        wrong.join("\n")
    );
    for outcome in &outcomes {
        let morning = &outcome.morning;
        let again = (morning.begun_twice, morning.reopened, morning.ticked_undone);
        assert_eq!(again, (0, 0, 0), "{outcome:#?}");
    }
}
