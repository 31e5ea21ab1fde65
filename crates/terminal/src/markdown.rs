//! A page of Markdown as it is read without a Markdown viewer: tables in columns, words wrapped, no marks. Of Markdown our pages
//! use headings, paragraphs, lists, tables, fences, `**strong**` and `` `code` ``.

use crate::console::{self, Painted};
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use plimsoll_domain::text::SafeText;

/// Where it is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sheet {
    /// How wide it is; none in a pipe, where nothing is wrapped.
    pub columns: Option<usize>,
    /// Whether it has colours.
    pub has_colours: bool,
}

const STRONG: &str = "1";
const CODE: &str = "36";
const FENCE: &str = "```";
/// Below the head of a table.
const RULE: char = '─';
const COLUMNS: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill(RULE).junction(RULE));

/// Shows it as the reader can use it: as wide as the terminal and with its colours, plain in a pipe, or as it is for a program that
/// shows Markdown.
pub fn show(markdown: &str, as_markdown: bool) {
    if as_markdown {
        return console::say(markdown);
    }
    let sheet = Sheet { columns: console::columns(), has_colours: console::has_colours() };
    // A reader that has gone away is a normal end.
    let _ = console::paint(&page(markdown, sheet));
}

/// The lines of a page.
pub fn page(markdown: &str, sheet: Sheet) -> Vec<Painted> {
    let mut lines = markdown.lines().peekable();
    let mut shown = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(heading) = heading(line) {
            shown.push(sheet.painted(STRONG, heading));
        } else if line.starts_with('|') {
            let rows = std::iter::from_fn(|| lines.next_if(|line| line.starts_with('|')));
            shown.extend(sheet.table(std::iter::once(line).chain(rows)));
        } else if line.starts_with(FENCE) {
            let fence = &line[..line.len() - line.trim_start_matches('`').len()];
            let inside = lines.by_ref().take_while(|line| !line.starts_with(fence));
            shown.extend(inside.map(Painted::plain));
        } else {
            shown.extend(sheet.words(line));
        }
    }
    shown
}

fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    (words.len() < line.len()).then(|| words.strip_prefix(' ')).flatten()
}

impl Sheet {
    fn painted(self, code: &'static str, words: &str) -> Painted {
        Painted::default().then(self.has_colours.then_some(code), words)
    }

    /// A line of a paragraph, or of an item of a list, whose further lines are set in.
    fn words(self, line: &str) -> Vec<Painted> {
        let set_in = if line.starts_with("- ") || line.starts_with("  ") { "  " } else { "" };
        let columns = self.columns.unwrap_or(usize::MAX);
        let wrapped = textwrap::wrap(line, textwrap::Options::new(columns).subsequent_indent(set_in));
        let mut marks = Marks::default();
        wrapped.iter().map(|line| marks.line(line, self.has_colours)).collect()
    }

    /// The head, a rule and the rows, each column as wide as its widest cell, or as there is room for.
    fn table<'a>(self, lines: impl Iterator<Item = &'a str>) -> Vec<Painted> {
        let is_rule = |cells: &Vec<String>| cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)));
        let mut rows = lines.map(cells).filter(|cells| !is_rule(cells));
        let Some(head) = rows.next() else { return Vec::new() };
        let mut table = Table::new();
        table.load_style(COLUMNS).set_header(head).add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        let arrangement = match self.columns {
            Some(columns) => {
                table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
                ContentArrangement::Dynamic
            }
            None => ContentArrangement::Disabled,
        };
        table.set_content_arrangement(arrangement);
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let head = lines.iter().position(|line| line.starts_with(RULE)).unwrap_or_default();
        let paint = |(number, line): (usize, &String)| {
            if number < head { self.painted(STRONG, line) } else { Painted::plain(line) }
        };
        lines.iter().enumerate().map(paint).collect()
    }
}

/// The cells of a line of a table: a bar that belongs to a cell's words has a backslash before it.
fn cells(line: &str) -> Vec<String> {
    const BAR: &str = "\u{1}";
    let line = SafeText::line(line.trim()).as_str().replace("\\|", BAR);
    let inner = line.strip_prefix('|').unwrap_or(&line);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().replace(BAR, "|")).collect()
}

/// What is strong or code at this place of a paragraph.
#[derive(Debug, Default)]
struct Marks {
    is_strong: bool,
    is_code: bool,
}

impl Marks {
    fn line(&mut self, line: &str, has_colours: bool) -> Painted {
        let mut painted = Painted::default();
        for (number, part) in line.split("**").enumerate() {
            self.is_strong ^= number > 0;
            // Without colours code keeps its marks: one sees what is to be typed.
            let parts: Vec<&str> = if has_colours { part.split('`').collect() } else { vec![part] };
            for (number, words) in parts.into_iter().enumerate() {
                self.is_code ^= number > 0;
                let code = if self.is_code { Some(CODE) } else { self.is_strong.then_some(STRONG) };
                painted = painted.then(code.filter(|_| has_colours), words);
            }
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## Plan\n\n2 items open in fix_plan.md. A session has room for about **820k tokens** with `--pack`.\n\n\
        | # | Item | By |\n|---|------|----|\n| 1 | Read a \\| b | its stated size |\n| 12 | Write \u{1b}[31mred | - |\n\n\
        - Item 1: `make`, which takes longer than a line has room for\n\n```\n- [ ] Read  a | b **c**\n```\n";

    fn text(sheet: Sheet) -> String {
        page(PAGE, sheet).iter().map(|line| line.to_terminal() + "\n").collect()
    }

    #[test]
    fn in_a_pipe_it_is_plain_and_not_wrapped() {
        assert_eq!(
            text(Sheet::default()),
            "\
Plan

2 items open in fix_plan.md. A session has room for about 820k tokens with `--pack`.

#   Item                 By
─────────────────────────────────────────
1   Read a | b           its stated size
12  Write \\u{1b}[31mred  -

- Item 1: `make`, which takes longer than a line has room for

- [ ] Read  a | b **c**
"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_its_words_and_columns_wrapped_with_colours() {
        let sheet = Sheet { columns: Some(30), has_colours: true };
        let shown = text(sheet);
        assert!(shown.starts_with("\u{1b}[1mPlan\u{1b}[0m\n"), "{shown}");
        assert!(shown.contains("\u{1b}[36m--pack\u{1b}[0m") && !shown.contains('`'), "{shown}");
        for line in page(PAGE, sheet) {
            let seen = line.to_plain();
            assert!(unicode_width::UnicodeWidthStr::width(seen.as_str()) <= 30, "{seen:?}");
            assert!(!seen.contains('\u{1b}'), "no escape sequence of an item's: {seen:?}");
        }
        assert!(shown.contains("\n  "), "further lines of a list are set in: {shown}");
    }

    #[test]
    fn a_table_that_is_cut_off_or_has_no_rows_is_shown_as_far_as_it_goes() {
        let lines = |text: &str| page(text, Sheet::default()).len();
        assert_eq!(
            (lines("| a | b |"), lines("| a | b |\n|---|---|"), lines("|\n|"), lines("")),
            (2, 2, 0, 0)
        );
    }
}
