//! A log that another process has locked delays no session, and is completed later.

use crate::turn_log::harness::{
    FIRST, SECOND, check_log, expected_cost, main_outcomes, model_with_steps, project, read_records,
    record_kinds, session_launch, total_cost, turn_log,
};
use fs2::FileExt;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::{SessionId, SessionRecord, Timestamp};
use plimsoll_store::{Durability, sessions};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::world_with_hooks;
use serde_json::json;
use std::fs::{self, File};
use std::time::Duration;

#[test]
fn a_log_locked_for_a_whole_session_delays_nothing_and_loses_nothing() {
    let steps = |count: usize| {
        let mut steps: Vec<Step> = (0..count).map(|n| Step::bash_call(format!("echo {n}"))).collect();
        steps.push(Step::from_text("Done."));
        steps
    };
    let model = model_with_steps([steps(5), steps(5), steps(0)].concat());
    let world = world_with_hooks(&model);
    let unlocked_duration = session_launch(&world, FIRST, "Work.").run().expect_success().elapsed;
    let path = turn_log(&world, SECOND).path().with_extension("lock");
    let lock = File::create(path).unwrap();
    lock.lock_exclusive().unwrap();
    let locked_duration = session_launch(&world, SECOND, "Work.").run().expect_success().elapsed;
    // Start, five batches, Stop and SessionEnd are eight hooks, each of which waits 50 ms once or twice. Other work
    // beside the tests can make one session twice as long as the other; hooks that waited for the lock would make it
    // half a minute.
    let limit = unlocked_duration * 2 + Duration::from_millis(8 * 2 * 50 + 1_000);
    println!("the session took {unlocked_duration:?}, with the lock held {locked_duration:?}");
    assert!(locked_duration < limit, "{locked_duration:?} with the lock held, {unlocked_duration:?} without");
    assert!(!turn_log(&world, SECOND).exists(), "nobody wrote without the lock");
    drop(lock);
    session_launch(&world, "33333333-3333-4333-8333-333333333333", "Hello.").run().expect_success();
    let records = check_log(&world, SECOND);
    assert_eq!(main_outcomes(&records), ["ok"; 6]);
    assert_eq!(total_cost(&records).1, expected_cost(12).1 - expected_cost(6).1);
    for kind in [RecordKind::SessionStart, RecordKind::SessionEnd] {
        assert_eq!(
            record_kinds(&records).iter().filter(|recorded_kind| **recorded_kind == kind).count(),
            1,
            "{kind:?}"
        );
    }
}

#[test]
fn an_unwritable_log_does_not_stop_the_log_of_another_session() {
    let world = World::new();
    let project = project(&world);
    let answer = json!({
        "type": "assistant", "timestamp": "2026-01-07T12:00:00Z", "cwd": world.project(),
        "message": {"id": "m1", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"},
    });
    for id in [FIRST, SECOND] {
        let path = world.home().join(format!(".claude/projects/x/{id}.jsonl"));
        world.write(&path, &format!("{answer}\n"));
        let mut record = SessionRecord { session_id: SessionId::from(id), ..SessionRecord::default() };
        record.start.transcript_path = Some(path.display().to_string());
        record.end.ended_at = Some(Timestamp::from("2026-01-07T12:00:00Z"));
        sessions::set_aside_invalid_and_save_record(&project, &record, Durability::Lazy).unwrap();
    }
    fs::create_dir_all(turn_log(&world, FIRST).path()).unwrap();
    let synced = world.plimsoll(&["turns", "sync"]).run();
    assert!(synced.code != Some(0), "the first one's log is a folder: {synced:?}");
    assert_eq!(main_outcomes(&read_records(&world, SECOND)), ["ok"]);
}
