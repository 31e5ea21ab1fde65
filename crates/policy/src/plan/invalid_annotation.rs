//! Finds brackets in items that are meant to state a size or dependencies and are not understood.

use super::dependencies::parse_dependencies;
use plimsoll_domain::size::ItemSize;
use plimsoll_domain::text::{to_single_line, truncate_end};

/// The words of a bracket that states something, beside numbers. A bracket with any other word is ordinary text.
const ANNOTATION_WORDS: [&str; 9] =
    ["very", "trivial", "simple", "medium", "complex", "after", "item", "items", "and"];

/// Describes the bracket at the end of an item that is meant to state a size or dependencies and is not understood,
/// with the correct syntax. Returns `None` if there is no such bracket.
pub(super) fn describe_invalid_annotation(item: &str) -> Option<String> {
    let bracket = trailing_bracket(item)?;
    let lowercase = bracket.to_lowercase();
    let words: Vec<&str> =
        lowercase.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_annotation_word = |word: &&str| ANNOTATION_WORDS.contains(word) || word.parse::<usize>().is_ok();
    if !words.iter().all(is_annotation_word) {
        return None;
    }
    let has_size = words.iter().any(|word| ANNOTATION_WORDS[1..5].contains(word));
    let is_not_understood = (has_size && ItemSize::parse_from_item(item).is_none())
        || (words.contains(&"after") && parse_dependencies(bracket).is_empty());
    is_not_understood.then(|| {
        let bracket = truncate_end(&to_single_line(bracket), 40);
        format!(
            "`{bracket}`, which is not understood: write a size as `(medium)`, what it waits for as `(after: 2)`, both as `(medium, after: 2)`"
        )
    })
}

/// Returns the bracket at the end, unless it belongs to the word before it, as in a link or a call.
fn trailing_bracket(item: &str) -> Option<&str> {
    let text = item.trim_end_matches(['.', ' ']);
    let (_, opening) = [(')', '('), (']', '[')].into_iter().find(|(closing, _)| text.ends_with(*closing))?;
    let start = text.rfind(opening)?;
    let before = &text[..start];
    (before.is_empty() || before.ends_with(' ')).then(|| &text[start..])
}
