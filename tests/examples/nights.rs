//! Plays nights in every way and prints a line for each: `cargo run -p plimsoll-tests --example nights -- FIRST LAST [WAY]`.

use plimsoll_tests::night::{Way, play};
use std::sync::Mutex;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse().ok());
    let (first, last): (u64, u64) = (number(0).unwrap_or(1), number(1).unwrap_or(1));
    let ways =
        Way::ALL.into_iter().filter(|way| words.get(2).is_none_or(|wanted| format!("{way:?}") == *wanted));
    let nights: Vec<(u64, Way)> =
        (first..=last).flat_map(|seed| ways.clone().map(move |way| (seed, way))).collect();
    let left = Mutex::new(nights.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no panic").next();
                    let Some((seed, way)) = next else { break };
                    let outcome = play(way, seed);
                    println!("{seed} {way:?} well={} {outcome:?}", outcome.ended_well());
                }
            });
        }
    });
}
