//! Items that a plan has lost, found in time that grows with the plan and not with its square.

use super::{is_rest, plain};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// Items, and how many lines are to stand for each.
type Missing<'a> = BTreeMap<Cow<'a, str>, usize>;

/// Of the items once known, those that no line stands for. Each line stands for one item: first one of its very words, so
/// that "Add tests for the parser" is no stand-in for a lost "Add tests"; then one that it begins with.
pub(super) fn vanished<'a>(lines: impl Iterator<Item = &'a str> + Clone, known: &[String]) -> Vec<String> {
    // Mostly the plan has not changed but for its ticks.
    if lines.clone().eq(known.iter().map(String::as_str)) {
        return Vec::new();
    }
    let mut unmatched: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(known.len());
    for item in known {
        *unmatched.entry(plain(item)).or_default() += 1;
    }
    let mut rest = Vec::new();
    for line in lines.map(plain) {
        match unmatched.get_mut(&line).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => rest.push(line),
        }
    }
    let mut missing: Missing<'_> = unmatched.into_iter().filter(|(_, count)| *count > 0).collect();
    rest.iter().for_each(|line| take_longest(&mut missing, line));
    if missing.is_empty() {
        return Vec::new();
    }
    // Of an item that is known twice the last one is lost.
    let mut lost = known.to_owned();
    lost.reverse();
    lost.retain(|item| take(&mut missing, &plain(item)));
    lost.reverse();
    lost
}

/// Takes the longest item that a line begins with. No shorter one could be the better choice: whatever line begins with the
/// longer one could stand for the shorter one as well.
fn take_longest(missing: &mut Missing<'_>, line: &str) {
    let mut upto = Bound::Included(line);
    // In their order an item comes after all of its beginnings, and the nearest one before the line is the longest.
    while let Some((item, _)) = missing.range::<str, _>((Bound::Unbounded, upto)).next_back() {
        match line.strip_prefix(&**item) {
            Some(rest) if is_rest(rest) => {
                let item = item.clone().into_owned();
                take(missing, &item);
                return;
            }
            Some(_) => upto = Bound::Excluded(&line[..item.len()]),
            None => upto = Bound::Included(&line[..common(line, item)]),
        }
    }
}

/// Takes an item once; false if it is not missing.
fn take(missing: &mut Missing<'_>, item: &str) -> bool {
    let Some(count) = missing.get_mut(item) else { return false };
    *count -= 1;
    if *count == 0 {
        missing.remove(item);
    }
    true
}

/// The length of what two texts have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars()).take_while(|((_, one), other)| one == other);
    same.last().map_or(0, |((place, letter), _)| place + letter.len_utf8())
}

#[cfg(test)]
mod tests {
    use crate::TodoList;

    fn vanished(known: &[&str], plan: &str) -> Vec<String> {
        let known: Vec<String> = known.iter().map(|item| (*item).to_owned()).collect();
        TodoList::parse(plan).vanished(&known)
    }

    #[test]
    fn a_line_stands_for_one_item_and_for_the_longest_that_it_begins_with() {
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
            assert_eq!(vanished(known, plan), lost, "{known:?} in {plan:?}");
        }
    }

    /// As many comparisons as pairs would take minutes.
    #[test]
    fn a_plan_of_fifty_thousand_items_is_compared_at_once() {
        let known: Vec<String> =
            (0..50_000).map(|number| format!("Convert the file number {number}")).collect();
        let renamed: String = known.iter().map(|item| format!("- [x] **{item}** (done)\n")).collect();
        assert!(TodoList::parse(&renamed).vanished(&known).is_empty());
        let others: String =
            known.iter().map(|item| format!("- [ ] {}0\n", &item[..item.len() - 1])).collect();
        assert!(TodoList::parse(&others).vanished(&known).len() > 40_000);
    }
}
