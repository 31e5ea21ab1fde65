//! The plugin on a machine without Plimsoll's programs.

use super::harness::{hook_attachments, plugin_folder, run_plugin_session};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

const MISSING_TEXT: &str = "programs are not installed";

fn world_without_programs(model: &ScriptedModel) -> World {
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(model);
    world
}

#[test]
fn missing_programs_are_reported_once_and_the_session_works() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one"),
        Step::bash_call("echo two"),
        Step::from_text("done"),
    ]);
    let world = world_without_programs(&model);
    let finished = run_plugin_session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();
    assert_eq!(finished.last_result()["result"], "done");
    assert_eq!(finished.stderr, "");
    let attachments = hook_attachments(&world);
    let count_kind = |kind: &str| attachments.iter().filter(|(found, _)| found == kind).count();
    assert_eq!(
        (count_kind("hook_system_message"), count_kind("hook_additional_context")),
        (1, 1),
        "{attachments:#?}"
    );
    let errors: Vec<_> =
        attachments.iter().filter(|(kind, _)| kind.contains("error") || kind.contains("cancel")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let last = model.main_requests().last().expect("a request").full_text();
    assert_eq!(last.matches("are not installed on this machine").count(), 1, "{last}");
}

#[test]
fn missing_programs_are_reported_once_on_the_screen() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one"),
        Step::from_text("That was all."),
    ]);
    let world = world_without_programs(&model);
    let folder = plugin_folder().display().to_string();
    let mut terminal =
        Terminal::start_claude(&world, &["--plugin-dir", &folder, "--allowedTools", "Bash"], 100, 40);
    terminal.wait_for_text(MISSING_TEXT);
    terminal.submit_prompt("hello there");
    let screen = terminal.wait_for_text("That was all.");
    assert_eq!(screen.matches(MISSING_TEXT).count(), 1, "{screen}");
    assert!(!screen.contains("failed") && !screen.contains("not found"), "{screen}");
    terminal.close();
}
