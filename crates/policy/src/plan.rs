//! Estimates how much of a window each open item will take and how many sessions they need, and finds items that come before one
//! they wait for. A run follows the user's order.

pub(crate) mod after;
mod misspelt;
mod sessions;
#[cfg(test)]
mod tests;

use crate::pack::{Estimate, estimate, is_too_large};
use after::after_numbers;
use misspelt::misspelt;
use plimsoll_domain::item_check;
use plimsoll_domain::size::{ItemCost, Size};
use sessions::{grouped, unpacked};
use std::collections::{BTreeMap, BTreeSet};

/// An item of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its text.
    pub text: String,
    /// True when it is ticked.
    pub done: bool,
    /// Lines of the files that it names, where there are such files.
    pub lines: Option<u64>,
    /// The model that it gets; none for the client's own choice.
    pub model: Option<String>,
}

/// Where the work happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The window, in tokens.
    pub window: u64,
    /// What a fresh session holds before any work.
    pub base: u64,
    /// Where L2 begins.
    pub l2: u64,
}

impl Room {
    /// For work, in one session.
    pub fn tokens(&self) -> u64 {
        self.l2.saturating_sub(self.base)
    }

    /// True if a fresh session already holds as much as L2, or so nearly that no work fits: less than one percent of
    /// the window is left. No number of sessions would be true then.
    pub fn is_full_at_start(&self) -> bool {
        self.tokens() < self.window / 100
    }
}

/// An open item with what it will probably take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its number in the list, from 1, ticked ones counted.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// The size it states.
    pub size: Option<Size>,
    /// What it will probably take.
    pub estimate: Estimate,
    /// Sessions of its own that it needs: 1 if it fits into a fresh one.
    pub sessions: u64,
    /// Open items that it waits for, by number.
    pub after: Vec<usize>,
    /// True when it should be split.
    pub split: bool,
    /// The command that it names as its check.
    pub check: Option<String>,
    /// The model that it gets; none for the client's own choice.
    pub model: Option<String>,
}

/// What is ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The open items, in the user's order.
    pub items: Vec<Planned>,
    /// Sessions without `--pack`, by the items' numbers: one item each, but trivial neighbours share one.
    pub unpacked: Vec<Vec<usize>>,
    /// Sessions of `--pack` in the user's order, by the items' numbers.
    pub in_order: Vec<Vec<usize>>,
    /// What is wrong with what items say of their size and of what they wait for.
    pub complaints: Vec<String>,
}

impl Plan {
    /// How many sessions a grouping takes: an item that fits none takes several.
    pub fn sessions(&self, groups: &[Vec<usize>]) -> u64 {
        let of = |number: &usize| {
            let place = self.items.binary_search_by_key(number, |item| item.number).ok()?;
            self.items.get(place)
        };
        groups
            .iter()
            .map(|group| group.iter().filter_map(of).map(|item| item.sessions).max().unwrap_or(1))
            .sum()
    }
}

/// Plans the open items.
pub fn plan(items: &[Item], growth: &[ItemCost], room: Room) -> Plan {
    let (planned, complaints) = planned(items, growth, room);
    let users: Vec<&Planned> = planned.iter().collect();
    let numbers = |groups: Vec<Vec<&Planned>>| -> Vec<Vec<usize>> {
        groups.into_iter().map(|group| group.into_iter().map(|item| item.number).collect()).collect()
    };
    Plan {
        unpacked: numbers(unpacked(&users, room)),
        in_order: numbers(grouped(&users, room)),
        complaints,
        items: planned,
    }
}

/// How a check is written.
const CHECK: &str = "write it as `(verify: CMD)` at the end of the item, behind a size and `after:` in the same bracket, and a command whose parentheses do not balance as a code span";

fn planned(items: &[Item], growth: &[ItemCost], room: Room) -> (Vec<Planned>, Vec<String>) {
    let mut complaints = Vec::new();
    let mut planned = Vec::new();
    for (number, item) in (1..).zip(items).filter(|(_, item)| !item.done) {
        let estimate = estimate(&item.text, item.lines, growth, room.window);
        let sessions = estimate.tokens.div_ceil(room.tokens().max(1)).max(1);
        let mut after = Vec::new();
        for (_, other) in after_numbers(&item.text) {
            match other.checked_sub(1).and_then(|place| items.get(place)) {
                Some(_) if other == number => complaints.push(format!("item {number} depends on itself")),
                Some(other_item) if !other_item.done => after.push(other),
                Some(_) => {}
                None => {
                    complaints.push(format!("item {number} depends on item {other}, which does not exist"));
                }
            }
        }
        complaints.extend(misspelt(&item.text).map(|words| format!("item {number} says {words}")));
        if item_check::is_misspelt(&item.text) {
            complaints.push(format!("item {number} names a check that is not understood: {CHECK}"));
        }
        let split = is_too_large(&item.text) || sessions > 1;
        let size = Size::stated(&item.text);
        let (text, model, check) = (item.text.clone(), item.model.clone(), item_check::command(&item.text));
        planned.push(Planned { number, text, size, estimate, sessions, after, split, check, model });
    }
    complaints.extend(out_of_turn(&planned));
    (planned, complaints)
}

/// Complaints about items that are never free, and about items that come before one they wait for.
fn out_of_turn(items: &[Planned]) -> Vec<String> {
    let never_free = never_free(items);
    let words: Vec<String> = never_free.iter().map(usize::to_string).collect();
    let circle = words.split_last().map(|(last, others)| {
        format!("items {} and {last} depend on each other, or on items that do", others.join(", "))
    });
    let is_circle = |one: usize, other: usize| never_free.contains(&one) && never_free.contains(&other);
    let mut complaints: Vec<String> = circle.into_iter().collect();
    for item in items {
        let later =
            item.after.iter().filter(|other| **other > item.number && !is_circle(item.number, **other));
        complaints.extend(
            later.map(|other| format!("item {} depends on item {other}, which comes later", item.number)),
        );
    }
    complaints
}

/// The items that wait for each other, or for such items. Every item that waits for none of the others is taken away, until all
/// that are left wait.
fn never_free(items: &[Planned]) -> BTreeSet<usize> {
    let mut missing: BTreeMap<usize, usize> =
        items.iter().map(|item| (item.number, item.after.len())).collect();
    let mut waited_for_by: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for item in items {
        item.after.iter().for_each(|other| waited_for_by.entry(*other).or_default().push(item.number));
    }
    let mut free: Vec<usize> =
        missing.iter().filter(|(_, count)| **count == 0).map(|(number, _)| *number).collect();
    while let Some(number) = free.pop() {
        missing.remove(&number);
        for waiting in waited_for_by.remove(&number).into_iter().flatten() {
            if let Some(count) = missing.get_mut(&waiting) {
                *count -= 1;
                free.extend((*count == 0).then_some(waiting));
            }
        }
    }
    missing.into_keys().collect()
}
