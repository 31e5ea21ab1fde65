//! When a session's turns are put on the disk: not at every batch, where the transcript holds them, but at the end of a turn, at
//! a checkpoint and at the session's end. And what is recorded again after a power cut in between.

use plimsoll_store::TurnLog;
use plimsoll_testkit::bin_dir;
use plimsoll_tests::large_world::{LargeWorld, SESSION, Size};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

/// A project with a session that has begun, and a turn of it that the log does not have.
fn at_work() -> LargeWorld {
    let large = LargeWorld::new(Size::TEN);
    call(&large, "plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    large
}

/// One call of a hook; answers the calls with which it waited for the disk.
fn call(large: &LargeWorld, program: &str, event: &str, fields: Value) -> Vec<String> {
    let log = large.world.home().join("syncs");
    let program = bin_dir().join(program).display().to_string();
    let traced = "trace=fsync,fdatasync,syncfs,sync,sync_file_range,msync";
    let words = ["-f", "-qq", "-e", traced, "-o", &log.display().to_string(), &program];
    let finished = large.world.command("strace", &words).stdin(large.event(event, fields)).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let text = fs::read_to_string(log).unwrap();
    text.lines().filter(|line| line.contains("sync")).map(str::to_owned).collect()
}

fn batch(large: &LargeWorld, result: &str) -> Vec<String> {
    let id = large.add_turn_with(result);
    let fields = json!({"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "make -s check"},
        "tool_use_id": id, "tool_response": result}]});
    call(large, "plimsoll-post-tool", "PostToolBatch", fields)
}

fn log(large: &LargeWorld) -> TurnLog {
    TurnLog::for_session(&large.project, &SESSION.into()).unwrap()
}

fn is_durable(large: &LargeWorld) -> bool {
    log(large).current_head().unwrap().unsynced.is_none()
}

#[test]
fn a_batch_waits_for_no_disk_and_the_end_of_a_turn_a_checkpoint_and_the_sessions_end_do() {
    let large = at_work();
    assert!(is_durable(&large));
    let result = "A line of an answer of seven kilobytes.\n".repeat(180);
    let later: [(&str, &str, Value); 3] = [
        ("plimsoll-stop-gate", "Stop", json!({"last_assistant_message": "Done so far."})),
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-session-end", "SessionEnd", json!({"reason": "other"})),
    ];
    for (number, (program, event, fields)) in later.into_iter().enumerate() {
        let before = log(&large).current_head().unwrap().sequence_number;
        assert_eq!(batch(&large, &format!("{number} {result}")), [""; 0], "before {event}");
        assert_eq!(log(&large).current_head().unwrap().sequence_number, before + 1, "the turn is in the log");
        assert!(!is_durable(&large));
        let waited = call(&large, program, event, fields);
        assert!(
            waited.iter().any(|line| line.contains("syncfs")),
            "{event}: the large piece, too: {waited:?}"
        );
        assert!(is_durable(&large), "{event}");
    }
}

/// The log ends where it was last put on the disk, as after a power cut; the transcript has come further.
#[test]
fn turns_that_a_power_cut_has_taken_are_recorded_again_when_the_session_goes_on_or_the_next_one_begins() {
    let next = "99999999-9999-4999-8999-999999999999";
    for (session, source) in [(SESSION, "resume"), (next, "startup")] {
        let large = at_work();
        let log = log(&large);
        let before = log.verify().unwrap().turn_count;
        (1..=3).for_each(|number| drop(batch(&large, &format!("{number} {}", "result ".repeat(1_000)))));
        let head_file = log.path().with_extension("head");
        let mut head: Value = serde_json::from_slice(&fs::read(&head_file).unwrap()).unwrap();
        let durable = head["unsynced"]["from"].as_u64().unwrap() as usize;
        let bytes = fs::read(log.path()).unwrap();
        assert_eq!(log.verify().unwrap().turn_count, before + 3);

        head["unsynced"]["boot"] = json!("another start");
        fs::write(&head_file, head.to_string()).unwrap();
        fs::write(log.path(), [&bytes[..durable], &vec![0; bytes.len() - durable]].concat()).unwrap();
        let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3_600);
        File::options().write(true).open(large.transcript()).unwrap().set_modified(hours_ago).unwrap();
        let event = large.event("SessionStart", json!({"source": source})).replace(SESSION, session);
        let begun = large.world.command(bin_dir().join("plimsoll-session-start"), &[]).stdin(event).run();
        assert_eq!(begun.code, Some(0), "{begun:?}");

        // A session that goes on may still add to its last turn.
        let new = if session == SESSION { batch(&large, "the fourth") } else { Vec::new() };
        assert_eq!(new, [""; 0]);
        let turns = if session == SESSION { before + 4 } else { before + 3 };

        let report = log.verify().unwrap();
        assert!(report.is_intact() && report.turn_count == turns, "{source}: {report:?}");
        let said = report.findings.iter().any(|finding| finding.description.contains("recorded again"));
        assert!(said, "{source}: {report:?}");
        let lines = fs::read_to_string(log.path()).unwrap();
        let messages: Vec<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["header"]["kind"] == "turn")
            .map(|line| line["header"]["message"].as_str().unwrap().to_owned())
            .collect();
        let once: BTreeSet<&String> = messages.iter().collect();
        assert_eq!((once.len(), messages.len() as u64), (messages.len(), turns), "none twice");
    }
}
