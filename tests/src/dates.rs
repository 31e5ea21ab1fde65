//! The project of the guide: dates to convert, and an agent that works as it is told.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;

/// An agent that works as it is told; in the second session of a list of three its window fills.
pub fn agent(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let edit = |lines: &str| format!("sed -i '{lines}s|01/07/2026|2026-01-07|' src/dates.txt");
    let last = "echo \"open items: $(grep -c '^- \\[ \\]' fix_plan.md)\"";
    let finish = |lines: &str| Step::bash(format!("{} && {} && {last}", edit(lines), tick(&item)));
    let long = item.starts_with("Convert the dates in the second half");
    match (turn.step, long, turn.saw("Do not start over")) {
        (0, true, false) => Step::bash(edit("101,140")).usage(550_000),
        (1, true, false) => Step::bash(edit("141,160")).usage(870_000),
        (_, true, false) => {
            Step::text("Summary: lines 101 to 160\nProgress on the item: 60%\nNext step: line 161")
                .usage(872_000)
        }
        (0, true, true) => finish("161,200").usage(120_000),
        (0, false, _) => finish("1,100").usage(210_000),
        _ if turn.saw("open items: 0") => Step::text(format!("All done.\n\n{}", turn.promise)).usage(212_000),
        _ => Step::text(format!("{item}: done.")).usage(212_000),
    }
}

/// The project, without a plan.
pub fn project() -> World {
    let world = World::new();
    let dates = |n: u32| format!("{n}: 01/07/2026\n");
    world.write("src/dates.txt", &(1..=200).map(dates).collect::<String>());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Dates"]);
    world
}
