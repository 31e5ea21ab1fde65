//! The real client connects to an installed working memory and runs its hooks and its agent.

use super::harness::{InstallFixture, SETTINGS, hook_events_of};
use plimsoll_protocol::settings::{self, agent, servers};
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use serde_json::json;
use std::time::Duration;

const SONNET_ARGUMENTS: &[&str] = &["--output-format", "json", "--model", "claude-sonnet-4-6"];

fn assert_session_has_the_memory(fixture: &mut InstallFixture, extra_arguments: &[&str]) {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("done")]);
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    fixture.world.claude(&[&["-p", "hi"], SONNET_ARGUMENTS, extra_arguments].concat()).run();
    let requests = model.main_requests();
    let first = requests.first().expect("a request");
    let tools = first.body["tools"].as_array().cloned().unwrap_or_default();
    for name in ["update_registers", "push_frame", "pop_frame", "heap_alloc", "memory_show"] {
        let name = format!("mcp__plimsoll__{name}");
        assert!(tools.iter().any(|tool| tool["name"] == name.as_str()), "{name}: {tools:?}");
    }
    assert!(first.full_text().contains("- frame: Works in one frame"), "{}", first.full_text());
}

#[test]
fn client_connects_the_server_and_offers_the_agent() {
    for (folder, on_path) in [("bin", true), ("it's apart", false), ("it's a $HOME", false)] {
        let mut fixture = InstallFixture::with_program_folder(folder, on_path);
        fixture.stdout_of_success(&["init", "--local", "--memory"]);
        assert_session_has_the_memory(&mut fixture, &[]);
    }
}

#[test]
fn command_line_flags_provide_server_and_agent_without_files() {
    let mut fixture = InstallFixture::new();
    let (config, agents) =
        (servers::mcp_config(&str::to_owned).to_string(), agent::agents_flag_value().to_string());
    assert_session_has_the_memory(&mut fixture, &["--mcp-config", &config, "--agents", &agents]);
}

#[test]
fn client_runs_every_memory_hook_and_the_frame_agent() {
    let mut fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local", "--memory"]);
    let agent_input = json!({"subagent_type": "frame", "description": "parse", "prompt": "The brief.", "run_in_background": false});
    let model = ScriptedModel::start(move |request| match request.kind {
        RequestKind::Subagent => Step::from_text("done"),
        _ if request.all_tool_results().is_empty() => {
            Step::default().with_tool_call("Agent", agent_input.clone())
        }
        _ => Step::from_text("over"),
    });
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    fixture.world.claude(&[&["-p", "hi", "--allowedTools", "Agent"], SONNET_ARGUMENTS].concat()).run();

    let requests = model.requests();
    let subagent_request =
        requests.iter().find(|request| request.kind == RequestKind::Subagent).expect("the agent runs");
    assert!(
        subagent_request.system_text().contains(agent::system_prompt()),
        "{}",
        subagent_request.system_text()
    );
    assert!(subagent_request.full_text().contains("The brief."));
    let recorded = fixture.recorded_hook_events();
    let missing: Vec<_> = hook_events_of(settings::MEMORY_TEMPLATE).difference(&recorded).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
    let log = plimsoll_store::disk::read_text(&fixture.world.home().join("hooks.log"))
        .ok()
        .flatten()
        .unwrap_or_default();
    let starts = log.lines().filter(|line| {
        line.starts_with("plimsoll-memory ") && line.contains("\"hook_event_name\":\"SessionStart\"")
    });
    assert_eq!(starts.count(), 4, "each argument runs once: {log}");
}

/// Returns how deep subagents nest if each of them starts another one whenever it can.
fn nested_agent_depth(fixture: &mut InstallFixture) -> usize {
    let agent_input = json!({"subagent_type": "frame", "description": "deeper", "prompt": "Go.", "run_in_background": false});
    let model = ScriptedModel::start(move |request| {
        let tools = request.body["tools"].as_array();
        let can_spawn = tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "Agent"));
        let should_spawn = can_spawn && request.all_tool_results().is_empty();
        if should_spawn {
            Step::default().with_tool_call("Agent", agent_input.clone())
        } else {
            Step::from_text("done")
        }
    });
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    fixture.world.claude(&[&["-p", "hi", "--allowedTools", "Agent"], SONNET_ARGUMENTS].concat()).run();
    let requests = model.requests();
    let is_first_request_of_subagent =
        |request: &&Request| request.kind == RequestKind::Subagent && request.all_tool_results().is_empty();
    requests.iter().filter(is_first_request_of_subagent).count()
}

#[test]
fn frames_nest_five_deep_unless_the_user_sets_another_depth() {
    let mut fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local", "--memory"]);
    assert_eq!(nested_agent_depth(&mut fixture), 5);
    fixture.stdout_of_success(&["uninstall", "--local"]);
    fixture.world.write(SETTINGS, &json!({"env": {"CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": "2"}}).to_string());
    fixture.stdout_of_success(&["init", "--local", "--memory"]);
    assert_eq!(nested_agent_depth(&mut fixture), 2);
}

#[test]
fn terminal_client_asks_once_whether_to_use_the_projects_server() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local", "--memory"]);
    let mut terminal = Terminal::start_claude(&fixture.world, &[], 100, 30);
    let question = "New MCP server found in this project: plimsoll";
    terminal.wait_for_text(question);
    // The default choice declines the server, as the output of `init` says.
    terminal.wait_for_text("❯ Continue without using this MCP server");
    // The client ignores keys for a moment after it shows the question.
    for _ in 0..20 {
        terminal.press_enter();
        std::thread::sleep(Duration::from_millis(500));
        if !terminal.screen_text().contains(question) {
            break;
        }
    }
    terminal.wait_for_text("PLIMSOLL-LINE");
    terminal.close();
    let terminal = Terminal::start_claude(&fixture.world, &[], 100, 30);
    let screen = terminal.wait_for_text("PLIMSOLL-LINE");
    assert!(!screen.contains(question), "{screen}");
    terminal.close();
}
