//! How sessions end, and what their logs record about it.

use crate::turn_log::harness::{
    FIRST, SECOND, check_log, expected_cost, main_outcomes, model_with_steps, read_records, record_kinds,
    session_launch, sync_all_turns, total_cost, transcript_path, turn_log, turns_of_stream,
};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::world_with_hooks;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(30);

fn wait_for_file(world: &World, name: &str) {
    world.wait_until(|| world.exists(name), name);
}

#[test]
fn a_session_that_the_user_stops_in_a_tool_is_interrupted() {
    let model = model_with_steps(vec![Step::bash_call("touch started; sleep 30"), Step::from_text("never")]);
    let world = world_with_hooks(&model);
    let mut client = session_launch(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    client.interrupt();
    client.wait_or_kill_and_panic(TIMEOUT);
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["interrupted"], "{records:#?}");
    assert!(
        turns_of_stream(&records, MAIN_STREAM)[0].turn().unwrap().prints().is_empty(),
        "the client's words are no output"
    );
    assert_eq!(record_kinds(&records).last(), Some(&RecordKind::SessionEnd));
}

#[test]
fn a_response_that_the_user_interrupts_is_logged_as_the_client_kept_it() {
    let long = Step::from_text("word ".repeat(60)).with_text_in_deltas(60, Duration::from_millis(200));
    let model = model_with_steps(vec![Step::bash_call("touch started"), long, Step::from_text("never")]);
    let world = world_with_hooks(&model);
    let mut client = session_launch(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    world.wait_until(|| model.main_requests().len() == 2, "the second response");
    std::thread::sleep(Duration::from_millis(1_500));
    client.interrupt();
    client.wait_or_kill_and_panic(TIMEOUT);
    let records = check_log(&world, FIRST);
    let recorded_outcomes = main_outcomes(&records);
    // If the client has kept the beginning of the response, that turn is no success.
    assert!(
        recorded_outcomes == ["ok"] || recorded_outcomes == ["ok", "interrupted"],
        "{recorded_outcomes:?} {:#?}",
        turns_of_stream(&records, MAIN_STREAM).last()
    );
    assert_eq!(record_kinds(&records).last(), Some(&RecordKind::SessionEnd));
}

#[test]
fn a_broken_and_retried_response_is_one_turn() {
    for broken in [
        Step::from_text("half").with_cut_off_stream(),
        Step::from_text("half").with_stream_error("overloaded_error", "Overloaded"),
    ] {
        let model = model_with_steps(vec![Step::bash_call("echo one"), broken, Step::from_text("Whole.")]);
        let world = world_with_hooks(&model);
        session_launch(&world, FIRST, "Work.").run();
        let records = check_log(&world, FIRST);
        let last = turns_of_stream(&records, MAIN_STREAM).last().unwrap().turn().unwrap();
        assert_eq!(
            (last.is_success(), last.joined_text().as_str()),
            (true, "Whole."),
            "{:?}",
            main_outcomes(&records)
        );
    }
}

/// Kills a client in its second tool. Returns its world, transcript and model.
fn kill_client_in_second_tool() -> (World, PathBuf, ScriptedModel) {
    let model = model_with_steps(vec![
        Step::bash_call("echo before"),
        Step::bash_call("touch started; sleep 30").with_text("Now a long one."),
        Step::from_text("never"),
    ]);
    let world = world_with_hooks(&model);
    let mut client = session_launch(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    // The client has written the call into the transcript by then.
    let path = transcript_path(&world, FIRST);
    let is_call_written = || fs::read_to_string(&path).is_ok_and(|text| text.contains("Now a long one."));
    world.wait_until(is_call_written, "the call in the transcript");
    // While the client works, its turn stays open, also after a sync.
    sync_all_turns(&world);
    client.kill();
    client.wait_or_kill_and_panic(TIMEOUT);
    world.kill_leftovers();
    // The second turn is open. At the only batch, the first turn's result may not have been written yet.
    assert!(main_outcomes(&read_records(&world, FIRST)).len() < 2);
    (world, path, model)
}

fn assert_last_turn_is_abandoned(world: &World) {
    let records = check_log(world, FIRST);
    assert_eq!(main_outcomes(&records), ["ok", "abandoned"]);
    let failure = turns_of_stream(&records, MAIN_STREAM)[1].turn().unwrap().parsed_failure().unwrap();
    assert!(failure.message.contains("Bash"), "{failure:?}");
    assert_eq!(sync_all_turns(world), 0, "once");
}

#[test]
fn after_a_kill_all_turns_are_logged_and_the_open_call_is_abandoned() {
    let (world, _, _model) = kill_client_in_second_tool();
    // The client's process is gone, so the start of the next session reads on at once and treats the first session as
    // over.
    session_launch(&world, SECOND, "Hello.").run().expect_success();
    assert_last_turn_is_abandoned(&world);
    check_log(&world, SECOND);
}

#[test]
fn without_a_client_pid_a_session_is_over_after_an_hour_of_silence() {
    let (world, path, _model) = kill_client_in_second_tool();
    let record = format!(".claude/plimsoll/sessions/{FIRST}.json");
    let mut session_record = world.read_json(&record);
    assert!(session_record.as_object_mut().unwrap().remove("client").is_some(), "{session_record}");
    world.write(&record, &session_record.to_string());
    // The first session may only be waiting.
    session_launch(&world, SECOND, "Hello.").run().expect_success();
    assert_eq!(main_outcomes(&read_records(&world, FIRST)), ["ok"]);
    let long_ago = SystemTime::now() - Duration::from_secs(7_200);
    File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(sync_all_turns(&world), 1);
    assert_last_turn_is_abandoned(&world);
}

#[test]
fn a_resumed_session_continues_in_its_log_and_a_fork_gets_its_own() {
    let model = model_with_steps(vec![
        Step::bash_call("echo one"),
        Step::from_text("First answer."),
        Step::bash_call("echo two"),
        Step::from_text("Second answer."),
        Step::from_text("The fork's answer."),
    ]);
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "Work.").run().expect_success();
    let resume_first_session = |more: &[&str]| {
        let arguments = ["-p", "Go on.", "--resume", FIRST, "--model", "opus", "--allowedTools", "Bash"];
        world.claude(&[&arguments[..], more].concat()).run().expect_success();
    };
    resume_first_session(&[]);
    let records = check_log(&world, FIRST);
    assert_eq!(main_outcomes(&records), ["ok"; 4]);
    assert_eq!(total_cost(&records), expected_cost(4));
    let count = |kind: RecordKind| {
        record_kinds(&records).iter().filter(|recorded_kind| **recorded_kind == kind).count()
    };
    assert_eq!(
        (count(RecordKind::SessionStart), count(RecordKind::SessionEnd)),
        (2, 2),
        "{:?}",
        record_kinds(&records)
    );
    assert_eq!(count(RecordKind::LateContent), 0, "{records:#?}");

    let before = fs::read(turn_log(&world, FIRST).path()).unwrap();
    resume_first_session(&["--fork-session", "--session-id", SECOND]);
    assert_eq!(fs::read(turn_log(&world, FIRST).path()).unwrap(), before, "the first is left alone");
    let forked = check_log(&world, SECOND);
    let last = turns_of_stream(&forked, MAIN_STREAM).last().unwrap().turn().unwrap().joined_text();
    assert_eq!(last, "The fork's answer.", "{:?}", record_kinds(&forked));
}

#[test]
fn prompts_starts_and_ends_are_events_and_the_transcript_is_unchanged() {
    let model = model_with_steps(vec![Step::bash_call("echo one"), Step::from_text("Done.")]);
    let world = world_with_hooks(&model);
    session_launch(&world, FIRST, "A prompt of mine.").run().expect_success();
    let records = check_log(&world, FIRST);
    let recorded_kinds = record_kinds(&records);
    assert_eq!(
        (recorded_kinds.first(), recorded_kinds.last()),
        (Some(&RecordKind::SessionStart), Some(&RecordKind::SessionEnd)),
        "{recorded_kinds:?}"
    );
    let prompt = records.iter().find_map(|record| match &record.body {
        plimsoll_flows::turns::RecordBody::Event(fields) if record.header.kind == RecordKind::Prompt => {
            fields["text"].as_str()
        }
        _ => None,
    });
    assert_eq!(prompt, Some("A prompt of mine."));

    let path = transcript_path(&world, FIRST);
    let before = (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
    for hook in ["plimsoll-session-start", "plimsoll-stop-gate", "plimsoll-session-end"] {
        let event = hook.trim_start_matches("plimsoll-");
        let name = match event {
            "session-start" => "SessionStart",
            "session-end" => "SessionEnd",
            _ => "Stop",
        };
        let payload = serde_json::json!({
            "hook_event_name": name, "session_id": FIRST, "transcript_path": path, "source": "resume",
            "reason": "other", "cwd": world.project(),
        });
        world.hook(hook, &payload).run();
    }
    let after = (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
    assert!(before == after, "no hook touches it");
    fs::remove_file(&path).unwrap();
    assert_eq!(main_outcomes(&read_records(&world, FIRST)), ["ok"; 2], "the log needs no transcript");
}
