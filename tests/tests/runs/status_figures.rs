//! `plimsoll status` shows what the run knows at that moment: the screen of `plimsoll run`, both forms of `status` and
//! the sessions' own files are compared while sessions work and after every kind of interruption.

use crate::workers::{RUN_TIMEOUT, TWO_ITEM_PLAN, item_number, start_with_workers, tick_and_commit_command};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{RunningProgram, World};
use plimsoll_tests::{ScriptedAgent, world_with_plan_and_dates};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
/// How often the figures are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(300);
/// Width of the run's screen: wide enough that no line is cut.
const COLUMNS: u16 = 150;

/// A session whose first tool waits until the test opens its gate.
fn gated_item_step(home: &Path, turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let (number, home) = (item_number(&item), home.display());
    match turn.assistant_message_count {
        0 => Step::bash_call(format!(
            "touch {home}/at-{number}; while [ ! -e {home}/go-{number} ]; do sleep 0.05; done"
        ))
        .with_input_tokens(30_000),
        1 => Step::bash_call(format!(
            "mkdir -p done && echo '{item}' > done/{number}.txt && {}",
            tick_and_commit_command(&item)
        ))
        .with_input_tokens(31_000),
        _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)).with_input_tokens(32_000),
    }
}

/// A world whose sessions wait at gates, one for each item.
fn gated_world(plan: &str) -> (World, ScriptedModel) {
    let mut world = world_with_plan_and_dates(plan);
    let home = world.home();
    let model = ScriptedAgent::new(move |turn| gated_item_step(&home, turn)).start(&mut world);
    (world, model)
}

fn open_gate(world: &World, item: usize) {
    world.write(world.home().join(format!("go-{item}")), "");
}

/// Waits until the sessions of these items are in their tool, and their transcripts have the response that called it.
fn wait_until_at_gates(world: &World, items: &[usize]) {
    let is_at_gate = |item: &usize| world.home().join(format!("at-{item}")).exists();
    world.wait_until(|| items.iter().all(is_at_gate), "sessions at their gates");
}

/// Returns the output of `plimsoll status --json`.
fn status_json(world: &World) -> Value {
    world.plimsoll(&["status", "--json"]).run().expect_success().stdout_json()
}

fn status_text(world: &World) -> String {
    world.plimsoll(&["status"]).env("COLUMNS", "150").run().expect_success().stdout
}

/// Returns the text after this title on the status screen.
fn status_line_text<'a>(screen: &'a str, title: &str) -> &'a str {
    let text = screen.lines().find_map(|line| line.strip_prefix(title));
    text.unwrap_or_else(|| panic!("{title} in {screen}")).trim()
}

/// Returns the number of sessions and their total tokens, by their transcripts.
fn transcript_totals(world: &World) -> (u64, u64) {
    let transcripts = world.transcript_paths();
    let mut responses = BTreeMap::new();
    for path in &transcripts {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for message in
            lines.map(|line| line["message"].clone()).filter(|message| message["usage"].is_object())
        {
            let token_count = |field: &str| message["usage"][field].as_u64().unwrap_or(0);
            let input_tokens = token_count("input_tokens")
                + token_count("cache_creation_input_tokens")
                + token_count("cache_read_input_tokens");
            responses.insert(message["id"].to_string(), input_tokens + token_count("output_tokens"));
        }
    }
    (transcripts.len() as u64, responses.into_values().sum())
}

/// The figures on a screen: sessions that have started, sessions that are running, items that are done, and the text
/// for cost and tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ScreenFigures {
    sessions: u64,
    running: u64,
    done_items: u64,
    cost_text: String,
}

fn parse_leading_number(text: &str) -> Option<u64> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn expect_leading_number(text: &str) -> u64 {
    parse_leading_number(text).unwrap_or_else(|| panic!("a number in {text:?}"))
}

/// Returns the number in `, 2 running`, or 0.
fn running_count(text: &str) -> u64 {
    text.split(", ").find_map(|part| part.strip_suffix(" running")).map_or(0, expect_leading_number)
}

/// Reads the figures from the screen of `plimsoll status`.
fn status_screen_figures(world: &World) -> ScreenFigures {
    let screen = status_text(world);
    let sessions = status_line_text(&screen, "Sessions");
    ScreenFigures {
        sessions: expect_leading_number(sessions),
        running: running_count(sessions),
        done_items: expect_leading_number(status_line_text(&screen, "Items")),
        cost_text: status_line_text(&screen, "Cost").to_owned(),
    }
}

/// Reads the figures from the screen of `plimsoll run --workers`: `1/3 items merged  2 sessions, 1 running  $0.10, 60k
/// tokens`. Returns `None` before it shows them, and while it is being drawn.
fn run_screen_figures(screen: &str) -> Option<ScreenFigures> {
    // The terminal fills each line with blanks and has no line ends.
    let (before, after_items) = screen.rsplit_once("/3 items merged")?;
    let totals_text = &after_items[..after_items.find(" tokens")? + " tokens".len()];
    let [_, sessions, cost_text] = totals_text.split("  ").collect::<Vec<_>>().try_into().ok()?;
    Some(ScreenFigures {
        sessions: parse_leading_number(sessions)?,
        running: running_count(sessions),
        done_items: parse_leading_number(
            &before[before.trim_end_matches(|letter: char| letter.is_ascii_digit()).len()..],
        )?,
        cost_text: cost_text.to_owned(),
    })
}

fn json_figures(document: &Value) -> (u64, u64, u64) {
    let figure = |pointer: &str| {
        let value = document.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{pointer} in {document}"))
    };
    (figure("/figures/sessions_started"), figure("/figures/tokens"), figure("/figures/items/done"))
}

/// Compares the figures of `status` with each other and with the transcripts before and after: all of them only grow.
fn sample_figures(world: &World, screen: impl Fn() -> Option<ScreenFigures>) -> (u64, u64, u64) {
    let transcripts_before = transcript_totals(world);
    let screen_before = screen();
    let before = json_figures(&status_json(world));
    let text = status_screen_figures(world);
    let after = json_figures(&status_json(world));
    let transcripts_after = transcript_totals(world);
    assert!(before.0 <= text.sessions && text.sessions <= after.0, "{before:?} {text:?} {after:?}");
    assert!(before.2 <= text.done_items && text.done_items <= after.2, "{before:?} {text:?} {after:?}");
    assert!(before.1 <= after.1, "{before:?} {after:?}");
    // A session that has a transcript has started, and the transcript's tokens are counted. A session that has just
    // begun may have no transcript yet.
    assert!(
        transcripts_before.0 <= before.0 && after.0 <= transcripts_after.0 + 2,
        "{transcripts_before:?} {before:?} {after:?}"
    );
    assert!(
        transcripts_before.1 <= before.1 && after.1 <= transcripts_after.1,
        "{transcripts_before:?} {before:?} {after:?} {transcripts_after:?}"
    );
    if let Some(screen_figures) = screen_before {
        assert!(
            screen_figures.sessions <= after.0 && screen_figures.done_items <= after.2,
            "{screen_figures:?} {after:?}"
        );
    }
    after
}

/// Stops the sampling, also if the test fails.
struct StopSamplingOnDrop<'a>(&'a AtomicBool);

impl Drop for StopSamplingOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until both screens show the same figures, and `status --json` and the transcripts agree with them.
fn assert_figures_agree(
    world: &World,
    screen: impl Fn() -> Option<ScreenFigures>,
    expected: (u64, u64, u64),
) {
    let (sessions, running, done) = expected;
    let agrees = || {
        let status_figures = status_screen_figures(world);
        let (_, tokens) = transcript_totals(world);
        let reported = json_figures(&status_json(world));
        screen().as_ref() == Some(&status_figures)
            && (status_figures.sessions, status_figures.running, status_figures.done_items) == expected
            && reported == (sessions, tokens, done)
    };
    let mut tries = 0;
    while !agrees() {
        tries += 1;
        assert!(
            tries < 100,
            "{expected:?}\nstatus: {:?}\nrun: {:?}\ntruth: {:?}\n{}",
            status_screen_figures(world),
            screen(),
            transcript_totals(world),
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
    let terminal = Terminal::start_program_in_project(
        &world,
        find_or_build_bin_dir().join("plimsoll"),
        &arguments,
        COLUMNS,
        30,
    );
    let terminal = Mutex::new(terminal);
    let screen =
        || run_screen_figures(&terminal.lock().unwrap_or_else(PoisonError::into_inner).screen_text());
    let is_finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut last = (0, 0, 0);
            while !is_finished.load(Ordering::Relaxed) {
                if world.exists(STATE_PATH) {
                    let now = sample_figures(&world, screen);
                    assert!(last.0 <= now.0 && last.1 <= now.1 && last.2 <= now.2, "{last:?} {now:?}");
                    last = now;
                }
                std::thread::sleep(SAMPLE_INTERVAL);
            }
        });
        let sampling_guard = StopSamplingOnDrop(&is_finished);
        wait_until_at_gates(&world, &[1, 2]);
        assert_figures_agree(&world, screen, (2, 2, 0));
        let status = status_json(&world);
        let workers = status["figures"]["workers"].as_array().expect("workers");
        let items: Vec<_> =
            workers.iter().map(|worker| (&worker["worker"], &worker["item"], &worker["session"])).collect();
        let expected_worker = |number: u64| (Value::from(number), Value::from(number), Value::from(1));
        let expected = [expected_worker(1), expected_worker(2)];
        assert_eq!(items, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>(), "{status}");
        for worker in workers {
            assert_eq!(
                (&worker["activity"], worker["tokens"].as_u64() > Some(30_000)),
                (&"working".into(), true)
            );
            assert!(worker["cost_usd"].as_f64() > Some(0.0), "{worker}");
        }
        open_gate(&world, 1);
        wait_until_at_gates(&world, &[2, 3]);
        assert_figures_agree(&world, screen, (3, 2, 1));
        open_gate(&world, 2);
        open_gate(&world, 3);
        world.wait_until(|| world.read_json(STATE_PATH)["status"] == "completed", "the end");
        drop(sampling_guard);
        sampler.join().expect("the samples agree");
    });
    let (sessions, tokens) = transcript_totals(&world);
    let status = status_json(&world);
    assert_eq!((json_figures(&status), sessions), ((3, tokens, 3), 3), "{status}");
    assert_eq!(status["activity"]["state"], "over");
    let report = world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout;
    assert!(report.contains("in 3 sessions"), "{report}");
}

/// Returns the run's activity from `status --json`, and asserts that both forms of `status` agree on whether the run
/// continues by itself.
pub(crate) fn read_consistent_activity(world: &World) -> Value {
    let document = status_json(world);
    let activity = &document["activity"];
    let text = format!("{} {}", activity["summary"], activity["next"]);
    let continues_by_itself =
        activity["continues_by_itself"].as_bool().expect("whether it goes on by itself");
    assert_eq!(
        text.contains("continues by itself"),
        continues_by_itself && activity["state"] != "retrying",
        "{activity}"
    );
    assert!(!continues_by_itself || !text.contains("paused"), "{activity}");
    assert!(
        continues_by_itself || activity["state"] == "over" || text.contains("plimsoll run --resume"),
        "{activity}"
    );
    let screen = status_text(world);
    assert!(!(screen.contains("paused") && screen.contains("continues by itself")), "{screen}");
    activity.clone()
}

/// Waits until the activity has this state and its summary contains this text.
fn wait_for_activity(world: &World, state: &str, summary: &str) {
    let has_activity = || {
        let activity = read_consistent_activity(world);
        activity["state"] == state
            && activity["summary"].as_str().is_some_and(|words| words.contains(summary))
    };
    let mut tries = 0;
    while !has_activity() {
        tries += 1;
        assert!(tries < 100, "no {state}, {summary:?} in {}", read_consistent_activity(world));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Sends Ctrl-C twice, with a wait between: two signals at once may arrive as one.
fn interrupt_twice(world: &World, run: &mut RunningProgram) {
    run.interrupt();
    world.wait_until(|| run.stdout_so_far().contains("stopping after "), "the first Ctrl-C");
    wait_for_activity(world, "stopping", "(Ctrl-C)");
    run.interrupt();
}

#[test]
fn status_is_consistent_for_an_interrupted_or_killed_parallel_run() {
    let (world, _model) = gated_world(TWO_ITEM_PLAN);
    let mut run = start_with_workers(&world, &["2"]);
    wait_until_at_gates(&world, &[1, 2]);
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    interrupt_twice(&world, &mut run);
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let stopped = read_consistent_activity(&world);
    assert_eq!((&stopped["state"], &stopped["next"]), (&"stopped".into(), &"plimsoll run --resume".into()));
    assert_eq!(stopped["summary"], "paused: stopped with Ctrl-C");
    // The usage stays known, and nothing is running.
    let figures = status_json(&world)["figures"].clone();
    assert_eq!(
        (&figures["sessions_started"], &figures["sessions_running"]),
        (&2.into(), &0.into()),
        "{figures}"
    );
    assert!(figures["tokens"].as_u64() >= Some(transcript_totals(&world).1), "{figures}");

    let mut run = world.plimsoll(&["run", "--resume"]).timeout(RUN_TIMEOUT).spawn();
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    let both_run = || status_json(&world)["figures"]["sessions_running"] == 2;
    world.wait_until(both_run, "both sessions run again");
    assert_eq!(read_consistent_activity(&world)["state"], "working");
    run.kill();
    run.wait_or_kill_and_panic(RUN_TIMEOUT);
    wait_for_activity(&world, "left_running", "2 workers are still at work");
    assert_eq!(read_consistent_activity(&world)["next"], "plimsoll run --resume");
    world.kill_leftovers();
    wait_for_activity(&world, "killed", "was killed, or an error ended it");
}

/// Starts a run whose first session waits at a gate.
fn start_single_run(world: &World) -> RunningProgram {
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    world.plimsoll(&arguments).timeout(RUN_TIMEOUT).spawn()
}

#[test]
fn status_counts_a_running_session_and_is_consistent_after_each_end() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let home = world.home();
    let _model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => gated_item_step(&home, turn),
        _ => Step::from_text("not yet"),
    })
    .start(&mut world);
    let mut run = start_single_run(&world);
    wait_until_at_gates(&world, &[1]);
    let is_counted = || {
        let (sessions, tokens) = transcript_totals(&world);
        tokens > 30_000 && json_figures(&status_json(&world)) == (sessions, tokens, 0)
    };
    world.wait_until(is_counted, "the running session's tokens");
    sample_figures(&world, || None);
    let screen = status_text(&world);
    assert!(status_line_text(&screen, "Cost").contains("$0.01, "), "{screen}");
    assert!(status_line_text(&screen, "Sessions").contains(", 1 running"), "{screen}");
    interrupt_twice(&world, &mut run);
    assert_eq!(run.wait_or_kill_and_panic(RUN_TIMEOUT).code, Some(130));
    let stopped = read_consistent_activity(&world);
    assert_eq!((&stopped["state"], &stopped["next"]), (&"stopped".into(), &"plimsoll run --resume".into()));

    // Before its first session a resumed run checks which commands pass.
    let home = world.home().display().to_string();
    let slow_command = format!("touch {home}/verifying; while [ ! -e {home}/verified ]; do sleep 0.1; done");
    let mut run =
        world.plimsoll(&["run", "--resume", "--verify", &slow_command]).timeout(RUN_TIMEOUT).spawn();
    world.wait_until(|| world.home().join("verifying").exists(), "the verify command runs");
    assert_eq!(read_consistent_activity(&world)["state"], "working");
    world.write(world.home().join("verified"), "");
    wait_for_activity(&world, "working", "a `plimsoll run` is active");
    world.wait_until(|| status_json(&world)["figures"]["sessions_running"] == 1, "the next session runs");
    run.kill();
    run.wait_or_kill_and_panic(RUN_TIMEOUT);
    wait_for_activity(&world, "left_running", "is still running");
    world.kill_leftovers();
    wait_for_activity(&world, "killed", "was killed, or an error ended it");
}
