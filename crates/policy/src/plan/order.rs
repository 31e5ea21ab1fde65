//! An order that saves a session, or in which nothing comes before what it waits for. All of it takes time that grows with the
//! plan and not with its square.

use super::{Planned, Room};
use crate::pack::may_share;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

/// Items in an order.
pub(super) type Order<'a> = Vec<&'a Planned>;

/// Of the orders in which nothing comes before what it waits for, the one with the fewest sessions, and of those the one
/// nearest to the user's: tried are the user's own (what has to wait put behind, or what is waited for put before), and what
/// packs well. None if items wait for each other.
pub(super) fn best_order(items: &[Planned], room: Room) -> Option<Order<'_>> {
    let waiting_put_behind = sorted_by_dependency(&items.iter().collect::<Order>())?;
    let waited_for_put_before = reverse_sorted_by_dependency(items)?;
    let mut large_first: Order = items.iter().collect();
    large_first.sort_by_key(|item| Reverse(item.estimate.tokens));
    let large_first = sorted_by_dependency(&large_first)?;
    let packed = [packed(&waiting_put_behind, room)?, packed(&large_first, room)?];
    [waiting_put_behind, waited_for_put_before]
        .into_iter()
        .chain(packed)
        .min_by_key(|order| (sessions(order, room), count_departures(order)))
}

/// Takes the first place that waits for no place that is left, again and again. `waits_for` has for each place those that it
/// waits for. Returns none if some wait for each other.
fn first_free_again(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut missing: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    let mut waited_for_by: Vec<Vec<usize>> = vec![Vec::new(); waits_for.len()];
    for (place, others) in waits_for.iter().enumerate() {
        others.iter().for_each(|other| waited_for_by[*other].push(place));
    }
    let is_free = |place: &usize| missing[*place] == 0;
    let mut free: BinaryHeap<Reverse<usize>> = (0..waits_for.len()).filter(is_free).map(Reverse).collect();
    let mut order = Vec::with_capacity(waits_for.len());
    while let Some(Reverse(place)) = free.pop() {
        order.push(place);
        for waiting in &waited_for_by[place] {
            missing[*waiting] -= 1;
            if missing[*waiting] == 0 {
                free.push(Reverse(*waiting));
            }
        }
    }
    (order.len() == waits_for.len()).then_some(order)
}

/// For each item the places of those in the list that it waits for.
fn dependencies(items: &[&Planned]) -> Vec<Vec<usize>> {
    let places: HashMap<usize, usize> =
        items.iter().enumerate().map(|(place, item)| (item.number, place)).collect();
    let of = |item: &&Planned| item.after.iter().filter_map(|other| places.get(other).copied()).collect();
    items.iter().map(of).collect()
}

/// The items so that each comes behind what it waits for, and else in their order.
fn sorted_by_dependency<'a>(items: &[&'a Planned]) -> Option<Order<'a>> {
    let order = first_free_again(&dependencies(items))?;
    Some(order.into_iter().map(|place| items[place]).collect())
}

/// The same from the end: each item comes as late as what waits for it allows.
fn reverse_sorted_by_dependency(items: &[Planned]) -> Option<Order<'_>> {
    let items: Order = items.iter().rev().collect();
    let mut waited_for_by = vec![Vec::new(); items.len()];
    for (place, others) in dependencies(&items).iter().enumerate() {
        others.iter().for_each(|other| waited_for_by[*other].push(place));
    }
    let mut order = first_free_again(&waited_for_by)?;
    order.reverse();
    Some(order.into_iter().map(|place| items[place]).collect())
}

/// How many pairs are in reverse order compared with the user's.
fn count_departures(order: &Order) -> usize {
    let numbers: Vec<usize> = order.iter().map(|item| item.number).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let rank = |number: usize| sorted.partition_point(|other| *other < number);
    // A Fenwick tree over the ranks counts the smaller ones behind each item.
    let mut counts = vec![0_usize; numbers.len() + 1];
    let mut departures = 0;
    for number in numbers.iter().rev() {
        let rank = rank(*number);
        let mut at = rank;
        while at > 0 {
            departures += counts[at];
            at &= at - 1;
        }
        let mut at = rank + 1;
        while at < counts.len() {
            counts[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    departures
}

/// A session with its items, and what they take together.
#[derive(Debug, Default)]
struct Group<'a> {
    items: Order<'a>,
    tokens: u64,
    is_alone: bool,
}

impl<'a> Group<'a> {
    fn new(item: &'a Planned) -> Group<'a> {
        let mut group = Group::default();
        group.push(item);
        group
    }

    fn push(&mut self, item: &'a Planned) {
        self.items.push(item);
        self.tokens = self.tokens.saturating_add(item.estimate.tokens);
        self.is_alone |= item.sessions > 1;
    }

    /// What fits no session stays alone, and what gets another model is done elsewhere.
    fn has_room(&self, item: &Planned, room: Room) -> bool {
        let is_alone = self.is_alone || item.sessions > 1;
        // All items of a session have the same model.
        let is_elsewhere = self.items.first().is_some_and(|first| first.model != item.model);
        !is_alone && !is_elsewhere && item.estimate.tokens < room.tokens().saturating_sub(self.tokens)
    }
}

fn grouped_if<'a>(order: &[&'a Planned], may_join: impl Fn(&Group<'a>, &Planned) -> bool) -> Vec<Order<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for item in order {
        match groups.last_mut().filter(|group| may_join(group, item)) {
            Some(group) => group.push(item),
            None => groups.push(Group::new(item)),
        }
    }
    groups.into_iter().map(|group| group.items).collect()
}

/// As `--pack` goes: the next item while it fits below L2, else a fresh session.
pub(super) fn grouped<'a>(order: &[&'a Planned], room: Room) -> Vec<Order<'a>> {
    grouped_if(order, |group, item| group.has_room(item, room))
}

/// As a run goes without `--pack`: one item a session, except that trivial neighbours share one.
pub(super) fn unpacked<'a>(order: &[&'a Planned], room: Room) -> Vec<Order<'a>> {
    grouped_if(order, |group, item| {
        let ticked: Vec<String> = group.items.iter().map(|other| other.text.clone()).collect();
        may_share(&ticked, &item.text, group.items.len() as u32 - 1) && group.has_room(item, room)
    })
}

/// How many sessions that takes: an item that fits none takes several.
pub(super) fn sessions(order: &[&Planned], room: Room) -> u64 {
    let most = |group: &Order| group.iter().map(|item| item.sessions).max().unwrap_or(1);
    grouped(order, room).iter().map(most).sum()
}

/// The sessions of one model that are not full, by their places, in a tree in which each node has the most room below it.
struct RoomTree {
    leaves: usize,
    most_room: Vec<u64>,
}

impl RoomTree {
    fn new(places: usize) -> RoomTree {
        let leaves = places.next_power_of_two();
        RoomTree { leaves, most_room: vec![0; 2 * leaves] }
    }

    fn set(&mut self, place: usize, room: u64) {
        let mut node = self.leaves + place;
        self.most_room[node] = room;
        while node > 1 {
            node /= 2;
            self.most_room[node] = self.most_room[2 * node].max(self.most_room[2 * node + 1]);
        }
    }

    /// The first place from this one on that has room for more than so many tokens.
    fn first_with_room(&self, from: usize, tokens: u64) -> Option<usize> {
        let mut node = self.leaves + from;
        // Upwards until a tree on the right side, or this one, has room; then down to the first leaf that has.
        while self.most_room[node] <= tokens {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node = if self.most_room[2 * node] > tokens { 2 * node } else { 2 * node + 1 };
        }
        Some(node - self.leaves)
    }
}

/// Each item into the first session that has room for it and comes no earlier than what it waits for; then the sessions, and
/// the items in each, as near to the user's order as they may be.
fn packed<'a>(order: &[&'a Planned], room: Room) -> Option<Order<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    // The sessions of each model: their places among all, in rising order, and the room in each.
    let mut of_models: BTreeMap<Option<&str>, (Vec<usize>, RoomTree)> = BTreeMap::new();
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    order.iter().for_each(|item| *counts.entry(item.model.as_deref()).or_default() += 1);
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    for item in order {
        let model = item.model.as_deref();
        let (places, rooms) =
            of_models.entry(model).or_insert_with(|| (Vec::new(), RoomTree::new(counts[&model])));
        let earliest = item.after.iter().filter_map(|other| group_of.get(other)).max().copied().unwrap_or(0);
        let from = places.partition_point(|place| *place < earliest);
        let fits = item.sessions <= 1 && from < places.len();
        let found = fits.then(|| rooms.first_with_room(from, item.estimate.tokens)).flatten();
        let place = found.unwrap_or_else(|| {
            places.push(groups.len());
            groups.push(Group::default());
            places.len() - 1
        });
        let group = &mut groups[places[place]];
        group.push(item);
        group_of.insert(item.number, places[place]);
        let left = if group.is_alone { 0 } else { room.tokens().saturating_sub(group.tokens) };
        rooms.set(place, left);
    }
    let mut groups: Vec<Order> = groups.into_iter().map(|group| group.items).collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(|item| item.number));
    groups.sort_by_key(|group| group[0].number);
    let places: HashMap<usize, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(place, group)| group.iter().map(move |item| (item.number, place)))
        .collect();
    let waits_for = |(place, group): (usize, &Order)| {
        let others = group.iter().flat_map(|item| &item.after).filter_map(|other| places.get(other).copied());
        let others: BTreeSet<usize> = others.filter(|other| *other != place).collect();
        others.into_iter().collect()
    };
    let waits_for: Vec<Vec<usize>> = groups.iter().enumerate().map(waits_for).collect();
    let order = first_free_again(&waits_for)?;
    let groups = order.into_iter().map(|place| sorted_by_dependency(&groups[place]));
    Some(groups.collect::<Option<Vec<Order>>>()?.concat())
}
