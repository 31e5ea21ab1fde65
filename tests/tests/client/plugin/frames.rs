//! Frames with the plugin: its tools and its agent have other names than those of `init`.

use super::harness::{run_plugin_session, world_with_model};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use serde_json::json;

const SERVER: &str = "mcp__plugin_plimsoll_plimsoll__";

fn plugin_tool_call(step: Step, name: &str, input: serde_json::Value) -> Step {
    step.with_tool_call(format!("{SERVER}{name}"), input)
}

/// Pushes a frame and starts it with this agent name.
fn push_frame_and_call_agent(name: &str, agent: &str) -> Step {
    let frame = json!({"name": name, "objective": format!("Create {name}.py."), "context": "", "return_spec": "Facts."});
    let call = json!({"subagent_type": agent, "description": name, "prompt": "PARENTS-PROMPT"});
    plugin_tool_call(Step::default(), "push_frame", frame).with_tool_call("Agent", call)
}

fn assistant_message_count(request: &Request) -> usize {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter(|message| message["role"] == "assistant").count()
}

#[test]
fn frames_run_as_the_plugin_agent_and_return_without_a_prompt() {
    let model = ScriptedModel::start(|request| match (request.kind, assistant_message_count(request)) {
        (RequestKind::Subagent, 0) => {
            plugin_tool_call(Step::default(), "update_registers", json!({"R7_STATUS": "begun"}))
        }
        (RequestKind::Subagent, 1) => {
            plugin_tool_call(Step::default(), "pop_frame", json!({"result": "REPORT of the frame"}))
        }
        (RequestKind::Subagent, _) => Step::from_text("done"),
        (_, 0) => push_frame_and_call_agent("parse", "plimsoll:frame"),
        (_, 1) => push_frame_and_call_agent("print", "frame"),
        _ => Step::from_text("over"),
    });
    let world = world_with_model(&model);
    let finished = run_plugin_session(&world, "Build it.", &[]);
    assert_eq!(finished.last_result()["result"], "over", "{finished:?}");
    for name in ["parse", "print"] {
        let brief = format!("You work in the frame \"{name}\"");
        let is_of_frame =
            |request: &Request| request.kind == RequestKind::Subagent && request.full_text().contains(&brief);
        let frame_request =
            model.requests().into_iter().find(is_of_frame).unwrap_or_else(|| panic!("{name}: {finished:?}"));
        assert!(!frame_request.full_text().contains("PARENTS-PROMPT"), "{}", frame_request.full_text());
        assert!(
            frame_request.system_text().contains("subagent_type \"plimsoll:frame\""),
            "{}",
            frame_request.system_text()
        );
    }
    let requests = model.main_requests();
    let last = requests.last().expect("a request").full_text();
    for name in ["parse", "print"] {
        assert!(
            last.contains(&format!("The frame \"{name}\" has returned:\n  REPORT of the frame")),
            "{last}"
        );
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().stdout_json();
    assert_eq!(memory["depth"], 0, "{memory}");
}
