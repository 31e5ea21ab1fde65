//! `plimsoll plan --workers N`: what several workers would do, as text and as JSON. Pure functions.

use plimsoll_domain::TodoList;
use plimsoll_domain::text::counted;
use plimsoll_policy::plan::{Item, Plan};
use plimsoll_policy::workers::board;
use plimsoll_policy::workers::schedule::{Schedule, schedule};

/// What so many workers would do with a plan; items that wait for an answer take no time, and hold up what needs them.
pub(super) fn of(todo: &TodoList, plan: &Plan, workers: usize) -> Schedule {
    let items: Vec<Item> = todo
        .items
        .iter()
        .map(|item| Item { text: item.text.clone(), done: item.done, lines: None, model: None })
        .collect();
    let tokens = |place: usize| {
        let item = plan.items.binary_search_by_key(&(place + 1), |item| item.number);
        item.map_or(0, |item| plan.items[item].estimate.tokens)
    };
    let work: Vec<u64> = (0..items.len()).map(tokens).collect();
    schedule(&board(&items), &work, workers)
}

/// The section of the page.
pub(super) fn text(schedule: &Schedule, workers: usize) -> String {
    let title = format!("## With {}", counted(workers, "worker"));
    if schedule.slots.is_empty() && schedule.never.is_empty() {
        return format!("{title}\n\nNo item is open.");
    }
    if schedule.slots.is_empty() {
        return format!("{title}\n\nNo worker would get an item: the open ones wait for each other.");
    }
    let share = |tokens: u64| tokens.saturating_mul(100).div_ceil(schedule.alone.max(1));
    let rows: String = (0..workers)
        .filter_map(|worker| {
            let slots = || schedule.slots.iter().filter(|slot| slot.worker == worker);
            let items: Vec<String> = slots().map(|slot| (slot.item + 1).to_string()).collect();
            let ends = slots().map(|slot| slot.to).max()?;
            Some(format!("| {} | {} | {}% |\n", worker + 1, items.join(", "), share(ends)))
        })
        .collect();
    let critical: Vec<String> = schedule.critical.iter().map(|item| (item + 1).to_string()).collect();
    let never: Vec<String> = schedule.never.iter().map(|item| (item + 1).to_string()).collect();
    let never = if never.is_empty() {
        String::new()
    } else {
        format!("\n\nItems that wait for each other, and that no worker would get: {}.", never.join(", "))
    };
    format!(
        "{title}\n\nThe work takes about {}% of the time of one worker, without what merging takes ({}.{} times as fast).\n\n| Worker | Items | Ends at |\n|---|------|------|\n{}\n\nWhat decides how long it takes (the critical path): {}.{never}",
        share(schedule.length),
        schedule.alone / schedule.length.max(1),
        schedule.alone % schedule.length.max(1) * 10 / schedule.length.max(1),
        rows.trim_end(),
        critical.join(" → "),
    )
}

/// The same for scripts; items by their numbers in the plan.
pub(super) fn json(schedule: &Schedule, workers: usize) -> serde_json::Value {
    let number = |item: &usize| item + 1;
    let slot = |slot: &plimsoll_policy::workers::schedule::Slot| serde_json::json!({ "item": slot.item + 1, "worker": slot.worker + 1, "from_tokens": slot.from, "to_tokens": slot.to });
    serde_json::json!({
        "count": workers,
        "tokens_long": schedule.length,
        "tokens_alone": schedule.alone,
        "critical": schedule.critical.iter().map(number).collect::<Vec<_>>(),
        "never": schedule.never.iter().map(number).collect::<Vec<_>>(),
        "slots": schedule.slots.iter().map(slot).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_policy::plan::{Room, plan};

    fn shown(list: &str, workers: usize) -> String {
        let todo = TodoList::parse(list);
        let items: Vec<Item> = todo
            .items
            .iter()
            .map(|item| Item { text: item.text.clone(), done: item.done, lines: None, model: None })
            .collect();
        let plan = plan(&items, &[], Room { window: 1_000_000, base: 0, l2: 850_000 });
        text(&of(&todo, &plan, workers), workers)
    }

    #[test]
    fn it_says_who_does_what_what_decides_and_what_nobody_gets() {
        let list = "- [x] a\n- [ ] b (simple)\n- [ ] c (simple, after: 2)\n- [ ] d (medium)\n- [ ] e (simple, after: 6)\n- [ ] f (simple, after: 5)\n";
        let page = shown(list, 2);
        for part in [
            "about 50% of the time of one worker",
            "(2.0 times as fast)",
            "| 1 | 2, 3 | 50% |\n| 2 | 4 | 50% |",
            "(the critical path): 2 → 3.",
            "that no worker would get: 5, 6.",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(shown("- [ ] a (after: 2)\n- [ ] b (after: 1)\n", 2).contains("No worker would get an item"));
    }

    #[test]
    fn a_plan_without_open_items_has_none_that_wait() {
        let page = shown("- [x] a\n- [x] b (after: 1)\n", 2);
        assert!(page.contains("No item is open.") && !page.contains("wait for each other"), "{page}");
    }
}
