//! Determines which item of the plan a session works on.

use plimsoll_domain::{RunState, item_set};

/// Returns the item that the current session works on: of the open items that are not parked, the first one that
/// is not set aside, or the first one if all are set aside.
pub fn current_unparked_item(state: &RunState) -> Option<&String> {
    let items = &state.plan_items;
    if items.parked_questions.is_empty() {
        return choose_current_item(items.todo_items.iter(), &items.set_aside_items);
    }
    let parked_texts = item_set::to_text_set(items.parked_questions.iter().map(|parked| &parked.item));
    let unparked_items = items.todo_items.iter().filter(|item| !parked_texts.contains(item.as_str()));
    choose_current_item(unparked_items, &items.set_aside_items)
}

/// Chooses the current item from open items that are not parked: the first one that is not set aside, or the first
/// one if all are set aside.
pub fn choose_current_item<'a>(
    mut unparked_items: impl Iterator<Item = &'a String> + Clone,
    set_aside_items: &[String],
) -> Option<&'a String> {
    if set_aside_items.is_empty() {
        return unparked_items.next();
    }
    let set_aside_texts = item_set::to_text_set(set_aside_items);
    unparked_items
        .clone()
        .find(|item| !set_aside_texts.contains(item.as_str()))
        .or_else(|| unparked_items.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::question::OpenQuestion;
    use plimsoll_domain::state::PlanItems;

    #[test]
    fn parked_items_are_skipped_and_items_set_aside_come_last() {
        let to_strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        type Texts = &'static [&'static str];
        let table: [(Texts, Texts, Texts, Option<&str>); 7] = [
            (&["one", "two"], &[], &[], Some("one")),
            (&["one", "two"], &["one"], &[], Some("two")),
            (&["one", "two", "three"], &["one"], &["two"], Some("three")),
            // An item that was set aside is better than one that waits for an answer.
            (&["one", "two"], &["one"], &["two"], Some("two")),
            (&["one", "two"], &[], &["one", "two"], Some("one")),
            (&["one"], &["one"], &[], None),
            (&[], &[], &[], None),
        ];
        for (open, parked, set_aside, expected) in table {
            let parked =
                to_strings(parked).into_iter().map(|item| OpenQuestion { item, ..OpenQuestion::default() });
            let items = PlanItems {
                todo_items: to_strings(open),
                parked_questions: parked.collect(),
                set_aside_items: to_strings(set_aside),
                ..PlanItems::default()
            };
            let state = RunState { plan_items: items, ..RunState::default() };
            assert_eq!(current_unparked_item(&state).map(String::as_str), expected, "{open:?}");
        }
    }
}
