//! Truncates text to a maximum length without splitting a grapheme.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// How much of a register's value was cut off. All lengths are in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// The key of the register, such as `R0_GOAL`.
    pub register: String,
    /// The maximum length.
    #[serde(rename = "limit")]
    pub max_chars: usize,
    /// The length of the value before truncation.
    #[serde(rename = "given")]
    pub input_chars: usize,
    /// The length of the part that was kept.
    #[serde(rename = "kept")]
    pub kept_chars: usize,
    /// The length of the part that was cut off. The log has the whole value.
    #[serde(rename = "dropped")]
    pub dropped_chars: usize,
}

/// Returns the longest prefix of at most `max_chars` characters that does not split a grapheme.
pub fn truncate_at_grapheme(text: &str, max_chars: usize) -> &str {
    let mut char_count = 0;
    for (start, grapheme) in text.grapheme_indices(true) {
        char_count += grapheme.chars().count();
        if char_count > max_chars {
            return &text[..start];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_never_splits_a_grapheme() {
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
            assert_eq!(truncate_at_grapheme(text, limit), kept, "{text:?} {limit}");
        }
    }
}
