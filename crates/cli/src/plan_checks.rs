//! Reports the checks that items of a plan name: which of them run, or that none does.

use plimsoll_domain::RunState;
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::text::{clip, counted, one_line};

/// How much of an item stands on a line; a command that may run is never cut.
const ITEM: usize = 60;

/// The lines for a run that begins; none if no item names a check.
pub(crate) fn lines(state: &RunState) -> Vec<String> {
    let checks = &state.options.plan_checks;
    if checks.is_empty() {
        return not_run(state.items.todo_items.iter().map(String::as_str)).into_iter().collect();
    }
    let line = |check: &ItemCheck| {
        format!("  `{}` for \"{}\"", one_line(&check.command), clip(&one_line(&check.item), ITEM))
    };
    std::iter::once(format!("{} of the plan will run (--plan-verify):", counted(checks.len(), "check")))
        .chain(checks.iter().map(line))
        .collect()
}

/// That these items name checks and none of them runs; none if they name none.
fn not_run<'a>(items: impl Iterator<Item = &'a str>) -> Option<String> {
    let count = items.filter(|item| item_check::command(item).is_some()).count();
    let name = if count == 1 { "names a check, which is" } else { "name checks, which are" };
    (count > 0).then(|| format!("{} {name} not run: --plan-verify runs them", counted(count, "item")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{Items, RunOptions};

    #[test]
    fn every_command_that_may_run_is_shown_and_without_leave_none_is() {
        let items = ["one (verify: true)", "two", "three (medium, verify: rm\u{1b}[2J -r x)"];
        let state = |checks: &[ItemCheck]| RunState {
            items: Items { todo_items: items.map(str::to_owned).to_vec(), ..Items::default() },
            options: RunOptions { plan_checks: checks.to_vec(), ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(lines(&state(&[])), ["2 items name checks, which are not run: --plan-verify runs them"]);
        let check = ItemCheck { item: items[2].into(), command: "rm\u{1b}[2J -r x".into() };
        assert_eq!(
            lines(&state(&[check])),
            [
                "1 check of the plan will run (--plan-verify):",
                "  `rm\\u{1b}[2J -r x` for \"three (medium, verify: rm\\u{1b}[2J -r x)\""
            ]
        );
        assert_eq!(not_run(["two"].into_iter()), None);
    }
}
