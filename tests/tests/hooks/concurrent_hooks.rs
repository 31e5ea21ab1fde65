//! Many hooks at once: each level is announced exactly once, record, state and journal stay whole, and what a
//! killed hook left is finished by the next event.

use plimsoll_testkit::world::{Finished, Launch, Running, World};
use plimsoll_tests::{events, journal, put_run};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const RUN: &str = "20260107-090000-dates";
const AT_ONCE: usize = 20;
const LEVELS: [(&str, u64); 3] = [("L1", 720_000), ("L2", 870_000), ("L3", 960_000)];

/// A project with a session, in a run or without one.
struct Scene {
    world: World,
    in_run: bool,
}

impl Scene {
    fn new(in_run: bool) -> Scene {
        let world = World::new();
        world.write("fix_plan.md", "- [ ] Item one\n- [ ] Item two\n");
        if in_run {
            put_run(&world, RUN, "session-1");
        }
        Scene { world, in_run }
    }

    fn transcript(&self, session: &str) -> PathBuf {
        self.world.home().join(format!("{session}.jsonl"))
    }

    /// The model has answered a request of so many tokens, and called a tool.
    fn answers(&self, session: &str, tokens: u64) {
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
            "timestamp": "2026-01-07T11:45:00.000Z",
            "message": {
                "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
                "usage": { "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
            },
        });
        self.world.write(self.transcript(session), &format!("{line}\n"));
    }

    fn monitor(&self, session: &str) -> Launch {
        let batch = json!({
            "session_id": session, "transcript_path": self.transcript(session), "cwd": self.world.project(),
            "hook_event_name": "PostToolBatch",
            "tool_calls": [{ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "ok" }],
        });
        let launch = self.world.hook("plimsoll-post-tool", &batch);
        let launch = launch.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN) } else { launch }
    }

    /// The client is about to compact.
    fn compaction(&self, session: &str) -> Launch {
        let event = json!({
            "session_id": session, "transcript_path": self.transcript(session), "cwd": self.world.project(),
            "hook_event_name": "PreCompact", "trigger": "auto",
        });
        let launch = self.world.hook("plimsoll-pre-compact", &event);
        let launch = launch.env("CLAUDE_PROJECT_DIR", self.world.project().display().to_string());
        if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN) } else { launch }
    }

    fn at_once(&self, sessions: &[&str]) -> Vec<Finished> {
        let running: Vec<Running> = sessions.iter().map(|session| self.monitor(session).spawn()).collect();
        running.into_iter().map(|running| running.wait(Duration::from_secs(30))).collect()
    }

    fn record(&self, session: &str) -> Value {
        self.world.json(format!(".claude/plimsoll/sessions/{session}.json"))
    }

    fn handoffs(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.world.path(".claude/handoffs"));
        let paths = folder.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
    }

    /// Drafts of files that were never put in place.
    fn drafts(&self) -> Vec<String> {
        let found = self.world.command("find", &[".", "-name", "*draft"]).run().expect_success();
        found.stdout.lines().map(str::to_owned).collect()
    }
}

/// What a reply announces, by its marker's first two fields; none when it says nothing.
fn announced(finished: &Finished) -> Option<String> {
    assert_ne!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.stderr, "", "{finished:?}");
    let marker = finished.json()["systemMessage"].as_str()?.to_owned();
    Some(marker.split('|').take(2).collect::<Vec<_>>().join("|"))
}

fn counted(finished: &[Finished], announcement: &str) -> usize {
    finished.iter().filter_map(announced).filter(|found| found == announcement).count()
}

#[test]
fn twenty_monitors_of_a_run_announce_each_level_once() {
    let scene = Scene::new(true);
    for (level, tokens) in LEVELS {
        scene.answers("session-1", tokens);
        let finished = scene.at_once(&["session-1"; AT_ONCE]);
        let announcement = if level == "L1" {
            "CCS_WARNING|L1".to_owned()
        } else {
            format!("CCS_CHECKPOINT_TRIGGERED|{level}")
        };
        assert_eq!(counted(&finished, &announcement), 1, "{level}: {finished:?}");
        let ended = finished.iter().filter(|finished| finished.json()["continue"] == false).count();
        match level {
            "L1" => assert_eq!(ended, 0),
            // Twenty batches are four times the grace: those that come after it are told to end.
            "L2" => assert_eq!(ended, AT_ONCE - 5, "{finished:?}"),
            _ => {
                assert_eq!(ended, AT_ONCE, "at L3 everyone ends the session: {finished:?}");
                assert!(finished.iter().all(|finished| finished.code == Some(1)), "{finished:?}");
            }
        }
    }
    let state = scene.world.json(".claude/ralph-state.json");
    assert_eq!(state["context_checkpoint"]["level"], "L3");
    assert_eq!(state["context_checkpoint"]["percent_at_checkpoint"], 96);
    let history = state["context_history"].as_array().expect("a history");
    assert_eq!(history.len(), 1, "{history:?}");
    let entry = &history[0];
    assert_eq!((&entry["iteration"], &entry["peak_percent"]), (&json!(1), &json!(96)));
    assert_eq!(entry["checkpoint"], true);
    assert_eq!(scene.record("session-1")["announced"], "L3");
    let journal = journal(&scene.world);
    assert_eq!(events(&journal, "warning").len(), 1);
    assert_eq!(events(&journal, "checkpoint").len(), 2);
    assert_eq!(scene.handoffs().len(), 1, "one session has one handoff");
    assert_eq!(scene.drafts(), Vec::<String>::new());
}

#[test]
fn twenty_monitors_of_an_ordinary_session_advise_once_a_level_and_end_nothing() {
    let scene = Scene::new(false);
    for (level, tokens) in LEVELS {
        scene.answers("session-1", tokens);
        let finished = scene.at_once(&["session-1"; AT_ONCE]);
        assert_eq!(counted(&finished, &format!("CCS_WARNING|{level}")), 1, "{level}: {finished:?}");
        assert_eq!(finished.iter().filter_map(announced).count(), 1, "{level}: {finished:?}");
        assert!(finished.iter().all(|finished| finished.code == Some(0)), "{finished:?}");
        assert!(finished.iter().all(|finished| finished.json().get("continue").is_none()), "{finished:?}");
    }
    assert_eq!(events(&journal(&scene.world), "warning").len(), 3);
    assert_eq!(scene.handoffs().len(), 1);
    assert_eq!(scene.drafts(), Vec::<String>::new());
}

#[test]
fn sixty_checkpoints_of_one_session_at_once_have_one_handoff() {
    for in_run in [true, false] {
        let scene = Scene::new(in_run);
        scene.answers("session-1", 870_000);
        let running: Vec<Running> = (0..60).map(|_| scene.compaction("session-1").spawn()).collect();
        let finished: Vec<Finished> =
            running.into_iter().map(|running| running.wait(Duration::from_secs(60))).collect();
        assert!(finished.iter().all(|finished| finished.code == Some(0)), "{finished:?}");
        let handoffs = scene.handoffs();
        assert_eq!(handoffs.len(), 1, "{handoffs:?}");
        let name = scene.world.path(&handoffs[0]).display().to_string();
        let recorded = scene.record("session-1")["handoff"].as_str().expect("a handoff").to_owned();
        assert!(name.ends_with(&recorded), "{recorded} {name}");
        assert_eq!(scene.drafts(), Vec::<String>::new());
    }
}

#[test]
fn twenty_sessions_at_once_keep_to_themselves() {
    let scene = Scene::new(false);
    let sessions: Vec<String> = (0..AT_ONCE).map(|number| format!("session-{number}")).collect();
    let sessions: Vec<&str> = sessions.iter().map(String::as_str).collect();
    for (number, session) in sessions.iter().enumerate() {
        scene.answers(session, 700_000 + 13_000 * number as u64);
    }
    let finished = scene.at_once(&sessions);
    for (number, (session, finished)) in sessions.iter().zip(&finished).enumerate() {
        let percent = (700 + 13 * number as u64 + 5) / 10;
        let said = finished.json()["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains(&format!("|{percent}|")), "{session} {percent}: {finished:?}");
        assert_eq!(scene.record(session)["percent"], percent, "{session}");
    }
    let of_others = scene.handoffs().into_iter().map(|path| scene.world.read(path)).collect::<Vec<_>>();
    for session in &sessions {
        let named = of_others.iter().filter(|text| text.contains(&format!("{session}.jsonl"))).count();
        let own = scene.record(session)["handoff"].is_string();
        assert_eq!(named, usize::from(own), "{session}");
    }
    assert_eq!(events(&journal(&scene.world), "warning").len(), AT_ONCE);
    assert_eq!(scene.drafts(), Vec::<String>::new());
}

#[test]
fn what_killed_monitors_left_is_finished_by_the_next_event() {
    let mut orphans = 0;
    for round in 0..12_u64 {
        let scene = Scene::new(true);
        scene.answers("session-1", 870_000);
        let mut running: Vec<Running> = (0..8).map(|_| scene.monitor("session-1").spawn()).collect();
        // Every other hook is killed, each at another moment of its life.
        for (number, hook) in running.iter_mut().enumerate().filter(|(number, _)| number % 2 == 0) {
            std::thread::sleep(Duration::from_micros(700 * round + 300 * number as u64));
            hook.kill();
        }
        let finished: Vec<Finished> =
            running.into_iter().map(|hook| hook.wait(Duration::from_secs(30))).collect();
        let heard = finished.iter().filter(|finished| finished.signal.is_none()).cloned().collect::<Vec<_>>();
        assert!(counted(&heard, "CCS_CHECKPOINT_TRIGGERED|L2") <= 2, "{finished:?}");
        let path = scene.world.path(".claude/plimsoll/sessions/session-1.json");
        orphans += usize::from(path.exists() && scene.record("session-1")["claim"].is_object());

        scene.monitor("session-1").run();
        let record = scene.record("session-1");
        assert!(record.get("claim").is_none_or(Value::is_null), "round {round}: {record}");
        assert_eq!(record["announced"], "L2");
        let state = scene.world.json(".claude/ralph-state.json");
        assert_eq!(state["context_checkpoint"]["active"], true, "round {round}: {state}");
        let handoff = state["context_checkpoint"]["handoff_file"].as_str().unwrap().to_owned();
        assert!(scene.world.read(&handoff).contains("Item one"), "round {round}");
        assert!(!events(&journal(&scene.world), "checkpoint").is_empty(), "whole lines only");
        let killed = finished.iter().filter(|finished| finished.signal == Some(9)).count();
        assert!(scene.drafts().len() <= killed, "round {round}: {:?}", scene.drafts());
        assert_eq!(scene.handoffs().len(), 1, "round {round}: {:?}", scene.handoffs());
    }
    println!("claims left by killed hooks: {orphans} of 12 rounds");
}
