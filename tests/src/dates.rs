//! The example project of the guide: dates to convert, and an agent that follows its instructions.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;

/// Plays an agent that follows its instructions; in the second session of a plan with three items its window fills up.
pub fn date_agent(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let edit_command = |lines: &str| format!("sed -i '{lines}s|01/07/2026|2026-01-07|' src/dates.txt");
    let count_command = "echo \"open items: $(grep -c '^- \\[ \\]' fix_plan.md)\"";
    let edit_and_tick = |lines: &str| {
        Step::bash_call(format!("{} && {} && {count_command}", edit_command(lines), tick_item_command(&item)))
    };
    let is_second_half = item.starts_with("Convert the dates in the second half");
    match (turn.assistant_message_count, is_second_half, turn.request_contains("Do not start over")) {
        (0, true, false) => Step::bash_call(edit_command("101,140")).with_input_tokens(550_000),
        (1, true, false) => Step::bash_call(edit_command("141,160")).with_input_tokens(870_000),
        (_, true, false) => {
            Step::from_text("Summary: lines 101 to 160\nProgress on the item: 60%\nNext step: line 161")
                .with_input_tokens(872_000)
        }
        (0, true, true) => edit_and_tick("161,200").with_input_tokens(120_000),
        (0, false, _) => edit_and_tick("1,100").with_input_tokens(210_000),
        _ if turn.request_contains("open items: 0") => {
            Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(212_000)
        }
        _ => Step::from_text(format!("{item}: done.")).with_input_tokens(212_000),
    }
}

/// Creates the project, without a plan.
pub fn dates_project() -> World {
    let world = World::new();
    let date_line = |n: u32| format!("{n}: 01/07/2026\n");
    world.write("src/dates.txt", &(1..=200).map(date_line).collect::<String>());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Dates"]);
    world
}
