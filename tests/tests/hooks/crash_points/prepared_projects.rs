//! Projects with a session, in a run or outside one, and the events that the client sends.

use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
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
const PLAN_TEXT: &str = "- [ ] Item one\n- [ ] Item two\n";

pub struct SessionFixture {
    pub prepared: PreparedWorld,
    in_run: bool,
}

/// Returns the text of a recorded transcript.
pub fn recorded_transcript(name: &str) -> String {
    let path = plimsoll_testkit::fixtures_dir().join(format!("transcripts/{name}.jsonl"));
    std::fs::read_to_string(path).expect("a fixture")
}

impl SessionFixture {
    /// A project with a plan, for a session outside a run.
    pub fn outside_run() -> SessionFixture {
        let world = World::new();
        world.write("fix_plan.md", PLAN_TEXT);
        plimsoll_flows::install::git_exclude::add_run_files_to_git_exclude(&world.project(), &[])
            .expect("a repository");
        SessionFixture { prepared: PreparedWorld::new(world), in_run: false }
    }

    /// A session of a run, with an uncommitted change.
    pub fn in_run() -> SessionFixture {
        SessionFixture::in_run_with(|_| ())
    }

    /// A session of a run with an uncommitted change, after `change` was applied to the run's first state.
    pub fn in_run_with(change: impl FnOnce(&mut RunState)) -> SessionFixture {
        let fixture = SessionFixture { in_run: true, ..SessionFixture::outside_run() };
        let mut state =
            RunState { session_id: Some(SessionId::from(SESSION)), ..run_state(IterationPhase::Spawned) };
        change(&mut state);
        fixture.create_state(&state);
        let start =
            fixture.hook_invocation("plimsoll-session-start", "SessionStart", json!({"source": "startup"}));
        fixture.prepared.run(&start).expect_success();
        // A change from before the session began would not count as the session's own.
        fixture.prepared.world.write("README.md", "A project.\nWith more to it.\n");
        fixture
    }

    /// A run with a planned iteration whose session has not begun.
    pub fn with_planned_iteration() -> SessionFixture {
        let fixture = SessionFixture { in_run: true, ..SessionFixture::outside_run() };
        fixture.create_state(&run_state(IterationPhase::Planned));
        fixture
    }

    pub fn create_state(&self, state: &RunState) {
        plimsoll_store::state_file::create_ledger_and_write_initial_state(&self.store_project(), state)
            .expect("the state");
    }

    pub fn store_project(&self) -> Project {
        Project::with_local_files(&self.prepared.world.project())
            .with_runs_folder(&self.prepared.world.runs_folder())
    }

    pub fn transcript_path(&self) -> PathBuf {
        self.prepared.world.home().join(".claude/projects/x/session-one.jsonl")
    }

    /// Writes a transcript whose last response has this many input tokens and calls a tool.
    pub fn write_response(&self, tokens: u64) {
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
        self.prepared.world.write(self.transcript_path(), &format!("{line}\n"));
    }

    /// Returns the invocation of a hook with an event and additional fields of its payload.
    pub fn hook_invocation(&self, program: &'static str, event: &str, extra_fields: Value) -> Invocation {
        let mut payload = json!({
            "session_id": SESSION, "transcript_path": self.transcript_path(), "cwd": self.prepared.world.project(),
            "hook_event_name": event,
        });
        payload
            .as_object_mut()
            .expect("an object")
            .extend(extra_fields.as_object().cloned().unwrap_or_default());
        let invocation = Invocation::new(program, &[]).stdin(payload);
        let invocation = invocation.env("CLAUDE_PROJECT_DIR", self.prepared.world.project().display());
        if self.in_run { invocation.env("PLIMSOLL_RUN_ID", RUN) } else { invocation }
    }

    /// Returns an invocation made for another world with the paths of this one.
    pub fn adapt_to_this_world(&self, invocation: Invocation) -> Invocation {
        let Invocation { program, arguments, stdin, .. } = invocation;
        let mut payload: Value = serde_json::from_str(&stdin).expect("a payload");
        for key in ["transcript_path", "cwd"] {
            payload.as_object_mut().expect("an object").remove(key);
        }
        let event = payload["hook_event_name"].as_str().unwrap_or_default().to_owned();
        Invocation { arguments, ..self.hook_invocation(program, &event, payload) }
    }

    /// Returns the event after a batch of tool calls.
    pub fn tool_batch(&self) -> Invocation {
        let call =
            json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}, "tool_response": "ok" });
        self.hook_invocation("plimsoll-post-tool", "PostToolBatch", json!({"tool_calls": [call]}))
    }

    /// Returns the event at the end of the session's turn, with its last message.
    pub fn stop_event(&self, last_message: &str) -> Invocation {
        self.hook_invocation(
            "plimsoll-stop-gate",
            "Stop",
            json!({"last_assistant_message": last_message, "stop_hook_active": false}),
        )
    }

    /// Writes a working memory with a register and a chunk that is large enough to be stored in its own file.
    pub fn write_memory(&self) {
        let chunk = MemoryOp::HeapAlloc {
            name: "spec".into(),
            content: "x".repeat(6_000),
            description: String::new(),
        };
        self.change_memory(chunk);
        self.prepared.run(&Invocation::plimsoll(&["memory", "set", "goal", "Build it."])).expect_success();
    }

    pub fn push_frame(&self, name: &str) {
        let push = MemoryOp::PushFrame {
            name: name.into(),
            objective: "Write the tests".into(),
            context: "The code is there".into(),
            return_spec: "Passed and failed".into(),
            push_call_id: None,
        };
        self.change_memory(push);
    }

    fn change_memory(&self, op: MemoryOp) {
        plimsoll_store::memory::apply_changes_atomically(&self.store_project(), "test", &[op])
            .expect("the memory");
    }
}

pub fn run_state(phase: IterationPhase) -> RunState {
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
