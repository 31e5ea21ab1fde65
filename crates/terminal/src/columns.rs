//! Text by the columns that it takes on a terminal: a Chinese letter takes two, a combining mark none.

use crate::console;
use plimsoll_store::environment;
use unicode_width::UnicodeWidthChar;

/// The width of a screen of unknown size, and the width of a line that is still easy to read.
const USUAL_WIDTH: usize = 100;
/// Narrower than this nothing can be said.
const LEAST_WIDTH: usize = 40;

/// As the user says, else as the terminal is, else as usual.
pub fn width() -> usize {
    let said = environment::number("COLUMNS").filter(|columns| *columns >= 1.0);
    let width = said.map_or_else(
        || console::columns().unwrap_or(USUAL_WIDTH).min(USUAL_WIDTH),
        |columns| columns as usize,
    );
    width.max(LEAST_WIDTH)
}

/// The longest beginning that is no wider, with `…` where something was left out.
pub fn clip(text: &str, columns: usize) -> String {
    if beginning(text, columns).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", beginning(text, columns.saturating_sub(1)))
}

/// A text in two: what is on a line so wide, broken at a space where there is one, and the rest.
pub fn broken(text: &str, columns: usize) -> (&str, &str) {
    let fits = beginning(text, columns).len();
    let breaks_there = fits == text.len() || text[fits..].starts_with(' ');
    let at_space = || text[..fits].rfind(' ').filter(|at| *at > 0).unwrap_or(fits);
    let (first, rest) = text.split_at(if breaks_there { fits } else { at_space() });
    (first, rest.trim_start())
}

fn beginning(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let beyond = text.char_indices().find(|(_, letter)| {
        taken += letter.width().unwrap_or(0);
        taken > columns
    });
    &text[..beyond.map_or(text.len(), |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_and_broken_by_columns_and_never_inside_a_letter() {
        assert_eq!((clip("für", 3), clip("fürs", 3)), ("für".into(), "fü…".into()));
        assert_eq!(
            (clip("認証", 4), clip("認証に", 5), clip("認証に", 4)),
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
            assert_eq!(broken(text, columns), expected, "{text} {columns}");
        }
    }
}
