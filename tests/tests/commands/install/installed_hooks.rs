//! The real client runs the hooks, the status line and the slash commands that `init` installs.

use super::harness::{InstallFixture, hook_events_of};
use plimsoll_protocol::settings;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;

const SONNET_ARGUMENTS: &[&str] = &["--model", "claude-sonnet-4-6", "--allowedTools", "Bash"];

/// Runs the real client with a prompt and returns the last text of its first request to the model.
fn first_prompt_of_client_run(fixture: &mut InstallFixture, prompt: &str, steps: Vec<Step>) -> String {
    let model = ScriptedModel::start_with_steps_repeating_last(steps);
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    let args = [&["-p", prompt, "--output-format", "stream-json", "--verbose"], SONNET_ARGUMENTS].concat();
    fixture.world.claude(&args).run();
    model.main_requests().first().map(Request::text_since_last_assistant_message).unwrap_or_default()
}

/// Makes a session in a terminal fail: a headless client would not wait for the StopFailure hook.
/// Fails in a terminal, and switches the model: only there the client has that event.
fn make_terminal_session_fail_and_switch_model(fixture: &mut InstallFixture) {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![Step::api_error(400, "no")]);
    fixture.world.put_client_on_path_with_model_and_settings(&model);
    let mut terminal = Terminal::start_claude(&fixture.world, &[], 100, 30);
    terminal.wait_for_text("PLIMSOLL-LINE");
    terminal.type_text("hello there");
    terminal.wait_for_text("hello there");
    terminal.press_enter();
    let has_event =
        |expected: &str| fixture.recorded_hook_events().iter().any(|(event, _)| event == expected);
    fixture.world.wait_until(|| has_event("StopFailure"), "StopFailure is recorded");
    terminal.submit_prompt("/model claude-haiku-4-5");
    fixture.world.wait_until(|| has_event("PreModelSwitch"), "PreModelSwitch is recorded");
    terminal.close();
}

fn assert_client_runs_every_hook(mut fixture: InstallFixture) {
    fixture.stdout_of_success(&["init", "--local"]);
    let steps_with_compaction = vec![
        Step::bash_call("echo one").with_input_tokens(5_000),
        Step::bash_call("echo two").with_input_tokens(170_000),
        Step::from_text("done").with_input_tokens(4_000),
    ];
    first_prompt_of_client_run(&mut fixture, "hi", steps_with_compaction);
    make_terminal_session_fail_and_switch_model(&mut fixture);
    assert_eq!(fixture.recorded_hook_events(), hook_events_of(settings::MODERN_TEMPLATE));
}

#[test]
fn client_runs_every_hook_of_the_modern_template() {
    assert_client_runs_every_hook(InstallFixture::new());
}

#[test]
fn oldest_client_runs_every_hook_of_the_classic_template() {
    for fixture in [InstallFixture::new(), InstallFixture::with_program_folder("it's a $HOME", false)] {
        let mut fixture = fixture;
        fixture.install_fake_client("1.0.128 (Claude Code)");
        assert!(fixture.stdout_of_success(&["init", "--local"]).contains("Template: classic"));
        let model = ScriptedModel::start_with_steps_repeating_last(vec![
            Step::bash_call("echo one").with_input_tokens(5_000),
            Step::from_text("done"),
        ]);
        fixture.world.put_client_on_path_with_model_and_settings(&model);
        let args = ["-p", "hi", "--allowedTools", "Bash"];
        let finished = fixture
            .world
            .command(plimsoll_testkit::client::install_claude_version_once("1.0.128"), &args)
            .run();
        let mut expected = hook_events_of(settings::CLASSIC_TEMPLATE);
        expected.retain(|(event, _)| event != "PreCompact");
        assert_eq!(fixture.recorded_hook_events(), expected, "{finished:?}");
    }
}

#[test]
fn client_runs_hooks_from_a_folder_with_shell_special_characters() {
    assert_client_runs_every_hook(InstallFixture::with_program_folder("it's a $HOME", false));
}

#[test]
fn status_line_runs_from_a_folder_with_shell_special_characters() {
    for fixture in [InstallFixture::new(), InstallFixture::with_program_folder("it's a $HOME", false)] {
        fixture.stdout_of_success(&["init", "--local"]);
        let terminal = Terminal::start_claude(&fixture.world, &[], 100, 30);
        terminal.wait_for_text("PLIMSOLL-LINE");
        terminal.close();
    }
}

#[test]
fn slash_command_sends_our_text_and_the_arguments_to_the_model() {
    let mut fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local"]);
    let prompt = first_prompt_of_client_run(&mut fixture, "/ralph status", vec![Step::from_text("done")]);
    let program_path = fixture.program_path_text("plimsoll");
    assert!(prompt.contains("called `/ralph` with: status"), "{prompt}");
    assert!(prompt.contains(&format!("`{program_path} status`")), "{prompt}");
    let prompt =
        first_prompt_of_client_run(&mut fixture, "/handoff the build is red", vec![Step::from_text("done")]);
    assert!(
        prompt.contains("(may be empty): the build is red")
            && prompt.contains(&format!("`{program_path} checkpoint --summary")),
        "{prompt}"
    );
    assert!(!prompt.contains("delete this line"), "the marker is not for the model: {prompt}");
}
