//! Failures that users of other loops met and that no other file covers: the owner of a run, races at its end,
//! hostile texts.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, first_request_of_iteration, honest_agent,
    read_journal, run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::time::Duration;

const STATE_FILE: &str = ".claude/ralph-state.json";
const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

/// A run of a shell loop that a session has claimed, without a client: the tests call the hooks themselves.
fn claimed_run(plan: &str) -> (World, String) {
    let world = world_with_plan_and_dates(plan);
    let started = world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    let line =
        started.stdout.lines().find(|line| line.contains("PLIMSOLL_RUN_ID")).expect("an id").to_owned();
    let run_id = line.split('=').nth(1).expect("an id").to_owned();
    run_hook(
        &world,
        &run_id,
        "plimsoll-session-start",
        &json!({"hook_event_name": "SessionStart", "source": "startup"}),
    );
    (world, run_id)
}

fn run_hook(
    world: &World,
    run_id: &str,
    program: &str,
    event: &Value,
) -> plimsoll_testkit::world::FinishedProgram {
    let mut event = event.clone();
    event["session_id"] = json!(SESSION_ID);
    event["cwd"] = json!(world.project());
    world.hook(program, &event).env("PLIMSOLL_RUN_ID", run_id).run()
}

fn stop_event(last_message: &str, transcript_path: Option<&str>) -> Value {
    json!({
        "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": last_message,
        "transcript_path": transcript_path,
    })
}

fn promise_text(world: &World) -> String {
    format!(
        "All done.\n\n<promise>COMPLETE {}</promise>",
        world.read_json(STATE_FILE)["nonce"].as_str().expect("a nonce")
    )
}

#[test]
fn a_promise_at_stop_counts_without_a_readable_transcript() {
    for (name, bytes) in [("missing", None), ("empty", Some("")), ("torn", Some("{\"type\":\"assis"))] {
        let (world, run_id) = claimed_run("- [x] Item one\n");
        let path = world.home().join("transcript.jsonl");
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).expect("a file");
        }
        let event = stop_event(&promise_text(&world), path.to_str());
        let finished = run_hook(&world, &run_id, "plimsoll-stop-gate", &event);
        assert_eq!(finished.code, Some(0), "{name}: {finished:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(finished.stdout, @r#"{"systemMessage":"Plimsoll: completed: 1 item.\nRALPH_STOP|completed|1 item"}"#);
        }
        let gate = world.plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", run_id).run();
        assert_eq!(
            (gate.code, gate.stdout.trim()),
            (Some(0), "RALPH_STOP|completed|1 item"),
            "{name}: {gate:?}"
        );
        assert_eq!(world.read_json(STATE_FILE)["status"], "completed", "{name}");
    }
}

#[test]
fn a_run_canceled_while_twenty_hooks_end_its_session_stays_canceled() {
    let (world, run_id) = claimed_run(THREE_ITEM_PLAN);
    for _ in 0..5 {
        let spawn_hook = |program: &str, mut payload: Value| {
            payload["session_id"] = json!(SESSION_ID);
            payload["cwd"] = json!(world.project());
            world.hook(program, &payload).env("PLIMSOLL_RUN_ID", run_id.clone()).spawn()
        };
        let spawn_session_end = |_| {
            spawn_hook("plimsoll-session-end", json!({"hook_event_name": "SessionEnd", "reason": "other"}))
        };
        let mut running: Vec<_> =
            (0..10).map(|_| spawn_hook("plimsoll-stop-gate", stop_event("working", None))).collect();
        running.extend((0..10).map(spawn_session_end));
        let cancel = world.plimsoll(&["stop"]).run();
        assert_eq!(cancel.code, Some(0), "{cancel:?}");
        for running_hook in running {
            assert_eq!(running_hook.wait_or_kill_and_panic(Duration::from_secs(20)).signal, None);
        }
        assert_eq!(world.read_json(STATE_FILE)["status"], "cancelled", "nothing recreates it");
    }
    let gate = world.plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", run_id).run();
    assert_eq!((gate.code, gate.stdout.trim()), (Some(0), "RALPH_STOP|cancelled|"), "{gate:?}");
    assert_eq!(world.read_json(STATE_FILE)["status"], "cancelled");
}

#[test]
fn a_run_session_resumed_or_forked_by_a_person_changes_nothing() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let _model = ScriptedAgent::new(|turn| {
        let step = if turn.request_contains("And now?") {
            Step::from_text("What shall I do?")
        } else {
            honest_agent(turn)
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .with_real_client()
    .start(&mut world);
    let first_run = run_with_objective(&world, &["--max-iterations", "1"]);
    assert_eq!(first_run.code, Some(3), "{first_run:?}");
    let state_before = world.read(STATE_FILE);
    let state = world.read_json(STATE_FILE);
    let (run_id, session_id) =
        (state["run_id"].as_str().expect("an id"), state["session_id"].as_str().expect("an id"));
    for (arguments, with_run) in [
        (vec!["--resume", session_id], false),
        (vec!["--resume", session_id, "--fork-session"], true),
        (vec!["--resume", session_id, "--fork-session"], false),
    ] {
        let mut launch = world.claude(&[&["-p", "And now?"], &arguments[..]].concat());
        if with_run {
            launch = launch.env("PLIMSOLL_RUN_ID", run_id);
        }
        let finished = launch.run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stdout.contains("What shall I do?"), "it is a session like any other: {finished:?}");
        assert_eq!(world.read(STATE_FILE), state_before, "{arguments:?}, with the run's id: {with_run}");
    }
    assert_eq!(events_named(&read_journal(&world), "verdict").len(), 1);
}

#[test]
fn a_run_whose_owner_crashed_traps_no_session_and_can_be_resumed() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 if turn.assistant_message_count == 0 => {
            Step::bash_call("sleep 1").with_input_tokens(30_000).with_delay(Duration::from_millis(1_500))
        }
        0 => Step::from_text("Hello."),
        _ => honest_agent(turn).with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let mut owner_process = world.plimsoll(&run_arguments).spawn();
    // Waits until the SessionStart hook has written; killing the client does not stop that hook.
    let is_at_work =
        || world.exists(STATE_FILE) && world.read_json(STATE_FILE)["iteration_record"]["hooks_seen"] == true;
    world.wait_until(is_at_work, "the session begins");
    let pid = world.read_json(STATE_FILE)["iteration_record"]["pid"].as_u64().expect("a pid").to_string();
    owner_process.kill();
    world.command("kill", &["-9", &pid]).run().expect_success();

    let state_before = world.read(STATE_FILE);
    let ordinary_session = world.claude(&["-p", "Good morning"]).run();
    assert_eq!(ordinary_session.code, Some(0), "{ordinary_session:?}");
    assert!(ordinary_session.stdout.contains("Hello."), "{ordinary_session:?}");
    assert_eq!(world.read(STATE_FILE), state_before, "never deleted, never changed");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    let next_line = status.lines().find(|line| line.starts_with("Next "));
    assert_eq!(next_line, Some("Next         plimsoll run --resume"), "{status}");
    let second_run = world.plimsoll(&["run", "--objective", "Another one."]).run();
    assert_eq!(second_run.code, Some(1), "{second_run:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&second_run.stderr), @r#"error: the run "Do the plan." ([ID]) is running at session 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);

    let resumed = world.plimsoll(&["run", "--resume"]).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let folder =
        format!(".claude/plimsoll/runs/{}", world.read_json(STATE_FILE)["run_id"].as_str().expect("an id"));
    for file in ["state.json", "PROMPT.md", "fix_plan.md", "progress.txt"] {
        assert!(world.exists(format!("{folder}/{file}")), "a finished run is archived: {file}");
    }
    assert_eq!(world.read_json(format!("{folder}/state.json"))["status"], "completed");
    let new_run = world.plimsoll(&["start", "--objective", "Another one."]).run();
    assert_eq!(new_run.code, Some(0), "{new_run:?}");
    assert_eq!(world.read_json(format!("{folder}/state.json"))["status"], "completed", "and stays so");
}

#[test]
fn a_run_canceled_in_a_pause_or_before_its_first_session_is_archived() {
    let mut paused_world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model =
        ScriptedAgent::new(|_| Step::api_error(429, "Number of requests has exceeded your rate limit"))
            .start(&mut paused_world);
    let paused = run_with_objective(&paused_world, &["--no-wait"]);
    assert_eq!(paused.code, Some(6), "{paused:?}");
    let planned_world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    planned_world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    for world in [paused_world, planned_world] {
        let run_id = world.read_json(STATE_FILE)["run_id"].as_str().expect("an id").to_owned();
        world.plimsoll(&["stop"]).run().expect_success();
        let folder = format!(".claude/plimsoll/runs/{run_id}");
        assert_eq!(world.read_json(format!("{folder}/state.json"))["status"], "cancelled");
        for file in ["PROMPT.md", "fix_plan.md"] {
            assert!(world.exists(format!("{folder}/{file}")), "{file}");
        }
    }
}

#[test]
fn pack_offers_no_other_item_to_a_session_beyond_l2() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        // It finishes its item at 87%, with the checkpoint on disk: `--pack` does not offer it another one.
        (1, 0) => Step::bash_call("echo work").with_input_tokens(600_000).with_delay(LIFELIKE_DELAY),
        (1, 1) => Step::bash_call("echo more").with_input_tokens(870_000).with_delay(LIFELIKE_DELAY),
        (1, 2) => Step::bash_call(format!("echo 'Item one' >> work.txt; {}", tick_item_command("Item one")))
            .with_input_tokens(871_000)
            .with_delay(LIFELIKE_DELAY),
        (1, _) => Step::from_text("Item one is done.").with_input_tokens(872_000).with_delay(LIFELIKE_DELAY),
        _ => honest_agent(turn).with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    assert!(events_named(&journal, "packed").iter().all(|entry| entry["iteration"] != 1));
    let first_request_count = model
        .main_requests()
        .iter()
        .filter(|request| request.full_text().contains("You are session 1 of"))
        .count();
    assert_eq!(first_request_count, 4, "its Stop was not blocked");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

#[test]
fn a_prompt_with_shell_syntax_reaches_the_model_whole_and_no_shell() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [ ] Item three\n");
    let trap_file = world.home().join("trapped");
    let mut task = format!(
        "/compact now\n---\n\"quotes\" 'and' `touch {0}` $(touch {0}) ; touch {0}\n<!-- plimsoll:end -->\n\u{1f6a2} ende\r\n",
        trap_file.display()
    );
    let filler: String = (0..8_000).map(|n| format!("line {n} of the task\n")).collect();
    task.push_str(&filler);
    assert!(task.len() > 150_000);
    world.write("PROMPT.md", &task);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let finished = world.plimsoll(&["run", "--", "--model", "opus", "--allowedTools", "Bash"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!trap_file.exists(), "no shell has read it");
    assert!(world.read("PROMPT.md").ends_with(&task), "byte for byte");
    let first_request = first_request_of_iteration(&model, 1);
    // The client removes carriage returns; everything else is sent as it was written.
    let expected = task.replace('\r', "");
    assert!(
        first_request.replace('\r', "").contains(&expected[..expected.len() - 1]),
        "the model was sent all of it"
    );
    assert_eq!(verdict_markers(&read_journal(&world)), ["RALPH_STOP|completed|1 item"]);
}
