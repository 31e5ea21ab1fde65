//! Finds what a session added to its own copy of a plan: notes below items, and items that the plan does not
//! have.

use crate::text::{to_safe_single_line, truncate_end};
use crate::todo::{PlanLineRole, PlanLinesWithRoles, matches_item_text};
use std::collections::{BTreeMap, HashSet};

/// The maximum number of notes that one session adds below one item. Further notes are counted and not copied,
/// because people read the plan.
const MAX_NOTES_PER_ITEM: usize = 100;
/// The maximum length of a note, as in [`crate::plan_edit::add_new_notes_to_item`].
const MAX_NOTE_CHARS: usize = 1_000;

/// A line to add below an item of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddedNote {
    /// The item's text.
    pub item: String,
    /// The line's text, without the quotation mark `>`.
    pub text: String,
}

/// Returns the lines that an edited copy of a plan has and that neither its original nor the shown plan has,
/// in the copy's order. Each line belongs to the item above it. An item that is not among `plan_items`
/// becomes a note below `session_item`. Checkboxes, ticked or not, are not notes, and removed lines are
/// ignored.
pub fn collect_added_notes(
    base_plan: &str,
    edited_plan: &str,
    shown_plan: &str,
    plan_items: &[&str],
    session_item: &str,
) -> Vec<AddedNote> {
    if edited_plan == base_plan || edited_plan == shown_plan {
        return Vec::new();
    }
    // A set, because plans may have thousands of items.
    let plan_item_set: HashSet<&str> = plan_items.iter().copied().collect();
    let mut existing_notes: HashSet<AddedNote> =
        lines_other_than_plan_items_as_notes(base_plan, &plan_item_set, session_item).into_iter().collect();
    let mut added: Vec<AddedNote> = Vec::new();
    let mut note_counts: BTreeMap<String, usize> = BTreeMap::new();
    for note in lines_other_than_plan_items_as_notes(edited_plan, &plan_item_set, session_item) {
        if !existing_notes.insert(note.clone()) {
            continue;
        }
        let count = note_counts.entry(note.item.clone()).or_default();
        *count += 1;
        if *count <= MAX_NOTES_PER_ITEM {
            added.push(note);
        }
    }
    // The limit is applied before the comparison with the shown plan, so a note that was left out once stays
    // left out.
    for (item, count) in note_counts {
        if let Some(omitted_count) = count.checked_sub(MAX_NOTES_PER_ITEM).filter(|excess| *excess > 0) {
            let text = format!("{omitted_count} more lines of a session's copy of the plan were left out");
            added.push(AddedNote { item, text });
        }
    }
    let shown_notes: HashSet<AddedNote> =
        lines_other_than_plan_items_as_notes(shown_plan, &plan_item_set, session_item).into_iter().collect();
    added.retain(|note| !shown_notes.contains(note));
    added
}

/// Returns every line that contains letters or digits and is not one of `plan_items`, with the item above it.
/// Lines before the first item, and items that are not among `plan_items`, belong to `session_item`.
fn lines_other_than_plan_items_as_notes(
    plan: &str,
    plan_items: &HashSet<&str>,
    session_item: &str,
) -> Vec<AddedNote> {
    let mut current_item = session_item.to_owned();
    let mut notes = Vec::new();
    for (line, role) in PlanLinesWithRoles::new(plan) {
        let text = match role {
            PlanLineRole::DetailLine(_) | PlanLineRole::Other => normalize_note_line(line.text),
            PlanLineRole::Item(plan_item) if plan_items.contains(plan_item.text.as_str()) => {
                current_item = plan_item.text;
                String::new()
            }
            PlanLineRole::Item(plan_item) => {
                let matching_items =
                    plan_items.iter().filter(|item| matches_item_text(&plan_item.text, item));
                // The line may begin with the text of several items; the longest match is the item it names.
                match matching_items.max_by_key(|item| (item.len(), **item)) {
                    Some(matching_item) => {
                        current_item = (*matching_item).to_owned();
                        // Text that was added after an item is a note, too.
                        if matches_item_text(matching_item, &plan_item.text) {
                            String::new()
                        } else {
                            plan_item.text
                        }
                    }
                    None => {
                        current_item = session_item.to_owned();
                        format!("new item: {}", plan_item.text)
                    }
                }
            }
        };
        // Thematic breaks and fences have no letters or digits.
        if text.chars().any(char::is_alphanumeric) {
            notes.push(AddedNote { item: current_item.clone(), text: truncate_end(&text, MAX_NOTE_CHARS) });
        }
    }
    notes
}

fn normalize_note_line(line: &str) -> String {
    to_safe_single_line(line.trim_start().trim_start_matches('>'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_edit::add_new_notes_to_item;
    use proptest::prelude::*;

    const BASE_PLAN: &str = "# Plan\n\n- [ ] one\n  > old\n- [ ] two\n";

    fn added_note_pairs(edited_plan: &str) -> Vec<(String, String)> {
        let notes = collect_added_notes(BASE_PLAN, edited_plan, "", &["one", "two"], "two");
        notes.into_iter().map(|note| (note.item, note.text)).collect()
    }

    fn to_owned_pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(item, text)| ((*item).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn ticks_and_missing_lines_are_not_notes() {
        assert_eq!(added_note_pairs(BASE_PLAN), []);
        assert_eq!(added_note_pairs("- [x] one\n- [X] two\n"), []);
        assert_eq!(added_note_pairs("* [x] ~~two~~\n"), []);
        assert_eq!(added_note_pairs(""), []);
    }

    #[test]
    fn every_line_below_an_item_becomes_a_note_of_that_item() {
        let edited_plan = "# Plan\nBefore it.\n\n- [x] one (in abc123)\n  > old\n  > new\n  - a bullet\n\n  ```\n  - [ ] code\n  ```\n\
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
        assert_eq!(added_note_pairs(edited_plan), to_owned_pairs(&expected));
    }

    #[test]
    fn a_new_item_and_its_lines_become_notes_of_the_sessions_item() {
        let edited_plan = "- [ ] one\n- [x] three\n  > why\n- [ ] two\n- [ ] twofold\n";
        assert_eq!(
            added_note_pairs(edited_plan),
            to_owned_pairs(&[("two", "new item: three"), ("two", "why"), ("two", "new item: twofold")])
        );
    }

    #[test]
    fn a_long_copy_is_truncated_and_the_omission_is_reported() {
        let edited_plan: String =
            (0..MAX_NOTES_PER_ITEM + 10).map(|number| format!("line {number}\n")).collect();
        let notes = added_note_pairs(&edited_plan);
        assert_eq!(notes.len(), MAX_NOTES_PER_ITEM + 1);
        let (_, last) = notes.last().unwrap();
        assert_eq!(last, "10 more lines of a session's copy of the plan were left out");
        let texts: Vec<String> = notes.into_iter().map(|(_, text)| text).collect();
        let mut shown_bytes = BASE_PLAN.as_bytes().to_vec();
        while let Some(updated_plan) = add_new_notes_to_item(&shown_bytes, "two", &texts) {
            shown_bytes = updated_plan;
        }
        let shown = String::from_utf8(shown_bytes).unwrap();
        assert_eq!(collect_added_notes(BASE_PLAN, &edited_plan, &shown, &["one", "two"], "two"), []);
    }

    /// Lines with checkboxes, note, question and answer markers, fences, and plain text.
    const EDITED_PLAN_REGEX: &str =
        "([-*] \\[[ x]\\] (one|two|three)\n|  [>?!-] ?[ab]{1,2}\n|```\n|[ab] >\n){0,9}";

    proptest! {
        #[test]
        fn notes_that_were_added_to_a_plan_are_not_added_again(copy in EDITED_PLAN_REGEX) {
            let mut plan = BASE_PLAN.as_bytes().to_vec();
            for note in collect_added_notes(BASE_PLAN, &copy, "", &["one", "two"], "two") {
                plan = add_new_notes_to_item(&plan, &note.item, &[note.text]).unwrap_or(plan);
            }
            let plan = String::from_utf8(plan).unwrap();
            let again = collect_added_notes(BASE_PLAN, &copy, &plan, &["one", "two"], "two");
            prop_assert_eq!(again, [], "{}", plan);
        }
    }
}
