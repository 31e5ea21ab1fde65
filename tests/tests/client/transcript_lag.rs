//! The hook can be faster than the client's transcript writer. Near a threshold it waits briefly for the current
//! message; far from every threshold it does not wait. If its reading is one request behind, it says so.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    ScriptedAgent, THREE_ITEM_PLAN, events_named, read_journal, run_with_objective, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

const SESSION: &str = "22222222-aaaa-4bbb-8ccc-000000000001";
/// Allowance for starting a hook on a busy machine; a hook itself takes a few milliseconds.
const STARTUP_ALLOWANCE: Duration = Duration::from_millis(150);
const WAIT_LIMIT: Duration = Duration::from_millis(250);

fn response_line(number: u32, tokens: u64) -> String {
    let message = json!({
        "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-5-5",
        "content": [{ "type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {} }],
        "usage": { "input_tokens": tokens, "output_tokens": 0 },
    });
    json!({ "type": "assistant", "isSidechain": false, "message": message,
            "requestedModel": "claude-opus-5-5", "timestamp": "2026-01-07T10:00:00.000Z" })
    .to_string()
        + "\n"
}

/// The result of one hook call, and the files that it wrote.
struct HookOutcome {
    world: World,
    finished: FinishedProgram,
    record: Value,
    journal: Vec<Value>,
}

impl HookOutcome {
    /// Returns the reading behind the last decision: from the journal if a decision was journaled, otherwise from the
    /// record.
    fn last_reading(&self) -> &Value {
        self.journal.last().map_or(&self.record["reading"], |entry| &entry["reading"])
    }

    /// Returns how many times the hook waited, and for how many milliseconds in all.
    fn wait_count_and_milliseconds(&self) -> (u64, u64) {
        let number = |name: &str| self.record[name].as_u64().unwrap_or(0);
        (number("waits"), number("waited_ms"))
    }
}

/// Requires one of six attempts to return `Ok`, because the timing depends on the load of the machine. A panic in an
/// attempt fails the test at once: what the hook reports must be right every time.
fn require_one_success(attempt: impl Fn() -> Result<(), String>) {
    static SERIAL_LOCK: Mutex<()> = Mutex::new(());
    let _guard = SERIAL_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failures = Vec::new();
    for _ in 0..6 {
        match attempt() {
            Ok(()) => return,
            Err(complaint) => failures.push(complaint),
        }
    }
    panic!("not once:\n{}", failures.join("\n"));
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

/// Runs the batch hook on a transcript with one old response. The current message is written with this delay after the
/// hook starts, or before it if there is no delay; a torn write comes in two parts.
fn run_batch_hook(old_tokens: u64, new_tokens: u64, delay: Option<Duration>, is_torn: bool) -> HookOutcome {
    run_batch_hook_on_transcript(&response_line(1, old_tokens), new_tokens, delay, is_torn)
}

/// Runs the batch hook on this transcript and writes the current message as [`batch`] does.
fn run_batch_hook_on_transcript(
    transcript: &str,
    new_tokens: u64,
    delay: Option<Duration>,
    is_torn: bool,
) -> HookOutcome {
    let world = World::without_git();
    world.write("transcript.jsonl", transcript);
    let path = world.path("transcript.jsonl");
    let append = {
        let path = path.clone();
        move |text: &str| {
            let mut file = OpenOptions::new().append(true).open(&path).expect("the transcript");
            file.write_all(text.as_bytes()).expect("the transcript is writable");
        }
    };
    let line = response_line(2, new_tokens);
    let mut writer = None;
    match delay {
        None => append(&line),
        Some(delay) => {
            writer = Some(spawn(move || {
                sleep(delay);
                let (first, rest) = line.split_at(if is_torn { 60 } else { 0 });
                append(first);
                if is_torn {
                    sleep(Duration::from_millis(20));
                }
                append(rest);
            }));
        }
    }
    let payload = json!({
        "session_id": SESSION, "transcript_path": path, "cwd": world.project(),
        "hook_event_name": "PostToolBatch",
        "tool_calls": [{ "tool_name": "Bash", "tool_input": { "command": "x" },
                         "tool_use_id": "toolu_2", "tool_response": "ok" }],
    });
    let finished = world.hook("plimsoll-post-tool", &payload).run();
    if let Some(writer) = writer {
        writer.join().expect("the writer");
    }
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal =
        if world.exists(".claude/plimsoll/journal.jsonl") { read_journal(&world) } else { Vec::new() };
    let record = world.read_json(format!(".claude/plimsoll/sessions/{SESSION}.json"));
    HookOutcome { world, finished, record, journal }
}

/// Asserts that the hook reports 72%, or 60% and that it is one request behind, and returns whether it is up to date.
/// The transcript has 60%; the message with 72% is being written.
fn assert_report_and_return_is_current(outcome: &HookOutcome) -> bool {
    let HookOutcome { finished, record, journal, .. } = outcome;
    let behind = outcome.last_reading()["behind"].as_bool().expect("it says so");
    if behind {
        assert_eq!(finished.stdout.trim(), "{}", "60 % is no level: {finished:?}");
        assert_eq!(
            (record["percent"].as_u64(), record["peak_percent"].as_u64()),
            (Some(60), Some(60)),
            "{record}"
        );
        let (count, waited) = outcome.wait_count_and_milliseconds();
        assert!(count == 1 && waited >= 245, "it gave up before its limit: {record}");
    } else {
        assert!(finished.stdout.contains("CCS_WARNING|L1|72|"), "{finished:?}");
        assert_eq!(
            (record["percent"].as_u64(), record["peak_percent"].as_u64()),
            (Some(72), Some(72)),
            "{record}"
        );
        assert_eq!(journal[0]["percent"], 72, "{journal:?}");
        let waited = Some(outcome.wait_count_and_milliseconds())
            .filter(|(count, _)| *count == 1)
            .map(|(_, waited)| waited);
        assert_eq!(journal[0]["waited_ms"].as_u64(), waited, "the journal has the wait: {journal:?}");
    }
    !behind
}

#[test]
fn near_a_threshold_the_hook_waits_for_the_current_message() {
    for delay in [0, 20, 60, 120, 200].map(Duration::from_millis) {
        require_one_success(|| {
            let outcome = run_batch_hook(600_000, 720_000, Some(delay), false);
            let is_current = assert_report_and_return_is_current(&outcome);
            let HookOutcome { finished, record, .. } = &outcome;
            ensure(is_current && finished.elapsed < WAIT_LIMIT + STARTUP_ALLOWANCE, || {
                format!("{delay:?}: {record} {finished:?}")
            })?;
            let (_, waited) = outcome.wait_count_and_milliseconds();
            let allowed_milliseconds =
                if delay < Duration::from_millis(100) { 0 } else { 20 }..=delay.as_millis() as u64 + 40;
            ensure(allowed_milliseconds.contains(&waited), || format!("{delay:?}: waited {waited} ms"))
        });
    }
}

/// The prompt contains large files: usage is far from every threshold before the next response, and over one after it.
#[test]
fn after_a_large_prompt_the_hook_waits_although_usage_was_low() {
    let prompt = json!({ "type": "user", "isSidechain": false,
        "message": { "role": "user", "content": "a long file ".repeat(70_000) } });
    let transcript = response_line(1, 100_000) + &format!("{prompt}\n").repeat(3);
    require_one_success(|| {
        let outcome =
            run_batch_hook_on_transcript(&transcript, 870_000, Some(Duration::from_millis(60)), false);
        let is_announced = outcome.finished.stdout.contains("CCS_WARNING|L2|87|");
        ensure(is_announced, || format!("{:?} {}", outcome.finished, outcome.record))
    });
}

#[test]
fn the_hook_waits_for_the_rest_of_a_partly_written_line() {
    require_one_success(|| {
        let outcome = run_batch_hook(600_000, 720_000, Some(Duration::from_millis(60)), true);
        ensure(assert_report_and_return_is_current(&outcome), || format!("{}", outcome.record))
    });
}

#[test]
fn the_hook_stops_waiting_at_its_limit_and_reports_that_it_is_behind() {
    require_one_success(|| {
        let outcome = run_batch_hook(600_000, 720_000, Some(Duration::from_millis(700)), false);
        let is_current = assert_report_and_return_is_current(&outcome);
        ensure(!is_current && outcome.finished.elapsed < WAIT_LIMIT + STARTUP_ALLOWANCE, || {
            format!("{:?}", outcome.finished)
        })?;
        let (_, waited) = outcome.wait_count_and_milliseconds();
        ensure(waited <= 300, || format!("waited {waited} ms"))
    });
    require_one_success(|| {
        let outcome = run_batch_hook(600_000, 720_000, Some(Duration::from_millis(400)), false);
        ensure(!assert_report_and_return_is_current(&outcome), || format!("{}", outcome.record))
    });
    // The journal marks a decision that used an old figure.
    require_one_success(|| {
        let outcome = run_batch_hook(730_000, 760_000, Some(Duration::from_millis(600)), false);
        let entry = &outcome.journal[0];
        let behind = entry["reading"]["behind"] == true;
        let percent = if behind { 73 } else { 76 };
        assert!(
            outcome.finished.stdout.contains(&format!("CCS_WARNING|L1|{percent}|")),
            "{:?}",
            outcome.finished
        );
        assert_eq!(entry["percent"], percent, "{entry}");
        assert!(entry["waited_ms"].as_u64() >= Some(if behind { 245 } else { 0 }), "{entry}");
        ensure(behind, || entry.to_string())
    });
}

#[test]
fn session_end_journals_the_number_and_duration_of_waits() {
    require_one_success(|| {
        let outcome = run_batch_hook(600_000, 720_000, Some(Duration::from_millis(150)), false);
        let (count, waited) = outcome.wait_count_and_milliseconds();
        let world = &outcome.world;
        let end = json!({ "session_id": SESSION, "transcript_path": world.path("transcript.jsonl"),
            "cwd": world.project(), "hook_event_name": "SessionEnd", "reason": "other" });
        world.hook("plimsoll-session-end", &end).run().expect_success();
        let journal = read_journal(world);
        let ends = events_named(&journal, "session_end");
        assert_eq!(ends.len(), 1, "{journal:?}");
        assert_eq!((ends[0]["waits"].as_u64(), ends[0]["waited_ms"].as_u64()), (Some(count), Some(waited)));
        ensure(count == 1 && waited > 0, || format!("{:?}", ends[0]))
    });
}

#[test]
fn far_from_every_threshold_the_hook_does_not_wait() {
    require_one_success(|| {
        let outcome = run_batch_hook(200_000, 210_000, Some(Duration::from_millis(500)), false);
        let HookOutcome { finished, record, journal, .. } = &outcome;
        assert_eq!(outcome.wait_count_and_milliseconds(), (0, 0), "{record}");
        assert!(journal.is_empty(), "{journal:?}");
        let expected = if record["reading"]["behind"] == true { 20 } else { 21 };
        assert_eq!(record["percent"], expected, "{record}");
        ensure(expected == 20 && finished.elapsed < STARTUP_ALLOWANCE, || format!("{finished:?}"))
    });
}

#[test]
fn the_hook_does_not_wait_if_the_message_is_already_written() {
    require_one_success(|| {
        let outcome = run_batch_hook(600_000, 720_000, None, false);
        assert!(assert_report_and_return_is_current(&outcome));
        assert_eq!(outcome.wait_count_and_milliseconds(), (0, 0));
        ensure(outcome.finished.elapsed < STARTUP_ALLOWANCE, || format!("{:?}", outcome.finished))
    });
}

/// Uses the real client with a model that responds at once, so that the hook really races the client's writer.
#[test]
fn every_decision_of_a_run_is_current_or_marked_as_behind() {
    const USED_TOKENS: [u64; 8] = [200_000, 400_000, 550_000, 600_000, 720_000, 780_000, 870_000, 875_000];
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        if turn.iteration > 1 {
            return Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(30_000);
        }
        match USED_TOKENS.get(turn.assistant_message_count) {
            Some(used_tokens) if !turn.request_contains("CCS_CHECKPOINT_TRIGGERED") => {
                Step::bash_call(format!("echo {}", turn.assistant_message_count))
                    .with_input_tokens(*used_tokens)
                    .with_output_tokens(0)
            }
            _ => Step::from_text("I stop here.").with_input_tokens(876_000),
        }
    })
    .with_real_client()
    .start(&mut world);
    let finished = run_with_objective(&world, &["--max-iterations", "2"]);
    let journal = read_journal(&world);
    let decisions: Vec<&Value> =
        ["warning", "checkpoint"].iter().flat_map(|event| events_named(&journal, event)).collect();
    assert!(decisions.len() >= 2, "{journal:#?}\n{finished:?}");
    for entry in &decisions {
        let reading = &entry["reading"];
        let used = reading["used"].as_u64().expect("a figure");
        let step = USED_TOKENS.iter().position(|load| *load == used);
        assert!(step.is_some(), "a figure that the model reported: {entry}");
        let level = entry["level"].as_str().expect("a level");
        let first_step = if level == "L1" { 4 } else { 6 };
        let expected =
            if reading["behind"] == true { first_step..=first_step + 1 } else { first_step..=first_step };
        assert!(expected.contains(&step.expect("a place")), "{entry}");
        assert!(entry["waited_ms"].as_u64().unwrap_or(0) <= 1_000, "{entry}");
    }
    let ends = events_named(&journal, "session_end");
    let waits = |end: &&Value| (end["waits"].as_u64(), end["waited_ms"].as_u64());
    let (count, milliseconds) = waits(&ends[0]);
    let (count, milliseconds) = (count.expect("how often"), milliseconds.expect("how long"));
    // It waits near the thresholds; at 20% and 40% it does not.
    assert!(count <= 6 && milliseconds <= count * 1_000, "{:?}", ends[0]);
    let waited_in_decisions: u64 = decisions.iter().filter_map(|entry| entry["waited_ms"].as_u64()).sum();
    assert!(
        waited_in_decisions <= milliseconds,
        "the session's sum holds each decision's wait: {journal:#?}"
    );
    let behind = decisions.iter().filter(|entry| entry["reading"]["behind"] == true).count();
    eprintln!("{count} waits, {milliseconds} ms in all, {behind} of {} decisions behind", decisions.len());
}

#[test]
fn status_waits_for_a_transcript_that_is_not_yet_written() {
    let world = world_with_plan_and_dates("- [ ] one\n");
    let transcript = world.path("late.jsonl");
    world.write(
        format!(".claude/plimsoll/sessions/{SESSION}.json"),
        &json!({ "session_id": SESSION, "transcript_path": transcript }).to_string(),
    );
    let writer = spawn(move || {
        sleep(Duration::from_millis(400));
        std::fs::write(transcript, response_line(1, 500_000)).expect("the folder is there");
    });
    let finished = world.plimsoll(&["status", "--json"]).env("CLAUDE_CODE_SESSION_ID", SESSION).run();
    writer.join().expect("it writes");
    let status: Value = serde_json::from_str(&finished.expect_success().stdout).expect("JSON");
    assert_eq!(status["context"]["percent_used"], 50, "{status}");
}
