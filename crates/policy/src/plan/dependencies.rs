//! Parses and renumbers the dependencies in the text of an item.

use std::ops::Range;

/// Returns the item with each number after `after:` replaced by `new_number`.
pub(crate) fn replace_dependency_numbers(item: &str, new_number: impl Fn(usize) -> usize) -> String {
    let mut text = item.to_owned();
    for (range, number) in parse_dependency_ranges_and_numbers(item).into_iter().rev() {
        text.replace_range(range, &new_number(number).to_string());
    }
    text
}

/// Returns the numbers after `after:` in an item, with their byte ranges: `(after: 2, 3)`, `after: #2 and 3`.
pub(crate) fn parse_dependency_ranges_and_numbers(item: &str) -> Vec<(Range<usize>, usize)> {
    // A verify command may contain `after:` too, so it is excluded.
    let lowercase = plimsoll_domain::item_check::text_before_verify_command(item).to_ascii_lowercase();
    let starts_word = |index: &usize| !lowercase[..*index].ends_with(char::is_alphanumeric);
    let mut dependencies = Vec::new();
    for (index, marker) in lowercase.match_indices("after:").filter(|(position, _)| starts_word(position)) {
        let mut remaining = &lowercase[index + marker.len()..];
        loop {
            let is_separator = |character: char| character == ' ' || ",;&#".contains(character);
            remaining = remaining.trim_start_matches(is_separator);
            remaining = remaining
                .strip_prefix("and ")
                .map_or(remaining, |after_and| after_and.trim_start_matches(is_separator));
            let end =
                remaining.find(|character: char| !character.is_ascii_digit()).unwrap_or(remaining.len());
            let is_part_of_word = remaining[end..]
                .starts_with(|character: char| character.is_alphanumeric() || "-–_".contains(character));
            if is_part_of_word {
                break;
            }
            let Ok(number) = remaining[..end].parse() else { break };
            let start = lowercase.len() - remaining.len();
            dependencies.push((start..start + end, number));
            remaining = &remaining[end..];
        }
    }
    dependencies
}
