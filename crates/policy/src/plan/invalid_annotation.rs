//! Detects annotations of items (a size or dependencies in brackets) with invalid syntax.

use super::dependencies::parse_dependency_ranges_and_numbers;
use plimsoll_domain::size::ItemSize;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// Words allowed in an annotation, besides numbers. Brackets with any other word are ordinary text.
const ANNOTATION_WORDS: [&str; 9] =
    ["very", "trivial", "simple", "medium", "complex", "after", "item", "items", "and"];

/// Describes the annotation at the end of an item if its syntax is invalid, with the correct syntax. Returns `None` if
/// there is no annotation or if it is valid.
pub(super) fn describe_invalid_trailing_annotation(item: &str) -> Option<String> {
    let bracketed_text = trailing_bracketed_text(item)?;
    let lowercase = bracketed_text.to_lowercase();
    let words: Vec<&str> = lowercase
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let is_annotation_word = |word: &&str| ANNOTATION_WORDS.contains(word) || word.parse::<usize>().is_ok();
    if !words.iter().all(is_annotation_word) {
        return None;
    }
    let has_size = words.iter().any(|word| ANNOTATION_WORDS[1..5].contains(word));
    let is_invalid = (has_size && ItemSize::parse_from_item(item).is_none())
        || (words.contains(&"after") && parse_dependency_ranges_and_numbers(bracketed_text).is_empty());
    is_invalid.then(|| {
        let shortened_text = truncate_end(&to_safe_single_line(bracketed_text), 40);
        format!(
            "`{shortened_text}`, which is not understood: write a size as `(medium)`, what it waits for as `(after: 2)`, both as `(medium, after: 2)`"
        )
    })
}

/// Returns the bracketed text at the end, unless it is attached to the previous word, as in a link or a call.
fn trailing_bracketed_text(item: &str) -> Option<&str> {
    let text = item.trim_end_matches(['.', ' ']);
    let (_, opening_bracket) =
        [(')', '('), (']', '[')].into_iter().find(|(closing_bracket, _)| text.ends_with(*closing_bracket))?;
    let start = text.rfind(opening_bracket)?;
    let before = &text[..start];
    (before.is_empty() || before.ends_with(' ')).then(|| &text[start..])
}
