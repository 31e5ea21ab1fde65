//! What is ahead: how much of a window each open item will probably take, how many sessions they need, and an order that
//! saves one, or in which nothing comes before what it waits for, where the user's order is not such a one. Nothing is done
//! with it: a run follows the user's order.

pub(crate) mod after;
mod misspelt;
mod order;
#[cfg(test)]
mod tests;

use crate::pack::{Estimate, estimate, is_too_large};
use after::{after_numbers, renumbered};
use misspelt::misspelt;
use order::{Order, best_order, grouped, unpacked};
use plimsoll_domain::item_check;
use plimsoll_domain::size::{ItemCost, Size};
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
    /// A better order: it takes fewer sessions, or the user's order has an item before what it waits for.
    pub better: Option<Vec<Vec<usize>>>,
    /// Where items wait for others, the lines of the list that the better order changes, by their numbers in the list: an
    /// item that moves has another number, and so has what is said behind `after:`.
    pub lines: Vec<(usize, String)>,
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

    /// True when in the user's order an item comes before one that it waits for.
    pub fn is_out_of_turn(&self) -> bool {
        self.items.iter().any(|item| item.after.iter().any(|other| *other > item.number))
    }
}

/// Plans the open items.
pub fn plan(items: &[Item], growth: &[ItemCost], room: Room) -> Plan {
    let (planned, complaints) = planned(items, growth, room);
    let users: Order = planned.iter().collect();
    let better = best_order(&planned, room).filter(|order| *order != users);
    let numbers = |groups: Vec<Order>| -> Vec<Vec<usize>> {
        groups.into_iter().map(|group| group.into_iter().map(|item| item.number).collect()).collect()
    };
    Plan {
        unpacked: numbers(unpacked(&users, room)),
        in_order: numbers(grouped(&users, room)),
        better: better.as_ref().map(|order| numbers(grouped(order, room))),
        lines: better.map(|order| changed_lines(items, &order)).unwrap_or_default(),
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

/// What waits in a circle, and what waits for something that comes later.
fn out_of_turn(items: &[Planned]) -> Vec<String> {
    let circles = circles(items);
    let circle_of: BTreeMap<usize, usize> = circles
        .iter()
        .enumerate()
        .flat_map(|(place, circle)| circle.iter().map(move |number| (*number, place)))
        .collect();
    let in_one = |one: usize, other: usize| {
        circle_of.get(&one).is_some_and(|circle| circle_of.get(&other) == Some(circle))
    };
    let mut complaints: Vec<String> = Vec::new();
    for circle in &circles {
        let words: Vec<String> = circle.iter().map(usize::to_string).collect();
        if let Some((last, others)) = words.split_last() {
            complaints.push(format!("items {} and {last} depend on each other", others.join(", ")));
        }
    }
    for item in items {
        let later = item.after.iter().filter(|other| **other > item.number && !in_one(item.number, **other));
        complaints.extend(
            later.map(|other| format!("item {} depends on item {other}, which comes later", item.number)),
        );
    }
    complaints
}

/// The items that wait for each other, each circle once: the strongly connected components, as Kosaraju finds them.
fn circles(items: &[Planned]) -> BTreeSet<Vec<usize>> {
    let numbers: Vec<usize> = items.iter().map(|item| item.number).collect();
    let place = |number: &usize| numbers.binary_search(number).ok();
    let waits_for: Vec<Vec<usize>> =
        items.iter().map(|item| item.after.iter().filter_map(place).collect()).collect();
    let mut waited_for_by = vec![Vec::new(); items.len()];
    for (place, others) in waits_for.iter().enumerate() {
        others.iter().for_each(|other| waited_for_by[*other].push(place));
    }
    let mut is_seen = vec![false; items.len()];
    let ended: Vec<usize> = (0..items.len()).flat_map(|from| visit(from, &waits_for, &mut is_seen)).collect();
    let mut is_seen = vec![false; items.len()];
    let parts = ended.into_iter().rev().map(|from| visit(from, &waited_for_by, &mut is_seen));
    let circles = parts.filter(|part| part.len() > 1).map(|part| {
        let mut circle: Vec<usize> = part.into_iter().map(|place| numbers[place]).collect();
        circle.sort_unstable();
        circle
    });
    circles.collect()
}

/// The places that are reached from one and were not seen before, in the order in which the search leaves them.
fn visit(from: usize, edges: &[Vec<usize>], is_seen: &mut [bool]) -> Vec<usize> {
    let mut left = Vec::new();
    if std::mem::replace(&mut is_seen[from], true) {
        return left;
    }
    // Each place on the way, with the number of its edges that were followed.
    let mut path = vec![(from, 0)];
    while let Some((place, followed)) = path.last_mut() {
        match edges[*place].get(*followed) {
            Some(next) => {
                *followed += 1;
                if !std::mem::replace(&mut is_seen[*next], true) {
                    path.push((*next, 0));
                }
            }
            None => {
                left.push(*place);
                path.pop();
            }
        }
    }
    left
}

/// The open items in the places of open items, in this order, ticked ones where they are; from the first line that changes to
/// the last. Nothing if no item waits for another: then moving lines is enough.
fn changed_lines(items: &[Item], order: &[&Planned]) -> Vec<(usize, String)> {
    if order.iter().all(|item| item.after.is_empty()) {
        return Vec::new();
    }
    let places = (1..=items.len()).filter(|number| !items[number - 1].done);
    let moves: Vec<(usize, usize)> = order.iter().map(|item| item.number).zip(places).collect();
    let to: BTreeMap<usize, usize> = moves.iter().copied().collect();
    let from: BTreeMap<usize, usize> = moves.iter().map(|(from, to)| (*to, *from)).collect();
    let new_number = |old: usize| to.get(&old).copied().unwrap_or(old);
    let line = |place: usize| match from.get(&place) {
        Some(from) => format!("- [ ] {}", renumbered(&items[from - 1].text, new_number)),
        None => format!("- [x] {}", items[place - 1].text),
    };
    let is_changed = |place: &usize| line(*place) != format!("- [ ] {}", items[place - 1].text);
    let changed: Vec<usize> = moves.iter().map(|(_, to)| *to).filter(is_changed).collect();
    match (changed.first(), changed.last()) {
        (Some(first), Some(last)) => (*first..=*last).map(|place| (place, line(place))).collect(),
        _ => Vec::new(),
    }
}
