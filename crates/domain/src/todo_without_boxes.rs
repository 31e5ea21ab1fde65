//! To-do files without any box: which lines look like items, and the file with boxes before them.

use crate::markdown_lines::MarkdownLines;
use crate::todo::TodoList;

/// A line that looks like an item and has no box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookalike {
    /// Its number in the file, from 1.
    pub line: usize,
    /// The line without its indentation and line end.
    pub text: String,
}

/// A list item of Markdown: `1. x`, `1) x`, `- x`, `* x`, `+ x`.
struct Bullet<'a> {
    /// The number of its line, from 0.
    line: usize,
    /// The text before the marker.
    indent: &'a str,
    /// The text after the marker, with the line end.
    rest: &'a str,
}

/// A bullet indented by this much more than the outermost one belongs to another bullet.
const NESTED: usize = 2;
/// A tab reaches to the next multiple of this column.
const TAB: usize = 4;

/// The lines of a file without boxes that look like items; none in a file that has items, or lines with other boxes.
pub fn lookalikes(markdown: &str) -> Vec<Lookalike> {
    let lines: Vec<&str> = markdown.lines().collect();
    let line = |bullet: Bullet<'_>| Lookalike {
        line: bullet.line + 1,
        text: lines.get(bullet.line).map_or(String::new(), |line| line.trim().to_owned()),
    };
    outermost(markdown).into_iter().map(line).collect()
}

/// The file with boxes before the lines that look like items, everything else byte for byte. A file that has items
/// comes back as it is: a bullet in it may be anything.
pub fn with_boxes(markdown: &str) -> String {
    let bullets = outermost(markdown);
    let mut bullets = bullets.iter().peekable();
    let mut text = String::with_capacity(markdown.len() + 4 * bullets.len());
    for (index, line) in markdown.split_inclusive('\n').enumerate() {
        match bullets.next_if(|bullet| bullet.line == index) {
            Some(Bullet { indent, rest, .. }) => text.extend([indent, "- [ ] ", rest]),
            None => text.push_str(line),
        }
    }
    text
}

/// The bullets that are not below another one.
fn outermost(markdown: &str) -> Vec<Bullet<'_>> {
    let plan = TodoList::parse(markdown);
    if !plan.items.is_empty() || !plan.unclear.is_empty() {
        return Vec::new();
    }
    let lines = MarkdownLines::new(markdown).zip(markdown.split_inclusive('\n'));
    let mut found: Vec<Bullet<'_>> = lines
        .filter_map(|(line, whole)| {
            let marker = line.marker.filter(|_| line.begins_item && line.quote_end == 0)?;
            let (indent, rest) = (&whole[..marker], &whole[line.content..]);
            let is_empty = matches!(rest.trim(), "" | "[ ]" | "[x]" | "[X]");
            (!is_empty).then_some(Bullet { line: line.number, indent, rest })
        })
        .collect();
    let least = found.iter().map(|bullet| width(bullet.indent)).min().unwrap_or(0);
    found.retain(|bullet| width(bullet.indent) < least + NESTED);
    found
}

fn width(indent: &str) -> usize {
    indent.chars().fold(0, |width, letter| if letter == '\t' { (width / TAB + 1) * TAB } else { width + 1 })
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
            // Below another bullet it is part of that one's text.
            ("1. one\n   - how\n2. two\n\t* why\n", "- [ ] one\n   - how\n- [ ] two\n\t* why\n"),
            ("- one\n  > a note\n> a quotation\n", "- [ ] one\n  > a note\n> a quotation\n"),
            // Only nested ones: then they are the items.
            ("Steps:\n\n   - one\n   - two\n", "Steps:\n\n   - [ ] one\n   - [ ] two\n"),
            (" - one\n- two\n", " - [ ] one\n- [ ] two\n"),
            ("```\n- example\n```\n- one\n", "```\n- example\n```\n- [ ] one\n"),
            ("~~~\n1. example\n~~~\n1. one\n", "~~~\n1. example\n~~~\n- [ ] one\n"),
            ("- [docs](docs/a.md)\n1. [x](a.md)\n", "- [ ] [docs](docs/a.md)\n- [ ] [x](a.md)\n"),
        ] {
            assert_eq!(with_boxes(before), after, "{before:?}");
            assert!(!TodoList::parse(after).items.is_empty(), "{after:?}");
        }
    }

    #[test]
    fn what_is_no_list_stays_as_it_is() {
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
            // It has items: a bullet beside them may be anything.
            "- [ ] one\n- a remark\n1. another\n",
            "- [] looks like one\n- a remark\n",
        ] {
            assert_eq!(with_boxes(text), text);
            assert_eq!(lookalikes(text), []);
        }
    }

    #[test]
    fn a_lookalike_is_named_with_its_line() {
        let found = lookalikes("# Plan\r\n\r\n1. one\r\n   - how\r\n2. two\r\n");
        let found: Vec<(usize, &str)> = found.iter().map(|found| (found.line, found.text.as_str())).collect();
        assert_eq!(found, [(3, "1. one"), (5, "2. two")]);
    }

    fn lines() -> impl Strategy<Value = String> {
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
        fn fixing_twice_is_fixing_once_and_each_line_named_becomes_an_item(text in lines()) {
            let fixed = with_boxes(&text);
            prop_assert_eq!(with_boxes(&fixed), fixed.clone());
            let had = TodoList::parse(&text).items.len();
            let named = lookalikes(&text).len();
            prop_assert_eq!(TodoList::parse(&fixed).items.len(), had + named);
            prop_assert_eq!(fixed.split_inclusive('\n').count(), text.split_inclusive('\n').count());
        }
    }
}
