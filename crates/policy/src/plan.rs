//! What is ahead: how much of a window each open item will probably take, how many sessions they need, and an order that
//! saves one, or in which nothing comes before what it waits for, where the user's order is not such a one. Nothing is done
//! with it: a run follows the user's order.

use crate::pack::{Estimate, estimate, is_too_large};
use session::size::{Growth, Size};
use session::text::{clip, one_line};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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
        let of = |number: &usize| self.items.iter().find(|item| item.number == *number);
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
pub fn plan(items: &[Item], growth: &[Growth], room: Room) -> Plan {
    let (planned, complaints) = planned(items, growth, room);
    let users: Order = planned.iter().collect();
    let better = best_order(&planned, room).filter(|order| *order != users);
    let numbers = |order: &Order| -> Vec<Vec<usize>> {
        grouped(order, room)
            .into_iter()
            .map(|group| group.into_iter().map(|item| item.number).collect())
            .collect()
    };
    Plan {
        one_by_one: planned.iter().map(|item| item.sessions).sum(),
        in_order: numbers(&users),
        better: better.as_ref().map(numbers),
        lines: better.map(|order| changed_lines(items, &order)).unwrap_or_default(),
        complaints,
        items: planned,
    }
}

fn planned(items: &[Item], growth: &[Growth], room: Room) -> (Vec<Planned>, Vec<String>) {
    let mut complaints = Vec::new();
    let mut planned = Vec::new();
    for (number, item) in (1..).zip(items).filter(|(_, item)| !item.done) {
        let estimate = estimate(&item.text, item.lines, growth, room.window);
        let sessions = estimate.tokens.div_ceil(room.tokens().max(1)).max(1);
        let mut after = Vec::new();
        for (_, other) in after_numbers(&item.text) {
            match other.checked_sub(1).and_then(|place| items.get(place)) {
                Some(_) if other == number => complaints.push(format!("item {number} waits for itself")),
                Some(other_item) if !other_item.done => after.push(other),
                Some(_) => {}
                None => complaints.push(format!("item {number} waits for item {other}, and there is none")),
            }
        }
        complaints.extend(misspelt(&item.text).map(|words| format!("item {number} says {words}")));
        let split = is_too_large(&item.text) || sessions > 1;
        let size = Size::stated(&item.text);
        planned.push(Planned { number, text: item.text.clone(), size, estimate, sessions, after, split });
    }
    complaints.extend(out_of_turn(&planned));
    (planned, complaints)
}

/// What waits in a circle, and what waits for something that comes later.
fn out_of_turn(items: &[Planned]) -> Vec<String> {
    let circles = circles(items);
    let in_one = |one: usize, other: usize| {
        circles.iter().any(|circle| circle.contains(&one) && circle.contains(&other))
    };
    let mut complaints: Vec<String> = Vec::new();
    for circle in &circles {
        let words: Vec<String> = circle.iter().map(usize::to_string).collect();
        if let Some((last, others)) = words.split_last() {
            complaints.push(format!("items {} and {last} wait for each other", others.join(", ")));
        }
    }
    for item in items {
        let later = item.after.iter().filter(|other| **other > item.number && !in_one(item.number, **other));
        complaints.extend(
            later.map(|other| format!("item {} waits for item {other}, which comes later", item.number)),
        );
    }
    complaints
}

/// The items that wait for each other, each circle once.
fn circles(items: &[Planned]) -> BTreeSet<Vec<usize>> {
    let after: BTreeMap<usize, &[usize]> = items.iter().map(|item| (item.number, &item.after[..])).collect();
    let reached = |from: usize| {
        let mut found = BTreeSet::new();
        let mut ahead = vec![from];
        while let Some(number) = ahead.pop() {
            let others = after.get(&number).copied().unwrap_or_default();
            ahead.extend(others.iter().filter(|other| found.insert(**other)));
        }
        found
    };
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        after.keys().map(|number| (*number, reached(*number))).collect();
    reached
        .iter()
        .map(|(number, others)| {
            others.iter().copied().filter(|other| reached[other].contains(number)).collect::<Vec<_>>()
        })
        .filter(|circle| !circle.is_empty())
        .collect()
}

type Order<'a> = Vec<&'a Planned>;

/// Of the orders in which nothing comes before what it waits for, the one with the fewest sessions, and of those the one
/// nearest to the user's: tried are the user's own (what has to wait put behind, or what is waited for put before), and what
/// packs well. None where items wait for each other.
fn best_order(items: &[Planned], room: Room) -> Option<Order<'_>> {
    let waiting_put_behind = in_turn(items.iter().collect(), waits_for_none)?;
    let is_waited_for_by_none =
        |item: &&Planned, ahead: &[&Planned]| !ahead.iter().any(|other| other.after.contains(&item.number));
    let mut waited_for_put_before = in_turn(items.iter().rev().collect(), is_waited_for_by_none)?;
    waited_for_put_before.reverse();
    let mut large_first: Order = items.iter().collect();
    large_first.sort_by_key(|item| Reverse(item.estimate.tokens));
    let large_first = in_turn(large_first, waits_for_none)?;
    let packed = [packed(&waiting_put_behind, room)?, packed(&large_first, room)?];
    let sessions = |order: &Order| -> u64 {
        let most = |group: &Order| group.iter().map(|item| item.sessions).max().unwrap_or(1);
        grouped(order, room).iter().map(most).sum()
    };
    [waiting_put_behind, waited_for_put_before]
        .into_iter()
        .chain(packed)
        .min_by_key(|order| (sessions(order), departures(order)))
}

/// The first that is free, again and again. None where some wait for each other.
fn in_turn<T>(mut waiting: Vec<T>, is_free: impl Fn(&T, &[T]) -> bool) -> Option<Vec<T>> {
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let next = waiting.iter().position(|one| is_free(one, &waiting))?;
        order.push(waiting.remove(next));
    }
    Some(order)
}

fn waits_for_none(item: &&Planned, ahead: &[&Planned]) -> bool {
    !ahead.iter().any(|other| item.after.contains(&other.number))
}

/// How many pairs stand the other way round than in the user's order.
fn departures(order: &Order) -> usize {
    let behind = |place: usize, item: &Planned| {
        order[place..].iter().filter(|other| other.number < item.number).count()
    };
    order.iter().enumerate().map(|(place, item)| behind(place, item)).sum()
}

/// As `--pack` goes: the next item while it fits below L2, else a fresh session.
fn grouped<'a>(order: &[&'a Planned], room: Room) -> Vec<Order<'a>> {
    let mut groups: Vec<Order> = Vec::new();
    for item in order {
        match groups.last_mut().filter(|group| has_room(group, item, room)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// What fits no session stays alone.
fn has_room(group: &[&Planned], item: &Planned, room: Room) -> bool {
    let taken = group.iter().fold(0, |sum: u64, other| sum.saturating_add(other.estimate.tokens));
    let is_alone = item.sessions > 1 || group.iter().any(|other| other.sessions > 1);
    !is_alone && item.estimate.tokens < room.tokens().saturating_sub(taken)
}

/// Each item into the first session that has room for it and comes no earlier than what it waits for; then the sessions, and
/// the items in each, as near to the user's order as they may be.
fn packed<'a>(order: &[&'a Planned], room: Room) -> Option<Order<'a>> {
    let mut groups: Vec<Order> = Vec::new();
    for item in order {
        let holds_what_it_waits_for = |group: &Order| !waits_for_none(item, group);
        let earliest = groups.iter().rposition(holds_what_it_waits_for).unwrap_or(0);
        match groups.iter_mut().skip(earliest).find(|group| has_room(group, item, room)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|item| item.number));
    groups.sort_by_key(|group| group[0].number);
    let is_free = |group: &Order, ahead: &[Order]| {
        let others: Order = ahead.iter().flatten().copied().filter(|other| !group.contains(other)).collect();
        group.iter().all(|item| waits_for_none(item, &others))
    };
    let groups = in_turn(groups, is_free)?;
    let groups: Option<Vec<Order>> = groups.into_iter().map(|group| in_turn(group, waits_for_none)).collect();
    groups.map(|groups| groups.concat())
}

/// The open items in the places of open items, in this order, ticked ones where they are; from the first line that changes to
/// the last. Nothing where no item waits for another: then moving lines is enough.
fn changed_lines(items: &[Item], order: &[&Planned]) -> Vec<(usize, String)> {
    if order.iter().all(|item| item.after.is_empty()) {
        return Vec::new();
    }
    let places = (1..=items.len()).filter(|number| !items[number - 1].done);
    let moves: Vec<(usize, usize)> = order.iter().map(|item| item.number).zip(places).collect();
    let new_number = |old: usize| moves.iter().find(|(from, _)| *from == old).map_or(old, |(_, to)| *to);
    let line = |place: usize| match moves.iter().find(|(_, to)| *to == place) {
        Some((from, _)) => format!("- [ ] {}", renumbered(&items[from - 1].text, new_number)),
        None => format!("- [x] {}", items[place - 1].text),
    };
    let is_changed = |place: &usize| line(*place) != format!("- [ ] {}", items[place - 1].text);
    let changed: Vec<usize> = moves.iter().map(|(_, to)| *to).filter(is_changed).collect();
    match (changed.first(), changed.last()) {
        (Some(first), Some(last)) => (*first..=*last).map(|place| (place, line(place))).collect(),
        _ => Vec::new(),
    }
}

fn renumbered(item: &str, new_number: impl Fn(usize) -> usize) -> String {
    let mut text = item.to_owned();
    for (place, number) in after_numbers(item).into_iter().rev() {
        text.replace_range(place, &new_number(number).to_string());
    }
    text
}

/// The numbers behind `after:` in an item, and where they stand: `(after: 2, 3)`, `after: #2 and 3`.
fn after_numbers(item: &str) -> Vec<(Range<usize>, usize)> {
    let lower = item.to_ascii_lowercase();
    let is_word = |place: &usize| !lower[..*place].ends_with(char::is_alphanumeric);
    let mut found = Vec::new();
    for (place, mark) in lower.match_indices("after:").filter(|(place, _)| is_word(place)) {
        let mut rest = &lower[place + mark.len()..];
        loop {
            let gap = |letter: char| letter == ' ' || ",;&#".contains(letter);
            rest = rest.trim_start_matches(gap);
            rest = rest.strip_prefix("and ").map_or(rest, |rest| rest.trim_start_matches(gap));
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let is_part =
                rest[end..].starts_with(|letter: char| letter.is_alphanumeric() || "-–_".contains(letter));
            let Some(number) = rest[..end].parse().ok().filter(|_| !is_part) else { break };
            let start = lower.len() - rest.len();
            found.push((start..start + end, number));
            rest = &rest[end..];
        }
    }
    found
}

/// What a bracket at the end of an item says that wants to state a size, or what the item waits for, and is not understood;
/// and what to write instead.
fn misspelt(item: &str) -> Option<String> {
    brackets_at_end(item).into_iter().find_map(|bracket| {
        let inside = bracket[1..bracket.len() - 1].trim().to_lowercase();
        let (first, rest) = size_at_start(&inside);
        let parts = || rest.split([',', ';']).map(str::trim);
        let understood: Vec<String> =
            after_numbers(bracket).into_iter().map(|(_, number)| number.to_string()).collect();
        let after = match understood.is_empty() {
            true => {
                after_meant(rest.replace([',', ';'], " ").trim()).or_else(|| parts().find_map(after_meant))
            }
            false => Some(understood.join(", ")),
        };
        let size = first.or_else(|| parts().filter(|_| after.is_some()).find_map(size_named));
        let is_lost =
            (size.is_some() && Size::stated(item).is_none()) || (after.is_some() && understood.is_empty());
        is_lost.then(|| {
            let after = after.map(|numbers| format!("after: {numbers}"));
            let right: Vec<String> =
                size.map(|size| size.word().to_owned()).into_iter().chain(after).collect();
            let bracket = clip(&one_line(bracket), 40);
            format!("`{bracket}`, which is not understood: write `({})`", right.join(", "))
        })
    })
}

/// The brackets at the end, but not one that belongs to the word before it, as a link's or a call's does.
fn brackets_at_end(item: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = item.trim_end_matches(['.', ' ']);
    while let Some(opens) = [(')', '('), (']', '[')].iter().find(|(closes, _)| rest.ends_with(*closes)) {
        let Some(place) = rest.rfind(opens.1) else { break };
        let before = &rest[..place];
        if !before.is_empty() && !before.ends_with(' ') {
            break;
        }
        found.push(&rest[place..]);
        rest = before.trim_end();
    }
    found
}

const SIZES: [Size; 5] = [Size::VeryComplex, Size::Trivial, Size::Simple, Size::Medium, Size::Complex];

fn size_named(word: &str) -> Option<Size> {
    SIZES.into_iter().find(|size| size.word() == word.replace(['-', '_'], " "))
}

/// The size that these words begin with, and what follows; no size where they merely go on in plain words, as in
/// "complex numbers" and "medium-sized".
fn size_at_start(words: &str) -> (Option<Size>, &str) {
    let found = SIZES
        .into_iter()
        .find(|size| size_named(words.get(..size.word().len()).unwrap_or_default()) == Some(*size));
    let Some(size) = found else { return (None, words) };
    let rest = &words[size.word().len()..];
    let tail = rest.trim_start();
    let ends = tail.is_empty()
        || tail.starts_with([',', ':', ';', '.', '!', '?', '=', '–', '—'])
        || tail.starts_with("- ");
    let is_meant = ends || (tail != rest && after_meant(tail).is_some());
    if is_meant { (Some(size), tail) } else { (None, words) }
}

/// What to write behind `after:` where these words want to say what an item waits for: with a colon, or with nothing but
/// numbers. "after 2 days" does not.
fn after_meant(words: &str) -> Option<String> {
    let rest = words.strip_prefix("after").filter(|rest| !rest.starts_with(char::is_alphanumeric))?;
    let is_number = |word: &&str| word.parse::<usize>().is_ok();
    let named: Vec<&str> = rest
        .split([' ', '#', '&', ':'])
        .filter(|word| !["", "and", "item", "items", "number", "no."].contains(word))
        .collect();
    if !named.is_empty() && named.iter().all(is_number) {
        return Some(named.join(", "));
    }
    rest.trim_start().starts_with(':').then(|| "N".to_owned())
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
    fn large_ones_first_saves_a_session_where_the_lists_order_does_not() {
        let room = Room { base: 25_000, ..ROOM };
        let simple = ["a (simple)", "b (simple)", "c (simple)"];
        let texts = [&simple[..], &["d (medium)", "e (medium)", "f (complex)", "g (complex)", "h (complex)"]];
        let plan = plan(&items(&texts.concat()), &[], room);
        assert_eq!(plan.sessions(&plan.in_order), 5);
        assert_eq!(plan.better, Some(vec![vec![1, 6], vec![2, 7], vec![3, 8], vec![4, 5]]));
        assert!(plan.lines.is_empty());
    }

    #[test]
    fn what_waits_comes_behind_also_where_that_saves_nothing() {
        // The order, and the lines that it changes.
        type Row<'a> = (&'a [&'a str], Option<Groups>, &'a [(usize, &'a str)]);
        let rows: [Row; 5] = [
            (&["a (simple)", "b (simple, after: 1)"], None, &[]),
            (
                &["a (simple, after: 3)", "b (simple)", "c (simple)"],
                Some(vec![vec![2, 3, 1]]),
                &[(1, "- [ ] b (simple)"), (2, "- [ ] c (simple)"), (3, "- [ ] a (simple, after: 2)")],
            ),
            (
                &[
                    "x z",
                    "a (simple, after: 1, #4)",
                    "x y after: 2",
                    "b (simple)",
                    "c (simple) after: 2 and 4.",
                ],
                Some(vec![vec![4, 2, 5]]),
                &[
                    (2, "- [ ] b (simple)"),
                    (3, "- [x] y after: 2"),
                    (4, "- [ ] a (simple, after: 1, #2)"),
                    (5, "- [ ] c (simple) after: 4 and 2."),
                ],
            ),
            (
                &[
                    "a (trivial, after: 5)",
                    "b (trivial, after: 1)",
                    "c (trivial)",
                    "d (trivial)",
                    "e (trivial)",
                ],
                Some(vec![vec![5, 1, 2, 3, 4]]),
                &[
                    (1, "- [ ] e (trivial)"),
                    (2, "- [ ] a (trivial, after: 1)"),
                    (3, "- [ ] b (trivial, after: 2)"),
                    (4, "- [ ] c (trivial)"),
                    (5, "- [ ] d (trivial)"),
                ],
            ),
            (&["a (trivial) after: 2", "b (trivial) after: 1", "c"], None, &[]),
        ];
        for (texts, better, lines) in rows {
            let plan = plan(&items(texts), &[], ROOM);
            let told: Vec<(usize, &str)> = plan.lines.iter().map(|(at, line)| (*at, line.as_str())).collect();
            assert_eq!((plan.better, &told[..]), (better, lines), "{texts:?}");
        }
    }

    /// A row of numbers that is the same each time.
    fn seeded(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        }
    }

    fn some_list(next: &mut impl FnMut(u64) -> u64) -> Vec<Planned> {
        let count = 2 + next(6);
        let item = |number: u64| {
            let tokens = 50_000 * (1 + next(17));
            let other = 1 + next(count);
            let after = if next(4) == 0 && other != number { vec![other as usize] } else { Vec::new() };
            Planned {
                number: number as usize,
                text: String::new(),
                size: None,
                estimate: Estimate { tokens, source: crate::pack::Source::Nothing },
                sessions: tokens.div_ceil(ROOM.tokens()),
                after,
                split: false,
            }
        };
        (1..=count).map(item).collect()
    }

    fn is_valid(order: &[&Planned]) -> bool {
        order.iter().enumerate().all(|(place, item)| waits_for_none(item, &order[place..]))
    }

    /// Of all orders in which nothing comes before what it waits for, the fewest sessions.
    fn fewest(items: &[Planned], begun: &mut Vec<&Planned>) -> Option<u64> {
        if begun.len() == items.len() {
            let most = |group: &Order| group.iter().map(|item| item.sessions).max();
            return Some(grouped(begun, ROOM).iter().filter_map(most).sum());
        }
        let mut best = None;
        for place in 0..items.len() {
            let item = &items[place];
            let is_free = item.after.iter().all(|other| begun.iter().any(|done| done.number == *other));
            if is_free && !begun.contains(&item) {
                let mut order: Vec<&Planned> = begun.iter().map(|done| &items[done.number - 1]).collect();
                order.push(item);
                best = [best, fewest(items, &mut order)].into_iter().flatten().min();
            }
        }
        best
    }

    #[test]
    fn the_order_is_never_worse_than_the_users_and_nearly_always_the_best_there_is() {
        let mut next = seeded(7);
        let (mut all, mut optimal, mut circular) = (0, 0, 0);
        for _ in 0..400 {
            let items = some_list(&mut next);
            let sessions = |order: &[&Planned]| -> u64 {
                grouped(order, ROOM)
                    .iter()
                    .filter_map(|group| group.iter().map(|item| item.sessions).max())
                    .sum()
            };
            let users: Order = items.iter().collect();
            let Some(order) = best_order(&items, ROOM) else {
                assert!(!circles(&items).is_empty() && fewest(&items, &mut Vec::new()).is_none());
                circular += 1;
                continue;
            };
            assert!(is_valid(&order) && order.len() == items.len(), "{items:?}");
            assert!(!is_valid(&users) || sessions(&order) <= sessions(&users), "{items:?}");
            all += 1;
            optimal += usize::from(Some(sessions(&order)) == fewest(&items, &mut Vec::new()));
        }
        assert!(circular > 0 && optimal * 100 >= all * 95, "{optimal} of {all}, {circular} circular");
    }

    fn complaints(texts: &[&str]) -> Vec<String> {
        plan(&items(texts), &[], ROOM).complaints
    }

    #[test]
    fn a_wrong_after_is_told() {
        let rows: [(&[&str], &[&str]); 7] = [
            (&["a after: 2", "b"], &["item 1 waits for item 2, which comes later"]),
            (&["a after: 7", "b (after: #1)"], &["item 1 waits for item 7, and there is none"]),
            (&["a after: 1"], &["item 1 waits for itself"]),
            (&["x a", "b after: 1", "c, looked after: well"], &[]),
            (&["a (after: 2)", "b (after: 1)"], &["items 1 and 2 wait for each other"]),
            (
                &["a after: 3", "b after: 1", "c after: 2", "d after: 5", "e after: 4", "f after: 1"],
                &["items 1, 2 and 3 wait for each other", "items 4 and 5 wait for each other"],
            ),
            (&["a (after: 1) 2 times", "thereafter: 7 more"], &["item 1 waits for itself"]),
        ];
        for (texts, told) in rows {
            assert_eq!(complaints(texts), told, "{texts:?}");
        }
    }

    #[test]
    fn what_wants_to_state_something_and_is_not_understood_is_told() {
        for (said, right) in [
            ("(after 2)", "(after: 2)"),
            ("(After item 2, 3)", "(after: 2, 3)"),
            ("(after : 2)", "(after: 2)"),
            ("(after: first)", "(after: N)"),
            ("(after: 2-4)", "(after: N)"),
            ("[medium]", "(medium)"),
            ("( medium )", "(medium)"),
            ("(Complex: big one)", "(complex)"),
            ("(very-complex)", "(very complex)"),
            ("(medium - with care)", "(medium)"),
            ("(simple, after 2)", "(simple, after: 2)"),
            ("[simple, after: 2]", "(simple, after: 2)"),
            ("(medium after 2)", "(medium, after: 2)"),
            ("(after: 2, simple)", "(simple, after: 2)"),
        ] {
            let told = format!("item 4 says `{said}`, which is not understood: write `{right}`");
            assert_eq!(complaints(&["a", "b", "c", &format!("d {said}")]), [told]);
        }
        for fine in [
            "(simple)",
            "(very complex, after: 2)",
            "(simple, no tests)",
            "(after: 2, for the parser)",
            "[after: 2]",
            "(after the release)",
            "(after 2 days)",
            "(afterwards)",
            "(complex numbers)",
            "(simple but long)",
            "(medium-sized files)",
            "(simply)",
            "(trivial) [see the notes]",
            "[medium](https://example.org)",
            "with sort(simple: true)",
            "(see above)",
            "(medium) :)",
            "()",
            "(größer)",
        ] {
            assert_eq!(complaints(&["a", "b", "c", &format!("d {fine}")]), [""; 0], "{fine}");
        }
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
