//! Parses and replaces the dependencies that an item's text states.

use std::ops::Range;

/// Returns the item with other numbers behind `after:`.
pub(crate) fn renumber_dependencies(item: &str, new_number: impl Fn(usize) -> usize) -> String {
    let mut text = item.to_owned();
    for (range, number) in parse_dependencies(item).into_iter().rev() {
        text.replace_range(range, &new_number(number).to_string());
    }
    text
}

/// Returns the numbers behind `after:` in an item, with their byte ranges: `(after: 2, 3)`, `after: #2 and 3`.
pub(crate) fn parse_dependencies(item: &str) -> Vec<(Range<usize>, usize)> {
    // A verify command may contain `after:` too, so it is left out.
    let lowercase = plimsoll_domain::item_check::text_before_verify_command(item).to_ascii_lowercase();
    let starts_word = |index: &usize| !lowercase[..*index].ends_with(char::is_alphanumeric);
    let mut dependencies = Vec::new();
    for (index, marker) in lowercase.match_indices("after:").filter(|(place, _)| starts_word(place)) {
        let mut rest = &lowercase[index + marker.len()..];
        loop {
            let is_separator = |letter: char| letter == ' ' || ",;&#".contains(letter);
            rest = rest.trim_start_matches(is_separator);
            rest = rest.strip_prefix("and ").map_or(rest, |rest| rest.trim_start_matches(is_separator));
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let is_part_of_word =
                rest[end..].starts_with(|letter: char| letter.is_alphanumeric() || "-–_".contains(letter));
            if is_part_of_word {
                break;
            }
            let Ok(number) = rest[..end].parse() else { break };
            let start = lowercase.len() - rest.len();
            dependencies.push((start..start + end, number));
            rest = &rest[end..];
        }
    }
    dependencies
}
