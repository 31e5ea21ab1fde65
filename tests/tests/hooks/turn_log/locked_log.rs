//! A log that somebody else holds delays no session, and gets everything later.

use crate::turn_log::harness::{
    FIRST, SECOND, ask, check, cost, kinds, log, model, outcomes, price, project, records,
};
use fs2::FileExt;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::{SessionId, SessionRecord, Timestamp};
use plimsoll_store::{Durability, sessions};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::installed;
use serde_json::json;
use std::fs::{self, File};
use std::time::Duration;

#[test]
fn a_lock_that_is_held_through_a_whole_session_delays_nothing_and_loses_nothing() {
    let steps = |count: usize| {
        let mut steps: Vec<Step> = (0..count).map(|n| Step::bash(format!("echo {n}"))).collect();
        steps.push(Step::text("Done."));
        steps
    };
    let model = model([steps(5), steps(5), steps(0)].concat());
    let world = installed(&model);
    let free = ask(&world, FIRST, "Work.").run().expect_success().elapsed;
    let path = log(&world, SECOND).path().with_extension("lock");
    let held = File::create(path).unwrap();
    held.lock_exclusive().unwrap();
    let locked = ask(&world, SECOND, "Work.").run().expect_success().elapsed;
    // Start, five batches, Stop, SessionEnd: eight hooks, each waiting 50 ms once or twice. What else runs beside the tests
    // makes one session twice as long as the other; hooks that waited for the lock would make it half a minute.
    let limit = free * 2 + Duration::from_millis(8 * 2 * 50 + 1_000);
    println!("the session took {free:?}, with the lock held {locked:?}");
    assert!(locked < limit, "{locked:?} with the lock held, {free:?} without");
    assert!(!log(&world, SECOND).exists(), "nobody wrote without the lock");
    drop(held);
    ask(&world, "33333333-3333-4333-8333-333333333333", "Hello.").run().expect_success();
    let records = check(&world, SECOND);
    assert_eq!(outcomes(&records), ["ok"; 6]);
    assert_eq!(cost(&records).1, price(12).1 - price(6).1);
    for kind in [RecordKind::SessionStart, RecordKind::SessionEnd] {
        assert_eq!(kinds(&records).iter().filter(|found| **found == kind).count(), 1, "{kind:?}");
    }
}

#[test]
fn a_log_in_trouble_keeps_no_other_session_from_its_own() {
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
        sessions::save_session_record(&project, &record, Durability::Lazy).unwrap();
    }
    fs::create_dir_all(log(&world, FIRST).path()).unwrap();
    let synced = world.plimsoll(&["turns", "sync"]).run();
    assert!(synced.code != Some(0), "the first one's log is a folder: {synced:?}");
    assert_eq!(outcomes(&records(&world, SECOND)), ["ok"]);
}
