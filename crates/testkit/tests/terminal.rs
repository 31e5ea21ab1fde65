//! The real client in a pseudo-terminal.
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn the_client_shows_no_dialog_and_answers_a_typed_prompt() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("ANSWER-ON-SCREEN").with_input_tokens(50_000),
    ]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let status_line = json!({ "statusLine": { "type": "command", "command": "echo STATUS-LINE-HERE" } });
    world.write(".claude/settings.json", &status_line.to_string());
    let mut terminal = Terminal::start_claude(&world, &[], 100, 30);
    terminal.wait_for_text("STATUS-LINE-HERE");
    // A key that arrives late is not the beginning of the prompt.
    terminal.type_text("0");
    terminal.submit_prompt("hello there");
    let screen = terminal.wait_for_text("ANSWER-ON-SCREEN");
    assert!(screen.contains("STATUS-LINE-HERE"), "{screen}");
    let request_text = model.main_requests()[0].text_since_last_assistant_message();
    assert!(request_text.contains("hello there") && !request_text.contains("0hello"), "{request_text}");
    terminal.close();
}

#[test]
fn slash_exit_ends_the_client() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::from_text("x")]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let mut terminal = Terminal::start_claude(&world, &[], 100, 30);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("/exit");
    assert!(terminal.wait_for_exit().success());
}

#[test]
fn an_allowed_tool_runs_in_a_session_on_screen() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo made > made.txt"),
        Step::from_text("ALL-DONE"),
    ]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let args = ["--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::start_claude(&world, &args, 100, 30);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("go on");
    terminal.wait_for_text("ALL-DONE");
    assert_eq!(world.read("made.txt"), "made\n");
}
