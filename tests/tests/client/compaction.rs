//! The client compacts within an iteration, and no recorded fact is lost.

use plimsoll_domain::SessionRecord;
use plimsoll_domain::level::Level;
use plimsoll_store::{Project, sessions, state_file};
use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, first_request_of_iteration, honest_agent, read_journal,
    verdict_markers, world_with_plan_and_dates,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PLAN: &str = "# Plan\n\n- [ ] Item two\n- [ ] Item three\n";
const COMPACTION_BRIEFING: &str = "The conversation has just been compacted.";
const EDIT_FIRST_HALF: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
const FIRST_HALF_ROW: &str = "| src/dates.txt | 45-80 | modified";

/// Returns six calls with results of 6,000 tokens each: together more than the room between L3 and the auto-compact threshold.
fn six_large_tool_calls() -> Step {
    let add_call = |step: Step, number: usize| {
        let command = format!("head -c 24000 /dev/zero | tr '\\0' '{number}'");
        step.with_tool_call("Bash", serde_json::json!({"command": command, "description": "x"}))
    };
    (0..6).fold(Step::default(), add_call)
}

fn run_with_model(world: &World, model: &str) -> FinishedProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates", "--max-iterations", "5"];
    let client_arguments = ["--", "--model", model, "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let arguments: Vec<&str> = run_arguments.iter().chain(&client_arguments).copied().collect();
    world.plimsoll(&arguments).timeout(Duration::from_secs(120)).run()
}

/// Loads the record of the session that currently works for the run.
fn current_session_record(project: &Path) -> SessionRecord {
    let runs = project.parent().expect("a world").join("home/.local/state/plimsoll/runs");
    let project = Project::with_local_files(project).with_runs_folder(&runs);
    let state = state_file::load_state(&project, None).expect("the state parses").expect("there is a run");
    sessions::load_session_record(&project, &state.session_id.expect("a session"))
}

/// Asserts that the model and the summarizer were sent all facts at the one compaction.
fn assert_compaction_keeps_facts(world: &World, requests: &[Request], handoff: &str) {
    let state = world.read_json(".claude/ralph-state.json");
    let promise = format!("<promise>COMPLETE {}</promise>", state["nonce"].as_str().expect("nonce"));
    let summarizer: Vec<String> = requests
        .iter()
        .filter(|request| request.kind == RequestKind::Compaction)
        .map(Request::text_since_last_assistant_message)
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
    let compaction_index =
        requests.iter().position(|request| request.kind == RequestKind::Compaction).expect("one");
    let next_request = requests[compaction_index..]
        .iter()
        .find(|request| request.kind == RequestKind::Main)
        .expect("it goes on");
    let text = next_request.full_text();
    let briefing = &text[text.find(COMPACTION_BRIEFING).expect("the briefing is in the very next request")..];
    for part in [
        "iteration 1 of the run \"Dates\"",
        "The current item is \"Item two\"",
        handoff,
        "Do not start over",
        &promise,
    ] {
        assert!(briefing.contains(part), "{part} in\n{briefing}");
    }
    assert!(
        !requests[..compaction_index].iter().any(|request| request.full_text().contains(COMPACTION_BRIEFING)),
        "not before"
    );
}

#[test]
fn after_automatic_compaction_the_session_is_briefed_and_levels_restart() {
    let mut world = world_with_plan_and_dates(PLAN);
    let project = world.project();
    let records = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedAgent::new({
        let records = Arc::clone(&records);
        let mut turns_after_compaction = 0;
        move |turn| {
            let step = if turn.request_contains(COMPACTION_BRIEFING) {
                turns_after_compaction += 1;
                records.lock().expect("no panic").push(current_session_record(&project));
                match turns_after_compaction {
                    1 => Step::bash_call("echo 'on it'").with_input_tokens(30_000),
                    2 => Step::bash_call("sed -i '81,120s/$/ changed/' src/dates.txt").with_input_tokens(110_000),
                    3 => Step::bash_call("echo 'nearly full'").with_input_tokens(120_000),
                    // The transcript may lag behind by a step or more.
                    4..=6 => Step::bash_call("echo 'full again'").with_input_tokens(130_000),
                    _ => Step::from_text("I stop here.\n\nSummary: lines 45-120 are converted\nProgress on the item: 90%\nNext step: tick it").with_input_tokens(131_000),
                }
            } else {
                match (turn.iteration, turn.assistant_message_count) {
                    (1, 0) => Step::bash_call(EDIT_FIRST_HALF).with_input_tokens(100_000),
                    (1, _) => six_large_tool_calls().with_input_tokens(140_000),
                    _ => honest_agent(turn).with_input_tokens(30_000),
                }
            };
            step.with_delay(LIFELIKE_DELAY)
        }
    }).with_real_client().start(&mut world);
    let finished = run_with_model(&world, "claude-sonnet-4-6");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    let checkpoints = events_named(&journal, "checkpoint");
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
    assert_eq!(events_named(&journal, "warning").len(), 1, "L1 after it; before it L2 came at once");
    assert_eq!(events_named(&journal, "ended").len(), 0, "nobody was cut off by an old reading");

    let handoff = checkpoints[1]["handoff"].as_str().expect("handoff").to_owned();
    assert!(world.read(&handoff).contains("Item two"), "{}", world.read(&handoff));
    assert_compaction_keeps_facts(&world, &model.requests(), &handoff);

    let records = records.lock().expect("no panic");
    let percents_and_levels: Vec<(Option<u64>, Level)> = records
        .iter()
        .map(|record| (record.usage.projected_percent, record.highest_announcement.level))
        .collect();
    assert_eq!(
        percents_and_levels[0],
        (None, Level::L0),
        "the reading of before is void, and with it the level"
    );
    let is_low = percents_and_levels[1].0.is_some_and(|percent| percent < 30);
    assert!(
        is_low && percents_and_levels[1].1 == Level::L0,
        "what is left after the compaction counts, not what was before: {percents_and_levels:?}"
    );
    let levels: Vec<Level> = percents_and_levels[2..].iter().map(|(_, level)| *level).collect();
    assert!(levels.is_sorted() && levels.contains(&Level::L1), "{percents_and_levels:?}");
    assert_eq!(levels.last(), Some(&Level::L2), "{percents_and_levels:?}");
    assert_eq!(records[0].compaction_count, 1);

    // The handoff that the next session resumes contains the work from before and after the compaction.
    let second_session_request = first_request_of_iteration(&model, 2);
    for part in
        ["| src/dates.txt | 45-120 | modified", "lines 45-120 are converted", "90%", "Do not start over"]
    {
        assert!(second_session_request.contains(part), "{part} in\n{second_session_request}");
    }
    assert_eq!(verdict_markers(&journal)[0], format!("RALPH_CONTINUE|checkpoint|{handoff}"));
    assert_eq!(world.read_json(".claude/ralph-state.json")["context_history"][0]["checkpoint"], true);
    assert_eq!(world.read("work.txt"), "Item two\nItem three\n");
}

#[test]
fn an_unforeseen_compaction_loses_nothing_and_forces_no_new_session() {
    let mut world = world_with_plan_and_dates(PLAN);
    let project = world.project();
    let records = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedAgent::new({
        let records = Arc::clone(&records);
        let mut turns_after_compaction = 0;
        move |turn| {
            let step = if turn.request_contains(COMPACTION_BRIEFING) {
                turns_after_compaction += 1;
                records.lock().expect("no panic").push(current_session_record(&project));
                let rest = "sed -i '81,120s/$/ changed/' src/dates.txt && echo 'Item two' >> work.txt";
                match turns_after_compaction {
                    1 => Step::bash_call(format!("{rest} && {}", tick_item_command("Item two")))
                        .with_input_tokens(20_000),
                    _ => Step::from_text("Item two is done.").with_input_tokens(21_000),
                }
            } else {
                match (turn.iteration, turn.assistant_message_count) {
                    (1, 0) => Step::bash_call(EDIT_FIRST_HALF).with_input_tokens(90_000),
                    (1, 1) => Step::bash_call("echo 'more and more'").with_input_tokens(100_000),
                    // The API refuses a request that the client expected to fit.
                    (1, _) => Step::api_error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
                    _ => honest_agent(turn).with_input_tokens(30_000),
                }
            };
            step.with_delay(LIFELIKE_DELAY)
        }
    })
    .with_real_client()
    .start(&mut world);
    let finished = run_with_model(&world, "claude-haiku-4-5");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    let checkpoints = events_named(&journal, "checkpoint");
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
    assert_eq!(checkpoints[0]["cause"], "compact");
    let handoff = checkpoints[0]["handoff"].as_str().expect("handoff").to_owned();
    assert_compaction_keeps_facts(&world, &model.requests(), &handoff);
    let text = model
        .requests()
        .iter()
        .find(|request| request.full_text().contains(COMPACTION_BRIEFING))
        .expect("it")
        .full_text();
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
    assert_eq!(
        verdict_markers(&journal),
        ["RALPH_CONTINUE|next|1 open item", "RALPH_STOP|completed|2 items"]
    );
    assert!(
        !first_request_of_iteration(&model, 2).contains("This item is half done"),
        "its item is ticked: history"
    );
    assert_eq!(world.read_json(".claude/ralph-state.json")["context_history"][0]["checkpoint"], false);
    assert_eq!(world.read("work.txt"), "Item two\nItem three\n");
    assert!(!world.read("src/dates.txt").contains("changed changed"));
}
