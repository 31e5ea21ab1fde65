//! To-do files without any checkbox: finds the lines that look like items, and inserts checkboxes before them.

use crate::markdown_lines::MarkdownLines;
use crate::todo::TodoList;

/// A line that looks like an item but has no checkbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemLookalike {
    /// Its number in the file, counted from 1.
    pub line_number: usize,
    /// The line without its indentation and line end.
    pub text: String,
}

/// A list item of Markdown: `1. x`, `1) x`, `- x`, `* x`, `+ x`.
struct Bullet<'a> {
    /// The number of its line, counted from 0.
    line_index: usize,
    /// The text before the marker.
    indent: &'a str,
    /// The text after the marker, with the line end.
    content: &'a str,
}

/// A bullet that is indented at least this many columns more than the outermost one belongs to another bullet.
const NESTED_INDENT_COLUMNS: usize = 2;
/// A tab extends to the next multiple of this many columns.
const TAB_COLUMNS: usize = 4;

/// Returns the lines that look like items in a file without checkboxes. Returns nothing for a file that has items, or lines with
/// malformed checkboxes.
pub fn find_item_lookalikes_if_no_boxes(markdown: &str) -> Vec<ItemLookalike> {
    let lines: Vec<&str> = markdown.lines().collect();
    let to_lookalike = |bullet: Bullet<'_>| ItemLookalike {
        line_number: bullet.line_index + 1,
        text: lines.get(bullet.line_index).map_or(String::new(), |line| line.trim().to_owned()),
    };
    find_outermost_bullets_if_no_boxes(markdown).into_iter().map(to_lookalike).collect()
}

/// Inserts checkboxes before the lines that look like items, and keeps everything else byte for byte. A file that has items is
/// returned unchanged, because its bullets may be anything.
pub fn insert_boxes_if_none_exist(markdown: &str) -> String {
    let bullets = find_outermost_bullets_if_no_boxes(markdown);
    let mut bullets = bullets.iter().peekable();
    let mut text = String::with_capacity(markdown.len() + 4 * bullets.len());
    for (index, line) in markdown.split_inclusive('\n').enumerate() {
        match bullets.next_if(|bullet| bullet.line_index == index) {
            Some(Bullet { indent, content: item_text, .. }) => text.extend([indent, "- [ ] ", item_text]),
            None => text.push_str(line),
        }
    }
    text
}

/// Returns the bullets that are not nested below another one; none in a file that has checkboxes.
fn find_outermost_bullets_if_no_boxes(markdown: &str) -> Vec<Bullet<'_>> {
    let plan = TodoList::parse(markdown);
    if !plan.items.is_empty() || !plan.unclear_lines.is_empty() {
        return Vec::new();
    }
    let lines = MarkdownLines::new(markdown).zip(markdown.split_inclusive('\n'));
    let mut bullets: Vec<Bullet<'_>> = lines
        .filter_map(|(line, full_line)| {
            let marker =
                line.list_marker_start.filter(|_| line.is_first_of_list_item && line.quote_end == 0)?;
            let (indent, bullet_content) = (&full_line[..marker], &full_line[line.text_start..]);
            let is_empty = matches!(bullet_content.trim(), "" | "[ ]" | "[x]" | "[X]");
            (!is_empty).then_some(Bullet { line_index: line.line_index, indent, content: bullet_content })
        })
        .collect();
    let outermost_indent = bullets.iter().map(|bullet| indent_columns(bullet.indent)).min().unwrap_or(0);
    bullets.retain(|bullet| indent_columns(bullet.indent) < outermost_indent + NESTED_INDENT_COLUMNS);
    bullets
}

fn indent_columns(indent: &str) -> usize {
    indent.chars().fold(0, |width, character| {
        if character == '\t' { (width / TAB_COLUMNS + 1) * TAB_COLUMNS } else { width + 1 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_that_look_like_items_become_boxes_and_nothing_else_changes() {
        for (before, after) in [
            ("1. one\n2) two\n", "- [ ] one\n- [ ] two\n"),
            ("* one\n- two\n+ three", "- [ ] one\n- [ ] two\n- [ ] three"),
            ("1. one\r\n2. two\r\n", "- [ ] one\r\n- [ ] two\r\n"),
            ("# Plan\n\nSome words.\n\n*   one\n", "# Plan\n\nSome words.\n\n- [ ] one\n"),
            // A nested bullet is part of the outer bullet's text.
            ("1. one\n   - how\n2. two\n\t* why\n", "- [ ] one\n   - how\n- [ ] two\n\t* why\n"),
            ("- one\n  > a note\n> a quotation\n", "- [ ] one\n  > a note\n> a quotation\n"),
            // If all bullets are indented, they are the items.
            ("Steps:\n\n   - one\n   - two\n", "Steps:\n\n   - [ ] one\n   - [ ] two\n"),
            (" - one\n- two\n", " - [ ] one\n- [ ] two\n"),
            ("```\n- example\n```\n- one\n", "```\n- example\n```\n- [ ] one\n"),
            ("~~~\n1. example\n~~~\n1. one\n", "~~~\n1. example\n~~~\n- [ ] one\n"),
            ("- [docs](docs/a.md)\n1. [x](a.md)\n", "- [ ] [docs](docs/a.md)\n- [ ] [x](a.md)\n"),
        ] {
            assert_eq!(insert_boxes_if_none_exist(before), after, "{before:?}");
            assert!(!TodoList::parse(after).items.is_empty(), "{after:?}");
        }
    }

    #[test]
    fn text_without_a_list_stays_unchanged() {
        for text in [
            "",
            "Only prose.\n",
            "**bold** and -5 and 1.5\n",
            "---\n* * *\n- - -\n",
            "-\n- \n1.\n- [ ]\n",
            "> - quoted\n",
            "2026-01-07 is a date\n1234567890. too long\n",
            "```\n- never closed\n",
            "Code:\n\n    - one\n",
            // In a file with items, a bullet next to them may be anything.
            "- [ ] one\n- a remark\n1. another\n",
            "- [] looks like one\n- a remark\n",
        ] {
            assert_eq!(insert_boxes_if_none_exist(text), text);
            assert_eq!(find_item_lookalikes_if_no_boxes(text), []);
        }
    }

    #[test]
    fn a_lookalike_has_its_line_number() {
        let lookalikes = find_item_lookalikes_if_no_boxes("# Plan\r\n\r\n1. one\r\n   - how\r\n2. two\r\n");
        let numbered_texts: Vec<(usize, &str)> =
            lookalikes.iter().map(|found| (found.line_number, found.text.as_str())).collect();
        assert_eq!(numbered_texts, [(3, "1. one"), (5, "2. two")]);
    }

    fn any_list_text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ \t]{0,5}([-*+]|[0-9]{1,3}[.)])[ \t]{0,2}(\\[[ xX]{0,2}\\])?[ ]?[a-z*`_-]{0,4}",
            "```|~~~|# [a-z]{1,3}|> [a-z]{1,3}|  > [a-z]{1,3}|[a-z ]{0,6}|- - -",
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        prop::collection::vec((line, end), 0..8)
            .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    proptest! {
        #[test]
        fn each_lookalike_becomes_an_item_and_a_second_insertion_changes_nothing(text in any_list_text()) {
            let text_with_boxes = insert_boxes_if_none_exist(&text);
            prop_assert_eq!(insert_boxes_if_none_exist(&text_with_boxes), text_with_boxes.clone());
            let item_count = TodoList::parse(&text).items.len();
            let lookalike_count = find_item_lookalikes_if_no_boxes(&text).len();
            prop_assert_eq!(TodoList::parse(&text_with_boxes).items.len(), item_count + lookalike_count);
            prop_assert_eq!(text_with_boxes.split_inclusive('\n').count(), text.split_inclusive('\n').count());
        }
    }
}
