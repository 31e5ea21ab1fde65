//! Several sessions in one project, through the hooks alone, with events as the client sends them.

use plimsoll_testkit::world::World;
use serde_json::{Value, json};

/// A project to which the tests send the events of a client.
struct HookedProject {
    world: World,
    calls: usize,
    /// All sessions belong to one client process.
    has_one_client: bool,
}

impl HookedProject {
    fn new() -> HookedProject {
        HookedProject { world: World::new(), calls: 0, has_one_client: false }
    }

    fn run_hook(
        &self,
        program: &str,
        arguments: &[&str],
        session: &str,
        event_name: &str,
        fields: Value,
    ) -> Value {
        let mut payload =
            json!({"session_id": session, "hook_event_name": event_name, "cwd": self.world.project()});
        for (key, value) in fields.as_object().expect("an object") {
            payload[key] = value.clone();
        }
        // A client works for one session at a time; these two processes live as long as the test.
        let pid = match (session, self.has_one_client) {
            ("first", _) | (_, true) => std::process::id(),
            _ => std::os::unix::process::parent_id(),
        };
        let mut launch = self.world.hook(program, &payload).env("CLAUDE_PID", pid.to_string());
        launch = launch.env("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", "5");
        for argument in arguments {
            launch = launch.arg(*argument);
        }
        launch.run().expect_success().stdout_json()
    }

    fn start_session(&self, session: &str) {
        self.run_hook(
            "plimsoll-session-start",
            &["memory"],
            session,
            "SessionStart",
            json!({"source": "startup"}),
        );
    }

    /// Calls one of our tools: runs its hook and, if the hook allows the call, the server. Returns the reason of a
    /// refusal.
    fn call_tool(
        &mut self,
        session: &str,
        agent: Option<&str>,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), String> {
        self.calls += 1;
        let id = format!("toolu_{}", self.calls);
        let mut fields = json!({"tool_name": format!("mcp__plimsoll__{tool}"), "tool_input": arguments, "tool_use_id": id});
        if let Some(agent) = agent {
            fields["agent_id"] = json!(agent);
            fields["agent_type"] = json!("frame");
        }
        let hook_response = self.run_hook("plimsoll-frame", &[], session, "PreToolUse", fields);
        let decision = &hook_response["hookSpecificOutput"];
        if decision["permissionDecision"] == "deny" {
            return Err(decision["permissionDecisionReason"].as_str().unwrap_or_default().to_owned());
        }
        let initialize_request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {"claudecode/toolUseId": id}}});
        let finished = self
            .world
            .hook("plimsoll-mcp", &format!("{initialize_request}\n{ready}\n{call}\n"))
            .run()
            .expect_success();
        let response = finished.json_lines().pop().expect("an answer");
        if response["result"]["isError"] == true { Err(response.to_string()) } else { Ok(()) }
    }

    fn push_frame(&mut self, session: &str, name: &str) {
        let brief = json!({"name": name, "objective": "Do it.", "context": "", "return_spec": "Facts."});
        self.call_tool(session, None, "push_frame", &brief).expect("it is pushed");
    }

    fn request_frame_start(&mut self, session: &str, name: &str) -> Value {
        self.calls += 1;
        let fields = json!({"tool_name": "Agent", "tool_use_id": format!("toolu_{}", self.calls),
            "tool_input": {"subagent_type": "frame", "description": name, "prompt": name}});
        self.run_hook("plimsoll-frame", &[], session, "PreToolUse", fields)["hookSpecificOutput"].clone()
    }

    fn start_subagent(&self, session: &str, agent: &str) {
        let fields = json!({"agent_id": agent, "agent_type": "frame"});
        self.run_hook("plimsoll-frame", &[], session, "SubagentStart", fields);
    }

    fn memory(&self) -> Value {
        self.world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json()
    }
}

#[test]
fn a_killed_clients_frame_is_dropped_even_if_its_pid_is_reused() {
    let mut project = HookedProject { has_one_client: true, ..HookedProject::new() };
    project.push_frame("first", "calc");
    project.request_frame_start("first", "calc");
    project.start_subagent("first", "agent-a");
    // After SIGKILL the container starts again, and the next client has the same pid.
    project.start_session("second");
    let written = project.call_tool("second", None, "update_registers", &json!({"R2_NEXT": "on"}));
    assert_eq!(written, Ok(()), "nobody will ever pop that frame: {}", project.memory());
}

#[test]
fn only_its_own_session_can_withdraw_or_start_a_waiting_frame() {
    let mut project = HookedProject::new();
    project.push_frame("first", "calc");
    let popped = project.call_tool("second", None, "pop_frame", &json!({"result": "All is done."}));
    assert!(popped.is_err(), "another session has popped the frame that waits: {}", project.memory());
    let started = project.request_frame_start("second", "calc");
    assert_eq!(started["permissionDecision"], "deny", "another session has started it");
}

#[test]
fn a_restarted_old_frame_does_not_take_the_place_of_the_next_one() {
    let mut project = HookedProject::new();
    project.push_frame("first", "one");
    project.request_frame_start("first", "one");
    project.start_subagent("first", "agent-a");
    project.call_tool("first", Some("agent-a"), "pop_frame", &json!({"result": "one"})).expect("it returns");
    project.push_frame("first", "two");
    project.request_frame_start("first", "two");
    // SendMessage to the first frame in the same message: the client starts it again under its old id.
    project.start_subagent("first", "agent-a");
    project.start_subagent("first", "agent-b");
    let written = project.call_tool("first", Some("agent-b"), "update_registers", &json!({"R2_NEXT": "b"}));
    assert_eq!(written, Ok(()), "the frame's own subagent may not write");
}

#[test]
fn memory_set_works_after_the_root_frame_is_popped() {
    let mut project = HookedProject::new();
    project
        .call_tool("first", None, "pop_frame", &json!({"result": "All is done."}))
        .expect("the root is done");
    let set = project.world.plimsoll(&["memory", "set", "R4", "Keep the public API."]).run();
    assert_eq!(set.code, Some(0), "{}", set.stderr);
}

#[test]
fn a_finished_session_does_not_stop_another_from_writing() {
    let mut project = HookedProject::new();
    project.call_tool("second", None, "update_registers", &json!({"R2_NEXT": "at work"})).expect("it writes");
    project
        .call_tool("first", None, "pop_frame", &json!({"result": "The first is done."}))
        .expect("the root is done");
    let written = project.call_tool("second", None, "update_registers", &json!({"R2_NEXT": "still at work"}));
    assert_eq!(written, Ok(()));
}

#[test]
fn a_register_set_by_the_user_during_a_frame_outlives_the_frame() {
    let mut project = HookedProject::new();
    project.push_frame("first", "calc");
    project.request_frame_start("first", "calc");
    project.start_subagent("first", "agent-a");
    project.world.plimsoll(&["memory", "set", "R4", "Keep the public API."]).run().expect_success();
    project.call_tool("first", Some("agent-a"), "pop_frame", &json!({"result": "done"})).expect("it returns");
    assert_eq!(project.memory()["registers"]["R4_CONSTRAINTS"], "Keep the public API.");
}

#[test]
fn a_killed_run_does_not_stop_a_users_session_from_writing() {
    let mut project = HookedProject::new();
    // A session of the run has popped the root, items are still open, and then `plimsoll run` was killed.
    let state = json!({"run_id": "r", "status": "running", "memory": true, "session_id": "of-the-run", "iteration": 1});
    project.world.write_run_state_record_and_ledger(&state);
    project
        .call_tool("of-the-run", None, "pop_frame", &json!({"result": "All is done."}))
        .expect("the root is done");
    project.start_session("a-persons");
    let prompt = json!({"prompt": "Go on by hand."});
    project.run_hook("plimsoll-memory", &[], "a-persons", "UserPromptSubmit", prompt);
    let written = project.call_tool("a-persons", None, "update_registers", &json!({"R2_NEXT": "on"}));
    assert_eq!(written, Ok(()), "a person has just spoken");
}
