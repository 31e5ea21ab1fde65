#!/bin/bash
# To be read by a script that has set STAGE (a folder) and TRIPLE (a musl target): makes $STAGE/floor, a program that does
# nothing, and $STAGE/stopwatch FLOOR PROGRAM PAYLOAD [ROUNDS], which prints both medians in microseconds and their ratio.
cat >"$STAGE/floor.rs" <<'RUST'
fn main() {}
RUST
cat >"$STAGE/stopwatch.rs" <<'RUST'
// Paired rounds of the floor and one program; the first round is not counted.
use std::{fs::File, process::{Command, Stdio}, time::Instant};
fn time(program: &str, payload: &str) -> f64 {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.stdin(File::open(payload).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap();
    start.elapsed().as_secs_f64() * 1e6
}
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let rounds = words.get(4).map_or(400, |rounds| rounds.parse().unwrap());
    let round = |_| (time(&words[1], &words[3]), time(&words[2], &words[3]));
    let (floor, program): (Vec<f64>, Vec<f64>) = (0..=rounds).map(round).skip(1).unzip();
    let (floor, program) = (median(floor), median(program));
    println!("{floor:.0} {program:.0} {:.2}", program / floor);
}
RUST
rustc --edition 2024 -O -C panic=abort -C strip=symbols --target "$TRIPLE" -o "$STAGE/floor" "$STAGE/floor.rs"
rustc --edition 2024 -O -o "$STAGE/stopwatch" "$STAGE/stopwatch.rs"
