//! The client compacts inside an iteration, and nothing that was recorded is lost.

use plimsoll_domain::SessionRecord;
use plimsoll_domain::level::Level;
use plimsoll_store::{Project, sessions, state_file};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, first_request_of, honest, journal, markers, world};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PLAN: &str = "# Plan\n\n- [ ] Item two\n- [ ] Item three\n";
const COMPACTED: &str = "The conversation has just been compacted.";
const FIRST_HALF: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
const FIRST_HALF_ROW: &str = "| src/dates.txt | 45-80 | modified";

/// Six results of 6,000 tokens each: together more than the room that L3 leaves below the auto-compact threshold.
fn large_results() -> Step {
    let read = |step: Step, number: usize| {
        let command = format!("head -c 24000 /dev/zero | tr '\\0' '{number}'");
        step.tool("Bash", serde_json::json!({"command": command, "description": "x"}))
    };
    (0..6).fold(Step::default(), read)
}

fn run(world: &World, model: &str) -> Finished {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates", "--max-iterations", "5"];
    let client = ["--", "--model", model, "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let all: Vec<&str> = ours.iter().chain(&client).copied().collect();
    world.plimsoll(&all).timeout(Duration::from_secs(120)).run()
}

/// What is remembered of the session that works for the run at this moment.
fn record_now(project: &Path) -> SessionRecord {
    let runs = project.parent().expect("a world").join("home/.local/state/plimsoll/runs");
    let project = Project::with_local_files(project).with_runs_folder(&runs);
    let state = state_file::load_state(&project, None).expect("the state parses").expect("there is a run");
    sessions::load_session_record(&project, &state.session_id.expect("a session"))
}

/// What the model and the summarizer were sent around the one compaction.
fn assert_nothing_is_lost(world: &World, requests: &[Request], handoff: &str) {
    let state = world.json(".claude/ralph-state.json");
    let promise = format!("<promise>COMPLETE {}</promise>", state["nonce"].as_str().expect("nonce"));
    let summarizer: Vec<String> = requests
        .iter()
        .filter(|request| request.kind == RequestKind::Compaction)
        .map(Request::last_text)
        .collect();
    assert_eq!(summarizer.len(), 1);
    for part in [
        "word for word",
        handoff,
        "iteration 1 of the run \"Dates\"",
        "The current item is \"Item two\"",
        &promise,
    ] {
        assert!(summarizer[0].contains(part), "the summarizer was not told: {part}");
    }
    let compacted = requests.iter().position(|request| request.kind == RequestKind::Compaction).expect("one");
    let next =
        requests[compacted..].iter().find(|request| request.kind == RequestKind::Main).expect("it goes on");
    let text = next.text();
    let briefing = &text[text.find(COMPACTED).expect("the briefing is in the very next request")..];
    for part in [
        "iteration 1 of the run \"Dates\"",
        "The current item is \"Item two\"",
        handoff,
        "Do not start over",
        &promise,
    ] {
        assert!(briefing.contains(part), "{part} in\n{briefing}");
    }
    assert!(!requests[..compacted].iter().any(|request| request.text().contains(COMPACTED)), "not before");
}

#[test]
fn after_an_automatic_compaction_the_session_is_briefed_and_the_levels_begin_anew() {
    let mut world = world(PLAN);
    let project = world.project();
    let records = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedAgent::new({
        let records = Arc::clone(&records);
        let mut after = 0;
        move |turn| {
            let step = if turn.saw(COMPACTED) {
                after += 1;
                records.lock().expect("no panic").push(record_now(&project));
                match after {
                    1 => Step::bash("echo 'on it'").usage(30_000),
                    2 => Step::bash("sed -i '81,120s/$/ changed/' src/dates.txt").usage(110_000),
                    3 => Step::bash("echo 'nearly full'").usage(120_000),
                    // The transcript may lag behind by a step or more.
                    4..=6 => Step::bash("echo 'full again'").usage(130_000),
                    _ => Step::text("I stop here.\n\nSummary: lines 45-120 are converted\nProgress on the item: 90%\nNext step: tick it").usage(131_000),
                }
            } else {
                match (turn.iteration, turn.step) {
                    (1, 0) => Step::bash(FIRST_HALF).usage(100_000),
                    (1, _) => large_results().usage(140_000),
                    _ => honest(turn).usage(30_000),
                }
            };
            step.delay(LIFELIKE)
        }
    }).with_real_client().start(&mut world);
    let finished = run(&world, "claude-sonnet-4-6");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let checkpoints = events(&journal, "checkpoint");
    let causes: Vec<(&str, &str)> = checkpoints
        .iter()
        .map(|entry| {
            (entry["cause"].as_str().unwrap_or_default(), entry["level"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(causes.first(), Some(&("level", "L3")), "before the compaction, by an estimate: {causes:?}");
    assert_eq!(causes.get(1).map(|cause| cause.0), Some("compact"), "at the compaction: {causes:?}");
    assert_eq!(causes.get(2), Some(&("level", "L2")), "L2 is announced again after it: {causes:?}");
    assert_eq!(causes.len(), 3, "{causes:?}");
    assert_eq!(events(&journal, "warning").len(), 1, "L1 after it; before it L2 came at once");
    assert_eq!(events(&journal, "ended").len(), 0, "nobody was cut off by an old reading");

    let handoff = checkpoints[1]["handoff"].as_str().expect("handoff").to_owned();
    assert!(world.read(&handoff).contains("Item two"), "{}", world.read(&handoff));
    assert_nothing_is_lost(&world, &model.requests(), &handoff);

    let records = records.lock().expect("no panic");
    let seen: Vec<(Option<u64>, Level)> = records
        .iter()
        .map(|record| (record.usage.projected_percent, record.highest_announcement.level))
        .collect();
    assert_eq!(seen[0], (None, Level::L0), "the reading of before is void, and with it the level");
    let low = seen[1].0.is_some_and(|percent| percent < 30);
    assert!(
        low && seen[1].1 == Level::L0,
        "what is left after the compaction counts, not what was before: {seen:?}"
    );
    let levels: Vec<Level> = seen[2..].iter().map(|(_, level)| *level).collect();
    assert!(levels.is_sorted() && levels.contains(&Level::L1), "{seen:?}");
    assert_eq!(levels.last(), Some(&Level::L2), "{seen:?}");
    assert_eq!(records[0].compaction_count, 1);

    // The work of before the compaction and of after it is in the handoff that the next session resumes.
    let resumed = first_request_of(&model, 2);
    for part in
        ["| src/dates.txt | 45-120 | modified", "lines 45-120 are converted", "90%", "Do not start over"]
    {
        assert!(resumed.contains(part), "{part} in\n{resumed}");
    }
    assert_eq!(markers(&journal)[0], format!("RALPH_CONTINUE|checkpoint|{handoff}"));
    assert_eq!(world.json(".claude/ralph-state.json")["context_history"][0]["checkpoint"], true);
    assert_eq!(world.read("work.txt"), "Item two\nItem three\n");
}

#[test]
fn a_compaction_that_nobody_foresaw_loses_nothing_and_forces_no_new_session() {
    let mut world = world(PLAN);
    let project = world.project();
    let records = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedAgent::new({
        let records = Arc::clone(&records);
        let mut after = 0;
        move |turn| {
            let step = if turn.saw(COMPACTED) {
                after += 1;
                records.lock().expect("no panic").push(record_now(&project));
                let rest = "sed -i '81,120s/$/ changed/' src/dates.txt && echo 'Item two' >> work.txt";
                match after {
                    1 => Step::bash(format!("{rest} && {}", tick("Item two"))).usage(20_000),
                    _ => Step::text("Item two is done.").usage(21_000),
                }
            } else {
                match (turn.iteration, turn.step) {
                    (1, 0) => Step::bash(FIRST_HALF).usage(90_000),
                    (1, 1) => Step::bash("echo 'more and more'").usage(100_000),
                    // The API refuses what the client believed would fit.
                    (1, _) => Step::error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
                    _ => honest(turn).usage(30_000),
                }
            };
            step.delay(LIFELIKE)
        }
    })
    .with_real_client()
    .start(&mut world);
    let finished = run(&world, "claude-haiku-4-5");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let checkpoints = events(&journal, "checkpoint");
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
    assert_eq!(checkpoints[0]["cause"], "compact");
    let handoff = checkpoints[0]["handoff"].as_str().expect("handoff").to_owned();
    assert_nothing_is_lost(&world, &model.requests(), &handoff);
    let text = model.requests().iter().find(|request| request.text().contains(COMPACTED)).expect("it").text();
    assert!(text.contains(FIRST_HALF_ROW), "the briefing names the work in hand: {text}");

    let records = records.lock().expect("no panic");
    assert_eq!(
        (records[0].usage.projected_percent, records[0].highest_announcement.level),
        (None, Level::L0)
    );
    assert!(
        records[1].usage.projected_percent.is_some_and(|percent| percent <= 11),
        "the old reading is forgotten: {:?}",
        records[1]
    );
    assert_eq!(markers(&journal), ["RALPH_CONTINUE|next|1 open item", "RALPH_STOP|completed|2 items"]);
    assert!(!first_request_of(&model, 2).contains("You take over this item"), "its item is ticked: history");
    assert_eq!(world.json(".claude/ralph-state.json")["context_history"][0]["checkpoint"], false);
    assert_eq!(world.read("work.txt"), "Item two\nItem three\n");
    assert!(!world.read("src/dates.txt").contains("changed changed"));
}
