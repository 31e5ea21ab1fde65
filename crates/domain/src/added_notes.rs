//! Finds what a session wrote into its own copy of a plan: notes below items, and items that the plan does not have.

use crate::text::{clip, one_line};
use crate::todo::{PlanEntry, PlanLines, same_item};
use std::collections::{BTreeMap, HashSet};

/// A plan is a list for people: more lines than this of one session below one item are counted, not copied.
const MAX_LINES_PER_ITEM: usize = 100;
/// The length of a note, as [`crate::plan_edit::with_notes`] writes it.
const MAX_NOTE_CHARS: usize = 1_000;

/// A line that belongs below an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddedNote {
    /// The item's words.
    pub item: String,
    /// The line's words, without the mark of a quotation.
    pub text: String,
}

/// Returns what an edited copy of a plan has and neither its beginning nor the shown plan has, in the copy's order: each line below
/// the item above it, and each item that is not among `items` as a note below `own_item`. Boxes are no notes, whether they are
/// ticked or not, and a line that is gone is no change.
pub fn added_notes(base: &str, copy: &str, shown: &str, items: &[&str], own_item: &str) -> Vec<AddedNote> {
    if copy == base || copy == shown {
        return Vec::new();
    }
    // Plans may have thousands of items.
    let items: HashSet<&str> = items.iter().copied().collect();
    let mut known: HashSet<AddedNote> = notes_by_item(base, &items, own_item).into_iter().collect();
    let mut added: Vec<AddedNote> = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for note in notes_by_item(copy, &items, own_item) {
        if !known.insert(note.clone()) {
            continue;
        }
        let count = counts.entry(note.item.clone()).or_default();
        *count += 1;
        if *count <= MAX_LINES_PER_ITEM {
            added.push(note);
        }
    }
    // The limit comes before the comparison with the shown plan: what was left out once is left out the next time, too.
    for (item, count) in counts {
        if let Some(rest) = count.checked_sub(MAX_LINES_PER_ITEM).filter(|rest| *rest > 0) {
            let text = format!("{rest} more lines of a session's copy of the plan were left out");
            added.push(AddedNote { item, text });
        }
    }
    let shown: HashSet<AddedNote> = notes_by_item(shown, &items, own_item).into_iter().collect();
    added.retain(|note| !shown.contains(note));
    added
}

/// Every line with words that is no known item, with the item above it. Lines before the first item belong to `own_item`.
fn notes_by_item(plan: &str, items: &HashSet<&str>, own_item: &str) -> Vec<AddedNote> {
    let mut current = own_item.to_owned();
    let mut notes = Vec::new();
    for (line, entry) in PlanLines::new(plan) {
        let text = match entry {
            PlanEntry::Below(_) | PlanEntry::Other => note_text(line.text),
            PlanEntry::Item(found) if items.contains(found.text.as_str()) => {
                current = found.text;
                String::new()
            }
            PlanEntry::Item(found) => {
                let same = items.iter().filter(|known| same_item(&found.text, known));
                // The line may begin with the words of several items: the longest one is the item it names.
                match same.max_by_key(|known| (known.len(), **known)) {
                    Some(known) => {
                        current = (*known).to_owned();
                        // Words that were added behind an item are a note, too.
                        if same_item(known, &found.text) { String::new() } else { found.text }
                    }
                    None => {
                        current = own_item.to_owned();
                        format!("new item: {}", found.text)
                    }
                }
            }
        };
        // Rules and fences have no words.
        if text.chars().any(char::is_alphanumeric) {
            notes.push(AddedNote { item: current.clone(), text: clip(&text, MAX_NOTE_CHARS) });
        }
    }
    notes
}

fn note_text(line: &str) -> String {
    one_line(line.trim_start().trim_start_matches('>'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_edit::with_notes;
    use proptest::prelude::*;

    const PLAN: &str = "# Plan\n\n- [ ] one\n  > old\n- [ ] two\n";

    fn added(copy: &str) -> Vec<(String, String)> {
        let notes = added_notes(PLAN, copy, "", &["one", "two"], "two");
        notes.into_iter().map(|note| (note.item, note.text)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(item, text)| ((*item).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn ticks_and_missing_lines_are_no_notes() {
        assert_eq!(added(PLAN), []);
        assert_eq!(added("- [x] one\n- [X] two\n"), []);
        assert_eq!(added("* [x] ~~two~~\n"), []);
        assert_eq!(added(""), []);
    }

    #[test]
    fn every_line_below_an_item_is_a_note_of_it_whatever_its_form() {
        let copy = "# Plan\nBefore it.\n\n- [x] one (in abc123)\n  > old\n  > new\n  - a bullet\n\n  ```\n  - [ ] code\n  ```\n\
                    - [ ] two\n    ? Which port?\n\n---\nSaid below.\n  > new\n";
        let expected = [
            ("two", "Before it."),
            ("one", "one (in abc123)"),
            ("one", "new"),
            ("one", "- a bullet"),
            ("one", "- [ ] code"),
            ("two", "? Which port?"),
            ("two", "Said below."),
            ("two", "new"),
        ];
        assert_eq!(added(copy), pairs(&expected));
    }

    #[test]
    fn a_new_item_becomes_a_note_of_the_sessions_own_item_and_so_do_lines_below_it() {
        let copy = "- [ ] one\n- [x] three\n  > why\n- [ ] two\n- [ ] twofold\n";
        assert_eq!(
            added(copy),
            pairs(&[("two", "new item: three"), ("two", "why"), ("two", "new item: twofold")])
        );
    }

    #[test]
    fn a_long_copy_is_cut_and_the_cut_is_told() {
        let copy: String = (0..MAX_LINES_PER_ITEM + 10).map(|number| format!("line {number}\n")).collect();
        let notes = added(&copy);
        assert_eq!(notes.len(), MAX_LINES_PER_ITEM + 1);
        let (_, last) = notes.last().unwrap();
        assert_eq!(last, "10 more lines of a session's copy of the plan were left out");
        let texts: Vec<String> = notes.into_iter().map(|(_, text)| text).collect();
        let mut shown = PLAN.as_bytes().to_vec();
        while let Some(more) = with_notes(&shown, "two", &texts) {
            shown = more;
        }
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(added_notes(PLAN, &copy, &shown, &["one", "two"], "two"), []);
    }

    /// Lines with boxes, marks of notes, questions and answers, fences, and words.
    const COPY: &str = "([-*] \\[[ x]\\] (one|two|three)\n|  [>?!-] ?[ab]{1,2}\n|```\n|[ab] >\n){0,9}";

    proptest! {
        #[test]
        fn what_was_added_to_a_plan_is_not_added_again(copy in COPY) {
            let mut plan = PLAN.as_bytes().to_vec();
            for note in added_notes(PLAN, &copy, "", &["one", "two"], "two") {
                plan = with_notes(&plan, &note.item, &[note.text]).unwrap_or(plan);
            }
            let plan = String::from_utf8(plan).unwrap();
            let again = added_notes(PLAN, &copy, &plan, &["one", "two"], "two");
            prop_assert_eq!(again, [], "{}", plan);
        }
    }
}
