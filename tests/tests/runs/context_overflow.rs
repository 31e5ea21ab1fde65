//! Sessions that continue although they were asked to wrap up, and windows that fill up in one message.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, first_request_of_iteration, honest_agent,
    parse_hook_reply, read_journal, run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The first half of item two, left uncommitted.
const FIRST_HALF_COMMAND: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
/// The row of the next session's prompt that names it.
const FIRST_HALF_ROW: &str = "| src/dates.txt | 45-80 | modified";

/// Does the rest of item two. An agent that was told of the first half continues after it; one that was not starts
/// over.
fn second_half_step(turn: &AgentTurn<'_>) -> Step {
    let first_line = if turn.request_contains(FIRST_HALF_ROW) { 81 } else { 45 };
    let change_command =
        format!("sed -i '{first_line},120s/$/ changed/' src/dates.txt && echo 'Item two' >> work.txt");
    Step::bash_call(format!("{change_command} && {}", tick_item_command("Item two")))
        .with_input_tokens(30_000)
}

/// Asserts that the run completed although its second session was cut off, and that item two was done once.
fn assert_resumed_and_completed(world: &World, model: &ScriptedModel, finished: &FinishedProgram) -> Value {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.read_json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(4)));
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n", "nothing is done twice");
    let expected_lines: Vec<usize> = (45..=120).collect();
    let dates = world.read("src/dates.txt");
    let changed_lines: Vec<usize> = dates
        .lines()
        .zip(1..)
        .filter(|(line, _)| line.ends_with(" changed"))
        .map(|(_, number)| number)
        .collect();
    assert_eq!(changed_lines, expected_lines);
    assert!(!dates.contains("changed changed"), "no line is changed twice");
    let handoff = state["context_checkpoint"]["handoff_file"].as_str().expect("handoff");
    let resumed_prompt = first_request_of_iteration(model, 3);
    for part in [handoff, "Item two", FIRST_HALF_ROW, "Do not start over"] {
        assert!(resumed_prompt.contains(part), "{part} in\n{resumed_prompt}");
    }
    assert_eq!(state["context_checkpoint"]["active"], false, "consumed");
    assert_eq!(verdict_markers(&read_journal(world))[1], format!("RALPH_CONTINUE|checkpoint|{handoff}"));
    state
}

/// Returns the texts of the requests of one iteration.
fn request_texts_of_iteration(model: &ScriptedModel, iteration: u32) -> Vec<String> {
    let iteration_text = format!("You are session {iteration} of");
    model
        .main_requests()
        .iter()
        .map(Request::full_text)
        .filter(|text| text.contains(&iteration_text))
        .collect()
}

/// Returns the result line in the captured output of an iteration.
fn result_of_iteration(world: &World, iteration: u32) -> Value {
    let files = format!(".claude/plimsoll/runs/*/iteration-{iteration:04}-*.jsonl");
    let text = world.command("/bin/sh", &["-c", &format!("cat {files}")]).run().expect_success().stdout;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines.rev().find(|line| line["type"] == "result").expect("a result line")
}

/// Returns what the client recorded about the hook programs of one event in one session.
fn hook_runs(world: &World, session_id: &str, event_name: &str) -> Vec<Value> {
    let transcripts = world.transcript_paths();
    let path =
        transcripts.iter().find(|path| path.to_string_lossy().contains(session_id)).expect("a transcript");
    let text = world.read(path);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let attachments = lines.map(|line| line["attachment"].clone());
    attachments.filter(|hook| hook["hookEvent"] == event_name && hook["exitCode"].is_number()).collect()
}

/// Returns the session id of an iteration.
fn session_id_of_iteration(journal: &[Value], iteration: u32) -> String {
    let spawned = events_named(journal, "spawned");
    let entry = spawned.iter().find(|entry| entry["iteration"] == iteration).expect("a session");
    entry["session_id"].as_str().expect("its id").to_owned()
}

/// Returns the command lines of all processes that run with this world's HOME.
fn world_processes(world: &World) -> String {
    let script = "for p in /proc/[0-9]*; do \
        if tr '\\0' '\\n' < $p/environ 2> /dev/null | grep -qxF \"HOME=$WANTED\"; \
        then tr '\\0' ' ' < $p/cmdline; echo; fi; done 2> /dev/null; true";
    let home = world.home().display().to_string();
    let command = world.command("/bin/sh", &["-c", script]).env("WANTED", home).env("HOME", "/nowhere");
    command.run().expect_success().stdout
}

#[test]
fn a_model_that_ignores_wrapping_up_is_ended_after_the_grace_period() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| {
        let step = match (turn.iteration, turn.assistant_message_count) {
            (2, 0) => Step::bash_call(FIRST_HALF_COMMAND).with_input_tokens(680_000),
            (2, 1) => Step::bash_call("echo looking").with_input_tokens(870_000),
            // It was told, and continues to call tools as long as it gets requests.
            (2, number) => Step::bash_call(format!("echo 'ignored {number}'"))
                .with_input_tokens(870_000 + number as u64 * 500),
            (3, 0) => second_half_step(turn),
            _ => honest_agent(turn),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    let state = assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(state["context_checkpoint"]["level"], "L2");

    let second_requests = request_texts_of_iteration(&model, 2);
    assert_eq!(second_requests.len(), 7, "the checkpoint's message and five more, then the client is ended");
    assert!(!second_requests[1].contains("CCS_CHECKPOINT_TRIGGERED"), "not before its time");
    let last_request = second_requests.last().expect("requests");
    assert_eq!(
        last_request.matches("CCS_CHECKPOINT_TRIGGERED|L2|87|").count(),
        1,
        "the model was told, once"
    );

    let journal = read_journal(&world);
    let ended_entries = events_named(&journal, "ended");
    assert_eq!(ended_entries.len(), 1);
    assert_eq!(ended_entries[0]["reason"], "5 batches of tools after the checkpoint");
    assert_eq!(result_of_iteration(&world, 2)["terminal_reason"], "hook_stopped");
    assert!(
        world.read(".claude/plimsoll/progress.txt").contains("Ended by Plimsoll: 5 batches"),
        "{}",
        world.read(".claude/plimsoll/progress.txt")
    );
    let codes: Vec<i64> = hook_runs(&world, &session_id_of_iteration(&journal, 2), "PostToolBatch")
        .iter()
        .filter_map(|hook| hook["exitCode"].as_i64())
        .collect();
    assert_eq!(codes, [0; 7], "exit 1 is for L3 alone");
}

#[test]
fn a_jump_from_60_to_97_percent_ends_the_session_in_that_batch() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| {
        let step = match (turn.iteration, turn.assistant_message_count) {
            (2, 0) => Step::bash_call("echo reading").with_input_tokens(600_000),
            (2, 1) => Step::bash_call(FIRST_HALF_COMMAND).with_input_tokens(970_000),
            (3, 0) => second_half_step(turn),
            _ => honest_agent(turn),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    let state = assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(
        request_texts_of_iteration(&model, 2).len(),
        2,
        "no request after the message that reported 97 %"
    );
    let checkpoint = &state["context_checkpoint"];
    assert_eq!(
        (checkpoint["level"].as_str(), checkpoint["percent_at_checkpoint"].as_u64()),
        (Some("L3"), Some(97))
    );
    let entry = &state["context_history"][1];
    assert_eq!((&entry["iteration"], &entry["peak_percent"]), (&json!(2), &json!(97)));
    assert_eq!((&entry["checkpoint"], &entry["ending"]), (&json!(true), &json!("hook_stopped")));
    let result = result_of_iteration(&world, 2);
    assert_eq!(
        (result["terminal_reason"].as_str(), result["is_error"].as_bool()),
        (Some("hook_stopped"), Some(false))
    );

    let journal = read_journal(&world);
    assert_eq!(events_named(&journal, "checkpoint").len(), 1);
    assert_eq!(events_named(&journal, "warning").len(), 0, "L3's path runs at once");
    let runs = hook_runs(&world, &session_id_of_iteration(&journal, 2), "PostToolBatch");
    let codes: Vec<i64> = runs.iter().filter_map(|hook| hook["exitCode"].as_i64()).collect();
    assert_eq!(codes, [0, 1], "the client saw exit code 1 with the JSON it honoured: {runs:?}");
    let output: Value = serde_json::from_str(runs[1]["stdout"].as_str().expect("its output")).expect("JSON");
    assert_eq!(output["continue"], false);
}

#[test]
fn a_background_shell_does_not_keep_an_ended_client_alive() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write(".claude/plimsoll.json", "{\"end_wait_seconds\": 3}\n");
    let model = ScriptedAgent::new(|turn| {
        let shell_input = json!({"command": "sleep 300.4321", "description": "x", "run_in_background": true});
        let step = match (turn.iteration, turn.assistant_message_count) {
            (2, 0) => Step::default().with_tool_call("Bash", shell_input).with_input_tokens(600_000),
            (2, 1) => Step::bash_call(FIRST_HALF_COMMAND).with_input_tokens(970_000),
            (2, _) => Step::from_text("The client woke me up again.").with_input_tokens(971_000),
            (3, 0) => second_half_step(turn),
            _ => honest_agent(turn),
        };
        step.with_delay(LIFELIKE_DELAY)
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_resumed_and_completed(&world, &model, &finished);
    assert_eq!(
        request_texts_of_iteration(&model, 2).len(),
        2,
        "it was ended before it could take another turn"
    );
    let second_requests = request_texts_of_iteration(&model, 2);
    assert!(
        second_requests[1].contains("running in background"),
        "the shell was really running: {}",
        second_requests[1]
    );
    let journal = read_journal(&world);
    assert_eq!(result_of_iteration(&world, 2)["terminal_reason"], "hook_stopped");
    let ended_entries = events_named(&journal, "client_ended");
    assert_eq!(ended_entries.len(), 1, "{ended_entries:?}");
    assert_eq!(
        (ended_entries[0]["iteration"].as_u64(), ended_entries[0]["reason"].as_str()),
        (Some(2), Some("still running 3 s after its result"))
    );
    assert!(
        finished.elapsed < Duration::from_secs(110),
        "long before the shell ends: {:?}",
        finished.elapsed
    );
    world.wait_until(|| world_processes(&world).is_empty(), "no process of the world survives");
}

/// A run that a session has claimed, and the session's transcript, without a client.
struct ClaimedRun {
    world: World,
    run_id: String,
    message_count: u32,
}

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

impl ClaimedRun {
    fn new() -> ClaimedRun {
        let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let started = world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success().stdout;
        let export = started.lines().find_map(|line| line.strip_prefix("export PLIMSOLL_RUN_ID="));
        let run_id = export.expect("the run's id").to_owned();
        let claimed_run = ClaimedRun { world, run_id, message_count: 0 };
        let start_event = json!({"hook_event_name": "SessionStart", "source": "startup"});
        claimed_run.run_hook("plimsoll-session-start", &start_event, true).expect_success();
        claimed_run
    }

    fn transcript_path(&self) -> String {
        self.world.home().join("transcript.jsonl").display().to_string()
    }

    fn run_hook(&self, program: &str, event: &Value, in_run: bool) -> FinishedProgram {
        let mut payload = json!({
            "session_id": SESSION_ID, "transcript_path": self.transcript_path(), "cwd": self.world.project(),
        });
        for (key, value) in event.as_object().expect("an object") {
            payload[key] = value.clone();
        }
        let launch = self.world.hook(program, &payload);
        if in_run { launch.env("PLIMSOLL_RUN_ID", &self.run_id).run() } else { launch.run() }
    }

    /// Adds a message of the model that reports this usage, and runs the hook for its batch.
    fn run_batch_hook(&mut self, used_tokens: u64, in_run: bool) -> FinishedProgram {
        self.run_batch_hook_with_response(used_tokens, "ok", in_run)
    }

    fn run_batch_hook_with_response(
        &mut self,
        used_tokens: u64,
        response: &str,
        in_run: bool,
    ) -> FinishedProgram {
        self.message_count += 1;
        let (number, path) = (self.message_count, self.transcript_path());
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
            "timestamp": format!("2026-01-07T12:00:{number:02}.000Z"),
            "message": {
                "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5",
                "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {"command": "true"}}],
                "usage": {"input_tokens": 3, "cache_creation_input_tokens": 7, "cache_read_input_tokens": used_tokens - 10, "output_tokens": 50},
            },
        });
        let previous_text = if number == 1 { String::new() } else { self.world.read(&path) };
        self.world.write(&path, &format!("{previous_text}{line}\n"));
        let tool_call = json!({"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": format!("toolu_{number}"), "tool_response": response});
        self.run_hook(
            "plimsoll-post-tool",
            &json!({"hook_event_name": "PostToolBatch", "tool_calls": [tool_call]}),
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
fn a_checkpoint_on_an_estimate_above_l3_has_level_l3_and_ends_nothing() {
    let mut claimed_run = ClaimedRun::new();
    assert_eq!(claimed_run.run_batch_hook(100_000, true).stdout.trim(), "{}");
    let finished = claimed_run.run_batch_hook_with_response(100_000, &"x".repeat(3_440_000), true);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let hook_reply = parse_hook_reply(&finished);
    assert!(hook_reply.get("continue").is_none(), "an estimate ends no session: {hook_reply}");
    let marker = plimsoll_tests::marker_in_user_message(&hook_reply);
    let handoff = marker.strip_prefix("CCS_CHECKPOINT_TRIGGERED|L3|96|").expect(&marker).to_owned();
    let context = hook_reply["hookSpecificOutput"]["additionalContext"].as_str().expect("for the model");
    assert!(context.starts_with(&marker) && context.contains("Finish your current edit"), "{context}");
    let checkpoint = &claimed_run.world.read_json(".claude/ralph-state.json")["context_checkpoint"];
    assert_eq!((&checkpoint["level"], &checkpoint["percent_at_checkpoint"]), (&json!("L3"), &json!(96)));
    let handoff_text = claimed_run.world.read(&handoff);
    assert!(
        handoff_text.contains("(level L3 reached)") && handoff_text.contains("- Context: 96% (L3; 10%"),
        "{handoff_text}"
    );
    let measured_batch = claimed_run.run_batch_hook(970_000, true);
    assert_eq!(
        (measured_batch.code, parse_hook_reply(&measured_batch)["continue"].as_bool()),
        (Some(1), Some(false))
    );
}

#[test]
fn at_l3_the_hook_ends_the_session_and_below_it_exits_with_0() {
    let mut claimed_run = ClaimedRun::new();
    let first_batch = claimed_run.run_batch_hook(600_000, true);
    assert_eq!((first_batch.code, first_batch.stdout.trim()), (Some(0), "{}"), "L0 says nothing");
    for (used_tokens, marker) in
        [(720_000, "CCS_WARNING|L1|72|"), (870_000, "CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/")]
    {
        let finished = claimed_run.run_batch_hook(used_tokens, true);
        let hook_reply = parse_hook_reply(&finished);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(plimsoll_tests::marker_in_user_message(&hook_reply).starts_with(marker), "{hook_reply}");
        assert!(
            hook_reply["hookSpecificOutput"]["additionalContext"]
                .as_str()
                .expect("for the model")
                .starts_with(marker)
        );
        assert!(hook_reply.get("continue").is_none(), "{hook_reply}");
    }
    let finished = claimed_run.run_batch_hook(970_000, true);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stderr, "");
    let hook_reply = parse_hook_reply(&finished);
    assert_eq!(hook_reply["continue"], false);
    assert!(!has_null(&hook_reply), "a null would make the client drop all of it: {hook_reply}");
    let marker = plimsoll_tests::marker_in_user_message(&hook_reply);
    let handoff =
        marker.strip_prefix("CCS_CHECKPOINT_TRIGGERED|L3|97|").expect("the marker of L3").to_owned();
    assert!(claimed_run.world.exists(&handoff), "{handoff}");
    assert!(hook_reply["stopReason"].as_str().expect("a reason").contains(&handoff));
    assert_eq!(hook_reply["hookSpecificOutput"]["hookEventName"], "PostToolBatch");
    assert!(
        hook_reply["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .expect("kept for a resume")
            .starts_with(&marker)
    );
    let checkpoint = &claimed_run.world.read_json(".claude/ralph-state.json")["context_checkpoint"];
    assert_eq!((checkpoint["active"].as_bool(), checkpoint["level"].as_str()), (Some(true), Some("L3")));

    let next_batch = claimed_run.run_batch_hook(971_000, true);
    assert_eq!(
        (next_batch.code, &parse_hook_reply(&next_batch)["continue"]),
        (Some(1), &json!(false)),
        "woken up, it is ended again"
    );
}

#[test]
fn a_jump_to_l3_ends_a_session_of_a_run_and_only_advises_others() {
    let mut claimed_run = ClaimedRun::new();
    claimed_run.run_batch_hook(600_000, true);
    let finished = claimed_run.run_batch_hook(970_000, true);
    assert_eq!((finished.code, &parse_hook_reply(&finished)["continue"]), (Some(1), &json!(false)));

    let mut other_session = ClaimedRun::new();
    let state_before = other_session.world.read(".claude/ralph-state.json");
    other_session.run_batch_hook(600_000, false);
    let finished = other_session.run_batch_hook(970_000, false);
    let hook_reply = parse_hook_reply(&finished);
    assert_eq!((finished.code, hook_reply.get("continue")), (Some(0), None), "{hook_reply}");
    assert!(
        plimsoll_tests::marker_in_user_message(&hook_reply).starts_with("CCS_WARNING|L3|97|"),
        "{hook_reply}"
    );
    assert_eq!(
        other_session.world.read(".claude/ralph-state.json"),
        state_before,
        "another session's run is not touched"
    );
}
