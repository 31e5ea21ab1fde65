//! An order that saves a session, or in which nothing comes before what it waits for.

use super::{Planned, Room};
use crate::pack::may_share;
use std::cmp::Reverse;

/// Items in an order.
pub(super) type Order<'a> = Vec<&'a Planned>;

/// Of the orders in which nothing comes before what it waits for, the one with the fewest sessions, and of those the one
/// nearest to the user's: tried are the user's own (what has to wait put behind, or what is waited for put before), and what
/// packs well. None if items wait for each other.
pub(super) fn best_order(items: &[Planned], room: Room) -> Option<Order<'_>> {
    let waiting_put_behind = in_turn(items.iter().collect(), waits_for_none)?;
    let is_waited_for_by_none =
        |item: &&Planned, ahead: &[&Planned]| !ahead.iter().any(|other| other.after.contains(&item.number));
    let mut waited_for_put_before = in_turn(items.iter().rev().collect(), is_waited_for_by_none)?;
    waited_for_put_before.reverse();
    let mut large_first: Order = items.iter().collect();
    large_first.sort_by_key(|item| Reverse(item.estimate.tokens));
    let large_first = in_turn(large_first, waits_for_none)?;
    let packed = [packed(&waiting_put_behind, room)?, packed(&large_first, room)?];
    [waiting_put_behind, waited_for_put_before]
        .into_iter()
        .chain(packed)
        .min_by_key(|order| (sessions(order, room), departures(order)))
}

/// The first that is free, again and again. None if some wait for each other.
fn in_turn<T>(mut waiting: Vec<T>, is_free: impl Fn(&T, &[T]) -> bool) -> Option<Vec<T>> {
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let next = waiting.iter().position(|one| is_free(one, &waiting))?;
        order.push(waiting.remove(next));
    }
    Some(order)
}

pub(super) fn waits_for_none(item: &&Planned, ahead: &[&Planned]) -> bool {
    !ahead.iter().any(|other| item.after.contains(&other.number))
}

/// How many pairs are in reverse order compared with the user's.
fn departures(order: &Order) -> usize {
    let behind = |place: usize, item: &Planned| {
        order[place..].iter().filter(|other| other.number < item.number).count()
    };
    order.iter().enumerate().map(|(place, item)| behind(place, item)).sum()
}

/// As `--pack` goes: the next item while it fits below L2, else a fresh session.
pub(super) fn grouped<'a>(order: &[&'a Planned], room: Room) -> Vec<Order<'a>> {
    let mut groups: Vec<Order> = Vec::new();
    for item in order {
        match groups.last_mut().filter(|group| has_room(group, item, room)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// As a run goes without `--pack`: one item a session, except that trivial neighbours share one.
pub(super) fn unpacked<'a>(order: &[&'a Planned], room: Room) -> Vec<Order<'a>> {
    let may_join = |group: &Order, item: &Planned| {
        let ticked: Vec<String> = group.iter().map(|other| other.text.clone()).collect();
        may_share(&ticked, &item.text, group.len() as u32 - 1) && has_room(group, item, room)
    };
    let mut groups: Vec<Order> = Vec::new();
    for item in order {
        match groups.last_mut().filter(|group| may_join(group, item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// How many sessions that takes: an item that fits none takes several.
pub(super) fn sessions(order: &[&Planned], room: Room) -> u64 {
    let most = |group: &Order| group.iter().map(|item| item.sessions).max().unwrap_or(1);
    grouped(order, room).iter().map(most).sum()
}

/// What fits no session stays alone, and what gets another model is done elsewhere.
fn has_room(group: &[&Planned], item: &Planned, room: Room) -> bool {
    let taken = group.iter().fold(0, |sum: u64, other| sum.saturating_add(other.estimate.tokens));
    let is_alone =
        item.sessions > 1 || group.iter().any(|other| other.sessions > 1 || other.model != item.model);
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
