//! What an item's bracket is meant to state and does not: a size, or what the item waits for.

use super::after::after_numbers;
use plimsoll_domain::size::Size;
use plimsoll_domain::text::{clip, one_line};

/// Beside numbers, a bracket that states something has these words only: in any other, words go on as they like.
const WORDS: [&str; 9] = ["very", "trivial", "simple", "medium", "complex", "after", "item", "items", "and"];

/// The bracket at the end of an item that is meant to state a size, or what the item waits for, and is not understood; and how
/// both are written.
pub(super) fn misspelt(item: &str) -> Option<String> {
    let bracket = bracket_at_end(item)?;
    let inside = bracket.to_lowercase();
    let words: Vec<&str> =
        inside.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_known = |word: &&str| WORDS.contains(word) || word.parse::<usize>().is_ok();
    if !words.iter().all(is_known) {
        return None;
    }
    let has_size = words.iter().any(|word| WORDS[1..5].contains(word));
    let is_lost = (has_size && Size::stated(item).is_none())
        || (words.contains(&"after") && after_numbers(bracket).is_empty());
    is_lost.then(|| {
        let bracket = clip(&one_line(bracket), 40);
        format!(
            "`{bracket}`, which is not understood: write a size as `(medium)`, what it waits for as `(after: 2)`, both as `(medium, after: 2)`"
        )
    })
}

/// The bracket at the end, but not one that belongs to the word before it, as a link's or a call's does.
fn bracket_at_end(item: &str) -> Option<&str> {
    let text = item.trim_end_matches(['.', ' ']);
    let (_, opens) = [(')', '('), (']', '[')].into_iter().find(|(closes, _)| text.ends_with(*closes))?;
    let place = text.rfind(opens)?;
    let before = &text[..place];
    (before.is_empty() || before.ends_with(' ')).then(|| &text[place..])
}
