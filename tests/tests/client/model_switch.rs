//! `/model` in a terminal: a warning if the context does not fit the new model's window, or if the lost cache is expensive.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE_DELAY;

/// Starts a session in which one response has used this many tokens.
fn start_session_with_context(world: &World, context_tokens: u64) -> Terminal {
    let arguments = ["--model", "opus", "--permission-mode", "default"];
    let mut terminal = Terminal::start_claude(world, &arguments, 200, 50);
    terminal.wait_for_text("▏ ?");
    terminal.submit_prompt("Work on it");
    terminal.wait_for_text(&format!("I used {context_tokens} tokens"));
    // While the hooks of the turn's end still run, the client switches the model without showing any message.
    terminal.wait_for_text("· done ");
    terminal
}

fn world_with_hooks_and_model(context_tokens: u64) -> (World, ScriptedModel) {
    let model = ScriptedModel::start(move |_| {
        Step::from_text(format!("I used {context_tokens} tokens"))
            .with_input_tokens(context_tokens)
            .with_output_tokens(1)
            .with_delay(LIFELIKE_DELAY)
    });
    let mut world = World::without_plimsoll_files();
    world.put_client_on_path_with_model_and_settings(&model);
    world.plimsoll(&["init", "--user"]).run().expect_success();
    (world, model)
}

/// Switches the model and confirms it. The client asks by itself, because the conversation is cached.
fn switch_model(terminal: &mut Terminal, model: &str, name: &str) {
    terminal.submit_prompt(&format!("/model {model}"));
    terminal.wait_for_text(&format!("Yes, switch to {name}"));
    terminal.press_enter();
    terminal.wait_for_text(&format!("Set model to {name}"));
}

/// Waits for a text that the client may wrap.
fn wait_for_wrapped_text(terminal: &Terminal, text: &str) {
    let joined_screen = || terminal.screen_text().split_whitespace().collect::<Vec<_>>().join(" ");
    terminal.wait_until(|| joined_screen().contains(text), text);
}

#[test]
fn a_switch_to_a_window_that_is_too_small_is_shown_and_not_refused() {
    let (world, _model) = world_with_hooks_and_model(400_000);
    let mut terminal = start_session_with_context(&world, 400_000);
    switch_model(&mut terminal, "claude-haiku-4-5", "Haiku 4.5");
    let warning = "Plimsoll: the context of 400k tokens does not fit the window of claude-haiku-4-5 (200k), so the next prompt may fail. Until then, /model claude-opus-5-5 goes back.";
    wait_for_wrapped_text(&terminal, warning);
    // The client does not ask again before the next request, because the new model has cached nothing.
    terminal.submit_prompt("/model claude-sonnet-5-5");
    terminal.wait_for_text("Set model to Sonnet 5.5");
    wait_for_wrapped_text(&terminal, "the next request costs about $1.00, because it writes 400k tokens");
}

#[test]
fn a_switch_that_fits_and_costs_little_shows_nothing() {
    let (world, _model) = world_with_hooks_and_model(60_000);
    let mut terminal = start_session_with_context(&world, 60_000);
    switch_model(&mut terminal, "claude-haiku-4-5", "Haiku 4.5");
    terminal.submit_prompt("/exit");
    terminal.wait_for_exit();
    let output = String::from_utf8_lossy(&terminal.received_bytes()).into_owned();
    assert!(output.contains("Haiku") && !output.contains("Plimsoll:"), "{output}");
}
