//! Ways in which other loops failed their users, where no other file has them: who owns a run, races at its
//! end, hostile texts.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, first_request_of, honest, journal, markers, run, world,
};
use serde_json::{Value, json};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A run of a shell loop whose session has claimed it, without a client: hooks are called by hand.
fn claimed_run(todo: &str) -> (World, String) {
    let world = world(todo);
    let started = world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    let line =
        started.stdout.lines().find(|line| line.contains("PLIMSOLL_RUN_ID")).expect("an id").to_owned();
    let run_id = line.split('=').nth(1).expect("an id").to_owned();
    hook(
        &world,
        &run_id,
        "plimsoll-session-start",
        &json!({"hook_event_name": "SessionStart", "source": "startup"}),
    );
    (world, run_id)
}

fn hook(world: &World, run_id: &str, program: &str, event: &Value) -> plimsoll_testkit::world::Finished {
    let mut event = event.clone();
    event["session_id"] = json!(SESSION);
    event["cwd"] = json!(world.project());
    world.hook(program, &event).env("PLIMSOLL_RUN_ID", run_id).run()
}

fn stop(words: &str, transcript: Option<&str>) -> Value {
    json!({
        "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": words,
        "transcript_path": transcript,
    })
}

fn promise(world: &World) -> String {
    format!(
        "All done.\n\n<promise>COMPLETE {}</promise>",
        world.json(STATE)["nonce"].as_str().expect("a nonce")
    )
}

#[test]
fn a_promise_at_stop_counts_though_the_transcript_is_missing_empty_torn_or_a_folder() {
    for (name, bytes) in [("missing", None), ("empty", Some("")), ("torn", Some("{\"type\":\"assis"))] {
        let (world, run_id) = claimed_run("- [x] Item one\n");
        let path = world.home().join("transcript.jsonl");
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).expect("a file");
        }
        let event = stop(&promise(&world), path.to_str());
        let finished = hook(&world, &run_id, "plimsoll-stop-gate", &event);
        assert_eq!(finished.code, Some(0), "{name}: {finished:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(finished.stdout, @r#"{"systemMessage":"RALPH_STOP|completed|1 item"}"#);
        }
        let gate = world.plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", run_id).run();
        assert_eq!(
            (gate.code, gate.stdout.trim()),
            (Some(0), "RALPH_STOP|completed|1 item"),
            "{name}: {gate:?}"
        );
        assert_eq!(world.json(STATE)["status"], "completed", "{name}");
    }
}

#[test]
fn a_cancel_that_races_twenty_stop_hooks_stays() {
    let (world, run_id) = claimed_run(ITEMS);
    for _ in 0..5 {
        let event = |program: &str, mut event: Value| {
            event["session_id"] = json!(SESSION);
            event["cwd"] = json!(world.project());
            world.hook(program, &event).env("PLIMSOLL_RUN_ID", run_id.clone()).spawn()
        };
        let ends =
            |_| event("plimsoll-session-end", json!({"hook_event_name": "SessionEnd", "reason": "other"}));
        let mut running: Vec<_> =
            (0..10).map(|_| event("plimsoll-stop-gate", stop("working", None))).collect();
        running.extend((0..10).map(ends));
        let cancel = world.plimsoll(&["stop"]).run();
        assert_eq!(cancel.code, Some(0), "{cancel:?}");
        for hook in running {
            assert_eq!(hook.wait(Duration::from_secs(20)).signal, None);
        }
        assert_eq!(world.json(STATE)["status"], "cancelled", "nothing recreates it");
    }
    let gate = world.plimsoll(&["gate"]).env("PLIMSOLL_RUN_ID", run_id).run();
    assert_eq!((gate.code, gate.stdout.trim()), (Some(0), "RALPH_STOP|cancelled|"), "{gate:?}");
    assert_eq!(world.json(STATE)["status"], "cancelled");
}

#[test]
fn a_session_of_the_run_that_a_person_resumes_or_forks_later_acts_on_nothing() {
    let mut world = world(ITEMS);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let _model = ScriptedAgent::new(|turn| {
        let step = if turn.saw("And now?") { Step::text("What shall I do?") } else { honest(turn) };
        step.delay(LIFELIKE)
    })
    .with_real_client()
    .start(&mut world);
    let stopped = run(&world, &["--max-iterations", "1"]);
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let before = world.read(STATE);
    let state = world.json(STATE);
    let (run_id, session) =
        (state["run_id"].as_str().expect("an id"), state["session_id"].as_str().expect("an id"));
    for (arguments, with_run) in [
        (vec!["--resume", session], false),
        (vec!["--resume", session, "--fork-session"], true),
        (vec!["--resume", session, "--fork-session"], false),
    ] {
        let mut launch = world.claude(&[&["-p", "And now?"], &arguments[..]].concat());
        if with_run {
            launch = launch.env("PLIMSOLL_RUN_ID", run_id);
        }
        let finished = launch.run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stdout.contains("What shall I do?"), "it is a session like any other: {finished:?}");
        assert_eq!(world.read(STATE), before, "{arguments:?}, with the run's id: {with_run}");
    }
    assert_eq!(events(&journal(&world), "verdict").len(), 1);
}

#[test]
fn a_run_whose_owner_crashed_traps_no_new_session_and_is_offered_for_resume() {
    let mut world = world(ITEMS);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 if turn.step == 0 => Step::bash("sleep 1").usage(30_000).delay(Duration::from_millis(1_500)),
        0 => Step::text("Hello."),
        _ => honest(turn).delay(LIFELIKE),
    })
    .start(&mut world);
    let objective = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let mut owner = world.plimsoll(&objective).spawn();
    // Until its SessionStart hook has written, which the kill of its client does not stop.
    let is_at_work = || world.exists(STATE) && world.json(STATE)["iteration_record"]["hooks_seen"] == true;
    world.wait_until(is_at_work, "the session begins");
    let pid = world.json(STATE)["iteration_record"]["pid"].as_u64().expect("a pid").to_string();
    owner.kill();
    world.command("kill", &["-9", &pid]).run().expect_success();

    let before = world.read(STATE);
    let ordinary = world.claude(&["-p", "Good morning"]).run();
    assert_eq!(ordinary.code, Some(0), "{ordinary:?}");
    assert!(ordinary.stdout.contains("Hello."), "{ordinary:?}");
    assert_eq!(world.read(STATE), before, "never deleted, never changed");
    let screen = world.plimsoll(&["status"]).run().expect_success().stdout;
    let next = screen.lines().find(|line| line.starts_with("Next "));
    assert_eq!(next, Some("Next         plimsoll run --resume"), "{screen}");
    let new = world.plimsoll(&["run", "--objective", "Another one."]).run();
    assert_eq!(new.code, Some(1), "{new:?}");
    insta::assert_snapshot!(world.stable_text(&new.stderr), @r#"plimsoll: the run "Do the plan." ([ID]) is running at iteration 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);

    let resumed = world.plimsoll(&["run", "--resume"]).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let folder = format!(".claude/plimsoll/runs/{}", world.json(STATE)["run_id"].as_str().expect("an id"));
    for file in ["state.json", "PROMPT.md", "fix_plan.md", "progress.txt"] {
        assert!(world.exists(format!("{folder}/{file}")), "a finished run is archived: {file}");
    }
    assert_eq!(world.json(format!("{folder}/state.json"))["status"], "completed");
    let next = world.plimsoll(&["start", "--objective", "Another one."]).run();
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(world.json(format!("{folder}/state.json"))["status"], "completed", "and stays so");
}

#[test]
fn a_run_that_is_cancelled_in_a_pause_or_before_its_first_session_is_archived() {
    let mut in_a_pause = world(ITEMS);
    let _model = ScriptedAgent::new(|_| Step::error(429, "Number of requests has exceeded your rate limit"))
        .start(&mut in_a_pause);
    let paused = run(&in_a_pause, &["--no-wait"]);
    assert_eq!(paused.code, Some(6), "{paused:?}");
    let planned = world(ITEMS);
    planned.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    for world in [in_a_pause, planned] {
        let run_id = world.json(STATE)["run_id"].as_str().expect("an id").to_owned();
        world.plimsoll(&["stop"]).run().expect_success();
        let folder = format!(".claude/plimsoll/runs/{run_id}");
        assert_eq!(world.json(format!("{folder}/state.json"))["status"], "cancelled");
        for file in ["PROMPT.md", "fix_plan.md"] {
            assert!(world.exists(format!("{folder}/{file}")), "{file}");
        }
    }
}

#[test]
fn at_an_emergency_nothing_of_ours_keeps_a_session_going() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        // It finishes its item at 87 %, with the checkpoint on the disk: with --pack it is not offered another.
        (1, 0) => Step::bash("echo work").usage(600_000).delay(LIFELIKE),
        (1, 1) => Step::bash("echo more").usage(870_000).delay(LIFELIKE),
        (1, 2) => Step::bash(format!("echo 'Item one' >> work.txt; {}", tick("Item one")))
            .usage(871_000)
            .delay(LIFELIKE),
        (1, _) => Step::text("Item one is done.").usage(872_000).delay(LIFELIKE),
        _ => honest(turn).delay(LIFELIKE),
    })
    .start(&mut world);
    let finished = run(&world, &["--pack"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    assert!(events(&journal, "packed").iter().all(|entry| entry["iteration"] != 1));
    let first = model
        .main_requests()
        .iter()
        .filter(|request| request.text().contains("You are session 1 of"))
        .count();
    assert_eq!(first, 4, "its Stop was not blocked");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

#[test]
fn a_prompt_full_of_traps_reaches_the_model_whole_and_no_shell() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [ ] Item three\n");
    let trap = world.home().join("trapped");
    let mut task = format!(
        "/compact now\n---\n\"quotes\" 'and' `touch {0}` $(touch {0}) ; touch {0}\n<!-- plimsoll:end -->\n\u{1f6a2} ende\r\n",
        trap.display()
    );
    let filler: String = (0..8_000).map(|n| format!("line {n} of the task\n")).collect();
    task.push_str(&filler);
    assert!(task.len() > 150_000);
    world.write("PROMPT.md", &task);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    let model = ScriptedAgent::new(honest).start(&mut world);
    let finished = world.plimsoll(&["run", "--", "--model", "opus", "--allowedTools", "Bash"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!trap.exists(), "no shell has read it");
    assert!(world.read("PROMPT.md").ends_with(&task), "byte for byte");
    let asked = first_request_of(&model, 1);
    // The client turns a carriage return into nothing; all else is as it was written.
    let words = task.replace('\r', "");
    assert!(asked.replace('\r', "").contains(&words[..words.len() - 1]), "the model was sent all of it");
    assert_eq!(markers(&journal(&world)), ["RALPH_STOP|completed|1 item"]);
}
