//! Estimates how much of a window each open item will take and how many sessions the items need, and finds items that
//! come before an item on which they depend. A run follows the user's order.

pub(crate) mod dependencies;
mod invalid_annotation;
mod sessions;
#[cfg(test)]
mod tests;

use crate::pack::{Estimate, estimate_item_tokens_by_percentile, is_stated_too_large};
use dependencies::parse_dependency_ranges_and_numbers;
use invalid_annotation::describe_invalid_trailing_annotation;
use plimsoll_domain::item_check;
use plimsoll_domain::size::{ItemCost, ItemSize};
use sessions::{group_one_per_session_unless_trivial, group_while_fitting_below_l2};
use std::collections::{BTreeMap, BTreeSet};

/// An item of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstimatedItem {
    pub text: String,
    pub is_done: bool,
    /// Number of lines in the files that it names, if such files exist.
    pub file_lines: Option<u64>,
    /// The item's model; `None` for the client's own default.
    pub model: Option<String>,
}

/// The room for work in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCapacity {
    /// The context window, in tokens.
    pub window_tokens: u64,
    /// Tokens of a fresh session before any work.
    pub start_tokens: u64,
    /// Tokens at which L2 begins.
    pub l2_tokens: u64,
}

impl SessionCapacity {
    /// Returns the tokens that one session has for work.
    pub fn work_tokens(&self) -> u64 {
        self.l2_tokens.saturating_sub(self.start_tokens)
    }

    /// Returns true if a fresh session already holds as much as L2, or leaves less than one percent of the window for
    /// work. Any number of sessions would be wrong then.
    pub fn is_full_at_start(&self) -> bool {
        self.work_tokens() < self.window_tokens / 100
    }
}

/// An open item with its estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedItem {
    /// The item's number in the plan, from 1; ticked items are counted.
    pub number: usize,
    pub text: String,
    /// The size that the item states.
    pub stated_size: Option<ItemSize>,
    pub estimate: Estimate,
    /// Number of sessions that the item needs by itself: 1 if it fits into a fresh one.
    pub session_count: u64,
    /// Numbers of the open items on which it depends.
    pub dependencies: Vec<usize>,
    /// True if the item should be split into smaller ones.
    pub should_split: bool,
    /// The verify command that the item names.
    pub verify_command: Option<String>,
    /// The item's model; `None` for the client's own default.
    pub model: Option<String>,
}

/// The sessions that the open items will take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlan {
    /// The open items, in the user's order.
    pub items: Vec<PlannedItem>,
    /// Item numbers of each session without `--pack`: one item a session, except that trivial neighbors share one.
    pub sessions_without_pack: Vec<Vec<usize>>,
    /// Item numbers of each session with `--pack`, in the user's order.
    pub sessions_with_pack: Vec<Vec<usize>>,
    /// Problems with the sizes and dependencies that items state.
    pub problems: Vec<String>,
}

impl SessionPlan {
    /// Returns how many sessions these groups take. An item that does not fit into one session takes several.
    pub fn count_sessions(&self, groups: &[Vec<usize>]) -> u64 {
        let item_with_number = |number: &usize| {
            let index = self.items.binary_search_by_key(number, |item| item.number).ok()?;
            self.items.get(index)
        };
        groups
            .iter()
            .map(|group| {
                group.iter().filter_map(item_with_number).map(|item| item.session_count).max().unwrap_or(1)
            })
            .sum()
    }
}

/// Plans the sessions of the open items.
pub fn plan_sessions(
    items: &[EstimatedItem],
    measured_items: &[ItemCost],
    capacity: SessionCapacity,
) -> SessionPlan {
    let (planned_items, problems) = plan_items(items, measured_items, capacity);
    let items_in_order: Vec<&PlannedItem> = planned_items.iter().collect();
    let to_item_numbers = |groups: Vec<Vec<&PlannedItem>>| -> Vec<Vec<usize>> {
        groups.into_iter().map(|group| group.into_iter().map(|item| item.number).collect()).collect()
    };
    SessionPlan {
        sessions_without_pack: to_item_numbers(group_one_per_session_unless_trivial(
            &items_in_order,
            capacity,
        )),
        sessions_with_pack: to_item_numbers(group_while_fitting_below_l2(&items_in_order, capacity)),
        problems,
        items: planned_items,
    }
}

/// The syntax of a verify command in an item.
const VERIFY_SYNTAX_HINT: &str = "write it as `(verify: CMD)` at the end of the item, behind a size and `after:` in the same bracket, and a command whose parentheses do not balance as a code span";

fn plan_items(
    items: &[EstimatedItem],
    measured_items: &[ItemCost],
    capacity: SessionCapacity,
) -> (Vec<PlannedItem>, Vec<String>) {
    let mut problems = Vec::new();
    let mut planned_items = Vec::new();
    for (number, item) in (1..).zip(items).filter(|(_, item)| !item.is_done) {
        let estimate = estimate_item_tokens_by_percentile(
            &item.text,
            item.file_lines,
            measured_items,
            capacity.window_tokens,
        );
        let session_count = estimate.tokens.div_ceil(capacity.work_tokens().max(1)).max(1);
        let mut dependencies = Vec::new();
        for (_, dependency) in parse_dependency_ranges_and_numbers(&item.text) {
            match dependency.checked_sub(1).and_then(|index| items.get(index)) {
                Some(_) if dependency == number => problems.push(format!("item {number} depends on itself")),
                Some(dependency_item) if !dependency_item.is_done => dependencies.push(dependency),
                Some(_) => {}
                None => {
                    problems
                        .push(format!("item {number} depends on item {dependency}, which does not exist"));
                }
            }
        }
        problems.extend(
            describe_invalid_trailing_annotation(&item.text)
                .map(|words| format!("item {number} says {words}")),
        );
        if item_check::has_malformed_verify_command(&item.text) {
            problems
                .push(format!("item {number} names a check that is not understood: {VERIFY_SYNTAX_HINT}"));
        }
        let should_split = is_stated_too_large(&item.text) || session_count > 1;
        let stated_size = ItemSize::parse_from_item(&item.text);
        let (text, model, verify_command) =
            (item.text.clone(), item.model.clone(), item_check::parse_verify_command(&item.text));
        planned_items.push(PlannedItem {
            number,
            text,
            stated_size,
            estimate,
            session_count,
            dependencies,
            should_split,
            verify_command,
            model,
        });
    }
    problems.extend(dependency_order_problems(&planned_items));
    (planned_items, problems)
}

/// Returns the problems of items that can never begin, and of items that come before an item on which they depend.
fn dependency_order_problems(items: &[PlannedItem]) -> Vec<String> {
    let cycle_items = items_in_dependency_cycles(items);
    let numbers: Vec<String> = cycle_items.iter().map(usize::to_string).collect();
    let cycle_problem = numbers.split_last().map(|(last, other_numbers)| {
        format!("items {} and {last} depend on each other, or on items that do", other_numbers.join(", "))
    });
    let are_both_in_cycles =
        |number: usize, dependency: usize| cycle_items.contains(&number) && cycle_items.contains(&dependency);
    let mut problems: Vec<String> = cycle_problem.into_iter().collect();
    for item in items {
        let later_dependencies = item
            .dependencies
            .iter()
            .filter(|other| **other > item.number && !are_both_in_cycles(item.number, **other));
        problems.extend(
            later_dependencies
                .map(|other| format!("item {} depends on item {other}, which comes later", item.number)),
        );
    }
    problems
}

/// Returns the items that depend on each other, or on such items. Items without open dependencies are removed, until
/// only blocked items are left.
fn items_in_dependency_cycles(items: &[PlannedItem]) -> BTreeSet<usize> {
    let mut open_dependency_counts: BTreeMap<usize, usize> =
        items.iter().map(|item| (item.number, item.dependencies.len())).collect();
    let mut dependents: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for item in items {
        item.dependencies.iter().for_each(|other| dependents.entry(*other).or_default().push(item.number));
    }
    let mut free_items: Vec<usize> =
        open_dependency_counts.iter().filter(|(_, count)| **count == 0).map(|(number, _)| *number).collect();
    while let Some(number) = free_items.pop() {
        open_dependency_counts.remove(&number);
        for dependent in dependents.remove(&number).into_iter().flatten() {
            if let Some(count) = open_dependency_counts.get_mut(&dependent) {
                *count -= 1;
                free_items.extend((*count == 0).then_some(dependent));
            }
        }
    }
    open_dependency_counts.into_keys().collect()
}
