//! Groups the open items into sessions.

use super::{Planned, Room};
use crate::pack::may_share;

/// A session with its items, and what they take together.
#[derive(Debug, Default)]
struct Group<'a> {
    items: Vec<&'a Planned>,
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

    /// Returns true if the item may join this session. An item that is too large for one session has its own, and all items of a session have
    /// the same model.
    fn has_room(&self, item: &Planned, room: Room) -> bool {
        let is_alone = self.is_alone || item.sessions > 1;
        let is_elsewhere = self.items.first().is_some_and(|first| first.model != item.model);
        !is_alone && !is_elsewhere && item.estimate.tokens < room.tokens().saturating_sub(self.tokens)
    }
}

fn grouped_if<'a>(
    order: &[&'a Planned],
    may_join: impl Fn(&Group<'a>, &Planned) -> bool,
) -> Vec<Vec<&'a Planned>> {
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
pub(super) fn grouped<'a>(order: &[&'a Planned], room: Room) -> Vec<Vec<&'a Planned>> {
    grouped_if(order, |group, item| group.has_room(item, room))
}

/// As a run goes without `--pack`: one item a session, except that trivial neighbours share one.
pub(super) fn unpacked<'a>(order: &[&'a Planned], room: Room) -> Vec<Vec<&'a Planned>> {
    grouped_if(order, |group, item| {
        let ticked: Vec<String> = group.items.iter().map(|other| other.text.clone()).collect();
        may_share(&ticked, &item.text, group.items.len() as u32 - 1) && group.has_room(item, room)
    })
}
