//! Random runs: sessions that work, add and remove items, promise, fail and crash, in runs that are killed, interrupted
//! and canceled. After each run a simple model of the design says what must have come of it. A stand-in plays the
//! client, with our real programs around it; all other tests use the real client.

mod random_runs;
mod simple_model;

use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{events_named, read_journal};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use random_runs::{
    ContextUsage, Interruption, RunScenario, ScriptedSession, SessionEnding, SessionWork, any_scenario,
};
use serde_json::{Value, json};
use simple_model::{BREAKER_LIMIT, RunModel};
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("NIGHTS").ok().and_then(|number| number.parse().ok()).unwrap_or(8),
        max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_random_run_behaves_as_the_simple_model_predicts(night in any_scenario()) {
        check_scenario(&night)?;
    }
}

/// Scenarios that random runs once found, shortened.
#[test]
fn scenarios_that_once_failed_match_the_simple_model() {
    let session = |work, fill, end| ScriptedSession { work, fill, end, accident: Interruption::None };
    let part = |end| session(SessionWork::ChangesFile, ContextUsage::Low, end);
    let scenarios = [
        (1, vec![part(SessionEnding::PlainMessage)]),
        (1, vec![part(SessionEnding::Overloaded)]),
        (
            2,
            vec![
                part(SessionEnding::PlainMessage),
                session(SessionWork::Nothing, ContextUsage::Checkpoint, SessionEnding::Crashes),
            ],
        ),
        (
            3,
            vec![
                session(SessionWork::FinishesItem, ContextUsage::Low, SessionEnding::Overloaded),
                part(SessionEnding::PlainMessage),
            ],
        ),
    ];
    for (items, sessions) in scenarios {
        check_scenario(&RunScenario { items, max_iterations: 4, sessions }).expect("it goes well");
    }
}

fn check_scenario(scenario: &RunScenario) -> Result<(), TestCaseError> {
    let world = world_for_scenario(scenario);
    let finished = run_until_ended(&world, scenario);
    let words = format!("{scenario:#?}\n{finished:#?}\n{}", world.read(".claude/plimsoll/journal.jsonl"));
    let journal = read_journal(&world);
    let verdicts = events_named(&journal, "verdict");
    let mut model = RunModel::for_scenario(scenario);
    for (number, verdict) in verdicts.iter().enumerate() {
        let prompt = world.read(world.home().join(format!("begun/{}/prompt", number + 1)));
        let item = item_from_prompt(&prompt);
        model.restore_emptied_plan();
        prop_assert!(
            model.open_items().is_empty() || model.open_items().contains(&item),
            "{item} is not open; {words}"
        );
        let names_changed_file = prompt.contains("src/dates.txt");
        prop_assert!(
            names_changed_file || !model.is_item_started(&item),
            "session {} is not told what is unfinished; {words}",
            number + 1
        );
        let (iteration, beginning) = model.simulate_session(&item);
        let marker = verdict["marker"].as_str().unwrap_or_default();
        prop_assert!(
            marker.starts_with(beginning),
            "session {}: {marker}, not {beginning}; {words}",
            number + 1
        );
        prop_assert_eq!(verdict["iteration"].as_u64(), Some(iteration.into()), "{}", words);
    }
    prop_assert!(model.is_over, "it goes on for ever; {words}");
    prop_assert_eq!(started_session_count(&world), verdicts.len(), "each session is judged once; {}", words);
    assert_items_match_model(&world, &model, &words)?;
    assert_ended_run_stays_ended(&world, &words)
}

/// Compares the items in the plan and in the state with the model: nothing is lost, and nothing is counted twice.
fn assert_items_match_model(world: &World, model: &RunModel, words: &str) -> Result<(), TestCaseError> {
    let list = world.read("fix_plan.md");
    let items_with_mark = |mark: &str| -> Vec<String> {
        let mut items: Vec<String> =
            list.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect();
        items.sort();
        items
    };
    let sorted = |items: &[String]| {
        let mut items = items.to_vec();
        items.sort();
        items
    };
    prop_assert_eq!(items_with_mark("- [x] "), sorted(model.done_items()), "{}", words);
    prop_assert_eq!(items_with_mark("- [ ] "), sorted(model.open_items()), "{}", words);
    let state = world.read_json(STATE_PATH);
    let state_items = |name: &str| -> Vec<String> {
        let items = state[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        sorted(&items.collect::<Vec<_>>())
    };
    prop_assert_eq!(state_items("completed_items"), sorted(model.done_items()), "{}", words);
    prop_assert_eq!(state_items("todo_items"), sorted(model.open_items_known_to_run()), "{}", words);
    Ok(())
}

/// Asserts that an ended run stays ended. `--resume` may try again only if a person may have fixed what stopped the
/// run.
fn assert_ended_run_stays_ended(world: &World, words: &str) -> Result<(), TestCaseError> {
    let state = world.read_json(STATE_PATH);
    let before = started_session_count(world);
    if state["status"] != "fatal_error" && state["status"] != "blocked" {
        let resumed = resume_with_stand_in(world);
        prop_assert_eq!(started_session_count(world), before, "{:#?}\n{}", resumed, words);
        prop_assert_eq!(
            &world.read_json(STATE_PATH)["status"],
            &state["status"],
            "{:#?}\n{}",
            resumed,
            words
        );
    }
    Ok(())
}

fn item_from_prompt(prompt: &str) -> String {
    let item_and_rest = prompt.split_once("## Your item\n\n> ").and_then(|(_, rest)| rest.split_once('\n'));
    item_and_rest.map_or_else(String::new, |(item, _)| item.to_owned())
}

fn started_session_count(world: &World) -> usize {
    std::fs::read_dir(world.home().join("begun")).expect("it is there").count()
}

fn world_for_scenario(scenario: &RunScenario) -> World {
    let items: String = (1..=scenario.items).map(|number| format!("- [ ] Item {number}\n")).collect();
    let world = plimsoll_tests::world_with_plan_and_dates(&format!("# Plan\n\n{items}"));
    let settings = json!({
        "breaker": { "no_progress": BREAKER_LIMIT, "refused": BREAKER_LIMIT, "same_error": 0, "permission_denied": 0, "empty_reply": 0,
                     "quick_failure": 0 },
        "thrash": { "checkpoints": 0 },
    });
    world.write_plimsoll_user_settings(&settings);
    std::fs::create_dir(world.home().join("begun")).expect("a folder");
    for (number, session) in (1..).zip(&scenario.sessions) {
        world.write(world.home().join(format!("sessions/{number}")), &session.stand_in_script(number));
    }
    world.write_program(world.home().join("stand-in"), include_str!("stand_in.sh"));
    world
}

/// Runs and resumes until the run has ended, as a person would who finds it stopped.
fn run_until_ended(world: &World, scenario: &RunScenario) -> FinishedProgram {
    let client = world.home().join("stand-in").display().to_string();
    let max_iterations = scenario.max_iterations.to_string();
    let mut finished = world
        .plimsoll(&[
            "run",
            "--objective",
            "Do the plan.",
            "--max-iterations",
            &max_iterations,
            "--no-wait",
            "--client",
            &client,
        ])
        .timeout(COMMAND_TIMEOUT)
        .run();
    // Each session may be killed once and pause once.
    for _ in 0..2 * scenario.sessions.len() + 2 {
        let status = world.read_json(STATE_PATH)["status"].clone();
        if status != "running" && status != "paused" {
            return finished;
        }
        let number = started_session_count(world);
        let accident = scenario.sessions.get(number - 1).map(|session| session.accident);
        if !matches!(accident, Some(Interruption::Killed { resumed_at_once: true, .. })) {
            let end_marker = world.home().join(format!("begun/{number}/left"));
            world.wait_until(|| end_marker.exists(), "the session to end");
        }
        finished = resume_with_stand_in(world);
    }
    finished
}

fn resume_with_stand_in(world: &World) -> FinishedProgram {
    let client = world.home().join("stand-in").display().to_string();
    world.plimsoll(&["run", "--resume", "--no-wait", "--client", &client]).timeout(COMMAND_TIMEOUT).run()
}
