//! Text measured in terminal columns: a Chinese character takes two columns, a combining character none.

use crate::console;
use plimsoll_store::environment;
use unicode_width::UnicodeWidthChar;

/// The width if the terminal's width is unknown. Also the maximum, because longer lines are hard to read.
const DEFAULT_WIDTH: usize = 100;
/// The minimum width; text cannot be laid out in fewer columns.
const MIN_WIDTH: usize = 40;

/// Returns `COLUMNS` if it is set, otherwise the terminal's width but at most the default, otherwise the default. At least
/// the minimum width.
pub fn line_width_from_columns_or_terminal() -> usize {
    let configured_columns = environment::numeric_variable("COLUMNS").filter(|columns| *columns >= 1.0);
    let width = configured_columns.map_or_else(
        || console::terminal_columns().unwrap_or(DEFAULT_WIDTH).min(DEFAULT_WIDTH),
        |columns| columns as usize,
    );
    width.max(MIN_WIDTH)
}

/// Shortens text to this width. The result ends with `…` if text was cut off.
pub fn clip_to_columns(text: &str, max_columns: usize) -> String {
    if longest_prefix_within_columns(text, max_columns).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", longest_prefix_within_columns(text, max_columns.saturating_sub(1)))
}

/// Splits text into a first line of at most this width, broken at a space if possible, and the remaining text.
pub fn split_off_wrapped_line(text: &str, max_columns: usize) -> (&str, &str) {
    let prefix_len = longest_prefix_within_columns(text, max_columns).len();
    let ends_at_word_boundary = prefix_len == text.len() || text[prefix_len..].starts_with(' ');
    let last_space_or_prefix_len =
        || text[..prefix_len].rfind(' ').filter(|index| *index > 0).unwrap_or(prefix_len);
    let (first_line, remaining) =
        text.split_at(if ends_at_word_boundary { prefix_len } else { last_space_or_prefix_len() });
    (first_line, remaining.trim_start())
}

fn longest_prefix_within_columns(text: &str, max_columns: usize) -> &str {
    let mut used_columns = 0;
    let first_excess_char = text.char_indices().find(|(_, character)| {
        used_columns += character.width().unwrap_or(0);
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
            assert_eq!(split_off_wrapped_line(text, columns), expected, "{text} {columns}");
        }
    }
}
