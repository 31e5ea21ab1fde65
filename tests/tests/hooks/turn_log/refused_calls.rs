//! A person at the screen: a call that was refused, and one that was let go and then stopped.

use crate::turn_log::harness::{FIRST, check, model, outcomes};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_tests::installed;

fn on_screen(permitted: &str, word: &str) -> Vec<&'static str> {
    let model = model(vec![Step::bash("touch made-by-it; sleep 30"), Step::text("I see.")]);
    let world = installed(&model);
    let arguments = [
        "--model",
        "opus",
        "--permission-mode",
        "default",
        "--session-id",
        FIRST,
        "--allowedTools",
        permitted,
    ];
    let mut terminal = Terminal::claude(&world, &arguments, 130, 40);
    terminal.wait_for("❯");
    terminal.type_text("please work");
    terminal.press_enter();
    terminal.wait_for(word);
    if permitted == "Bash" {
        world.wait_until(|| world.exists("made-by-it"), "the command");
    }
    terminal.type_text("\x1b");
    terminal.wait_for("Interrupted");
    terminal.type_text("/exit");
    terminal.press_enter();
    terminal.wait_exit();
    let records = check(&world, FIRST);
    outcomes(&records)
}

#[test]
fn a_call_that_a_person_refused_is_denied() {
    assert_eq!(on_screen("Read", "Do you want to proceed"), ["tool_denied"]);
}

#[test]
fn a_call_that_a_person_stopped_is_interrupted() {
    assert_eq!(on_screen("Bash", "made-by-it"), ["interrupted"]);
}
