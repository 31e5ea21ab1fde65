//! The real client on a real screen.
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn the_screen_asks_nothing_answers_a_prompt_and_shows_the_status_line() {
    let model = ScriptedModel::steps(vec![Step::text("ANSWER-ON-SCREEN").usage(50_000)]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    let status_line = json!({ "statusLine": { "type": "command", "command": "echo STATUS-LINE-HERE" } });
    world.write(".claude/settings.json", &status_line.to_string());
    let mut terminal = Terminal::claude(&world, &[], 100, 30);
    terminal.wait_for("STATUS-LINE-HERE");
    terminal.type_text("hello there");
    terminal.wait_for("hello there");
    terminal.press_enter();
    let screen = terminal.wait_for("ANSWER-ON-SCREEN");
    assert!(screen.contains("STATUS-LINE-HERE"), "{screen}");
    assert!(model.main_requests()[0].last_text().contains("hello there"));
    terminal.close();
}

#[test]
fn the_client_can_be_left_by_its_own_command() {
    let model = ScriptedModel::steps(vec![Step::text("x")]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    let mut terminal = Terminal::claude(&world, &[], 100, 30);
    terminal.wait_for("❯");
    terminal.type_text("/exit");
    terminal.wait_for("/exit");
    terminal.press_enter();
    assert!(terminal.wait_exit().success());
}

#[test]
fn a_tool_runs_on_screen_when_the_test_allows_it() {
    let model = ScriptedModel::steps(vec![Step::bash("echo made > made.txt"), Step::text("ALL-DONE")]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    let args = ["--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::claude(&world, &args, 100, 30);
    terminal.wait_for("❯");
    terminal.type_text("go on");
    terminal.wait_for("go on");
    terminal.press_enter();
    terminal.wait_for("ALL-DONE");
    assert_eq!(world.read("made.txt"), "made\n");
}
