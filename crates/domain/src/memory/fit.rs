//! Text that must fit: cut at the last place where no letter is torn, and said so.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// What was cut off a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Whose value, as tools name it.
    pub register: String,
    /// The most, in characters.
    pub limit: usize,
    /// What was given.
    pub given: usize,
    /// What was kept.
    pub kept: usize,
    /// What was left out; it is in the log.
    pub dropped: usize,
}

/// The longest beginning of a text with at most so many characters that tears no letter apart.
pub fn fit(text: &str, limit: usize) -> &str {
    let mut count = 0;
    for (place, letter) in text.grapheme_indices(true) {
        count += letter.chars().count();
        if count > limit {
            return &text[..place];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_is_torn() {
        for (text, limit, kept) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("", 0, ""),
            ("e\u{301}x", 1, ""),
            ("e\u{301}x", 2, "e\u{301}"),
            ("👩\u{200d}👩\u{200d}👧!", 4, ""),
            ("👩\u{200d}👩\u{200d}👧!", 5, "👩\u{200d}👩\u{200d}👧"),
            ("\r\n", 1, ""),
        ] {
            assert_eq!(fit(text, limit), kept, "{text:?} {limit}");
        }
    }
}
