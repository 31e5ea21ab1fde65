//! Plays nights in every way, keeps how each went in `target/nights.jsonl`, and writes `docs/nights.md` of what is kept
//! there: `cargo run -p plimsoll-tests --example nights -- FIRST LAST [WAY]` (`scripts/nights.sh`). With a way, that one
//! alone is played again.

use plimsoll_tests::handover::{section_of, with_section};
use plimsoll_tests::night::{Outcome, Way, page, play};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// Nights wait more than they work.
const AT_ONCE: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok());
    let (first, last): (u64, u64) = (number(0).unwrap_or(1), number(1).unwrap_or(1));
    let is_wanted = |way: &Way| words.get(2).is_none_or(|wanted| format!("{way:?}") == *wanted);
    let ways: Vec<Way> = Way::ALL.into_iter().filter(is_wanted).collect();
    let kept = plimsoll_testkit::workspace_root().join("target/nights.jsonl");
    let mut outcomes = read(&kept);
    let is_played_again =
        |outcome: &Outcome| (first..=last).contains(&outcome.seed) && ways.contains(&outcome.way);
    outcomes.retain(|outcome| !is_played_again(outcome));
    let nights = (first..=last).flat_map(|seed| ways.iter().map(move |way| (seed, *way)));
    outcomes.extend(play_all(nights.collect()));
    outcomes.sort_by_key(|outcome| (outcome.seed, outcome.way));
    let line = |outcome: &Outcome| serde_json::to_string(outcome).expect("JSON") + "\n";
    fs::write(&kept, outcomes.iter().map(line).collect::<String>()).expect("target/ is writable");
    let in_every_way = |seed: &u64| {
        Way::ALL.iter().all(|way| outcomes.iter().any(|one| one.seed == *seed && one.way == *way))
    };
    let most = outcomes.iter().map(|outcome| outcome.seed).max().unwrap_or_default();
    let compared: Vec<u64> = (1..=most).filter(in_every_way).collect();
    outcomes.retain(|outcome| compared.contains(&outcome.seed));
    let path = plimsoll_testkit::workspace_root().join("docs/nights.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut text = page(&outcomes, compared.len() as u64);
    if let Some(harder) = section_of(&before) {
        text = with_section(&text, harder);
    }
    fs::write(path, text).expect("docs/ is writable");
}

fn read(kept: &Path) -> Vec<Outcome> {
    let text = fs::read_to_string(kept).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of this program's")).collect()
}

fn play_all(nights: Vec<(u64, Way)>) -> Vec<Outcome> {
    let (left, outcomes) = (Mutex::new(nights.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = left.lock().expect("no panic").next();
            let Some((seed, way)) = next else { break };
            let outcome = play(way, seed);
            println!("{outcome:?}");
            outcomes.lock().expect("no panic").push(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().expect("no panic")
}
