//! Text measured in terminal columns: a Chinese character takes two columns, a combining character none.

use unicode_width::UnicodeWidthChar;

/// Returns the width of a line.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Shortens text to this width. The result ends with `…` if text was cut off.
pub fn clip_to_columns(text: &str, max_columns: usize) -> String {
    if longest_prefix_within_columns(text, max_columns).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", longest_prefix_within_columns(text, max_columns.saturating_sub(1)))
}

/// Shortens a path to this width from its start, because its end tells more. The result starts with `…` if text was cut off.
pub fn clip_path_to_columns(path: &str, max_columns: usize) -> String {
    let mut excess_columns = width(path).saturating_sub(max_columns);
    if excess_columns == 0 {
        return path.to_owned();
    }
    excess_columns += usize::from(max_columns > 0);
    let mut removed_columns = 0;
    let rest = path.trim_start_matches(|character: char| {
        let is_removed = removed_columns < excess_columns;
        removed_columns += character.width().unwrap_or(0);
        is_removed
    });
    if max_columns == 0 { String::new() } else { format!("…{rest}") }
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

/// Wraps a line at spaces. Further lines are indented by `indent_columns` more than the first. A word that is longer than a
/// line is broken. A line with a command to copy stays as it is.
pub fn wrap_line(line: &str, max_columns: usize, indent_columns: usize) -> Vec<String> {
    if width(line) <= max_columns || is_command_to_copy(line) {
        return vec![line.to_owned()];
    }
    let leading_spaces = line.len() - line.trim_start_matches(' ').len();
    // At least half of each line remains for text.
    let indent = " ".repeat((leading_spaces + indent_columns).min(max_columns / 2));
    let (first_line, mut remaining) = split_off_wrapped_line(line, max_columns);
    let mut lines = vec![first_line.to_owned()];
    while !remaining.is_empty() {
        let (next_line, rest) =
            split_off_wrapped_line(remaining, max_columns.saturating_sub(indent.len()).max(1));
        lines.push(format!("{indent}{next_line}"));
        // A character that is wider than a line would never be split off.
        remaining = if rest.len() < remaining.len() { rest } else { "" };
    }
    lines
}

/// Wraps each line of a text as [`wrap_line`] does.
pub fn wrap_text(text: &str, max_columns: usize) -> String {
    const HANGING_INDENT: usize = 2;
    text.split('\n')
        .flat_map(|line| wrap_line(line, max_columns, HANGING_INDENT))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_command_to_copy(line: &str) -> bool {
    let first_word = line.split_whitespace().next().unwrap_or_default();
    // Client arguments follow ` -- `, and a branch's line ends with the command that merges it.
    matches!(first_word, "plimsoll" | "git" | "claude" | "cd" | "$")
        || line.contains(" -- ")
        || line.contains("to merge it: ")
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
        for (path, columns, expected) in [
            ("~/work/shop", 11, "~/work/shop"),
            ("~/work/shop", 6, "…/shop"),
            ("~/認証", 4, "…証"),
            ("~/work", 0, ""),
        ] {
            assert_eq!(clip_path_to_columns(path, columns), expected, "{path} {columns}");
        }
        for (line, columns, indent, expected) in [
            ("one two", 7, 2, "one two"),
            ("one two three four", 9, 2, "one two\n  three\n  four"),
            ("  one two three", 9, 2, "  one two\n    three"),
            ("認証 に失敗 しました", 8, 0, "認証\nに失敗\nしました"),
            ("abcdefghij", 4, 0, "abcd\nefgh\nij"),
            ("   plimsoll run --resume", 9, 2, "   plimsoll run --resume"),
            ("  cd /a/b && claude --resume x", 9, 2, "  cd /a/b && claude --resume x"),
        ] {
            assert_eq!(wrap_line(line, columns, indent).join("\n"), expected, "{line} {columns}");
        }
        assert_eq!(wrap_text("one two\n\nthree four\n", 6), "one\n  two\n\nthree\n  four\n");
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
