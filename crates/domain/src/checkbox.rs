//! Checkboxes of a plan: decides which lines are items, and which only look like items.
//!
//! An item is what GitHub shows as a checkbox: a list item whose text begins with `[ ]` or `[x]`. `[~]` and
//! `[/]` are open items, too, because many programs use them for work in progress; so is `[ ]*`, with which
//! Kiro marks optional items. A line with any other mark, or with a box where Markdown has no checkbox, is
//! unclear. No run starts while a plan has unclear lines, because they may be work.

use crate::markdown_lines::{LineKind, MarkdownLine, MarkdownLines};
use crate::text::to_safe_single_line;

/// A line that looks like an item but is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclearLine {
    /// The line number in the file, from 1.
    pub line_number: usize,
    /// The line, with white space collapsed.
    pub text: String,
    /// The text of the item that it looks like.
    pub item_text: String,
}

/// A checkbox of a plan, in the form in which tests compare it with other Markdown parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkbox<'a> {
    /// The index of its line, from 0.
    pub line_index: usize,
    pub is_done: bool,
    /// The text between the brackets.
    pub mark_text: &'a str,
    /// The text after the box.
    pub text: &'a str,
    /// True for `[ ]*`, which marks an optional item in Kiro's format.
    pub is_starred: bool,
}

/// How the plan parser interprets a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanLine<'a> {
    /// A checkbox. It is an item if text follows the box.
    Checkbox(ParsedBox<'a>),
    /// A line that looks like an item but is not one.
    Unclear(UnclearBox<'a>),
    /// Any other line.
    Other,
}

/// The state of an item, according to the mark in its box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckboxMark {
    Open,
    Done,
    /// Open, with work in progress. Contains the mark's character.
    InProgress(char),
    /// A mark without a known meaning.
    Unknown,
}

/// A box at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParsedBox<'a> {
    pub(crate) mark: CheckboxMark,
    /// The text between the brackets.
    pub(crate) mark_text: &'a str,
    /// The text after the box.
    pub(crate) following_text: &'a str,
    /// True if it is written the way Markdown requires of a checkbox.
    pub(crate) is_valid_checkbox: bool,
    /// True for `[ ]*`.
    pub(crate) is_starred: bool,
}

/// A box where Markdown has no checkbox, or with an unknown mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnclearBox<'a> {
    pub(crate) mark: CheckboxMark,
    pub(crate) mark_text: &'a str,
    /// The item's number, or the emphasis marker that its text begins with.
    pub(crate) prefix: &'a str,
    pub(crate) text: &'a str,
    /// True for a cell of a table, which only a person can turn into an item.
    pub(crate) is_in_table: bool,
}

/// A longer text between brackets is not a mark.
const MAX_MARK_BYTES: usize = 24;
/// Unicode characters that are boxes themselves.
const BOX_CHARACTER_MARKS: [(char, CheckboxMark); 5] = [
    ('☐', CheckboxMark::Open),
    ('⬜', CheckboxMark::Open),
    ('🔲', CheckboxMark::Open),
    ('☑', CheckboxMark::Done),
    ('☒', CheckboxMark::Unknown),
];
/// Marks that always mean "done".
const DONE_MARKS: &str = "✓✔√✅☑";
/// Characters that stand for a list marker in text copied from other programs.
const BULLET_CHARACTERS: &str = "-*+•–—·‣◦▪●○∙";
/// Marks that are accepted even without a list marker before them. Other characters are not, because in prose a
/// bracket may contain any character.
const MARKS_ALLOWED_WITHOUT_BULLET: &str = "-✓✔√✅☑✗✘>!?";

/// Returns the checkboxes of a plan, including those without text.
pub fn parse_checkboxes<'a>(markdown: &'a str) -> Vec<Checkbox<'a>> {
    let to_checkbox = |line: MarkdownLine<'a>| match classify_plan_line(&line) {
        PlanLine::Checkbox(ParsedBox { mark, mark_text, following_text, is_starred, .. }) => Some(Checkbox {
            line_index: line.line_index,
            is_done: mark == CheckboxMark::Done,
            mark_text,
            text: following_text,
            is_starred,
        }),
        PlanLine::Unclear(_) | PlanLine::Other => None,
    };
    MarkdownLines::new(markdown).filter_map(to_checkbox).collect()
}

/// Classifies a line of a plan as a checkbox, an unclear line, or any other line.
pub(crate) fn classify_plan_line<'a>(line: &MarkdownLine<'a>) -> PlanLine<'a> {
    let text = &line.text[line.text_start..];
    let unclear_box = match line.kind {
        LineKind::ParagraphStart if line.is_first_of_list_item => match parse_leading_box(text, true) {
            Some(parsed_box) if parsed_box.is_valid_checkbox => return PlanLine::Checkbox(parsed_box),
            _ => parse_unclear_box(text, true),
        },
        LineKind::ParagraphStart | LineKind::ParagraphContinuation => parse_unclear_box(text, false),
        LineKind::Heading => parse_unclear_box(text.trim_start_matches('#').trim_start(), false),
        LineKind::Blank
        | LineKind::Rule
        | LineKind::Fence
        | LineKind::IndentedCode
        | LineKind::Comment
        | LineKind::FrontMatter => None,
    };
    unclear_box
        .filter(|unclear_box| !unclear_box.text.trim().is_empty())
        .map_or(PlanLine::Other, PlanLine::Unclear)
}

/// Collects the lines of a plan that look like items but are not, in one pass over the lines.
#[derive(Debug, Default)]
pub(crate) struct UnclearLineCollector {
    lines: Vec<UnclearLine>,
    /// Items in a code fence or comment that is not closed yet.
    items_in_open_block: Vec<UnclearLine>,
    /// A checkbox without text; the next line may have the text.
    empty_checkbox: Option<UnclearLine>,
}

impl UnclearLineCollector {
    /// Records a line if it looks like an item: an unclear line, a checkbox whose text is on the next line, or,
    /// until the block is closed, an item in a code fence or comment.
    pub(crate) fn record_line_if_it_looks_like_item(
        &mut self,
        line: &MarkdownLine<'_>,
        plan_line: &PlanLine<'_>,
    ) {
        let empty_checkbox = self.empty_checkbox.take();
        match plan_line {
            PlanLine::Checkbox(parsed_box) if parsed_box.following_text.trim_start().is_empty() => {
                self.empty_checkbox = Some(new_unclear_line(line, String::new()));
            }
            PlanLine::Checkbox(_) => {}
            PlanLine::Unclear(unclear_box) => {
                self.lines.push(new_unclear_line(line, unclear_box.item_text()));
            }
            PlanLine::Other => match line.kind {
                LineKind::ParagraphContinuation => {
                    let item_text = to_safe_single_line(&line.text[line.text_start..]);
                    self.lines.extend(
                        empty_checkbox.map(|checkbox_line| UnclearLine { item_text, ..checkbox_line }),
                    );
                }
                LineKind::Fence | LineKind::Comment => {
                    let text = line.text[line.text_start..].trim_start();
                    let box_in_open_block = parse_box_after_loose_list_marker(text)
                        .filter(|unclear_box| unclear_box.mark != CheckboxMark::Done);
                    self.items_in_open_block.extend(
                        box_in_open_block.map(|hidden_box| new_unclear_line(line, hidden_box.item_text())),
                    );
                }
                _ => self.items_in_open_block.clear(),
            },
        }
    }

    /// Returns the collected lines, in their order, followed by the items inside a code fence or comment that is
    /// never closed.
    pub(crate) fn into_lines_with_items_of_unclosed_block(
        mut self,
        unclosed_block_start: Option<usize>,
    ) -> Vec<UnclearLine> {
        if let Some(block_start) = unclosed_block_start {
            self.lines.extend(
                self.items_in_open_block.into_iter().filter(|item| item.line_number > block_start + 1),
            );
        }
        self.lines
    }
}

fn new_unclear_line(line: &MarkdownLine<'_>, item_text: String) -> UnclearLine {
    UnclearLine { line_number: line.line_index + 1, text: to_safe_single_line(line.text), item_text }
}

impl UnclearBox<'_> {
    /// Returns the text of the item that the line seems to be.
    pub(crate) fn item_text(&self) -> String {
        to_safe_single_line(&self.text_with_number_or_emphasis_prefix())
    }

    /// Returns the text after the box, with the number or the emphasis marker that precedes the box.
    pub(crate) fn text_with_number_or_emphasis_prefix(&self) -> String {
        match self.prefix {
            "" => self.text.trim_start().to_owned(),
            emphasis if emphasis.starts_with(['*', '_']) => format!("{emphasis}{}", self.text.trim_start()),
            number => format!("{number} {}", self.text.trim_start()),
        }
    }
}

/// Parses the box at the beginning of a text, even if Markdown does not accept it as a checkbox. After a list
/// marker any character except a digit is accepted as the mark.
fn parse_leading_box(text: &str, is_after_list_marker: bool) -> Option<ParsedBox<'_>> {
    // Fast path: nearly all boxes have this form.
    if let [b'[', mark @ (b' ' | b'x' | b'X'), b']', b' ', ..] = text.as_bytes() {
        let mark = if *mark == b' ' { CheckboxMark::Open } else { CheckboxMark::Done };
        let (mark_text, following_text) = (&text[1..2], &text[3..]);
        return Some(ParsedBox {
            mark,
            mark_text,
            following_text,
            is_valid_checkbox: true,
            is_starred: false,
        });
    }
    let inside = text.strip_prefix('[')?;
    let end = inside.bytes().take(MAX_MARK_BYTES).position(|byte| matches!(byte, b']' | b'['))?;
    let (mark_text, following_text) = (&inside[..end], inside[end..].strip_prefix(']')?);
    // `[x](address)`, `[x][name]` and `[x]: address` are links.
    let is_link = following_text.starts_with(['(', '[', ':']);
    let is_followed_by_space_or_end =
        following_text.bytes().next().is_none_or(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
    let text_after_star =
        following_text.strip_prefix('*').filter(|remaining_text| remaining_text.starts_with([' ', '\t']));
    let is_starred = text_after_star.is_some();
    let following_text = text_after_star.unwrap_or(following_text);
    let make_box = |mark, is_valid_checkbox| {
        Some(ParsedBox { mark, mark_text, following_text, is_valid_checkbox, is_starred })
    };
    let is_separated_from_text = is_followed_by_space_or_end || is_starred;
    let is_blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c));
    match mark_text {
        " " | "\t" | "\u{b}" | "\u{c}" => make_box(CheckboxMark::Open, is_separated_from_text),
        "x" | "X" if !is_link => make_box(CheckboxMark::Done, is_separated_from_text),
        "~" | "/" if !is_link => {
            make_box(CheckboxMark::InProgress(mark_text.chars().next()?), is_separated_from_text)
        }
        _ if is_link || !is_followed_by_space_or_end => None,
        mark_text if is_blank(mark_text) => make_box(CheckboxMark::Open, false),
        mark_text => {
            let mark = mark_text.trim();
            match mark {
                "x" | "X" => return make_box(CheckboxMark::Done, false),
                "~" | "/" => return make_box(CheckboxMark::InProgress(mark.chars().next()?), false),
                _ => {}
            }
            let mut mark_chars = mark.chars().filter(|character| *character != '\u{fe0f}');
            let (mark_char, None) = (mark_chars.next()?, mark_chars.next()) else { return None };
            // `[1]` is a reference.
            let is_mark = if is_after_list_marker {
                !mark_char.is_numeric()
            } else {
                MARKS_ALLOWED_WITHOUT_BULLET.contains(mark_char)
            };
            let mark =
                if DONE_MARKS.contains(mark_char) { CheckboxMark::Done } else { CheckboxMark::Unknown };
            if is_mark { make_box(mark, false) } else { None }
        }
    }
}

/// Parses a box that is not a Markdown checkbox: after a character used as a list marker, in a table, in bold
/// text, or alone.
fn parse_unclear_box(text: &str, is_after_list_marker: bool) -> Option<UnclearBox<'_>> {
    match text.bytes().next()? {
        b'|' => find_open_box_and_table_row_text(text),
        b'[' | b'-' | b'*' | b'+' | b'_' | b'0'..=b'9' | 0x80.. => {
            parse_plain_bold_or_unicode_box(text, is_after_list_marker)
                .or_else(|| parse_box_after_loose_list_marker(text))
        }
        // `a) [ ] …`
        b'a'..=b'z' | b'A'..=b'Z'
            if text.as_bytes().get(1).is_some_and(|byte| matches!(byte, b'.' | b')')) =>
        {
            parse_box_after_loose_list_marker(text)
        }
        _ => None,
    }
}

/// Parses a box after a list marker, or after a character that is used as one.
fn parse_box_after_loose_list_marker(text: &str) -> Option<UnclearBox<'_>> {
    let (prefix, text_after_marker) = strip_loose_marker_and_return_dotted_number(text)?;
    parse_plain_bold_or_unicode_box(text_after_marker, true)
        .map(|unclear_box| UnclearBox { prefix, ..unclear_box })
}

/// Parses the box at the beginning of a text, including boxes in bold text and Unicode box characters.
fn parse_plain_bold_or_unicode_box(text: &str, is_after_list_marker: bool) -> Option<UnclearBox<'_>> {
    let make_box = |mark, mark_text, prefix, text| {
        Some(UnclearBox { mark, mark_text, prefix, text, is_in_table: false })
    };
    if let Some(ParsedBox { mark, mark_text, following_text, .. }) =
        parse_leading_box(text, is_after_list_marker)
    {
        return make_box(mark, mark_text, "", following_text);
    }
    let starts_with_bold_marker = text.starts_with("**") || text.starts_with("__");
    if starts_with_bold_marker {
        let (emphasis, bold_text) = text.split_at(2);
        let ParsedBox { mark, mark_text, following_text, .. } = parse_leading_box(bold_text, false)
            .filter(|parsed_box| parsed_box.is_valid_checkbox)
            .or_else(|| parse_box_before_closing_emphasis(bold_text, emphasis))?;
        return match following_text.strip_prefix(emphasis) {
            Some(text_after_bold) => make_box(mark, mark_text, "", text_after_bold),
            None => make_box(mark, mark_text, emphasis, following_text),
        };
    }
    let first_char = text.chars().next()?;
    let (_, mark) =
        BOX_CHARACTER_MARKS.into_iter().find(|(box_character, _)| *box_character == first_char)?;
    let (mark_text, following_text) = text.split_at(first_char.len_utf8());
    let following_text = following_text.strip_prefix('\u{fe0f}').unwrap_or(following_text);
    make_box(mark, mark_text, "", following_text)
}

/// Parses the part of `**[ ]** …` after the first `**`. Only the box is bold.
fn parse_box_before_closing_emphasis<'a>(text: &'a str, emphasis: &str) -> Option<ParsedBox<'a>> {
    let (box_text, mark) =
        [("[ ]", CheckboxMark::Open), ("[x]", CheckboxMark::Done), ("[X]", CheckboxMark::Done)]
            .into_iter()
            .find(|(box_text, _)| {
            text.strip_prefix(box_text).is_some_and(|remaining_text| remaining_text.starts_with(emphasis))
        })?;
    let (box_text, following_text) = text.split_at(box_text.len());
    Some(ParsedBox {
        mark,
        mark_text: &box_text[1..2],
        following_text,
        is_valid_checkbox: false,
        is_starred: false,
    })
}

/// Parses the first open box in a cell of a table row. The text is that of the whole row.
fn find_open_box_and_table_row_text(text: &str) -> Option<UnclearBox<'_>> {
    let cell_box = text.split('|').map(str::trim).find_map(|cell| {
        let cell_box = parse_plain_bold_or_unicode_box(cell, false)?;
        matches!(cell_box.mark, CheckboxMark::Open | CheckboxMark::InProgress(_)).then_some(cell_box)
    })?;
    let row_text = text.trim_matches(['|', ' ', '\t']);
    Some(UnclearBox { text: row_text, prefix: "", is_in_table: true, ..cell_box })
}

/// Strips a list marker, or a character that is used as one. Returns the marker's number if it has several parts
/// (`1.2`; otherwise an empty string), and the text after the marker.
fn strip_loose_marker_and_return_dotted_number(text: &str) -> Option<(&str, &str)> {
    let first_char = text.chars().next()?;
    let length = if BULLET_CHARACTERS.contains(first_char) {
        first_char.len_utf8()
    } else if first_char.is_ascii_digit() {
        text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b')')).count()
    } else if first_char.is_ascii_alphabetic() && text[1..].starts_with(['.', ')']) {
        2
    } else {
        return None;
    };
    let (marker, text_after_marker) = text.split_at(length);
    let number = marker.trim_end_matches(['.', ')']);
    let number_prefix = if number.contains('.') { number } else { "" };
    Some((number_prefix, text_after_marker.trim_start_matches([' ', '\t'])))
}
