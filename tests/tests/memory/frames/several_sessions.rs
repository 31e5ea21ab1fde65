//! Several sessions in one project, by the hooks alone: events as the client sends them.

use plimsoll_testkit::world::World;
use serde_json::{Value, json};

/// A project whose events come from here.
struct Stage {
    world: World,
    calls: usize,
    /// All sessions are of one client's process.
    one_client: bool,
}

impl Stage {
    fn new() -> Stage {
        Stage { world: World::new(), calls: 0, one_client: false }
    }

    fn hook(&self, program: &str, arguments: &[&str], session: &str, event: &str, more: Value) -> Value {
        let mut payload =
            json!({"session_id": session, "hook_event_name": event, "cwd": self.world.project()});
        for (key, value) in more.as_object().expect("an object") {
            payload[key] = value.clone();
        }
        // A client works for one session at a time; these two live as long as the test.
        let pid = match (session, self.one_client) {
            ("first", _) | (_, true) => std::process::id(),
            _ => std::os::unix::process::parent_id(),
        };
        let mut launch = self.world.hook(program, &payload).env("CLAUDE_PID", pid.to_string());
        launch = launch.env("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", "5");
        for argument in arguments {
            launch = launch.arg(*argument);
        }
        launch.run().expect_success().json()
    }

    /// A session begins.
    fn begin(&self, session: &str) {
        self.hook(
            "plimsoll-session-start",
            &["memory"],
            session,
            "SessionStart",
            json!({"source": "startup"}),
        );
    }

    /// A tool of ours is called: what its hook answers and, where that allows it, what the server does.
    fn tool(
        &mut self,
        session: &str,
        agent: Option<&str>,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), String> {
        self.calls += 1;
        let id = format!("toolu_{}", self.calls);
        let mut more = json!({"tool_name": format!("mcp__plimsoll__{tool}"), "tool_input": arguments, "tool_use_id": id});
        if let Some(agent) = agent {
            more["agent_id"] = json!(agent);
            more["agent_type"] = json!("frame");
        }
        let answer = self.hook("plimsoll-frame", &[], session, "PreToolUse", more);
        let answer = &answer["hookSpecificOutput"];
        if answer["permissionDecision"] == "deny" {
            return Err(answer["permissionDecisionReason"].as_str().unwrap_or_default().to_owned());
        }
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {"claudecode/toolUseId": id}}});
        let told =
            self.world.hook("plimsoll-mcp", &format!("{hello}\n{ready}\n{call}\n")).run().expect_success();
        let result = told.json_lines().pop().expect("an answer");
        if result["result"]["isError"] == true { Err(result.to_string()) } else { Ok(()) }
    }

    fn push(&mut self, session: &str, name: &str) {
        let brief = json!({"name": name, "objective": "Do it.", "context": "", "return_spec": "Facts."});
        self.tool(session, None, "push_frame", &brief).expect("it is pushed");
    }

    fn start(&mut self, session: &str, name: &str) -> Value {
        self.calls += 1;
        let more = json!({"tool_name": "Agent", "tool_use_id": format!("toolu_{}", self.calls),
            "tool_input": {"subagent_type": "frame", "description": name, "prompt": name}});
        self.hook("plimsoll-frame", &[], session, "PreToolUse", more)["hookSpecificOutput"].clone()
    }

    fn enter(&self, session: &str, agent: &str) {
        let more = json!({"agent_id": agent, "agent_type": "frame"});
        self.hook("plimsoll-frame", &[], session, "SubagentStart", more);
    }

    fn memory(&self) -> Value {
        self.world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json()
    }
}

#[test]
fn a_frame_of_a_client_that_was_killed_is_given_up_though_its_pid_is_another_process_now() {
    let mut stage = Stage { one_client: true, ..Stage::new() };
    stage.push("first", "calc");
    stage.start("first", "calc");
    stage.enter("first", "agent-a");
    // SIGKILL, and the container begins anew: the next client has the same pid.
    stage.begin("second");
    let written = stage.tool("second", None, "update_registers", &json!({"R2_NEXT": "on"}));
    assert_eq!(written, Ok(()), "nobody will ever pop that frame: {}", stage.memory());
}

#[test]
fn a_waiting_frame_is_taken_back_and_started_by_its_own_session_alone() {
    let mut stage = Stage::new();
    stage.push("first", "calc");
    let popped = stage.tool("second", None, "pop_frame", &json!({"result": "All is done."}));
    assert!(popped.is_err(), "another session has popped the frame that waits: {}", stage.memory());
    let started = stage.start("second", "calc");
    assert_eq!(started["permissionDecision"], "deny", "another session has started it");
}

#[test]
fn a_frame_that_is_woken_up_does_not_take_the_place_of_the_next_one() {
    let mut stage = Stage::new();
    stage.push("first", "one");
    stage.start("first", "one");
    stage.enter("first", "agent-a");
    stage.tool("first", Some("agent-a"), "pop_frame", &json!({"result": "one"})).expect("it returns");
    stage.push("first", "two");
    stage.start("first", "two");
    // SendMessage to the first one, in the same message: the client starts it again under its old id.
    stage.enter("first", "agent-a");
    stage.enter("first", "agent-b");
    let own = stage.tool("first", Some("agent-b"), "update_registers", &json!({"R2_NEXT": "b"}));
    assert_eq!(own, Ok(()), "the frame's own subagent may not write");
}

#[test]
fn a_person_at_the_command_line_has_spoken() {
    let mut stage = Stage::new();
    stage.tool("first", None, "pop_frame", &json!({"result": "All is done."})).expect("the root is done");
    let set = stage.world.plimsoll(&["memory", "set", "R4", "Keep the public API."]).run();
    assert_eq!(set.code, Some(0), "{}", set.stderr);
}

#[test]
fn a_session_that_is_done_does_not_stop_the_writing_of_another() {
    let mut stage = Stage::new();
    stage.tool("second", None, "update_registers", &json!({"R2_NEXT": "at work"})).expect("it writes");
    stage
        .tool("first", None, "pop_frame", &json!({"result": "The first is done."}))
        .expect("the root is done");
    let written = stage.tool("second", None, "update_registers", &json!({"R2_NEXT": "still at work"}));
    assert_eq!(written, Ok(()));
}

#[test]
fn a_persons_word_during_a_frame_is_not_lost_with_the_frame() {
    let mut stage = Stage::new();
    stage.push("first", "calc");
    stage.start("first", "calc");
    stage.enter("first", "agent-a");
    stage.world.plimsoll(&["memory", "set", "R4", "Keep the public API."]).run().expect_success();
    stage.tool("first", Some("agent-a"), "pop_frame", &json!({"result": "done"})).expect("it returns");
    assert_eq!(stage.memory()["registers"]["R4_CONSTRAINTS"], "Keep the public API.");
}

#[test]
fn a_run_that_nobody_works_for_does_not_keep_a_persons_session_from_writing() {
    let mut stage = Stage::new();
    // A session of the run has popped the root, its items are open, and then `plimsoll run` was killed.
    let state = json!({"run_id": "r", "status": "running", "memory": true, "session_id": "of-the-run", "iteration": 1});
    stage.world.put_run(&state);
    stage
        .tool("of-the-run", None, "pop_frame", &json!({"result": "All is done."}))
        .expect("the root is done");
    stage.begin("a-persons");
    let prompt = json!({"prompt": "Go on by hand."});
    stage.hook("plimsoll-memory", &[], "a-persons", "UserPromptSubmit", prompt);
    let written = stage.tool("a-persons", None, "update_registers", &json!({"R2_NEXT": "on"}));
    assert_eq!(written, Ok(()), "a person has just spoken");
}
