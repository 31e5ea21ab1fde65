//! What an item waits for, as its text says it.

use std::ops::Range;

/// The item with other numbers behind `after:`.
pub(crate) fn renumbered(item: &str, new_number: impl Fn(usize) -> usize) -> String {
    let mut text = item.to_owned();
    for (place, number) in after_numbers(item).into_iter().rev() {
        text.replace_range(place, &new_number(number).to_string());
    }
    text
}

/// The numbers behind `after:` in an item, and their positions: `(after: 2, 3)`, `after: #2 and 3`.
pub(crate) fn after_numbers(item: &str) -> Vec<(Range<usize>, usize)> {
    // A command may hold the word, too.
    let lower = plimsoll_domain::item_check::words(item).to_ascii_lowercase();
    let is_word = |place: &usize| !lower[..*place].ends_with(char::is_alphanumeric);
    let mut found = Vec::new();
    for (place, mark) in lower.match_indices("after:").filter(|(place, _)| is_word(place)) {
        let mut rest = &lower[place + mark.len()..];
        loop {
            let gap = |letter: char| letter == ' ' || ",;&#".contains(letter);
            rest = rest.trim_start_matches(gap);
            rest = rest.strip_prefix("and ").map_or(rest, |rest| rest.trim_start_matches(gap));
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let is_part =
                rest[end..].starts_with(|letter: char| letter.is_alphanumeric() || "-–_".contains(letter));
            if is_part {
                break;
            }
            let Ok(number) = rest[..end].parse() else { break };
            let start = lower.len() - rest.len();
            found.push((start..start + end, number));
            rest = &rest[end..];
        }
    }
    found
}
