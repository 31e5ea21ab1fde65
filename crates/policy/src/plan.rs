//! What is ahead: how much of a window each open item will probably take, how many sessions they need, and an order that
//! saves one, where there is such an order. Nothing is done with it: a run follows the user's order.

use crate::pack::{Estimate, estimate, is_too_large};
use session::size::{Growth, Size};

/// An item of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its text.
    pub text: String,
    /// True when it is ticked.
    pub done: bool,
    /// Lines of the files that it names, where there are such files.
    pub lines: Option<u64>,
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
}

/// What is ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The open items, in the user's order.
    pub items: Vec<Planned>,
    /// One item a session, and more where one does not fit: as `plimsoll run` does it.
    pub one_by_one: u64,
    /// Sessions of `--pack` in the user's order, by the items' numbers.
    pub in_order: Vec<Vec<usize>>,
    /// An order with fewer sessions, where there is one.
    pub better: Option<Vec<Vec<usize>>>,
    /// What is wrong with the `after:` of items.
    pub complaints: Vec<String>,
}

impl Plan {
    /// How many sessions a grouping takes: an item that fits none takes several.
    pub fn sessions(&self, groups: &[Vec<usize>]) -> u64 {
        let of = |number: &usize| self.items.iter().find(|item| item.number == *number);
        groups
            .iter()
            .map(|group| group.iter().filter_map(of).map(|item| item.sessions).max().unwrap_or(1))
            .sum()
    }
}

/// Plans the open items.
pub fn plan(items: &[Item], growth: &[Growth], room: Room) -> Plan {
    let (planned, complaints) = planned(items, growth, room);
    let in_order = in_order(&planned, room);
    let better = reordered(&planned, room);
    let mut plan = Plan {
        one_by_one: planned.iter().map(|item| item.sessions).sum(),
        items: planned,
        in_order,
        better: None,
        complaints,
    };
    plan.better = better.filter(|better| plan.sessions(better) < plan.sessions(&plan.in_order));
    plan
}

fn planned(items: &[Item], growth: &[Growth], room: Room) -> (Vec<Planned>, Vec<String>) {
    let mut complaints = Vec::new();
    let mut planned = Vec::new();
    for (number, item) in (1..).zip(items).filter(|(_, item)| !item.done) {
        let estimate = estimate(&item.text, item.lines, growth, room.window);
        let sessions = estimate.tokens.div_ceil(room.tokens().max(1)).max(1);
        let mut after = Vec::new();
        for other in waits_for(&item.text) {
            match other.checked_sub(1).and_then(|place| items.get(place)) {
                Some(_) if other == number => complaints.push(format!("item {number} waits for itself")),
                Some(other_item) if !other_item.done => after.push(other),
                Some(_) => {}
                None => complaints.push(format!("item {number} waits for item {other}, and there is none")),
            }
        }
        let later = after.iter().filter(|other| **other > number);
        complaints
            .extend(later.map(|other| format!("item {number} waits for item {other}, which comes later")));
        let split = is_too_large(&item.text) || sessions > 1;
        let size = Size::stated(&item.text);
        planned.push(Planned { number, text: item.text.clone(), size, estimate, sessions, after, split });
    }
    (planned, complaints)
}

/// The numbers behind `after:` in an item: `(after: 2, 3)`.
fn waits_for(item: &str) -> Vec<usize> {
    let lower = item.to_lowercase();
    let Some((_, rest)) = lower.split_once("after:") else { return Vec::new() };
    rest.split([',', ' ', ')', ';'])
        .filter(|word| !word.is_empty())
        .map_while(|word| word.trim_start_matches('#').parse().ok())
        .collect()
}

/// As `--pack` goes: the next item while it fits below L2, else a fresh session.
fn in_order(items: &[Planned], room: Room) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for item in items {
        let fits = item.estimate.tokens < left && item.sessions == 1;
        left = if fits { left } else { room.tokens() };
        match groups.last_mut().filter(|_| fits) {
            Some(group) => group.push(item.number),
            None => groups.push(vec![item.number]),
        }
        left = if item.sessions > 1 { 0 } else { left.saturating_sub(item.estimate.tokens) };
    }
    groups
}

/// Each item into the first session that has room for it and comes no earlier than what it waits for. None where items
/// wait for each other.
fn reordered(items: &[Planned], room: Room) -> Option<Vec<Vec<usize>>> {
    let mut groups: Vec<(u64, Vec<usize>)> = Vec::new();
    let mut waiting: Vec<&Planned> = items.iter().collect();
    let place_of = |groups: &[(u64, Vec<usize>)], number: usize| {
        groups.iter().position(|(_, group)| group.contains(&number))
    };
    while !waiting.is_empty() {
        let is_free = |item: &&Planned| item.after.iter().all(|other| place_of(&groups, *other).is_some());
        let next = waiting.iter().position(is_free)?;
        let item = waiting.remove(next);
        let earliest = item.after.iter().filter_map(|other| place_of(&groups, *other)).max().unwrap_or(0);
        let alone = item.sessions > 1;
        let found = groups.iter_mut().skip(earliest).find(|(left, _)| !alone && item.estimate.tokens < *left);
        match found {
            Some((left, group)) => {
                *left -= item.estimate.tokens;
                group.push(item.number);
            }
            None => {
                let left = if alone { 0 } else { room.tokens().saturating_sub(item.estimate.tokens) };
                groups.push((left, vec![item.number]));
            }
        }
    }
    Some(groups.into_iter().map(|(_, group)| group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { window: 1_000_000, base: 50_000, l2: 850_000 };

    fn items(texts: &[&str]) -> Vec<Item> {
        let item = |text: &&str| Item {
            text: text.trim_start_matches("x ").to_owned(),
            done: text.starts_with("x "),
            lines: None,
        };
        texts.iter().map(item).collect()
    }

    type Groups = Vec<Vec<usize>>;

    fn groups(texts: &[&str]) -> (Groups, Option<Groups>) {
        let plan = plan(&items(texts), &[], ROOM);
        (plan.in_order, plan.better)
    }

    #[test]
    fn the_users_order_stands_unless_another_saves_a_session() {
        // 60, 40 and 20 percent of a window; a session has room for 80.
        let rows: [(&[&str], Groups, Option<Groups>); 4] = [
            (&["a (simple)", "b (medium)", "c (trivial)"], vec![vec![1, 2, 3]], None),
            (
                &["a (complex)", "b (medium)", "c (trivial)", "d (medium)"],
                vec![vec![1], vec![2, 3], vec![4]],
                None,
            ),
            (
                &["a (complex)", "b (complex)", "c (trivial)", "d (trivial)", "e (complex)", "f (trivial)"],
                vec![vec![1], vec![2, 3], vec![4, 5], vec![6]],
                Some(vec![vec![1, 3], vec![2, 4], vec![5, 6]]),
            ),
            (&["x done (complex)", "b (trivial)"], vec![vec![2]], None),
        ];
        for (texts, expected, better) in rows {
            assert_eq!(groups(texts), (expected, better), "{texts:?}");
        }
    }

    #[test]
    fn what_waits_comes_no_earlier_and_what_waits_in_a_circle_is_not_reordered() {
        let texts = [
            "a (complex)",
            "b (complex)",
            "c (trivial, after: 2)",
            "d (trivial)",
            "e (complex)",
            "f (trivial)",
        ];
        let plan = plan(&items(&texts), &[], ROOM);
        assert_eq!(plan.items[2].after, [2]);
        let (_, circle) = groups(&["a (trivial) after: 2", "b (trivial) after: 1"]);
        assert_eq!(circle, None);
        let better = plan.better.unwrap_or(plan.in_order);
        let place = |number: usize| better.iter().position(|group| group.contains(&number));
        assert!(place(3) >= place(2), "{better:?}");
    }

    #[test]
    fn a_wrong_after_is_told() {
        let complaints = |texts: &[&str]| plan(&items(texts), &[], ROOM).complaints;
        assert_eq!(complaints(&["a after: 2", "b"]), ["item 1 waits for item 2, which comes later"]);
        assert_eq!(
            complaints(&["a after: 7", "b (after: #1)"]),
            ["item 1 waits for item 7, and there is none"]
        );
        assert_eq!(complaints(&["a after: 1"]), ["item 1 waits for itself"]);
        assert!(complaints(&["x a", "b after: 1", "c, looked after: well"]).is_empty());
    }

    #[test]
    fn what_fits_no_session_is_to_be_split_and_what_items_took_speaks_first() {
        let took = [Growth { size: None, tokens: 900_000 }];
        let plan = plan(&items(&["a", "b (trivial)"]), &took, ROOM);
        assert_eq!((plan.items[0].sessions, plan.items[0].split), (2, true));
        assert_eq!((plan.one_by_one, plan.sessions(&plan.in_order)), (3, 3));
        let known = Item { lines: Some(120), ..items(&["Mend src/dates.rs"]).remove(0) };
        let by_files = super::plan(&[known], &[], ROOM);
        assert_eq!(by_files.items[0].estimate.tokens, 200_000);
        assert_eq!(by_files.items[0].estimate.source.words(), "the files it names: 120 lines");
    }
}
