//! Text measured in terminal columns: a Chinese character takes two, a combining mark none.

use crate::console;
use plimsoll_store::environment;
use unicode_width::UnicodeWidthChar;

/// The width if the terminal's is unknown, and the greatest width, because longer lines are hard to read.
const DEFAULT_WIDTH: usize = 100;
/// Text cannot be laid out in fewer columns.
const MIN_WIDTH: usize = 40;

/// Returns the width from `COLUMNS`, otherwise the terminal's width up to the default, otherwise the default.
pub fn line_width() -> usize {
    let user_columns = environment::numeric_variable("COLUMNS").filter(|columns| *columns >= 1.0);
    let width = user_columns.map_or_else(
        || console::terminal_columns().unwrap_or(DEFAULT_WIDTH).min(DEFAULT_WIDTH),
        |columns| columns as usize,
    );
    width.max(MIN_WIDTH)
}

/// Shortens text to this width. Ends with `…` if something was cut off.
pub fn clip_to_columns(text: &str, max_columns: usize) -> String {
    if longest_prefix_within(text, max_columns).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", longest_prefix_within(text, max_columns.saturating_sub(1)))
}

/// Splits text into a first line of at most this width, broken at a space if possible, and the rest.
pub fn split_at_columns(text: &str, max_columns: usize) -> (&str, &str) {
    let fitting_bytes = longest_prefix_within(text, max_columns).len();
    let ends_at_word_boundary = fitting_bytes == text.len() || text[fitting_bytes..].starts_with(' ');
    let last_space_or_limit =
        || text[..fitting_bytes].rfind(' ').filter(|index| *index > 0).unwrap_or(fitting_bytes);
    let (first, rest) =
        text.split_at(if ends_at_word_boundary { fitting_bytes } else { last_space_or_limit() });
    (first, rest.trim_start())
}

fn longest_prefix_within(text: &str, max_columns: usize) -> &str {
    let mut used_columns = 0;
    let first_excess_char = text.char_indices().find(|(_, letter)| {
        used_columns += letter.width().unwrap_or(0);
        used_columns > max_columns
    });
    &text[..first_excess_char.map_or(text.len(), |(index, _)| index)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_broken_by_columns_and_never_inside_a_letter() {
        assert_eq!((clip_to_columns("für", 3), clip_to_columns("fürs", 3)), ("für".into(), "fü…".into()));
        assert_eq!(
            (clip_to_columns("認証", 4), clip_to_columns("認証に", 5), clip_to_columns("認証に", 4)),
            ("認証".into(), "認証…".into(), "認…".into())
        );
        for (text, columns, expected) in [
            ("one two", 7, ("one two", "")),
            ("one two", 5, ("one", "two")),
            ("one two", 3, ("one", "two")),
            ("größe", 3, ("grö", "ße")),
            ("認証に失敗", 5, ("認証", "に失敗")),
            ("a\u{301} b", 1, ("a\u{301}", "b")),
        ] {
            assert_eq!(split_at_columns(text, columns), expected, "{text} {columns}");
        }
    }
}
