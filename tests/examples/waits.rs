//! Measures how often and how long the monitor waits for the client's transcript writer, in two sessions of the real client with
//! a scripted model: one that stays far below any threshold and one that passes two (`scripts/bench.sh`).

use plimsoll_testkit::client;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, world_with_plan_and_dates};
use serde_json::Value;
use std::time::Duration;

const BATCHES: usize = 30;

fn main() {
    println!("Two sessions of {BATCHES} batches, Claude Code {}, scripted model:\n", client::CLIENT_VERSION);
    println!("| session | waits | on average |\n|---|---:|---:|");
    measure_session("far from any threshold: 2% to 31%", 1);
    measure_session("through L1 and L2: 3% to 90%", 3);
}

/// Plays a session whose window fills by this many percent per batch, and prints how long the monitor waited.
fn measure_session(name: &str, percent_per_batch: u64) {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(move |turn| {
        let step = if turn.assistant_message_count < BATCHES {
            Step::bash_call("true")
        } else {
            Step::from_text("Done.")
        };
        step.with_input_tokens((turn.assistant_message_count as u64 + 1) * percent_per_batch * 10_000)
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let arguments = ["-p", "Go on.", "--model", "opus", "--allowedTools", "Bash"];
    world.claude(&arguments).timeout(Duration::from_secs(120)).run().expect_success();
    let records = world.path(".claude/plimsoll/sessions");
    let record = std::fs::read_dir(records)
        .expect("the hooks wrote a record")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .find_map(|text| {
            serde_json::from_str::<Value>(&text).ok().filter(|record| record["reading"].is_object())
        })
        .expect("a session that was measured");
    let (wait_count, waited_ms) = (number_field(&record, "waits"), number_field(&record, "waited_ms"));
    let average =
        waited_ms.checked_div(wait_count).map_or_else(|| "–".to_owned(), |average| format!("{average} ms"));
    println!("| {name} | {wait_count} | {average} |");
}

fn number_field(record: &Value, field: &str) -> u64 {
    record[field].as_u64().unwrap_or_default()
}
