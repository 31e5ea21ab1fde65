//! What the real client makes of an installed memory.

use super::stage::Stage;
use protocol::settings::{agent, servers};
use serde_json::Value;
use testkit::scripted_model::{ScriptedModel, Step};

/// The tools of the first request, by name.
fn first_tools(stage: &mut Stage, more: &[&str]) -> Vec<(String, Value)> {
    let model = ScriptedModel::steps(vec![Step::text("done")]);
    stage.world.use_model(&model);
    let args = [&["-p", "hi", "--output-format", "json", "--model", "claude-sonnet-4-6"], more].concat();
    stage.world.claude(&args).run();
    let requests = model.main_requests();
    let tools = requests.first().and_then(|request| request.body["tools"].as_array().cloned());
    let named = |tool: Value| (tool["name"].as_str().unwrap_or_default().to_owned(), tool);
    tools.unwrap_or_default().into_iter().map(named).collect()
}

fn has_the_memory(tools: &[(String, Value)]) {
    let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["update_registers", "push_frame", "pop_frame", "heap_alloc", "memory_show"] {
        assert!(names.contains(&format!("mcp__plimsoll__{name}").as_str()), "{name}: {names:?}");
    }
    let offered = tools.iter().any(|(name, tool)| {
        name == "Agent" && tool["description"].to_string().contains("- frame: Works in one frame")
    });
    assert!(offered, "the agent is offered: {names:?}");
}

#[test]
fn the_client_connects_the_server_and_offers_the_agent() {
    for stage in [Stage::new(), Stage::with_folder("it's a $HOME", false)] {
        let mut stage = stage;
        stage.done(&["init", "--memory"]);
        let tools = first_tools(&mut stage, &[]);
        has_the_memory(&tools);
    }
}

#[test]
fn the_flags_of_one_session_do_the_same_without_a_file() {
    let mut stage = Stage::new();
    let (config, agents) = (servers::config(&str::to_owned).to_string(), agent::flag().to_string());
    let tools = first_tools(&mut stage, &["--mcp-config", &config, "--agents", &agents]);
    has_the_memory(&tools);
}
