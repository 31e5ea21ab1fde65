//! Nights by chance: sessions that work, find, lose, promise, fail, crash; runs that are killed, interrupted, cancelled;
//! and after each of them a simple model of the design says what must have come of it. A stand-in plays the client, with
//! our real programs around it: the real client is in every other test.

mod random_runs;
mod simple_model;

use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{events, journal};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use random_runs::{Accident, End, Fill, Night, Session, Work, any_night};
use serde_json::{Value, json};
use simple_model::{BORNE, Simple};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const LIMIT: Duration = Duration::from_secs(60);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("NIGHTS").ok().and_then(|number| number.parse().ok()).unwrap_or(8),
        max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_befalls_a_run_it_does_what_the_design_says(night in any_night()) {
        check(&night)?;
    }
}

/// What chance has found, in short.
#[test]
fn the_nights_that_once_went_wrong_go_well() {
    let session = |work, fill, end| Session { work, fill, end, accident: Accident::None };
    let part = |end| session(Work::Part, Fill::Low, end);
    let nights = [
        (1, vec![part(End::Says)]),
        (1, vec![part(End::Overloaded)]),
        (2, vec![part(End::Says), session(Work::Nothing, Fill::Checkpoint, End::Crashes)]),
        (3, vec![session(Work::Item, Fill::Low, End::Overloaded), part(End::Says)]),
    ];
    for (items, sessions) in nights {
        check(&Night { items, max_iterations: 4, sessions }).expect("it goes well");
    }
}

fn check(night: &Night) -> Result<(), TestCaseError> {
    let world = stage(night);
    let finished = play(&world, night);
    let words = format!("{night:#?}\n{finished:#?}\n{}", world.read(".claude/plimsoll/journal.jsonl"));
    let journal = journal(&world);
    let verdicts = events(&journal, "verdict");
    let mut simple = Simple::of(night);
    for (number, verdict) in verdicts.iter().enumerate() {
        let prompt = world.read(world.home().join(format!("begun/{}/prompt", number + 1)));
        let item = item_of(&prompt);
        simple.prepare();
        prop_assert!(
            simple.open().is_empty() || simple.open().contains(&item),
            "{item} is not open; {words}"
        );
        let told = prompt.contains("src/dates.txt");
        prop_assert!(
            told || !simple.is_begun(&item),
            "session {} is not told what is unfinished; {words}",
            number + 1
        );
        let (iteration, beginning) = simple.session(&item);
        let marker = verdict["marker"].as_str().unwrap_or_default();
        prop_assert!(
            marker.starts_with(beginning),
            "session {}: {marker}, not {beginning}; {words}",
            number + 1
        );
        prop_assert_eq!(verdict["iteration"].as_u64(), Some(iteration.into()), "{}", words);
    }
    prop_assert!(simple.is_over, "it goes on for ever; {words}");
    prop_assert_eq!(begun(&world), verdicts.len(), "each session is judged once; {}", words);
    assert_same_items(&world, &simple, &words)?;
    no_resurrection(&world, &words)
}

/// What is in the list and in the state, both as the model has it: nothing is lost, nothing counted twice.
fn assert_same_items(world: &World, simple: &Simple, words: &str) -> Result<(), TestCaseError> {
    let list = world.read("fix_plan.md");
    let with = |mark: &str| -> Vec<String> {
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
    prop_assert_eq!(with("- [x] "), sorted(simple.done()), "{}", words);
    prop_assert_eq!(with("- [ ] "), sorted(simple.open()), "{}", words);
    let state = world.json(STATE);
    let named = |name: &str| -> Vec<String> {
        let items = state[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        sorted(&items.collect::<Vec<_>>())
    };
    prop_assert_eq!(named("completed_items"), sorted(simple.done()), "{}", words);
    prop_assert_eq!(named("todo_items"), sorted(simple.known_open()), "{}", words);
    Ok(())
}

/// A run that is over stays over; only where a person may have mended what stopped it does `--resume` try again.
fn no_resurrection(world: &World, words: &str) -> Result<(), TestCaseError> {
    let state = world.json(STATE);
    let before = begun(world);
    if state["status"] != "fatal_error" && state["status"] != "blocked" {
        let again = resume(world);
        prop_assert_eq!(begun(world), before, "{:#?}\n{}", again, words);
        prop_assert_eq!(&world.json(STATE)["status"], &state["status"], "{:#?}\n{}", again, words);
    }
    Ok(())
}

fn item_of(prompt: &str) -> String {
    let named = prompt.split_once("## Your item\n\n> ").and_then(|(_, rest)| rest.split_once('\n'));
    named.map_or_else(String::new, |(item, _)| item.to_owned())
}

fn begun(world: &World) -> usize {
    std::fs::read_dir(world.home().join("begun")).expect("it is there").count()
}

fn stage(night: &Night) -> World {
    let items: String = (1..=night.items).map(|number| format!("- [ ] Item {number}\n")).collect();
    let world = plimsoll_tests::world(&format!("# Plan\n\n{items}"));
    let rule = json!({
        "breaker": { "no_progress": BORNE, "refused": BORNE, "same_error": 0, "permission_denied": 0, "empty_reply": 0,
                     "quick_failure": 0 },
        "thrash": { "checkpoints": 0 },
    });
    world.write_user_settings(&rule);
    std::fs::create_dir(world.home().join("begun")).expect("a folder");
    for (number, session) in (1..).zip(&night.sessions) {
        world.write(world.home().join(format!("sessions/{number}")), &session.script(number));
    }
    world.write_program(world.home().join("stand-in"), include_str!("stand_in.sh"));
    world
}

/// Runs and resumes until the run is over, as a person would who finds it stopped.
fn play(world: &World, night: &Night) -> Finished {
    let client = world.home().join("stand-in").display().to_string();
    let bound = night.max_iterations.to_string();
    let mut finished = world
        .plimsoll(&[
            "run",
            "--objective",
            "Do the plan.",
            "--max-iterations",
            &bound,
            "--no-wait",
            "--client",
            &client,
        ])
        .timeout(LIMIT)
        .run();
    // Each session may be killed once and pause once.
    for _ in 0..2 * night.sessions.len() + 2 {
        let status = world.json(STATE)["status"].clone();
        if status != "running" && status != "paused" {
            return finished;
        }
        let number = begun(world);
        let accident = night.sessions.get(number - 1).map(|session| session.accident);
        if !matches!(accident, Some(Accident::Killed { resumed_at_once: true, .. })) {
            let left = world.home().join(format!("begun/{number}/left"));
            world.wait_until(|| left.exists(), "the session to end");
        }
        finished = resume(world);
    }
    finished
}

fn resume(world: &World) -> Finished {
    let client = world.home().join("stand-in").display().to_string();
    world.plimsoll(&["run", "--resume", "--no-wait", "--client", &client]).timeout(LIMIT).run()
}
