//! Plays nights in every way, prints a line for each, and writes `docs/nights.md` when all of them were played:
//! `cargo run -p plimsoll-tests --example nights -- FIRST LAST [WAY]` (`scripts/nights.sh`).

use plimsoll_tests::night::{Outcome, Way, page, play};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Nights wait more than they work.
const AT_ONCE: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok());
    let (first, last): (u64, u64) = (number(0).unwrap_or(1), number(1).unwrap_or(1));
    let is_wanted = |way: &Way| words.get(2).is_none_or(|wanted| format!("{way:?}") == *wanted);
    let ways: Vec<Way> = Way::ALL.into_iter().filter(is_wanted).collect();
    let nights = (first..=last).flat_map(|seed| ways.iter().map(move |way| (seed, *way)));
    let outcomes = play_all(nights.collect());
    if words.len() < 3 {
        let path = testkit::workspace_root().join("docs/nights.md");
        std::fs::write(path, page(&outcomes, last + 1 - first)).expect("docs/ is writable");
    }
}

fn play_all(nights: Vec<(u64, Way)>) -> BTreeMap<Way, Vec<Outcome>> {
    let (left, outcomes) = (Mutex::new(nights.into_iter()), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let next = left.lock().expect("no panic").next();
            let Some((seed, way)) = next else { break };
            let outcome = play(way, seed);
            println!("{seed} {way:?} {outcome:?}");
            outcomes.lock().expect("no panic").entry(way).or_insert_with(Vec::new).push(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().expect("no panic")
}
