//! Calls that a user at the screen refuses, or permits and then stops.

use crate::turn_log::harness::{FIRST, check_log, main_outcomes, model_with_steps};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_tests::world_with_hooks;

fn outcomes_after_escape(allowed_tools: &str, awaited_text: &str) -> Vec<&'static str> {
    let model =
        model_with_steps(vec![Step::bash_call("touch made-by-it; sleep 30"), Step::from_text("I see.")]);
    let world = world_with_hooks(&model);
    let arguments = [
        "--model",
        "opus",
        "--permission-mode",
        "default",
        "--session-id",
        FIRST,
        "--allowedTools",
        allowed_tools,
    ];
    let mut terminal = Terminal::start_claude(&world, &arguments, 130, 40);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("please work");
    terminal.wait_for_text(awaited_text);
    if allowed_tools == "Bash" {
        world.wait_until(|| world.exists("made-by-it"), "the command");
    }
    terminal.type_text("\x1b");
    terminal.wait_for_text("Interrupted");
    terminal.submit_prompt("/exit");
    terminal.wait_for_exit();
    let records = check_log(&world, FIRST);
    main_outcomes(&records)
}

#[test]
fn a_call_that_the_user_refuses_is_recorded_as_denied() {
    assert_eq!(outcomes_after_escape("Read", "Do you want to proceed"), ["tool_denied"]);
}

#[test]
fn a_call_that_the_user_stops_is_recorded_as_interrupted() {
    assert_eq!(outcomes_after_escape("Bash", "made-by-it"), ["interrupted"]);
}
