//! Sessions that go on when they were asked to wrap up, and windows that fill up in one message.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, first_request_of, honest, journal, markers, reply, run, world,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The first half of item two, left uncommitted.
const FIRST_HALF: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
/// How a resume names it.
const FIRST_HALF_ROW: &str = "| src/dates.txt | 45-80 | modified";

/// The rest of item two: an agent that was told what is there goes on behind it, one that was not begins again.
fn second_half(turn: &Turn<'_>) -> Step {
    let from = if turn.saw(FIRST_HALF_ROW) { 81 } else { 45 };
    let work = format!("sed -i '{from},120s/$/ changed/' src/dates.txt && echo 'Item two' >> work.txt");
    Step::bash(format!("{work} && {}", tick("Item two"))).usage(30_000)
}

/// The run ended well although its second session was cut off, and item two was done once.
fn assert_resumed_and_completed(world: &World, model: &ScriptedModel, finished: &Finished) -> Value {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(4)));
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n", "nothing is done twice");
    let changed: Vec<usize> = (45..=120).collect();
    let dates = world.read("src/dates.txt");
    let found: Vec<usize> = dates
        .lines()
        .zip(1..)
        .filter(|(line, _)| line.ends_with(" changed"))
        .map(|(_, number)| number)
        .collect();
    assert_eq!(found, changed);
    assert!(!dates.contains("changed changed"), "no line is changed twice");
    let handoff = state["context_checkpoint"]["handoff_file"].as_str().expect("handoff");
    let resumed = first_request_of(model, 3);
    for part in [handoff, "Item two", FIRST_HALF_ROW, "Do not start over"] {
        assert!(resumed.contains(part), "{part} in\n{resumed}");
    }
    assert_eq!(state["context_checkpoint"]["active"], false, "consumed");
    assert_eq!(markers(&journal(world))[1], format!("RALPH_CONTINUE|checkpoint|{handoff}"));
    state
}

/// The requests of one iteration.
fn requests_of(model: &ScriptedModel, iteration: u32) -> Vec<String> {
    let named = format!("You are session {iteration} of");
    model.main_requests().iter().map(Request::text).filter(|text| text.contains(&named)).collect()
}

/// The result line in the captured output of an iteration.
fn result_of(world: &World, iteration: u32) -> Value {
    let files = format!(".claude/plimsoll/runs/*/iteration-{iteration:04}-*.jsonl");
    let text = world.command("/bin/sh", &["-c", &format!("cat {files}")]).run().expect_success().stdout;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines.rev().find(|line| line["type"] == "result").expect("a result line")
}

/// What the client wrote down about the hook programs of one event, in one session.
fn hook_runs(world: &World, session: &str, event: &str) -> Vec<Value> {
    let transcripts = world.transcripts();
    let path =
        transcripts.iter().find(|path| path.to_string_lossy().contains(session)).expect("a transcript");
    let text = world.read(path);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let attachments = lines.map(|line| line["attachment"].clone());
    attachments.filter(|hook| hook["hookEvent"] == event && hook["exitCode"].is_number()).collect()
}

/// The session of an iteration.
fn session_of(journal: &[Value], iteration: u32) -> String {
    let spawned = events(journal, "spawned");
    let entry = spawned.iter().find(|entry| entry["iteration"] == iteration).expect("a session");
    entry["session_id"].as_str().expect("its id").to_owned()
}

/// The command lines of all processes that run with this world's HOME.
fn processes(world: &World) -> String {
    let look = "for p in /proc/[0-9]*; do \
        if tr '\\0' '\\n' < $p/environ 2> /dev/null | grep -qxF \"HOME=$WANTED\"; \
        then tr '\\0' ' ' < $p/cmdline; echo; fi; done 2> /dev/null; true";
    let home = world.home().display().to_string();
    let looking = world.command("/bin/sh", &["-c", look]).env("WANTED", home).env("HOME", "/nowhere");
    looking.run().expect_success().stdout
}

#[test]
fn a_model_that_ignores_the_request_to_wrap_up_is_ended_after_the_grace() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| {
        let step = match (turn.iteration, turn.step) {
            (2, 0) => Step::bash(FIRST_HALF).usage(680_000),
            (2, 1) => Step::bash("echo looking").usage(870_000),
            // It was told, and goes on calling tools for as long as it is asked.
            (2, number) => {
                Step::bash(format!("echo 'ignored {number}'")).usage(870_000 + number as u64 * 500)
            }
            (3, 0) => second_half(turn),
            _ => honest(turn),
        };
        step.delay(LIFELIKE)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run(&world, &[]);
    let state = assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(state["context_checkpoint"]["level"], "L2");

    let second = requests_of(&model, 2);
    assert_eq!(second.len(), 7, "the checkpoint's message and five more, then the client is ended");
    assert!(!second[1].contains("CCS_CHECKPOINT_TRIGGERED"), "not before its time");
    let last = second.last().expect("requests");
    assert_eq!(last.matches("CCS_CHECKPOINT_TRIGGERED|L2|87|").count(), 1, "the model was told, once");

    let journal = journal(&world);
    let ended = events(&journal, "ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["reason"], "5 batches of tools after the checkpoint");
    assert_eq!(result_of(&world, 2)["terminal_reason"], "hook_stopped");
    assert!(
        world.read(".claude/plimsoll/progress.txt").contains("Ended by Plimsoll: 5 batches"),
        "{}",
        world.read(".claude/plimsoll/progress.txt")
    );
    let codes: Vec<i64> = hook_runs(&world, &session_of(&journal, 2), "PostToolBatch")
        .iter()
        .filter_map(|hook| hook["exitCode"].as_i64())
        .collect();
    assert_eq!(codes, [0; 7], "exit 1 is for L3 alone");
}

#[test]
fn a_jump_from_60_to_97_percent_ends_the_session_in_the_batch_of_that_message() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| {
        let step = match (turn.iteration, turn.step) {
            (2, 0) => Step::bash("echo reading").usage(600_000),
            (2, 1) => Step::bash(FIRST_HALF).usage(970_000),
            (3, 0) => second_half(turn),
            _ => honest(turn),
        };
        step.delay(LIFELIKE)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run(&world, &[]);
    let state = assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(requests_of(&model, 2).len(), 2, "no request after the message that reported 97 %");
    let checkpoint = &state["context_checkpoint"];
    assert_eq!(
        (checkpoint["level"].as_str(), checkpoint["percent_at_checkpoint"].as_u64()),
        (Some("L3"), Some(97))
    );
    let entry = &state["context_history"][1];
    assert_eq!((&entry["iteration"], &entry["peak_percent"]), (&json!(2), &json!(97)));
    assert_eq!((&entry["checkpoint"], &entry["ending"]), (&json!(true), &json!("hook_stopped")));
    let result = result_of(&world, 2);
    assert_eq!(
        (result["terminal_reason"].as_str(), result["is_error"].as_bool()),
        (Some("hook_stopped"), Some(false))
    );

    let journal = journal(&world);
    assert_eq!(events(&journal, "checkpoint").len(), 1);
    assert_eq!(events(&journal, "warning").len(), 0, "L3's path runs at once");
    let runs = hook_runs(&world, &session_of(&journal, 2), "PostToolBatch");
    let codes: Vec<i64> = runs.iter().filter_map(|hook| hook["exitCode"].as_i64()).collect();
    assert_eq!(codes, [0, 1], "the client saw exit code 1 with the JSON it honoured: {runs:?}");
    let said: Value = serde_json::from_str(runs[1]["stdout"].as_str().expect("its output")).expect("JSON");
    assert_eq!(said["continue"], false);
}

#[test]
fn a_background_shell_does_not_keep_an_ended_client_alive() {
    let mut world = world(ITEMS);
    world.write(".claude/plimsoll.json", "{\"end_wait_seconds\": 3}\n");
    let model = ScriptedAgent::new(|turn| {
        let sleeper = json!({"command": "sleep 300.4321", "description": "x", "run_in_background": true});
        let step = match (turn.iteration, turn.step) {
            (2, 0) => Step::default().tool("Bash", sleeper).usage(600_000),
            (2, 1) => Step::bash(FIRST_HALF).usage(970_000),
            (2, _) => Step::text("The client woke me up again.").usage(971_000),
            (3, 0) => second_half(turn),
            _ => honest(turn),
        };
        step.delay(LIFELIKE)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(requests_of(&model, 2).len(), 2, "it was ended before it could take another turn");
    let second = requests_of(&model, 2);
    assert!(second[1].contains("running in background"), "the shell was really running: {}", second[1]);
    let journal = journal(&world);
    assert_eq!(result_of(&world, 2)["terminal_reason"], "hook_stopped");
    let ended = events(&journal, "client_ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(
        (ended[0]["iteration"].as_u64(), ended[0]["reason"].as_str()),
        (Some(2), Some("alive 3 s after its result"))
    );
    assert!(
        finished.elapsed < Duration::from_secs(110),
        "long before the shell ends: {:?}",
        finished.elapsed
    );
    world.wait_until(|| processes(&world).is_empty(), "no process of the world survives");
}

/// A run claimed by a session, and that session's transcript, without a client.
struct Bench {
    world: World,
    run_id: String,
    messages: u32,
}

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

impl Bench {
    fn new() -> Bench {
        let world = world(ITEMS);
        let started = world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success().stdout;
        let export = started.lines().find_map(|line| line.strip_prefix("export PLIMSOLL_RUN_ID="));
        let run_id = export.expect("the run's id").to_owned();
        let bench = Bench { world, run_id, messages: 0 };
        let begin = json!({"hook_event_name": "SessionStart", "source": "startup"});
        bench.hook("plimsoll-session-start", &begin, true).expect_success();
        bench
    }

    fn transcript(&self) -> String {
        self.world.home().join("transcript.jsonl").display().to_string()
    }

    fn hook(&self, name: &str, event: &Value, in_run: bool) -> Finished {
        let mut payload = json!({
            "session_id": SESSION, "transcript_path": self.transcript(), "cwd": self.world.project(),
        });
        for (key, value) in event.as_object().expect("an object") {
            payload[key] = value.clone();
        }
        let launch = self.world.hook(name, &payload);
        if in_run { launch.env("PLIMSOLL_RUN_ID", &self.run_id).run() } else { launch.run() }
    }

    /// One more message of the model that reports this usage, with its batch.
    fn batch(&mut self, used: u64, in_run: bool) -> Finished {
        self.batch_with(used, "ok", in_run)
    }

    fn batch_with(&mut self, used: u64, response: &str, in_run: bool) -> Finished {
        self.messages += 1;
        let (number, path) = (self.messages, self.transcript());
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
            "timestamp": format!("2026-01-07T12:00:{number:02}.000Z"),
            "message": {
                "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5",
                "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {"command": "true"}}],
                "usage": {"input_tokens": 3, "cache_creation_input_tokens": 7, "cache_read_input_tokens": used - 10, "output_tokens": 50},
            },
        });
        let before = if number == 1 { String::new() } else { self.world.read(&path) };
        self.world.write(&path, &format!("{before}{line}\n"));
        let call = json!({"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": format!("toolu_{number}"), "tool_response": response});
        self.hook(
            "plimsoll-post-tool",
            &json!({"hook_event_name": "PostToolBatch", "tool_calls": [call]}),
            in_run,
        )
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[test]
fn a_checkpoint_on_an_estimate_above_l3_is_one_of_l3_and_ends_nothing() {
    let mut bench = Bench::new();
    assert_eq!(bench.batch(100_000, true).stdout.trim(), "{}");
    let finished = bench.batch_with(100_000, &"x".repeat(3_440_000), true);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = reply(&finished);
    assert!(said.get("continue").is_none(), "an estimate ends no session: {said}");
    let marker = said["systemMessage"].as_str().expect("a marker");
    let handoff = marker.strip_prefix("CCS_CHECKPOINT_TRIGGERED|L3|96|").expect(marker).to_owned();
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().expect("for the model");
    assert!(told.starts_with(marker) && told.contains("Finish the edit you are in"), "{told}");
    let checkpoint = &bench.world.json(".claude/ralph-state.json")["context_checkpoint"];
    assert_eq!((&checkpoint["level"], &checkpoint["percent_at_checkpoint"]), (&json!("L3"), &json!(96)));
    let text = bench.world.read(&handoff);
    assert!(text.contains("(level L3 reached)") && text.contains("- Context: 96% (L3; 10%"), "{text}");
    let measured = bench.batch(970_000, true);
    assert_eq!((measured.code, reply(&measured)["continue"].as_bool()), (Some(1), Some(false)));
}

#[test]
fn at_l3_the_hook_says_it_to_all_three_readers_and_below_it_exits_with_0() {
    let mut bench = Bench::new();
    let quiet = bench.batch(600_000, true);
    assert_eq!((quiet.code, quiet.stdout.trim()), (Some(0), "{}"), "L0 says nothing");
    for (used, marker) in
        [(720_000, "CCS_WARNING|L1|72|"), (870_000, "CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/")]
    {
        let finished = bench.batch(used, true);
        let said = reply(&finished);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(said["systemMessage"].as_str().expect("for people").starts_with(marker), "{said}");
        assert!(
            said["hookSpecificOutput"]["additionalContext"]
                .as_str()
                .expect("for the model")
                .starts_with(marker)
        );
        assert!(said.get("continue").is_none(), "{said}");
    }
    let finished = bench.batch(970_000, true);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stderr, "");
    let said = reply(&finished);
    assert_eq!(said["continue"], false);
    assert!(!has_null(&said), "a null would make the client drop all of it: {said}");
    let marker = said["systemMessage"].as_str().expect("a marker").lines().next().expect("a line").to_owned();
    let handoff =
        marker.strip_prefix("CCS_CHECKPOINT_TRIGGERED|L3|97|").expect("the marker of L3").to_owned();
    assert!(bench.world.exists(&handoff), "{handoff}");
    assert!(said["stopReason"].as_str().expect("a reason").contains(&handoff));
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "PostToolBatch");
    assert!(
        said["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .expect("kept for a resume")
            .starts_with(&marker)
    );
    let checkpoint = &bench.world.json(".claude/ralph-state.json")["context_checkpoint"];
    assert_eq!((checkpoint["active"].as_bool(), checkpoint["level"].as_str()), (Some(true), Some("L3")));

    let again = bench.batch(971_000, true);
    assert_eq!(
        (again.code, &reply(&again)["continue"]),
        (Some(1), &json!(false)),
        "woken up, it is ended again"
    );
}

#[test]
fn a_jump_straight_to_l3_is_an_emergency_in_a_run_and_advice_outside() {
    let mut bench = Bench::new();
    bench.batch(600_000, true);
    let finished = bench.batch(970_000, true);
    assert_eq!((finished.code, &reply(&finished)["continue"]), (Some(1), &json!(false)));

    let mut outside = Bench::new();
    let before = outside.world.read(".claude/ralph-state.json");
    outside.batch(600_000, false);
    let finished = outside.batch(970_000, false);
    let said = reply(&finished);
    assert_eq!((finished.code, said.get("continue")), (Some(0), None), "{said}");
    assert!(said["systemMessage"].as_str().expect("a marker").starts_with("CCS_WARNING|L3|97|"), "{said}");
    assert_eq!(
        outside.world.read(".claude/ralph-state.json"),
        before,
        "another session's run is not touched"
    );
}
