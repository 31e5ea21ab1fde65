//! Lists the plan's checks that will run, or notes that the checks in the plan do not run.

use plimsoll_domain::RunState;
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

/// Maximum characters of an item on a line; a command is never truncated.
const MAX_ITEM_CHARS: usize = 60;

/// Returns the lines shown when a run starts; empty if no item names a check.
pub(crate) fn render_planned_checks_or_not_run_note(state: &RunState) -> Vec<String> {
    let checks = &state.options.plan_checks;
    if checks.is_empty() {
        return checks_not_run_note(state.plan_items.todo_items.iter().map(String::as_str))
            .into_iter()
            .collect();
    }
    let render_check = |check: &ItemCheck| {
        format!(
            "  `{}` for \"{}\"",
            to_safe_single_line(&check.command),
            truncate_end(&to_safe_single_line(&check.item_text), MAX_ITEM_CHARS)
        )
    };
    std::iter::once(format!(
        "{} of the plan will run (--plan-verify):",
        count_with_noun(checks.len(), "check")
    ))
    .chain(checks.iter().map(render_check))
    .collect()
}

/// Returns a note that the checks of these items do not run; `None` if no item names a check.
fn checks_not_run_note<'a>(items: impl Iterator<Item = &'a str>) -> Option<String> {
    let count = items.filter(|item| item_check::parse_verify_command(item).is_some()).count();
    let clause = if count == 1 { "names a check, which is" } else { "name checks, which are" };
    (count > 0)
        .then(|| format!("{} {clause} not run: --plan-verify runs them", count_with_noun(count, "item")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{PlanItems, RunOptions};

    #[test]
    fn every_check_that_will_run_is_shown_in_full() {
        let items = ["one (verify: true)", "two", "three (medium, verify: rm\u{1b}[2J -r x)"];
        let state = |checks: &[ItemCheck]| RunState {
            plan_items: PlanItems { todo_items: items.map(str::to_owned).to_vec(), ..PlanItems::default() },
            options: RunOptions { plan_checks: checks.to_vec(), ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(
            render_planned_checks_or_not_run_note(&state(&[])),
            ["2 items name checks, which are not run: --plan-verify runs them"]
        );
        let check = ItemCheck { item_text: items[2].into(), command: "rm\u{1b}[2J -r x".into() };
        assert_eq!(
            render_planned_checks_or_not_run_note(&state(&[check])),
            [
                "1 check of the plan will run (--plan-verify):",
                "  `rm\\u{1b}[2J -r x` for \"three (medium, verify: rm\\u{1b}[2J -r x)\""
            ]
        );
        assert_eq!(checks_not_run_note(["two"].into_iter()), None);
    }
}
