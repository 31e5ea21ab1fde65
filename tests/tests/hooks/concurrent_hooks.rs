//! Many hooks at once: each level is announced exactly once; record, state and journal stay intact; and the next event
//! finishes what a killed hook left.

use plimsoll_testkit::world::{FinishedProgram, Launch, RunningProgram, World};
use plimsoll_tests::{create_run, events_named, read_journal};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const RUN: &str = "20260107-090000-dates";
const CONCURRENT_HOOKS: usize = 20;
const LEVELS: [(&str, u64); 3] = [("L1", 720_000), ("L2", 870_000), ("L3", 960_000)];

/// A project with a session, in a run or without one.
struct SessionFixture {
    world: World,
    in_run: bool,
}

impl SessionFixture {
    fn new(in_run: bool) -> SessionFixture {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n- [ ] Item two\n");
        if in_run {
            create_run(&world, RUN, "session-1");
        }
        SessionFixture { world, in_run }
    }

    fn transcript_path(&self, session: &str) -> PathBuf {
        self.world.home().join(format!("{session}.jsonl"))
    }

    /// Writes a transcript whose last response has this many input tokens and calls a tool.
    fn write_response(&self, session: &str, tokens: u64) {
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
            "timestamp": "2026-01-07T11:45:00.000Z",
            "message": {
                "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
                "usage": { "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
            },
        });
        self.world.write(self.transcript_path(session), &format!("{line}\n"));
    }

    fn monitor_launch(&self, session: &str) -> Launch {
        let batch = json!({
            "session_id": session, "transcript_path": self.transcript_path(session), "cwd": self.world.project(),
            "hook_event_name": "PostToolBatch",
            "tool_calls": [{ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "ok" }],
        });
        let launch = self.world.hook("plimsoll-post-tool", &batch);
        let launch = launch.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN) } else { launch }
    }

    /// Prepares the hook that runs before the client compacts.
    fn pre_compact_launch(&self, session: &str) -> Launch {
        let event = json!({
            "session_id": session, "transcript_path": self.transcript_path(session), "cwd": self.world.project(),
            "hook_event_name": "PreCompact", "trigger": "auto",
        });
        let launch = self.world.hook("plimsoll-pre-compact", &event);
        let launch = launch.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN) } else { launch }
    }

    fn run_monitors_concurrently(&self, sessions: &[&str]) -> Vec<FinishedProgram> {
        let running: Vec<RunningProgram> =
            sessions.iter().map(|session| self.monitor_launch(session).spawn()).collect();
        running.into_iter().map(|running| running.wait_or_kill_and_panic(Duration::from_secs(30))).collect()
    }

    fn session_record(&self, session: &str) -> Value {
        self.world.read_json(format!(".claude/plimsoll/sessions/{session}.json"))
    }

    fn handoff_paths(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.world.path(".claude/handoffs"));
        let paths = folder.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
    }

    /// Returns the drafts of files that were never moved to their final path.
    fn draft_files(&self) -> Vec<String> {
        let found = self.world.command("find", &[".", "-name", "*draft"]).run().expect_success();
        found.stdout.lines().map(str::to_owned).collect()
    }
}

/// Returns the first two fields of the marker that a hook announces, or `None` if it announces nothing.
fn announcement_of(finished: &FinishedProgram) -> Option<String> {
    assert_ne!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.stderr, "", "{finished:?}");
    let reply = finished.stdout_json();
    reply["systemMessage"].as_str()?;
    let marker = plimsoll_tests::marker_in_user_message(&reply);
    Some(marker.split('|').take(2).collect::<Vec<_>>().join("|"))
}

fn count_announcements(finished: &[FinishedProgram], announcement: &str) -> usize {
    finished.iter().filter_map(announcement_of).filter(|announced| announced == announcement).count()
}

#[test]
fn twenty_concurrent_monitors_of_a_run_announce_each_level_once() {
    let fixture = SessionFixture::new(true);
    for (level, tokens) in LEVELS {
        fixture.write_response("session-1", tokens);
        let finished = fixture.run_monitors_concurrently(&["session-1"; CONCURRENT_HOOKS]);
        let announcement = if level == "L1" {
            "CCS_WARNING|L1".to_owned()
        } else {
            format!("CCS_CHECKPOINT_TRIGGERED|{level}")
        };
        assert_eq!(count_announcements(&finished, &announcement), 1, "{level}: {finished:?}");
        let ended_count =
            finished.iter().filter(|finished| finished.stdout_json()["continue"] == false).count();
        match level {
            "L1" => assert_eq!(ended_count, 0),
            // The first five of the twenty batches are within the grace period; the others end the session.
            "L2" => assert_eq!(ended_count, CONCURRENT_HOOKS - 5, "{finished:?}"),
            _ => {
                assert_eq!(ended_count, CONCURRENT_HOOKS, "at L3 everyone ends the session: {finished:?}");
                assert!(finished.iter().all(|finished| finished.code == Some(1)), "{finished:?}");
            }
        }
    }
    let state = fixture.world.read_json(".claude/ralph-state.json");
    assert_eq!(state["context_checkpoint"]["level"], "L3");
    assert_eq!(state["context_checkpoint"]["percent_at_checkpoint"], 96);
    let history = state["context_history"].as_array().expect("a history");
    assert_eq!(history.len(), 1, "{history:?}");
    let entry = &history[0];
    assert_eq!((&entry["iteration"], &entry["peak_percent"]), (&json!(1), &json!(96)));
    assert_eq!(entry["checkpoint"], true);
    assert_eq!(fixture.session_record("session-1")["announced"], "L3");
    let journal = read_journal(&fixture.world);
    assert_eq!(events_named(&journal, "warning").len(), 1);
    assert_eq!(events_named(&journal, "checkpoint").len(), 2);
    assert_eq!(fixture.handoff_paths().len(), 1, "one session has one handoff");
    assert_eq!(fixture.draft_files(), Vec::<String>::new());
}

#[test]
fn twenty_monitors_outside_a_run_warn_once_per_level_and_end_nothing() {
    let fixture = SessionFixture::new(false);
    for (level, tokens) in LEVELS {
        fixture.write_response("session-1", tokens);
        let finished = fixture.run_monitors_concurrently(&["session-1"; CONCURRENT_HOOKS]);
        assert_eq!(
            count_announcements(&finished, &format!("CCS_WARNING|{level}")),
            1,
            "{level}: {finished:?}"
        );
        assert_eq!(finished.iter().filter_map(announcement_of).count(), 1, "{level}: {finished:?}");
        assert!(finished.iter().all(|finished| finished.code == Some(0)), "{finished:?}");
        assert!(
            finished.iter().all(|finished| finished.stdout_json().get("continue").is_none()),
            "{finished:?}"
        );
    }
    assert_eq!(events_named(&read_journal(&fixture.world), "warning").len(), 3);
    assert_eq!(fixture.handoff_paths().len(), 1);
    assert_eq!(fixture.draft_files(), Vec::<String>::new());
}

#[test]
fn sixty_concurrent_checkpoints_of_a_session_write_one_handoff() {
    for in_run in [true, false] {
        let fixture = SessionFixture::new(in_run);
        fixture.write_response("session-1", 870_000);
        let running: Vec<RunningProgram> =
            (0..60).map(|_| fixture.pre_compact_launch("session-1").spawn()).collect();
        let finished: Vec<FinishedProgram> = running
            .into_iter()
            .map(|running| running.wait_or_kill_and_panic(Duration::from_secs(60)))
            .collect();
        assert!(finished.iter().all(|finished| finished.code == Some(0)), "{finished:?}");
        let handoffs = fixture.handoff_paths();
        assert_eq!(handoffs.len(), 1, "{handoffs:?}");
        let name = fixture.world.path(&handoffs[0]).display().to_string();
        let recorded = fixture.session_record("session-1")["handoff"].as_str().expect("a handoff").to_owned();
        assert!(name.ends_with(&recorded), "{recorded} {name}");
        assert_eq!(fixture.draft_files(), Vec::<String>::new());
    }
}

#[test]
fn twenty_concurrent_sessions_do_not_affect_each_other() {
    let fixture = SessionFixture::new(false);
    let sessions: Vec<String> = (0..CONCURRENT_HOOKS).map(|number| format!("session-{number}")).collect();
    let sessions: Vec<&str> = sessions.iter().map(String::as_str).collect();
    for (number, session) in sessions.iter().enumerate() {
        fixture.write_response(session, 700_000 + 13_000 * number as u64);
    }
    let finished = fixture.run_monitors_concurrently(&sessions);
    for (number, (session, finished)) in sessions.iter().zip(&finished).enumerate() {
        let percent = (700 + 13 * number as u64 + 5) / 10;
        let message = finished.stdout_json()["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(&format!("|{percent}|")), "{session} {percent}: {finished:?}");
        assert_eq!(fixture.session_record(session)["percent"], percent, "{session}");
    }
    let handoff_texts =
        fixture.handoff_paths().into_iter().map(|path| fixture.world.read(path)).collect::<Vec<_>>();
    for session in &sessions {
        let mention_count =
            handoff_texts.iter().filter(|text| text.contains(&format!("{session}.jsonl"))).count();
        let has_handoff = fixture.session_record(session)["handoff"].is_string();
        assert_eq!(mention_count, usize::from(has_handoff), "{session}");
    }
    assert_eq!(events_named(&read_journal(&fixture.world), "warning").len(), CONCURRENT_HOOKS);
    assert_eq!(fixture.draft_files(), Vec::<String>::new());
}

#[test]
fn next_event_finishes_what_killed_monitors_left() {
    let mut orphaned_claims = 0;
    for round in 0..12_u64 {
        let fixture = SessionFixture::new(true);
        fixture.write_response("session-1", 870_000);
        let mut running: Vec<RunningProgram> =
            (0..8).map(|_| fixture.monitor_launch("session-1").spawn()).collect();
        // Every second hook is killed, each at a different time after its start.
        for (number, hook) in running.iter_mut().enumerate().filter(|(number, _)| number % 2 == 0) {
            std::thread::sleep(Duration::from_micros(700 * round + 300 * number as u64));
            hook.kill();
        }
        let finished: Vec<FinishedProgram> =
            running.into_iter().map(|hook| hook.wait_or_kill_and_panic(Duration::from_secs(30))).collect();
        let survivors =
            finished.iter().filter(|finished| finished.signal.is_none()).cloned().collect::<Vec<_>>();
        assert!(count_announcements(&survivors, "CCS_CHECKPOINT_TRIGGERED|L2") <= 2, "{finished:?}");
        let path = fixture.world.path(".claude/plimsoll/sessions/session-1.json");
        orphaned_claims +=
            usize::from(path.exists() && fixture.session_record("session-1")["claim"].is_object());

        fixture.monitor_launch("session-1").run();
        let record = fixture.session_record("session-1");
        assert!(record.get("claim").is_none_or(Value::is_null), "round {round}: {record}");
        assert_eq!(record["announced"], "L2");
        let state = fixture.world.read_json(".claude/ralph-state.json");
        assert_eq!(state["context_checkpoint"]["active"], true, "round {round}: {state}");
        let handoff = state["context_checkpoint"]["handoff_file"].as_str().unwrap().to_owned();
        assert!(fixture.world.read(&handoff).contains("Item one"), "round {round}");
        assert!(!events_named(&read_journal(&fixture.world), "checkpoint").is_empty(), "whole lines only");
        let killed = finished.iter().filter(|finished| finished.signal == Some(9)).count();
        assert!(fixture.draft_files().len() <= killed, "round {round}: {:?}", fixture.draft_files());
        assert_eq!(fixture.handoff_paths().len(), 1, "round {round}: {:?}", fixture.handoff_paths());
    }
    println!("claims left by killed hooks: {orphaned_claims} of 12 rounds");
}
