//! `plimsoll status` tells what the run knows at that moment: the screen of `plimsoll run`, both forms of `status` and the sessions'
//! own files are compared while sessions are at work, and after every kind of interruption.

use crate::workers::{LIMIT, TWO, begin, number, tick};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{Running, World};
use plimsoll_tests::{ScriptedAgent, world};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
/// How often the run is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(300);
/// The screen of a run is this wide: no line of it is cut.
const COLUMNS: u16 = 150;

/// A session that waits in its first tool until the test lets it go on.
fn wait_at_gate(home: &Path, turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let (number, home) = (number(&item), home.display());
    match turn.step {
        0 => Step::bash(format!(
            "touch {home}/at-{number}; while [ ! -e {home}/go-{number} ]; do sleep 0.05; done"
        ))
        .usage(30_000),
        1 => Step::bash(format!("mkdir -p done && echo '{item}' > done/{number}.txt && {}", tick(&item)))
            .usage(31_000),
        _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)).usage(32_000),
    }
}

/// A world whose sessions wait at gates, one for each item.
fn gated_world(plan: &str) -> (World, ScriptedModel) {
    let mut world = world(plan);
    let home = world.home();
    let model = ScriptedAgent::new(move |turn| wait_at_gate(&home, turn)).start(&mut world);
    (world, model)
}

fn open_gate(world: &World, item: usize) {
    world.write(world.home().join(format!("go-{item}")), "");
}

/// Waits until the sessions of these items are in their tool, and their transcripts have the response that called it.
fn wait_at_gates(world: &World, items: &[usize]) {
    let is_there = |item: &usize| world.home().join(format!("at-{item}")).exists();
    world.wait_until(|| items.iter().all(is_there), "sessions at their gates");
}

/// `plimsoll status --json`, and the text.
fn status_json(world: &World) -> Value {
    world.plimsoll(&["status", "--json"]).run().expect_success().json()
}

fn status_text(world: &World) -> String {
    world.plimsoll(&["status"]).env("COLUMNS", "150").run().expect_success().stdout
}

/// The words of one line of the status screen.
fn line<'a>(screen: &'a str, title: &str) -> &'a str {
    let found = screen.lines().find_map(|line| line.strip_prefix(title));
    found.unwrap_or_else(|| panic!("{title} in {screen}")).trim()
}

/// What all sessions have used, by their transcripts: how many they are, and their tokens.
fn truth(world: &World) -> (u64, u64) {
    let transcripts = world.transcripts();
    let mut responses = BTreeMap::new();
    for path in &transcripts {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for message in
            lines.map(|line| line["message"].clone()).filter(|message| message["usage"].is_object())
        {
            let of = |field: &str| message["usage"][field].as_u64().unwrap_or(0);
            let sent = of("input_tokens") + of("cache_creation_input_tokens") + of("cache_read_input_tokens");
            responses.insert(message["id"].to_string(), sent + of("output_tokens"));
        }
    }
    (transcripts.len() as u64, responses.into_values().sum())
}

/// The figures that a screen shows: sessions that have started, items that are done, and the words for cost and tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    sessions: u64,
    running: u64,
    done: u64,
    used: String,
}

fn find_leading_number(text: &str) -> Option<u64> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn leading_number(text: &str) -> u64 {
    find_leading_number(text).unwrap_or_else(|| panic!("a number in {text:?}"))
}

/// `, 2 running` after the number of sessions.
fn running(text: &str) -> u64 {
    text.split(", ").find_map(|part| part.strip_suffix(" running")).map_or(0, leading_number)
}

/// What `plimsoll status` shows.
fn shown_by_status(world: &World) -> Shown {
    let screen = status_text(world);
    let sessions = line(&screen, "Sessions");
    Shown {
        sessions: leading_number(sessions),
        running: running(sessions),
        done: leading_number(line(&screen, "Items")),
        used: line(&screen, "Cost").to_owned(),
    }
}

/// What the screen of `plimsoll run --workers` shows: `1/3 items merged  2 sessions, 1 running  $0.10, 60k tokens`. None before it does,
/// and while it is being drawn.
fn shown_by_run(screen: &str) -> Option<Shown> {
    // The terminal fills each line with blanks and never ends it.
    let (before, rest) = screen.rsplit_once("/3 items merged")?;
    let total = &rest[..rest.find(" tokens")? + " tokens".len()];
    let [_, sessions, used] = total.split("  ").collect::<Vec<_>>().try_into().ok()?;
    Some(Shown {
        sessions: find_leading_number(sessions)?,
        running: running(sessions),
        done: find_leading_number(
            &before[before.trim_end_matches(|letter: char| letter.is_ascii_digit()).len()..],
        )?,
        used: used.to_owned(),
    })
}

fn figures(document: &Value) -> (u64, u64, u64) {
    let of = |pointer: &str| {
        let found = document.pointer(pointer).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{pointer} in {document}"))
    };
    (of("/figures/sessions_started"), of("/figures/tokens"), of("/figures/items/done"))
}

/// Compares the figures of `status` with each other and with the truth before and after: all of them only grow.
fn sample(world: &World, screen: impl Fn() -> Option<Shown>) -> (u64, u64, u64) {
    let truth_before = truth(world);
    let screen_before = screen();
    let before = figures(&status_json(world));
    let text = shown_by_status(world);
    let after = figures(&status_json(world));
    let truth_after = truth(world);
    assert!(before.0 <= text.sessions && text.sessions <= after.0, "{before:?} {text:?} {after:?}");
    assert!(before.2 <= text.done && text.done <= after.2, "{before:?} {text:?} {after:?}");
    assert!(before.1 <= after.1, "{before:?} {after:?}");
    // A session that has a transcript has started, and what is in it is counted. One that has just begun may have none yet.
    assert!(
        truth_before.0 <= before.0 && after.0 <= truth_after.0 + 2,
        "{truth_before:?} {before:?} {after:?}"
    );
    assert!(
        truth_before.1 <= before.1 && after.1 <= truth_after.1,
        "{truth_before:?} {before:?} {after:?} {truth_after:?}"
    );
    if let Some(shown) = screen_before {
        assert!(shown.sessions <= after.0 && shown.done <= after.2, "{shown:?} {after:?}");
    }
    after
}

/// Ends the samples, also if the test fails.
struct EndSamples<'a>(&'a AtomicBool);

impl Drop for EndSamples<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until both screens show the same, and `status --json` and the transcripts agree.
fn assert_agreement(world: &World, screen: impl Fn() -> Option<Shown>, expected: (u64, u64, u64)) {
    let (sessions, running, done) = expected;
    let agrees = || {
        let shown = shown_by_status(world);
        let (_, tokens) = truth(world);
        let known = figures(&status_json(world));
        screen().as_ref() == Some(&shown)
            && (shown.sessions, shown.running, shown.done) == expected
            && known == (sessions, tokens, done)
    };
    let mut tries = 0;
    while !agrees() {
        tries += 1;
        assert!(
            tries < 100,
            "{expected:?}\nstatus: {:?}\nrun: {:?}\ntruth: {:?}\n{}",
            shown_by_status(world),
            screen(),
            truth(world),
            status_json(world)["figures"]
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(status_json(world)["figures"]["sessions_running"], running);
}

#[test]
fn status_and_the_run_screen_show_the_same_figures_at_every_moment() {
    let (world, _model) = gated_world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3 (after: 1)\n");
    let arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--", "--allowedTools", "Bash"];
    let terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &arguments, COLUMNS, 30);
    let terminal = Mutex::new(terminal);
    let screen = || shown_by_run(&terminal.lock().unwrap_or_else(PoisonError::into_inner).screen());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut last = (0, 0, 0);
            while !is_over.load(Ordering::Relaxed) {
                if world.exists(STATE) {
                    let now = sample(&world, screen);
                    assert!(last.0 <= now.0 && last.1 <= now.1 && last.2 <= now.2, "{last:?} {now:?}");
                    last = now;
                }
                std::thread::sleep(SAMPLE_INTERVAL);
            }
        });
        let samples = EndSamples(&is_over);
        wait_at_gates(&world, &[1, 2]);
        assert_agreement(&world, screen, (2, 2, 0));
        let status = status_json(&world);
        let workers = status["figures"]["workers"].as_array().expect("workers");
        let items: Vec<_> =
            workers.iter().map(|worker| (&worker["worker"], &worker["item"], &worker["session"])).collect();
        let one = |number: u64| (Value::from(number), Value::from(number), Value::from(1));
        let expected = [one(1), one(2)];
        assert_eq!(items, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>(), "{status}");
        for worker in workers {
            assert_eq!(
                (&worker["activity"], worker["tokens"].as_u64() > Some(30_000)),
                (&"working".into(), true)
            );
            assert!(worker["cost_usd"].as_f64() > Some(0.0), "{worker}");
        }
        open_gate(&world, 1);
        wait_at_gates(&world, &[2, 3]);
        assert_agreement(&world, screen, (3, 2, 1));
        open_gate(&world, 2);
        open_gate(&world, 3);
        world.wait_until(|| world.json(STATE)["status"] == "completed", "the end");
        drop(samples);
        sampler.join().expect("the samples agree");
    });
    let (sessions, tokens) = truth(&world);
    let status = status_json(&world);
    assert_eq!((figures(&status), sessions), ((3, tokens, 3), 3), "{status}");
    assert_eq!(status["activity"]["state"], "over");
    let page = world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout;
    assert!(page.contains("in 3 sessions"), "{page}");
}

/// The activity of a run, by both forms of `status`: one says who makes it go on, and the other does not contradict it.
pub(crate) fn activity(world: &World) -> Value {
    let document = status_json(world);
    let activity = &document["activity"];
    let words = format!("{} {}", activity["summary"], activity["next"]);
    let goes_on = activity["continues_by_itself"].as_bool().expect("whether it goes on by itself");
    assert_eq!(
        words.contains("continues by itself"),
        goes_on && activity["state"] != "retrying",
        "{activity}"
    );
    assert!(!goes_on || !words.contains("paused"), "{activity}");
    assert!(goes_on || activity["state"] == "over" || words.contains("plimsoll run --resume"), "{activity}");
    let screen = status_text(world);
    assert!(!(screen.contains("paused") && screen.contains("continues by itself")), "{screen}");
    activity.clone()
}

/// Waits until the activity has this word, and its summary these words.
fn wait_for_activity(world: &World, state: &str, summary: &str) {
    let is_so = || {
        let activity = activity(world);
        activity["state"] == state
            && activity["summary"].as_str().is_some_and(|words| words.contains(summary))
    };
    let mut tries = 0;
    while !is_so() {
        tries += 1;
        assert!(tries < 100, "no {state}, {summary:?} in {}", activity(world));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Two signals at once may be one.
fn interrupt_twice(world: &World, run: &mut Running) {
    run.interrupt();
    world.wait_until(|| run.stdout_so_far().contains("stopping after "), "the first Ctrl-C");
    wait_for_activity(world, "stopping", "(Ctrl-C)");
    run.interrupt();
}

#[test]
fn status_says_one_thing_of_an_interrupted_resumed_or_killed_parallel_run() {
    let (world, _model) = gated_world(TWO);
    let mut run = begin(&world, &["2"]);
    wait_at_gates(&world, &[1, 2]);
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    interrupt_twice(&world, &mut run);
    let finished = run.wait(LIMIT);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let stopped = activity(&world);
    assert_eq!((&stopped["state"], &stopped["next"]), (&"stopped".into(), &"plimsoll run --resume".into()));
    assert_eq!(stopped["summary"], "paused: stopped with Ctrl-C");
    // What has been used stays known, and nothing is running.
    let known = status_json(&world)["figures"].clone();
    assert_eq!((&known["sessions_started"], &known["sessions_running"]), (&2.into(), &0.into()), "{known}");
    assert!(known["tokens"].as_u64() >= Some(truth(&world).1), "{known}");

    let mut run = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).spawn();
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    let both_run = || status_json(&world)["figures"]["sessions_running"] == 2;
    world.wait_until(both_run, "both sessions run again");
    assert_eq!(activity(&world)["state"], "working");
    run.kill();
    run.wait(LIMIT);
    wait_for_activity(&world, "left_running", "2 workers are still at work");
    assert_eq!(activity(&world)["next"], "plimsoll run --resume");
    world.end_leftovers();
    wait_for_activity(&world, "killed", "was killed, or an error ended it");
}

/// A run whose first session waits at a gate.
fn begin_single(world: &World) -> Running {
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    world.plimsoll(&arguments).timeout(LIMIT).spawn()
}

#[test]
fn status_counts_a_running_session_and_says_one_thing_after_each_end() {
    let mut world = world(TWO);
    let home = world.home();
    let _model = ScriptedAgent::new(move |turn| match turn.step {
        0 => wait_at_gate(&home, turn),
        _ => Step::text("not yet"),
    })
    .start(&mut world);
    let mut run = begin_single(&world);
    wait_at_gates(&world, &[1]);
    let is_counted = || {
        let (sessions, tokens) = truth(&world);
        tokens > 30_000 && figures(&status_json(&world)) == (sessions, tokens, 0)
    };
    world.wait_until(is_counted, "the running session's tokens");
    sample(&world, || None);
    let screen = status_text(&world);
    assert!(line(&screen, "Cost").starts_with("about $0."), "{screen}");
    assert!(line(&screen, "Sessions").contains(", 1 running"), "{screen}");
    interrupt_twice(&world, &mut run);
    assert_eq!(run.wait(LIMIT).code, Some(130));
    let stopped = activity(&world);
    assert_eq!((&stopped["state"], &stopped["next"]), (&"stopped".into(), &"plimsoll run --resume".into()));

    // Before its first session a resumed run learns which commands pass.
    let home = world.home().display().to_string();
    let slow = format!("touch {home}/verifying; while [ ! -e {home}/verified ]; do sleep 0.1; done");
    let mut run = world.plimsoll(&["run", "--resume", "--verify", &slow]).timeout(LIMIT).spawn();
    world.wait_until(|| world.home().join("verifying").exists(), "the verify command runs");
    assert_eq!(activity(&world)["state"], "working");
    world.write(world.home().join("verified"), "");
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    world.wait_until(|| status_json(&world)["figures"]["sessions_running"] == 1, "the next session runs");
    run.kill();
    run.wait(LIMIT);
    wait_for_activity(&world, "left_running", "is still running");
    world.end_leftovers();
    wait_for_activity(&world, "killed", "was killed, or an error ended it");
}
