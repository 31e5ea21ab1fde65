//! Items by their words: a plan of ten thousand is compared with another in time that grows with their length, and not with
//! its square.

use std::collections::HashSet;

/// The words of these items, for looking them up.
pub fn set<'a>(items: impl IntoIterator<Item = &'a String>) -> HashSet<&'a str> {
    items.into_iter().map(String::as_str).collect()
}

/// The items that are in none of the other lists, in their order.
pub fn without(items: &[String], others: &[&[String]]) -> Vec<String> {
    let known = set(others.iter().copied().flatten());
    items.iter().filter(|item| !known.contains(item.as_str())).cloned().collect()
}

/// Adds what is not there yet, each once and in its order.
pub fn join(items: &mut Vec<String>, more: &[String]) {
    // Mostly nothing is new.
    if items == more {
        return;
    }
    let mut known = set(&*items);
    let new: Vec<String> = more.iter().filter(|item| known.insert(item)).cloned().collect();
    items.extend(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn order_is_kept_and_nothing_comes_twice() {
        for (known, more, joined, rest) in [
            ("", "", "", ""),
            ("a b", "", "a b", ""),
            ("", "b a b", "b a", "b a b"),
            ("a b", "c a d c", "a b c d", "c d c"),
        ] {
            let mut all = items(known);
            join(&mut all, &items(more));
            assert_eq!(all, items(joined), "{known} + {more}");
            assert_eq!(without(&items(more), &[&items(known)]), items(rest), "{more} - {known}");
        }
        assert_eq!(without(&items("a b c d"), &[&items("a"), &items("c")]), items("b d"));
    }
}
