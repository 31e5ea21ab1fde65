//! How sessions end, and what their logs say of it.

use crate::turn_log::harness::{
    FIRST, SECOND, ask, check, cost, kinds, log, model, outcomes, price, records, sync, transcript, turns,
};
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::installed;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(30);

fn wait_for_file(world: &World, name: &str) {
    world.wait_until(|| world.exists(name), name);
}

#[test]
fn a_session_that_a_person_stopped_in_a_tool_is_interrupted() {
    let model = model(vec![Step::bash("touch started; sleep 30"), Step::text("never")]);
    let world = installed(&model);
    let mut client = ask(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    client.interrupt();
    client.wait(TIMEOUT);
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["interrupted"], "{records:#?}");
    assert!(
        turns(&records, MAIN_STREAM)[0].turn().unwrap().prints().is_empty(),
        "the client's words are no output"
    );
    assert_eq!(kinds(&records).last(), Some(&RecordKind::SessionEnd));
}

#[test]
fn a_session_that_a_person_stopped_in_the_middle_of_a_response_says_what_the_client_kept() {
    let long = Step::text("word ".repeat(60)).chunks(60, Duration::from_millis(200));
    let model = model(vec![Step::bash("touch started"), long, Step::text("never")]);
    let world = installed(&model);
    let mut client = ask(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    world.wait_until(|| model.main_requests().len() == 2, "the second response");
    std::thread::sleep(Duration::from_millis(1_500));
    client.interrupt();
    client.wait(TIMEOUT);
    let records = check(&world, FIRST);
    let words = outcomes(&records);
    // Where the client has kept the beginning of the response, that is no success.
    assert!(
        words == ["ok"] || words == ["ok", "interrupted"],
        "{words:?} {:#?}",
        turns(&records, MAIN_STREAM).last()
    );
    assert_eq!(kinds(&records).last(), Some(&RecordKind::SessionEnd));
}

#[test]
fn a_stream_that_breaks_off_and_is_asked_for_again_is_one_turn() {
    for broken in [Step::text("half").cut(), Step::text("half").sse_error("overloaded_error", "Overloaded")] {
        let model = model(vec![Step::bash("echo one"), broken, Step::text("Whole.")]);
        let world = installed(&model);
        ask(&world, FIRST, "Work.").run();
        let records = check(&world, FIRST);
        let last = turns(&records, MAIN_STREAM).last().unwrap().turn().unwrap();
        assert_eq!(
            (last.is_success(), last.joined_text().as_str()),
            (true, "Whole."),
            "{:?}",
            outcomes(&records)
        );
    }
}

/// A client that was killed in its second tool.
fn killed() -> (World, PathBuf, ScriptedModel) {
    let model = model(vec![
        Step::bash("echo before"),
        Step::bash("touch started; sleep 30").say("Now a long one."),
        Step::text("never"),
    ]);
    let world = installed(&model);
    let mut client = ask(&world, FIRST, "Work.").spawn();
    wait_for_file(&world, "started");
    // The client's writer has put the call into the transcript.
    let path = transcript(&world, FIRST);
    let written = || fs::read_to_string(&path).is_ok_and(|text| text.contains("Now a long one."));
    world.wait_until(written, "the call in the transcript");
    // While it works its turn stays open, also for somebody who asks.
    sync(&world);
    client.kill();
    client.wait(TIMEOUT);
    world.end_leftovers();
    // The second turn is open, and at the only batch the first one's result may not have been written yet.
    assert!(outcomes(&records(&world, FIRST)).len() < 2);
    (world, path, model)
}

fn assert_whole(world: &World) {
    let records = check(world, FIRST);
    assert_eq!(outcomes(&records), ["ok", "abandoned"]);
    let failure = turns(&records, MAIN_STREAM)[1].turn().unwrap().parsed_failure().unwrap();
    assert!(failure.message.contains("Bash"), "{failure:?}");
    assert_eq!(sync(world), 0, "once");
}

#[test]
fn a_killed_client_leaves_nothing_out_and_its_open_call_is_abandoned() {
    let (world, _, _model) = killed();
    // Its process is gone: the next session's start reads on at once, and takes the first for over.
    ask(&world, SECOND, "Hello.").run().expect_success();
    assert_whole(&world);
    check(&world, SECOND);
}

#[test]
fn where_nobody_named_the_clients_process_a_session_is_over_after_an_hour_of_silence() {
    let (world, path, _model) = killed();
    let record = format!(".claude/plimsoll/sessions/{FIRST}.json");
    let mut known = world.json(&record);
    assert!(known.as_object_mut().unwrap().remove("client").is_some(), "{known}");
    world.write(&record, &known.to_string());
    // It may only be waiting.
    ask(&world, SECOND, "Hello.").run().expect_success();
    assert_eq!(outcomes(&records(&world, FIRST)), ["ok"]);
    let long_ago = SystemTime::now() - Duration::from_secs(7_200);
    File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(sync(&world), 1);
    assert_whole(&world);
}

#[test]
fn a_session_that_is_resumed_goes_on_in_its_own_log_and_a_fork_has_one_of_its_own() {
    let model = model(vec![
        Step::bash("echo one"),
        Step::text("First answer."),
        Step::bash("echo two"),
        Step::text("Second answer."),
        Step::text("The fork's answer."),
    ]);
    let world = installed(&model);
    ask(&world, FIRST, "Work.").run().expect_success();
    let resume = |more: &[&str]| {
        let arguments = ["-p", "Go on.", "--resume", FIRST, "--model", "opus", "--allowedTools", "Bash"];
        world.claude(&[&arguments[..], more].concat()).run().expect_success();
    };
    resume(&[]);
    let records = check(&world, FIRST);
    assert_eq!(outcomes(&records), ["ok"; 4]);
    assert_eq!(cost(&records), price(4));
    let count = |kind: RecordKind| kinds(&records).iter().filter(|found| **found == kind).count();
    assert_eq!(
        (count(RecordKind::SessionStart), count(RecordKind::SessionEnd)),
        (2, 2),
        "{:?}",
        kinds(&records)
    );
    assert_eq!(count(RecordKind::LateContent), 0, "{records:#?}");

    let before = fs::read(log(&world, FIRST).path()).unwrap();
    resume(&["--fork-session", "--session-id", SECOND]);
    assert_eq!(fs::read(log(&world, FIRST).path()).unwrap(), before, "the first is left alone");
    let forked = check(&world, SECOND);
    let last = turns(&forked, MAIN_STREAM).last().unwrap().turn().unwrap().joined_text();
    assert_eq!(last, "The fork's answer.", "{:?}", kinds(&forked));
}

#[test]
fn prompts_starts_and_ends_are_events_and_the_client_s_transcript_is_left_alone() {
    let model = model(vec![Step::bash("echo one"), Step::text("Done.")]);
    let world = installed(&model);
    ask(&world, FIRST, "A prompt of mine.").run().expect_success();
    let records = check(&world, FIRST);
    let seen = kinds(&records);
    assert_eq!(
        (seen.first(), seen.last()),
        (Some(&RecordKind::SessionStart), Some(&RecordKind::SessionEnd)),
        "{seen:?}"
    );
    let prompt = records.iter().find_map(|record| match &record.body {
        plimsoll_flows::turns::RecordBody::Event(fields) if record.header.kind == RecordKind::Prompt => {
            fields["text"].as_str()
        }
        _ => None,
    });
    assert_eq!(prompt, Some("A prompt of mine."));

    let path = transcript(&world, FIRST);
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
    assert_eq!(
        outcomes(&crate::turn_log::harness::records(&world, FIRST)),
        ["ok"; 2],
        "the log needs no transcript"
    );
}
