//! What the real client makes of an installed memory.

use super::harness::{SETTINGS, Stage, events_of};
use plimsoll_protocol::settings::{self, agent, servers};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use serde_json::json;
use std::time::Duration;

const SONNET: &[&str] = &["--output-format", "json", "--model", "claude-sonnet-4-6"];

fn has_the_memory(stage: &mut Stage, more: &[&str]) {
    let model = ScriptedModel::steps(vec![Step::text("done")]);
    stage.world.use_model(&model);
    stage.world.claude(&[&["-p", "hi"], SONNET, more].concat()).run();
    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    let tools = first.body["tools"].as_array().cloned().unwrap_or_default();
    for name in ["update_registers", "push_frame", "pop_frame", "heap_alloc", "memory_show"] {
        let name = format!("mcp__plimsoll__{name}");
        assert!(tools.iter().any(|tool| tool["name"] == name.as_str()), "{name}: {tools:?}");
    }
    assert!(first.text().contains("- frame: Works in one frame"), "{}", first.text());
}

#[test]
fn the_client_connects_the_server_and_offers_the_agent() {
    for (folder, on_path) in [("bin", true), ("it's apart", false), ("it's a $HOME", false)] {
        let mut stage = Stage::with_folder(folder, on_path);
        stage.done(&["init", "--local", "--memory"]);
        has_the_memory(&mut stage, &[]);
    }
}

#[test]
fn the_flags_of_one_session_do_the_same_without_a_file() {
    let mut stage = Stage::new();
    let (config, agents) =
        (servers::mcp_config(&str::to_owned).to_string(), agent::agents_flag_value().to_string());
    has_the_memory(&mut stage, &["--mcp-config", &config, "--agents", &agents]);
}

#[test]
fn the_client_takes_every_entry_of_the_memory_and_runs_the_agent() {
    let mut stage = Stage::new();
    stage.done(&["init", "--local", "--memory"]);
    let asked = json!({"subagent_type": "frame", "description": "parse", "prompt": "The brief.", "run_in_background": false});
    let model = ScriptedModel::start(move |request| match request.kind {
        RequestKind::Subagent => Step::text("done"),
        _ if request.tool_results().is_empty() => Step::default().tool("Agent", asked.clone()),
        _ => Step::text("over"),
    });
    stage.world.use_model(&model);
    stage.world.claude(&[&["-p", "hi", "--allowedTools", "Agent"], SONNET].concat()).run();

    let requests = model.requests();
    let child =
        requests.iter().find(|request| request.kind == RequestKind::Subagent).expect("the agent runs");
    assert!(child.system_text().contains(agent::system_prompt()), "{}", child.system_text());
    assert!(child.text().contains("The brief."));
    let recorded = stage.recorded();
    let missing: Vec<_> = events_of(settings::MEMORY_TEMPLATE).difference(&recorded).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
    let log = plimsoll_store::disk::read_text(&stage.world.home().join("hooks.log"))
        .ok()
        .flatten()
        .unwrap_or_default();
    let starts = log.lines().filter(|line| {
        line.starts_with("plimsoll-memory ") && line.contains("\"hook_event_name\":\"SessionStart\"")
    });
    assert_eq!(starts.count(), 4, "each argument runs once: {log}");
}

/// How many agents deep a session goes that always asks for one more.
fn depth(stage: &mut Stage) -> usize {
    let asked = json!({"subagent_type": "frame", "description": "deeper", "prompt": "Go.", "run_in_background": false});
    let model = ScriptedModel::start(move |request| {
        let tools = request.body["tools"].as_array();
        let may = tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "Agent"));
        let asks = may && request.tool_results().is_empty();
        if asks { Step::default().tool("Agent", asked.clone()) } else { Step::text("done") }
    });
    stage.world.use_model(&model);
    stage.world.claude(&[&["-p", "hi", "--allowedTools", "Agent"], SONNET].concat()).run();
    let requests = model.requests();
    let is_first =
        |request: &&Request| request.kind == RequestKind::Subagent && request.tool_results().is_empty();
    requests.iter().filter(is_first).count()
}

#[test]
fn frames_nest_five_deep_or_as_deep_as_the_user_says() {
    let mut stage = Stage::new();
    stage.done(&["init", "--local", "--memory"]);
    assert_eq!(depth(&mut stage), 5);
    stage.done(&["uninstall", "--local"]);
    stage.world.write(SETTINGS, &json!({"env": {"CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": "2"}}).to_string());
    stage.done(&["init", "--local", "--memory"]);
    assert_eq!(depth(&mut stage), 2);
}

#[test]
fn a_client_with_a_screen_asks_once_whether_to_use_the_projects_server() {
    let stage = Stage::new();
    stage.done(&["init", "--local", "--memory"]);
    let mut terminal = Terminal::claude(&stage.world, &[], 100, 30);
    let asked = "New MCP server found in this project: plimsoll";
    terminal.wait_for(asked);
    // What `init` tells the user: the answer that is offered first is to go without.
    terminal.wait_for("❯ Continue without using this MCP server");
    // The client takes no answer in the question's first moment.
    for _ in 0..20 {
        terminal.press_enter();
        std::thread::sleep(Duration::from_millis(500));
        if !terminal.screen().contains(asked) {
            break;
        }
    }
    terminal.wait_for("PLIMSOLL-LINE");
    terminal.close();
    let terminal = Terminal::claude(&stage.world, &[], 100, 30);
    let screen = terminal.wait_for("PLIMSOLL-LINE");
    assert!(!screen.contains(asked), "{screen}");
    terminal.close();
}
