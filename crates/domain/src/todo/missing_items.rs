//! Finds the items that are missing from a plan, without comparing each item with each line.

use super::{can_follow_item_text, strip_emphasis_and_extra_spaces};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// Items, each with the number of lines that are still missing for it.
type MissingCounts<'a> = BTreeMap<Cow<'a, str>, usize>;

/// Returns those of the known items that match no line. Each line matches one item: first an item with the same text, so that
/// "Add tests for the parser" does not replace a missing "Add tests"; then the longest item with which the line begins.
pub(super) fn known_items_missing_from_lines<'a>(
    lines: impl Iterator<Item = &'a str> + Clone,
    known_items: &[String],
) -> Vec<String> {
    // Fast path: usually only the ticks of the plan have changed.
    if lines.clone().eq(known_items.iter().map(String::as_str)) {
        return Vec::new();
    }
    let mut unmatched_counts: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(known_items.len());
    for item in known_items {
        *unmatched_counts.entry(strip_emphasis_and_extra_spaces(item)).or_default() += 1;
    }
    let mut unmatched_lines = Vec::new();
    for line in lines.map(strip_emphasis_and_extra_spaces) {
        match unmatched_counts.get_mut(&line).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => unmatched_lines.push(line),
        }
    }
    let mut missing_counts: MissingCounts<'_> =
        unmatched_counts.into_iter().filter(|(_, count)| *count > 0).collect();
    unmatched_lines.iter().for_each(|line| decrement_longest_prefix_item(&mut missing_counts, line));
    if missing_counts.is_empty() {
        return Vec::new();
    }
    // If the known items have the same text twice and the plan has it once, the last one is missing.
    let mut missing_items = known_items.to_owned();
    missing_items.reverse();
    missing_items
        .retain(|item| decrement_missing_count(&mut missing_counts, &strip_emphasis_and_extra_spaces(item)));
    missing_items.reverse();
    missing_items
}

/// Lowers the count of the longest missing item with which a line begins. Choosing a shorter one is never better, because any
/// line that begins with the longer item could match the shorter one as well.
fn decrement_longest_prefix_item(missing_counts: &mut MissingCounts<'_>, line: &str) {
    let mut upper_bound = Bound::Included(line);
    // In sorted order a text comes after all of its prefixes, so the last prefix before the line is the longest.
    while let Some((item, _)) = missing_counts.range::<str, _>((Bound::Unbounded, upper_bound)).next_back() {
        match line.strip_prefix(&**item) {
            Some(remaining) if can_follow_item_text(remaining) => {
                let item = item.clone().into_owned();
                decrement_missing_count(missing_counts, &item);
                return;
            }
            Some(_) => upper_bound = Bound::Excluded(&line[..item.len()]),
            None => upper_bound = Bound::Included(&line[..common_prefix_bytes(line, item)]),
        }
    }
}

/// Lowers the count of a missing item by one. Returns false if the item is not missing.
fn decrement_missing_count(missing_counts: &mut MissingCounts<'_>, item: &str) -> bool {
    let Some(count) = missing_counts.get_mut(item) else { return false };
    *count -= 1;
    if *count == 0 {
        missing_counts.remove(item);
    }
    true
}

/// Returns the length in bytes of the common beginning of two texts.
fn common_prefix_bytes(first: &str, second: &str) -> usize {
    let matching_characters = first
        .char_indices()
        .zip(second.chars())
        .take_while(|((_, first_character), second_character)| first_character == second_character);
    matching_characters.last().map_or(0, |((index, character), _)| index + character.len_utf8())
}

#[cfg(test)]
mod tests {
    use crate::TodoList;

    fn missing_items(known_items: &[&str], plan: &str) -> Vec<String> {
        let known_items: Vec<String> = known_items.iter().map(|item| (*item).to_owned()).collect();
        TodoList::parse(plan).known_items_missing_from_lines(&known_items)
    }

    #[test]
    fn a_line_matches_only_the_longest_item_with_which_it_begins() {
        for (known, plan, lost) in [
            (&["a"][..], "", &["a"][..]),
            (&["a", "a"], "- [ ] a\n", &["a"]),
            (&["a b", "a"], "- [x] a b (done)\n", &["a"]),
            (&["a", "a b"], "- [x] a b (done)\n- [x] a (done)\n", &[]),
            (&["a", "a b"], "- [x] a (done)\n- [x] a b (done)\n", &[]),
            (&["ab", "a"], "- [x] abc\n- [x] a, or ab\n", &["ab"]),
            (&["é", "éa"], "- [x] ~~éa~~ x\n- [x] éb\n", &["é"]),
            (&["b", "a c", "a"], "- [x] a d\n- [x] a c d\n", &["b"]),
        ] {
            assert_eq!(missing_items(known, plan), lost, "{known:?} in {plan:?}");
        }
    }

    /// Comparing each pair would take minutes.
    #[test]
    fn a_plan_of_fifty_thousand_items_is_compared_quickly() {
        let known_items: Vec<String> =
            (0..50_000).map(|number| format!("Convert the file number {number}")).collect();
        let decorated_plan: String =
            known_items.iter().map(|item| format!("- [x] **{item}** (done)\n")).collect();
        assert!(TodoList::parse(&decorated_plan).known_items_missing_from_lines(&known_items).is_empty());
        let different_plan: String =
            known_items.iter().map(|item| format!("- [ ] {}0\n", &item[..item.len() - 1])).collect();
        assert!(TodoList::parse(&different_plan).known_items_missing_from_lines(&known_items).len() > 40_000);
    }
}
