//! Frames under the plugin: its tools have other names than `init`'s, and so has its agent.

use super::harness::{session, world};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use serde_json::json;

const SERVER: &str = "mcp__plugin_plimsoll_plimsoll__";

fn tool(step: Step, name: &str, input: serde_json::Value) -> Step {
    step.tool(format!("{SERVER}{name}"), input)
}

/// Pushes a frame and starts it; the model says the agent's name as it has read it.
fn delegate(name: &str, agent: &str) -> Step {
    let brief = json!({"name": name, "objective": format!("Create {name}.py."), "context": "", "return_spec": "Facts."});
    let call = json!({"subagent_type": agent, "description": name, "prompt": "PARENTS-PROMPT"});
    tool(Step::default(), "push_frame", brief).tool("Agent", call)
}

fn answers(request: &Request) -> usize {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter(|message| message["role"] == "assistant").count()
}

#[test]
fn a_frame_runs_in_the_plugins_agent_and_returns_unasked_for_permission() {
    let model = ScriptedModel::start(|request| match (request.kind, answers(request)) {
        (RequestKind::Subagent, 0) => {
            tool(Step::default(), "update_registers", json!({"R7_STATUS": "begun"}))
        }
        (RequestKind::Subagent, 1) => {
            tool(Step::default(), "pop_frame", json!({"result": "REPORT of the frame"}))
        }
        (RequestKind::Subagent, _) => Step::text("done"),
        (_, 0) => delegate("parse", "plimsoll:frame"),
        (_, 1) => delegate("print", "frame"),
        _ => Step::text("over"),
    });
    let world = world(&model);
    let finished = session(&world, "Build it.", &[]);
    assert_eq!(finished.result()["result"], "over", "{finished:?}");
    for name in ["parse", "print"] {
        let brief = format!("You work in the frame \"{name}\"");
        let of_it =
            |request: &Request| request.kind == RequestKind::Subagent && request.text().contains(&brief);
        let child =
            model.requests().into_iter().find(of_it).unwrap_or_else(|| panic!("{name}: {finished:?}"));
        assert!(!child.text().contains("PARENTS-PROMPT"), "{}", child.text());
        assert!(child.system_text().contains("subagent_type \"plimsoll:frame\""), "{}", child.system_text());
    }
    let requests = model.main_requests();
    let last = requests.last().expect("a request").text();
    for name in ["parse", "print"] {
        assert!(
            last.contains(&format!("The frame \"{name}\" has returned:\n  REPORT of the frame")),
            "{last}"
        );
    }
    let memory = world.plimsoll(&["memory", "show", "--json"]).run().expect_success().json();
    assert_eq!(memory["depth"], 0, "{memory}");
}
