//! Two sessions at once in one project, and hooks that overtake each other.

use crate::frames::harness::registers;
use crate::memory_in_requests::harness::{Stage, alloc, done, free, look, note};
use crate::memory_in_requests::independent_reader::Mind;
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};

#[test]
fn two_sessions_at_once_each_know_what_the_other_writes() {
    let step = Step::default;
    // Whichever begins first waits for the other, so that they do work at the same time.
    let part = |own: &'static str, register: &'static str, other: &'static str| {
        let mut acts = vec![note(&[(register, own)]), look().once_told(other)];
        for number in 0..3 {
            let words = format!("{own} {number}");
            acts.push(note(&[(register, &words), ("R7_STATUS", &words)]));
            acts.push(alloc(step(), &format!("{own}-{number}"), &words).into());
            acts.push(registers(free(step(), &format!("{own}-{number}")), &[("R2_NEXT", &words)]).into());
        }
        acts.push(alloc(step(), own, "to stay").into());
        acts.push(look());
        acts
    };
    let stage = Stage::new(&[
        ("main-a", part("alpha", "R4_CONSTRAINTS", "beta")),
        ("main-b", part("beta", "R5_ASSUMPTIONS", "alpha")),
    ]);
    stage.share();
    let running = ["main-a", "main-b"].map(|name| stage.client(&format!("You are {name}."), &[]).spawn());
    for session in running {
        let finished = session.wait(std::time::Duration::from_secs(60));
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    stage.check();
    // Each has worked while the other did, and in the end both know the same.
    for (who, other) in [("main-a", "beta"), ("main-b", "alpha")] {
        let heard =
            stage.seen(who, |seen| seen.iter().filter(|seen| seen.request.text().contains(other)).count());
        assert!(heard >= 1, "{who} has heard of {other}");
    }
    stage.then(&[("main-a", vec![done()]), ("main-b", vec![done()])]);
    for name in ["main-a", "main-b"] {
        stage.play(&format!("You are {name}, anew."), &[]);
        let errors = stage.seen(name, |seen| {
            let last = seen.last().expect("a request");
            Mind::of(&last.request, 0).errors(&stage.memory(), 0)
        });
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// What a hook program tells the model.
fn told(stage: &Stage, program: &str, part: &[&str], payload: &Value) -> String {
    let program = plimsoll_testkit::bin_dir().join(program);
    let finished = stage.world.command(program, part).stdin(payload.to_string()).run().expect_success();
    if finished.stdout.is_empty() {
        return String::new();
    }
    finished.json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_is_written_between_two_entries_of_a_start_is_told_with_the_next_event() {
    let stage = Stage::new(&[]);
    let payload = |event: &str, more: Value| {
        let mut payload =
            json!({"session_id": "s-1", "cwd": stage.world.project(), "hook_event_name": event});
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        payload
    };
    stage.write(&["alloc", "spec", "old"]);
    for source in ["startup", "compact", "resume"] {
        let start = payload("SessionStart", json!({"source": source}));
        let number = stage.memory().revision;
        stage.write(&["write", "spec", &format!("before {source}")]);
        assert!(
            told(&stage, "plimsoll-memory", &["part-2"], &start).contains(&format!("before {source}")),
            "{source}"
        );
        stage.write(&["write", "spec", &format!("after {source}")]);
        let overview = told(&stage, "plimsoll-session-start", &["memory"], &start);
        assert!(overview.contains(&format!("rev=\"{}\"", number + 2)), "{source}");
        let batch = payload("PostToolBatch", json!({"tool_calls": []}));
        let news = || told(&stage, "plimsoll-post-tool", &["memory"], &batch);
        assert!(news().contains(&format!("after {source}")), "{source}");
        assert_eq!(news(), "", "{source}: once");
    }
}
