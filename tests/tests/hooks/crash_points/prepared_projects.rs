//! Projects with a session in them, in a run or without one, and what the client tells of it.

use crate::crash_points::prepared_world::{Play, Stage};
use plimsoll_domain::memory::MemoryOp;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_domain::state::{PlanItems, RunOptions};
use plimsoll_domain::{RunId, RunState, SessionId};
use plimsoll_store::Project;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::path::PathBuf;

pub const RUN: &str = "20260107-090000-dates";
pub const SESSION: &str = "session-one";
const FILES: &str = "- [ ] Item one\n- [ ] Item two\n";

pub struct Scene {
    pub stage: Stage,
    in_run: bool,
}

/// A recorded transcript.
pub fn transcript(name: &str) -> String {
    let path = plimsoll_testkit::fixtures().join(format!("transcripts/{name}.jsonl"));
    std::fs::read_to_string(path).expect("a fixture")
}

impl Scene {
    /// A session of no run.
    pub fn ordinary() -> Scene {
        let world = World::new();
        world.write("fix_plan.md", FILES);
        plimsoll_flows::install::git_exclude::exclude_run_files(&world.project(), &[]).expect("a repository");
        Scene { stage: Stage::new(world), in_run: false }
    }

    /// A session of a run, with something changed and not committed.
    pub fn in_run() -> Scene {
        Scene::in_run_with(|_| ())
    }

    /// The same of a run that differs in this.
    pub fn in_run_with(change: impl FnOnce(&mut RunState)) -> Scene {
        let scene = Scene { in_run: true, ..Scene::ordinary() };
        let mut state =
            RunState { session_id: Some(SessionId::from(SESSION)), ..state(IterationPhase::Spawned) };
        change(&mut state);
        scene.create(&state);
        let start = scene.event("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
        scene.stage.run(&start).expect_success();
        // What was changed before the session began would be somebody else's.
        scene.stage.world.write("README.md", "A project.\nWith more to it.\n");
        scene
    }

    /// A run whose session has not begun.
    pub fn planned() -> Scene {
        let scene = Scene { in_run: true, ..Scene::ordinary() };
        scene.create(&state(IterationPhase::Planned));
        scene
    }

    pub fn create(&self, state: &RunState) {
        plimsoll_store::state_file::create_state(&self.project(), state).expect("the state");
    }

    pub fn project(&self) -> Project {
        Project::with_local_files(&self.stage.world.project()).with_runs_folder(&self.stage.world.runs())
    }

    pub fn transcript(&self) -> PathBuf {
        self.stage.world.home().join(".claude/projects/x/session-one.jsonl")
    }

    /// The model has answered a request of so many tokens, and called a tool.
    pub fn answers(&self, tokens: u64) {
        let usage = json!({ "input_tokens": tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 1 });
        let line = json!({
            "type": "assistant", "isSidechain": false, "requestedModel": "claude-opus-5-5",
            "timestamp": "2026-01-07T11:45:00.000Z", "uuid": "u",
            "message": {
                "id": "msg_1", "model": "claude-opus-5-5", "role": "assistant", "usage": usage,
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }],
            },
        });
        self.stage.world.write(self.transcript(), &format!("{line}\n"));
    }

    /// A hook's call.
    pub fn event(&self, program: &'static str, event: &str, more: Value) -> Play {
        let mut payload = json!({
            "session_id": SESSION, "transcript_path": self.transcript(), "cwd": self.stage.world.project(),
            "hook_event_name": event,
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let play = Play::of(program, &[]).stdin(payload);
        let play = play.env("CLAUDE_PROJECT_DIR", self.stage.world.project().display());
        if self.in_run { play.env("PLIMSOLL_RUN_ID", RUN) } else { play }
    }

    /// The same call as in another world.
    pub fn moved(&self, play: Play) -> Play {
        let Play { program, arguments, stdin, .. } = play;
        let mut payload: Value = serde_json::from_str(&stdin).expect("a payload");
        for key in ["transcript_path", "cwd"] {
            payload.as_object_mut().expect("an object").remove(key);
        }
        let event = payload["hook_event_name"].as_str().unwrap_or_default().to_owned();
        Play { arguments, ..self.event(program, &event, payload) }
    }

    /// A batch of tools.
    pub fn batch(&self) -> Play {
        let call =
            json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "ok" });
        self.event("plimsoll-post-tool", "PostToolBatch", json!({"tool_calls": [call]}))
    }

    /// The session ends its turn with these words.
    pub fn stop(&self, words: &str) -> Play {
        self.event(
            "plimsoll-stop-gate",
            "Stop",
            json!({"last_assistant_message": words, "stop_hook_active": false}),
        )
    }

    /// A memory with a register and a chunk that lies beside the log.
    pub fn remember(&self) {
        let chunk = MemoryOp::HeapAlloc {
            name: "spec".into(),
            content: "x".repeat(6_000),
            description: String::new(),
        };
        self.change(chunk);
        self.stage.run(&Play::command(&["memory", "set", "goal", "Build it."])).expect_success();
    }

    pub fn push_frame(&self, name: &str) {
        let push = MemoryOp::PushFrame {
            name: name.into(),
            objective: "Write the tests".into(),
            context: "The code is there".into(),
            return_spec: "Passed and failed".into(),
            pushed_by_call: None,
        };
        self.change(push);
    }

    fn change(&self, op: MemoryOp) {
        plimsoll_store::memory::apply_changes(&self.project(), "test", &[op]).expect("the memory");
    }
}

pub fn state(phase: IterationPhase) -> RunState {
    RunState {
        run_id: RunId::from(RUN),
        iteration: 1,
        promise_code: "abcd1234".parse().expect("a code"),
        iteration_record: IterationRecord { iteration: 1, phase, ..IterationRecord::default() },
        options: RunOptions {
            task_name: "Dates".to_owned(),
            objective: "Do the plan.".to_owned(),
            max_iterations: 5,
            completion_promise: "RALPH_DONE".parse().expect("a word"),
            todo_file: Some("fix_plan.md".to_owned()),
            ..RunOptions::default()
        },
        plan_items: PlanItems {
            todo_items: vec!["Item one".to_owned(), "Item two".to_owned()],
            known_items: vec!["Item one".to_owned(), "Item two".to_owned()],
            ..PlanItems::default()
        },
        ..RunState::default()
    }
}
