//! Renders Markdown for a terminal: tables in columns, wrapped text, no markup. Supports headings, paragraphs, lists,
//! tables, fences,
//! `**strong**` and `` `code` ``, which is all that Plimsoll's pages use.

use crate::console::{self, PaintedLine};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use plimsoll_domain::text::SafeText;

/// The format of the rendered page.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageFormat {
    /// Maximum width of a line, or `None` in a pipe, where nothing is wrapped.
    pub max_columns: Option<usize>,
    pub has_colors: bool,
}

const BOLD: &str = "1";
const INLINE_CODE_COLOR: &str = "36";
const FENCE: &str = "```";
/// The line below a table's header.
const HEADER_LINE_CHAR: char = '─';
const TABLE_STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill(HEADER_LINE_CHAR).junction(HEADER_LINE_CHAR));

/// Prints a page, wrapped and colored on a terminal, plain in a pipe. Prints the Markdown source if `as_source` is true, for a
/// program that renders Markdown itself.
pub fn print_markdown(markdown: &str, as_source: bool) {
    if as_source {
        return console::print_text(markdown);
    }
    let format = PageFormat { max_columns: console::terminal_columns(), has_colors: console::has_colors() };
    // A closed pipe is not an error.
    let _ = console::print_painted_lines(&render_markdown(markdown, format), 2);
}

pub fn render_markdown(markdown: &str, format: PageFormat) -> Vec<PaintedLine> {
    let mut lines = markdown.lines().peekable();
    let mut rendered_lines = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(heading) = parse_heading(line) {
            rendered_lines.push(format.paint_text(BOLD, heading));
        } else if line.starts_with('|') {
            let rows = std::iter::from_fn(|| lines.next_if(|line| line.starts_with('|')));
            rendered_lines
                .extend(format.render_table_without_delimiter_rows(std::iter::once(line).chain(rows)));
        } else if line.starts_with(FENCE) {
            let fence = &line[..line.len() - line.trim_start_matches('`').len()];
            let fenced_lines = lines.by_ref().take_while(|line| !line.starts_with(fence));
            rendered_lines.extend(fenced_lines.map(PaintedLine::plain));
        } else {
            rendered_lines.extend(format.wrap_and_style_paragraph_line(line));
        }
    }
    rendered_lines
}

fn parse_heading(line: &str) -> Option<&str> {
    let after_hashes = line.trim_start_matches('#');
    (after_hashes.len() < line.len()).then(|| after_hashes.strip_prefix(' ')).flatten()
}

impl PageFormat {
    fn paint_text(self, color_code: &'static str, text: &str) -> PaintedLine {
        PaintedLine::default().with_text(self.has_colors.then_some(color_code), text)
    }

    /// Wraps and styles a line of a paragraph or list item. Continuation lines of a list item are indented.
    fn wrap_and_style_paragraph_line(self, line: &str) -> Vec<PaintedLine> {
        let indent = if line.starts_with("- ") || line.starts_with("  ") { "  " } else { "" };
        let columns = self.max_columns.unwrap_or(usize::MAX);
        let wrapped_lines = textwrap::wrap(line, textwrap::Options::new(columns).subsequent_indent(indent));
        let mut inline_style = InlineStyle::default();
        wrapped_lines
            .iter()
            .map(|line| inline_style.paint_line_and_update_style(line, self.has_colors))
            .collect()
    }

    /// Renders a table: header, separator line and rows. A column is as wide as its widest cell, or narrower if the table
    /// would exceed the maximum width.
    fn render_table_without_delimiter_rows<'a>(
        self,
        lines: impl Iterator<Item = &'a str>,
    ) -> Vec<PaintedLine> {
        let is_delimiter_row = |cells: &Vec<String>| {
            cells.iter().all(|cell| cell.chars().all(|character| "-: ".contains(character)))
        };
        let (delimiter_rows, rows): (Vec<_>, Vec<_>) =
            lines.map(split_table_cells).partition(is_delimiter_row);
        let mut rows = rows.into_iter();
        let Some(header_cells) = rows.next() else { return Vec::new() };
        let mut table = Table::new();
        table.load_style(TABLE_STYLE).set_header(header_cells).add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
            let delimiter = delimiter_rows.first().and_then(|cells| cells.get(column.index));
            if delimiter.is_some_and(|delimiter| delimiter.ends_with(':')) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let arrangement = match self.max_columns {
            Some(columns) => {
                table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
                ContentArrangement::Dynamic
            }
            None => ContentArrangement::Disabled,
        };
        table.set_content_arrangement(arrangement);
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let header_line_count =
            lines.iter().position(|line| line.starts_with(HEADER_LINE_CHAR)).unwrap_or_default();
        let paint_line = |(line_index, line): (usize, &String)| {
            if line_index < header_line_count {
                self.paint_text(BOLD, line)
            } else {
                PaintedLine::plain(line)
            }
        };
        lines.iter().enumerate().map(paint_line).collect()
    }
}

/// Splits a table row into cells. `\|` is a literal bar.
fn split_table_cells(line: &str) -> Vec<String> {
    const ESCAPED_BAR: &str = "\u{1}";
    let line = SafeText::from_single_line(line.trim()).as_str().replace("\\|", ESCAPED_BAR);
    let row_text = line.strip_prefix('|').unwrap_or(&line);
    let row_text = row_text.strip_suffix('|').unwrap_or(row_text);
    row_text.split('|').map(|cell| cell.trim().replace(ESCAPED_BAR, "|")).collect()
}

/// The inline style at the current position in a paragraph.
#[derive(Debug, Default)]
struct InlineStyle {
    is_strong: bool,
    is_code: bool,
}

impl InlineStyle {
    fn paint_line_and_update_style(&mut self, line: &str, has_colors: bool) -> PaintedLine {
        let mut painted_line = PaintedLine::default();
        for (strong_index, strong_part) in line.split("**").enumerate() {
            self.is_strong ^= strong_index > 0;
            // Without colors, code keeps its backticks, which show what to type.
            let code_parts: Vec<&str> =
                if has_colors { strong_part.split('`').collect() } else { vec![strong_part] };
            for (code_index, text) in code_parts.into_iter().enumerate() {
                self.is_code ^= code_index > 0;
                let color_code =
                    if self.is_code { Some(INLINE_CODE_COLOR) } else { self.is_strong.then_some(BOLD) };
                painted_line = painted_line.with_text(color_code.filter(|_| has_colors), text);
            }
        }
        painted_line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## Plan\n\n2 items open in fix_plan.md. A session has room for about **820k tokens** with `--pack`.\n\n\
        | # | Item | By |\n|---|------|----|\n| 1 | Read a \\| b | its stated size |\n| 12 | Write \u{1b}[31mred | - |\n\n\
        - Item 1: `make`, which takes longer than a line has room for\n\n```\n- [ ] Read  a | b **c**\n```\n";

    fn render_to_text(format: PageFormat) -> String {
        render_markdown(PAGE, format).iter().map(|line| line.to_text_with_ansi_colors() + "\n").collect()
    }

    #[test]
    fn a_page_in_a_pipe_is_plain_and_not_wrapped() {
        assert_eq!(
            render_to_text(PageFormat::default()),
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
    fn a_narrow_terminal_gets_wrapped_text_and_columns_with_colors() {
        let format = PageFormat { max_columns: Some(30), has_colors: true };
        let rendered = render_to_text(format);
        assert!(rendered.starts_with("\u{1b}[1mPlan\u{1b}[0m\n"), "{rendered}");
        assert!(rendered.contains("\u{1b}[36m--pack\u{1b}[0m") && !rendered.contains('`'), "{rendered}");
        for line in render_markdown(PAGE, format) {
            let plain_text = line.to_plain();
            assert!(unicode_width::UnicodeWidthStr::width(plain_text.as_str()) <= 30, "{plain_text:?}");
            assert!(!plain_text.contains('\u{1b}'), "no escape sequence of an item's: {plain_text:?}");
        }
        assert!(rendered.contains("\n  "), "further lines of a list are set in: {rendered}");
    }

    #[test]
    fn an_incomplete_table_is_shown_as_far_as_it_goes() {
        let line_count = |text: &str| render_markdown(text, PageFormat::default()).len();
        assert_eq!(
            (line_count("| a | b |"), line_count("| a | b |\n|---|---|"), line_count("|\n|"), line_count("")),
            (2, 2, 0, 0)
        );
    }
}
