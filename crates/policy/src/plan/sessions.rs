//! Groups the open items into sessions.

use super::{PlannedItem, SessionCapacity};
use crate::pack::may_share_session_if_all_trivial;

/// The items of a session, and the sum of their estimates.
#[derive(Debug, Default)]
struct SessionGroup<'a> {
    items: Vec<&'a PlannedItem>,
    tokens: u64,
    has_oversized_item: bool,
}

impl<'a> SessionGroup<'a> {
    fn new(item: &'a PlannedItem) -> SessionGroup<'a> {
        let mut group = SessionGroup::default();
        group.push(item);
        group
    }

    fn push(&mut self, item: &'a PlannedItem) {
        self.items.push(item);
        self.tokens = self.tokens.saturating_add(item.estimate.tokens);
        self.has_oversized_item |= item.session_count > 1;
    }

    /// Returns true if the item may join this session. An item that is too large for one session is never grouped, and
    /// all items of a session have the same model.
    fn has_room_and_same_model_for(&self, item: &PlannedItem, capacity: SessionCapacity) -> bool {
        let needs_separate_session = self.has_oversized_item || item.session_count > 1;
        let has_other_model = self.items.first().is_some_and(|first| first.model != item.model);
        !needs_separate_session
            && !has_other_model
            && item.estimate.tokens < capacity.work_tokens().saturating_sub(self.tokens)
    }
}

fn group_consecutive_items_if<'a>(
    items: &[&'a PlannedItem],
    can_join: impl Fn(&SessionGroup<'a>, &PlannedItem) -> bool,
) -> Vec<Vec<&'a PlannedItem>> {
    let mut groups: Vec<SessionGroup> = Vec::new();
    for item in items {
        match groups.last_mut().filter(|group| can_join(group, item)) {
            Some(group) => group.push(item),
            None => groups.push(SessionGroup::new(item)),
        }
    }
    groups.into_iter().map(|group| group.items).collect()
}

/// Groups the items as `--pack` does: a session continues with the next item as long as it fits below L2.
pub(super) fn group_while_fitting_below_l2<'a>(
    items: &[&'a PlannedItem],
    capacity: SessionCapacity,
) -> Vec<Vec<&'a PlannedItem>> {
    group_consecutive_items_if(items, |group, item| group.has_room_and_same_model_for(item, capacity))
}

/// Groups the items as a run without `--pack` does: one item per session, except that consecutive trivial items share
/// one.
pub(super) fn group_one_per_session_unless_trivial<'a>(
    items: &[&'a PlannedItem],
    capacity: SessionCapacity,
) -> Vec<Vec<&'a PlannedItem>> {
    group_consecutive_items_if(items, |group, item| {
        let ticked_items: Vec<String> =
            group.items.iter().map(|grouped_item| grouped_item.text.clone()).collect();
        may_share_session_if_all_trivial(&ticked_items, &item.text, group.items.len() as u32 - 1)
            && group.has_room_and_same_model_for(item, capacity)
    })
}
