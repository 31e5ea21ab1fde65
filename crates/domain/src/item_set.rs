//! Set operations on items, by their text. With hash sets the time grows linearly with the plans' lengths,
//! which matters for plans with ten thousand items.

use std::collections::HashSet;

/// Returns the texts of these items as a set.
pub fn to_text_set<'a>(items: impl IntoIterator<Item = &'a String>) -> HashSet<&'a str> {
    items.into_iter().map(String::as_str).collect()
}

/// Returns the items that are in none of the other lists, in their order.
pub fn items_not_in(items: &[String], excluded_lists: &[&[String]]) -> Vec<String> {
    let excluded = to_text_set(excluded_lists.iter().copied().flatten());
    items.iter().filter(|item| !excluded.contains(item.as_str())).cloned().collect()
}

/// Appends the items that are not in the list yet, each once and in their order.
pub fn append_new_items(items: &mut Vec<String>, candidates: &[String]) {
    // Fast path: usually nothing is new.
    if items == candidates {
        return;
    }
    let mut existing_texts = to_text_set(&*items);
    let new_items: Vec<String> =
        candidates.iter().filter(|item| existing_texts.insert(item)).cloned().collect();
    items.extend(new_items);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_items(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn order_is_kept_and_duplicates_are_dropped() {
        for (initial, more, joined, rest) in [
            ("", "", "", ""),
            ("a b", "", "a b", ""),
            ("", "b a b", "b a", "b a b"),
            ("a b", "c a d c", "a b c d", "c d c"),
        ] {
            let mut joined_items = split_items(initial);
            append_new_items(&mut joined_items, &split_items(more));
            assert_eq!(joined_items, split_items(joined), "{initial} + {more}");
            assert_eq!(
                items_not_in(&split_items(more), &[&split_items(initial)]),
                split_items(rest),
                "{more} - {initial}"
            );
        }
        assert_eq!(
            items_not_in(&split_items("a b c d"), &[&split_items("a"), &split_items("c")]),
            split_items("b d")
        );
    }
}
