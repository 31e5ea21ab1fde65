//! Checks which fields the client passes to a status line and what the load line shows, in one session in a terminal: a
//! headless client starts no status line.

use super::harness::{MODEL, TIMEOUT, world_with_client};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROMPT: &str = "Fill the window.";
const LAST_WORD: &str = "Filled.";
/// Uncached input, cache writes and cache reads of the two responses. The session's uncached input is 5,000 tokens, its
/// context 70,000.
const RESPONSES: [(u64, u64, u64); 2] = [(2_000, 30_000, 8_000), (3_000, 27_000, 40_000)];
const CONTEXT_TOKENS: u64 = 70_000;
const FINAL_USAGE: &str = "▏ 35% 70k/200k";
const UNKNOWN_USAGE: &str = "▏ ? ";
/// The client's cost of both responses is above this, and that of the first alone below.
const MIN_FINAL_COST_USD: f64 = 0.26;
/// The client starts the status line again within 300 ms after a change.
const QUIET_PERIOD: Duration = Duration::from_secs(1);
const ENTER_INTERVAL: Duration = Duration::from_secs(3);

pub(crate) fn probe_status_line(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(scripted_answer);
    let mut world = world_with_client(version, &model);
    // 2.0.77 to 2.1.101 would load Anthropic's list of plugins from the network.
    world.set_env("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1");
    install_copying_status_line(&world);
    let arguments = ["--model", MODEL, "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal =
        Terminal::start_program_in_project(&world, world.client_program(), &arguments, 140, 40);
    terminal.wait_until(|| terminal.screen_text().contains(['>', '❯']), "prompt");
    terminal.submit_prompt(PROMPT);
    press_enter_until_requested(&mut terminal, &model);
    terminal.wait_for_text(LAST_WORD);
    let window = wait_for_final_payload(&world, &terminal)["context_window"].take();
    // The client draws a line after the program has printed it, on a busy machine seconds later.
    let last_line = std::fs::read_to_string(printed_line_path(&world)).expect("a status line");
    let shows_usage = last_line.contains(FINAL_USAGE);
    assert!(shows_usage || last_line.contains(UNKNOWN_USAGE), "neither the usage nor `?`: {last_line}");
    let last_usage = if shows_usage { FINAL_USAGE } else { UNKNOWN_USAGE };
    terminal.wait_for_text(last_usage);
    let usage = &window["current_usage"];
    let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let last_input: u64 = parts.iter().filter_map(|part| usage[part].as_u64()).sum();
    findings.record_bool("status.context_window", window.is_object());
    if window.is_object() {
        let is_context_total = window["total_input_tokens"] == CONTEXT_TOKENS;
        findings.record_bool("status.totals of the context", is_context_total);
    }
    findings.record_bool("status.current_usage", last_input == CONTEXT_TOKENS);
    findings.record_bool("status.used_percentage", window["used_percentage"] == 35);
    findings.record_bool("status.load line", shows_usage);
}

fn payload_path(world: &World) -> PathBuf {
    world.home().join("status-line.json")
}

fn printed_line_path(world: &World) -> PathBuf {
    world.home().join("status-line.txt")
}

/// Installs our status line behind a script that keeps a copy of the last payload and of the line for it.
fn install_copying_status_line(world: &World) {
    let path = payload_path(world);
    let draft = format!("'{}'.$$", path.display());
    let line_path = printed_line_path(world);
    let script = format!(
        "#!/bin/sh\ncat > {draft}\nNO_COLOR=1 plimsoll-statusline < {draft} > {draft}.line\ncat {draft}.line\n\
         mv {draft}.line '{}'\nmv {draft} '{}'\n",
        line_path.display(),
        path.display()
    );
    let program = world.write_program(world.home().join("status-line"), &script);
    let settings = json!({ "statusLine": { "type": "command", "command": program } });
    world.write(".claude/settings.json", &settings.to_string());
}

/// Presses Enter again if the client has lost the first one (1.0.128, while its list of commands closes).
fn press_enter_until_requested(terminal: &mut Terminal, model: &ScriptedModel) {
    let start = Instant::now();
    let has_prompt = || model.requests().iter().any(|request| request.first_message_text().contains(PROMPT));
    let mut last_enter = Instant::now();
    while !has_prompt() {
        assert!(start.elapsed() < TIMEOUT, "no request:\n{}", terminal.screen_text());
        if last_enter.elapsed() > ENTER_INTERVAL {
            terminal.press_enter();
            last_enter = Instant::now();
        }
        sleep(Duration::from_millis(50));
    }
}

/// Waits until the payload contains the cost of both responses and does not change any more.
fn wait_for_final_payload(world: &World, terminal: &Terminal) -> Value {
    let start = Instant::now();
    let (mut payload, mut unchanged_since) = (Value::Null, Instant::now());
    loop {
        let text = std::fs::read_to_string(payload_path(world)).unwrap_or_default();
        let current: Value = serde_json::from_str(&text).unwrap_or_default();
        if current != payload {
            (payload, unchanged_since) = (current, Instant::now());
        }
        let is_final =
            payload["cost"]["total_cost_usd"].as_f64().is_some_and(|cost| cost > MIN_FINAL_COST_USD);
        if is_final && unchanged_since.elapsed() > QUIET_PERIOD {
            return payload;
        }
        assert!(start.elapsed() < TIMEOUT, "no final status: {payload:#}\n{}", terminal.screen_text());
        sleep(Duration::from_millis(50));
    }
}

fn scripted_answer(request: &Request) -> Step {
    if !request.first_message_text().contains(PROMPT) {
        return Step::from_text("done").with_input_tokens(10);
    }
    let (step, (uncached, cache_write, cache_read)) = match request.assistant_message_count() {
        0 => (Step::bash_call("echo one"), RESPONSES[0]),
        _ => (Step::from_text(LAST_WORD), RESPONSES[1]),
    };
    step.with_input_token_breakdown(uncached, cache_write, cache_read)
        .with_output_tokens(900)
        .with_delay(plimsoll_tests::LIFELIKE_DELAY)
}
