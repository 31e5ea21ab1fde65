//! Which item of the plan a session works on.

use plimsoll_domain::{RunState, item_set};

/// Returns the item that the current session is about: of the open ones that are not parked the first that is not set aside,
/// else the first.
pub fn item_in_hand(state: &RunState) -> Option<&String> {
    let items = &state.items;
    if items.parked.is_empty() {
        return first_in_hand(items.todo_items.iter(), &items.set_aside);
    }
    let parked = item_set::set(items.parked.iter().map(|parked| &parked.item));
    let free = items.todo_items.iter().filter(|item| !parked.contains(item.as_str()));
    first_in_hand(free, &items.set_aside)
}

/// Returns the current item of these open ones that are not parked: the first that is not set aside, while there is another.
pub fn first_in_hand<'a>(
    mut free: impl Iterator<Item = &'a String> + Clone,
    set_aside: &[String],
) -> Option<&'a String> {
    if set_aside.is_empty() {
        return free.next();
    }
    let set_aside = item_set::set(set_aside);
    free.clone().find(|item| !set_aside.contains(item.as_str())).or_else(|| free.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::question::OpenQuestion;
    use plimsoll_domain::state::Items;

    #[test]
    fn what_is_parked_is_passed_over_and_what_is_set_aside_comes_last() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        type Texts = &'static [&'static str];
        let table: [(Texts, Texts, Texts, Option<&str>); 7] = [
            (&["one", "two"], &[], &[], Some("one")),
            (&["one", "two"], &["one"], &[], Some("two")),
            (&["one", "two", "three"], &["one"], &["two"], Some("three")),
            // Better than one that waits.
            (&["one", "two"], &["one"], &["two"], Some("two")),
            (&["one", "two"], &[], &["one", "two"], Some("one")),
            (&["one"], &["one"], &[], None),
            (&[], &[], &[], None),
        ];
        for (open, parked, set_aside, expected) in table {
            let parked =
                texts(parked).into_iter().map(|item| OpenQuestion { item, ..OpenQuestion::default() });
            let items = Items {
                todo_items: texts(open),
                parked: parked.collect(),
                set_aside: texts(set_aside),
                ..Items::default()
            };
            let state = RunState { items, ..RunState::default() };
            assert_eq!(item_in_hand(&state).map(String::as_str), expected, "{open:?}");
        }
    }
}
