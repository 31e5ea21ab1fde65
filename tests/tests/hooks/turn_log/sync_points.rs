//! When a session's turns are synced to disk: not at every batch, because the transcript holds them, but at the end of
//! a turn, at a checkpoint and at the end of the session. Also what is recorded again after a power cut in between.

use plimsoll_store::TurnLog;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_tests::large_world::{LargeWorld, SESSION_ID, WorldSize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

/// Returns a project with a session that has begun, and a turn of it that the log does not have.
fn world_with_begun_session() -> LargeWorld {
    let large = LargeWorld::new(WorldSize::TEN_OF_EACH);
    run_hook_traced(&large, "plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
    large
}

/// Runs a hook under `strace`, and returns the system calls with which it waited for the disk.
fn run_hook_traced(large: &LargeWorld, program: &str, event: &str, fields: Value) -> Vec<String> {
    let log = large.world.home().join("syncs");
    let program = find_or_build_bin_dir().join(program).display().to_string();
    let traced_syscalls = "trace=fsync,fdatasync,syncfs,sync,sync_file_range,msync";
    let arguments = ["-f", "-qq", "-e", traced_syscalls, "-o", &log.display().to_string(), &program];
    let finished = large.world.command("strace", &arguments).stdin(large.event_payload(event, fields)).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let text = fs::read_to_string(log).unwrap();
    text.lines().filter(|line| line.contains("sync")).map(str::to_owned).collect()
}

fn run_batch(large: &LargeWorld, result: &str) -> Vec<String> {
    let id = large.append_turn_with_result(result);
    let fields = json!({"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "make -s check"},
        "tool_use_id": id, "tool_response": result}]});
    run_hook_traced(large, "plimsoll-post-tool", "PostToolBatch", fields)
}

fn turn_log(large: &LargeWorld) -> TurnLog {
    TurnLog::for_session_where_started_or_current(&large.project, &SESSION_ID.into()).unwrap()
}

fn is_durable(large: &LargeWorld) -> bool {
    turn_log(large).current_head().unwrap().unsynced.is_none()
}

#[test]
fn a_batch_never_syncs_but_stop_pre_compact_and_session_end_do() {
    let large = world_with_begun_session();
    assert!(is_durable(&large));
    let result = "A line of an answer of seven kilobytes.\n".repeat(180);
    let syncing_events: [(&str, &str, Value); 3] = [
        ("plimsoll-stop-gate", "Stop", json!({"last_assistant_message": "Done so far."})),
        ("plimsoll-pre-compact", "PreCompact", json!({"trigger": "auto"})),
        ("plimsoll-session-end", "SessionEnd", json!({"reason": "other"})),
    ];
    for (number, (program, event, fields)) in syncing_events.into_iter().enumerate() {
        let before = turn_log(&large).current_head().unwrap().sequence_number;
        assert_eq!(run_batch(&large, &format!("{number} {result}")), [""; 0], "before {event}");
        assert_eq!(
            turn_log(&large).current_head().unwrap().sequence_number,
            before + 1,
            "the turn is in the log"
        );
        assert!(!is_durable(&large));
        let sync_calls = run_hook_traced(&large, program, event, fields);
        assert!(
            // A system without `syncfs` syncs the volume with two calls.
            sync_calls.iter().any(|line| line.contains("syncfs(") || line.contains(" sync(")),
            "{event}: the large piece, too: {sync_calls:?}"
        );
        assert!(is_durable(&large), "{event}");
    }
}

/// The log ends where it was last synced to disk, as after a power cut; the transcript is longer.
#[test]
fn turns_lost_in_a_power_cut_are_recorded_again_at_the_next_start() {
    let next_session = "99999999-9999-4999-8999-999999999999";
    for (session, source) in [(SESSION_ID, "resume"), (next_session, "startup")] {
        let large = world_with_begun_session();
        let log = turn_log(&large);
        let before = log.verify().unwrap().turn_count;
        (1..=3).for_each(|number| drop(run_batch(&large, &format!("{number} {}", "result ".repeat(1_000)))));
        let head_file = log.path().with_extension("head");
        let mut head: Value = serde_json::from_slice(&fs::read(&head_file).unwrap()).unwrap();
        let durable = head["unsynced"]["from"].as_u64().unwrap() as usize;
        let bytes = fs::read(log.path()).unwrap();
        assert_eq!(log.verify().unwrap().turn_count, before + 3);

        head["unsynced"]["boot"] = json!("another start");
        fs::write(&head_file, head.to_string()).unwrap();
        fs::write(log.path(), [&bytes[..durable], &vec![0; bytes.len() - durable]].concat()).unwrap();
        let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3_600);
        File::options().write(true).open(large.transcript_path()).unwrap().set_modified(hours_ago).unwrap();
        let event =
            large.event_payload("SessionStart", json!({"source": source})).replace(SESSION_ID, session);
        let finished = large
            .world
            .command(find_or_build_bin_dir().join("plimsoll-session-start"), &[])
            .stdin(event)
            .run();
        assert_eq!(finished.code, Some(0), "{finished:?}");

        // A resumed session may still add to its last turn.
        let batch_sync_calls =
            if session == SESSION_ID { run_batch(&large, "the fourth") } else { Vec::new() };
        assert_eq!(batch_sync_calls, [""; 0]);
        let turns = if session == SESSION_ID { before + 4 } else { before + 3 };

        let report = log.verify().unwrap();
        assert!(report.is_intact() && report.turn_count == turns, "{source}: {report:?}");
        let is_repair_reported =
            report.findings.iter().any(|finding| finding.description.contains("recorded again"));
        assert!(is_repair_reported, "{source}: {report:?}");
        let lines = fs::read_to_string(log.path()).unwrap();
        let messages: Vec<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["header"]["kind"] == "turn")
            .map(|line| line["header"]["message"].as_str().unwrap().to_owned())
            .collect();
        let distinct_messages: BTreeSet<&String> = messages.iter().collect();
        assert_eq!((distinct_messages.len(), messages.len() as u64), (messages.len(), turns), "none twice");
    }
}
