//! What the real client makes of the entries.

use super::harness::{Stage, events_of};
use plimsoll_protocol::settings;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;

const SONNET: &[&str] = &["--model", "claude-sonnet-4-6", "--allowedTools", "Bash"];

/// Starts the real client on a prompt and returns what the model was told first.
fn client_run(stage: &mut Stage, prompt: &str, steps: Vec<Step>) -> String {
    let model = ScriptedModel::steps(steps);
    stage.world.use_model(&model);
    let args = [&["-p", prompt, "--output-format", "stream-json", "--verbose"], SONNET].concat();
    stage.world.claude(&args).run();
    model.main_requests().first().map(Request::last_text).unwrap_or_default()
}

/// A headless client does not wait for StopFailure; one with a screen lives on.
fn fail_on_screen(stage: &mut Stage) {
    let model = ScriptedModel::steps(vec![Step::error(400, "no")]);
    stage.world.use_model(&model);
    let mut terminal = Terminal::claude(&stage.world, &[], 100, 30);
    terminal.wait_for("PLIMSOLL-LINE");
    terminal.type_text("hello there");
    terminal.wait_for("hello there");
    terminal.press_enter();
    let failed = || stage.recorded().iter().any(|(event, _)| event == "StopFailure");
    stage.world.wait_until(failed, "StopFailure is recorded");
    terminal.close();
}

fn the_client_takes_every_entry(mut stage: Stage) {
    stage.done(&["init", "--local"]);
    let compacting = vec![
        Step::bash("echo one").usage(5_000),
        Step::bash("echo two").usage(170_000),
        Step::text("done").usage(4_000),
    ];
    client_run(&mut stage, "hi", compacting);
    fail_on_screen(&mut stage);
    assert_eq!(stage.recorded(), events_of(settings::MODERN_TEMPLATE));
}

#[test]
fn the_client_takes_every_entry_of_the_modern_template() {
    the_client_takes_every_entry(Stage::new());
}

#[test]
fn the_oldest_client_takes_every_entry_of_the_classic_template() {
    for stage in [Stage::new(), Stage::with_folder("it's a $HOME", false)] {
        let mut stage = stage;
        stage.client("1.0.128 (Claude Code)");
        assert!(stage.done(&["init", "--local"]).contains("Template: classic"));
        let model = ScriptedModel::steps(vec![Step::bash("echo one").usage(5_000), Step::text("done")]);
        stage.world.use_model(&model);
        let args = ["-p", "hi", "--allowedTools", "Bash"];
        let finished = stage.world.command(plimsoll_testkit::client::claude_version("1.0.128"), &args).run();
        let mut expected = events_of(settings::CLASSIC_TEMPLATE);
        expected.retain(|(event, _)| event != "PreCompact");
        assert_eq!(stage.recorded(), expected, "{finished:?}");
    }
}

#[test]
fn the_client_takes_programs_in_a_folder_that_only_a_shell_would_stumble_over() {
    the_client_takes_every_entry(Stage::with_folder("it's a $HOME", false));
}

#[test]
fn the_status_line_shows_from_such_a_folder_too() {
    for stage in [Stage::new(), Stage::with_folder("it's a $HOME", false)] {
        stage.done(&["init", "--local"]);
        let terminal = Terminal::claude(&stage.world, &[], 100, 30);
        terminal.wait_for("PLIMSOLL-LINE");
        terminal.close();
    }
}

#[test]
fn a_slash_command_reaches_the_model_as_our_text() {
    let mut stage = Stage::new();
    stage.done(&["init", "--local"]);
    let told = client_run(&mut stage, "/ralph status", vec![Step::text("done")]);
    let named = stage.named("plimsoll");
    assert!(told.contains("called `/ralph` with: status"), "{told}");
    assert!(told.contains(&format!("`{named} status`")), "{told}");
    let told = client_run(&mut stage, "/handoff the build is red", vec![Step::text("done")]);
    assert!(
        told.contains("(may be empty): the build is red")
            && told.contains(&format!("`{named} checkpoint --summary")),
        "{told}"
    );
    assert!(!told.contains("delete this line"), "the marker is not for the model: {told}");
}
