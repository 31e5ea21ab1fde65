//! How often the monitor waits for the client's transcript writer, and how long: two sessions of the real client with a
//! scripted model, one that stays far from any level and one that rises through two (`scripts/bench.sh`).

use plimsoll_testkit::client;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ITEMS, ScriptedAgent, world};
use serde_json::Value;
use std::time::Duration;

const BATCHES: usize = 30;

fn main() {
    println!("Two sessions of {BATCHES} batches, client {}, scripted model:\n", client::CLIENT_VERSION);
    println!("| session | batches | waited | on average |\n| --- | ---: | ---: | ---: |");
    tell("far from any level: 2 to 31 %", 1);
    tell("through L1 and L2: 3 to 90 %", 3);
}

/// One session whose window fills by so many percent a batch.
fn tell(name: &str, step: u64) {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(move |turn| {
        let answer = if turn.step < BATCHES { Step::bash("true") } else { Step::text("Done.") };
        answer.usage((turn.step as u64 + 1) * step * 10_000)
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let words = ["-p", "Go on.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&words).timeout(Duration::from_secs(120)).run().expect_success();
    let records = world.path(".claude/plimsoll/sessions");
    let record = std::fs::read_dir(records)
        .expect("the hooks wrote a record")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .find_map(|text| {
            serde_json::from_str::<Value>(&text).ok().filter(|record| record["reading"].is_object())
        })
        .expect("a session that was measured");
    let (waits, waited) = (number(&record, "waits"), number(&record, "waited_ms"));
    let average = waited.checked_div(waits).map_or_else(|| "–".to_owned(), |average| format!("{average} ms"));
    println!("| {name} | {BATCHES} | {waits} | {average} |");
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or_default()
}
