//! Checkboxes of a plan: which lines are items, and which only look like items.
//!
//! An item is what GitHub shows as a checkbox: a list item whose text begins with `[ ]` or `[x]`. Also `[~]` and `[/]` are items,
//! open ones, as many programs mark what is begun; and `[ ]*`, with which Kiro marks what is optional. A line with any other
//! mark, or with a box where Markdown has none, is unclear: nobody can say whether it is work, so no run begins with it.

use crate::markdown_lines::{LineKind, MarkdownLine, MarkdownLines};
use crate::text::one_line;

/// A line that looks like an item and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclearLine {
    /// Its number in the file, from 1.
    pub line: usize,
    /// The line in one row of words.
    pub text: String,
    /// The words of the item that it looks like.
    pub item: String,
}

/// A checkbox of a plan, for comparison with other readers of Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkbox<'a> {
    /// Its line, from 0.
    pub line: usize,
    /// True if it is ticked.
    pub done: bool,
    /// The text between the brackets.
    pub mark: &'a str,
    /// The words behind it.
    pub words: &'a str,
    /// True for `[ ]*`, which marks for Kiro what is optional.
    pub is_starred: bool,
}

/// The meaning of a line for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanLine<'a> {
    /// A checkbox; it is an item if it has words.
    Checkbox(BoxAt<'a>),
    /// A line that looks like an item.
    Unclear(LooseBox<'a>),
    /// Any other line.
    Other,
}

/// The state of an item, by the mark in its box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Open,
    Done,
    /// Open, and somebody has begun with it.
    Begun(char),
    /// Nobody can know.
    Unknown,
}

/// A box in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoxAt<'a> {
    pub(crate) mark: Mark,
    /// The text between the brackets.
    pub(crate) inner: &'a str,
    /// What follows.
    pub(crate) rest: &'a str,
    /// True if it is written as a checkbox has to be.
    pub(crate) is_exact: bool,
    /// True for `[ ]*`.
    pub(crate) is_starred: bool,
}

/// A box where Markdown has none, or with another mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LooseBox<'a> {
    pub(crate) mark: Mark,
    pub(crate) inner: &'a str,
    /// A number that the item had, or the emphasis that its words begin with.
    pub(crate) before: &'a str,
    pub(crate) words: &'a str,
    /// True for a cell of a table, of which only a person can make an item.
    pub(crate) is_in_table: bool,
}

/// A longer text between brackets is no mark.
const MAX_MARK_BYTES: usize = 24;
/// Characters that are boxes by themselves.
const BOX_CHARACTERS: [(char, Mark); 5] =
    [('☐', Mark::Open), ('⬜', Mark::Open), ('🔲', Mark::Open), ('☑', Mark::Done), ('☒', Mark::Unknown)];
/// Marks that mean nothing but done.
const CHECK_MARKS: &str = "✓✔√✅☑";
/// What stands for a list marker in texts that were copied from elsewhere.
const BULLETS: &str = "-*+•–—·‣◦▪●○∙";
/// Marks that count also where no list marker is before them: in prose a bracket may hold any other letter.
const BARE_MARKS: &str = "-✓✔√✅☑✗✘>!?";

/// The checkboxes of a plan, also those without words.
pub fn checkboxes<'a>(markdown: &'a str) -> Vec<Checkbox<'a>> {
    let checkbox = |line: MarkdownLine<'a>| match plan_line(&line) {
        PlanLine::Checkbox(BoxAt { mark, inner, rest, is_starred, .. }) => Some(Checkbox {
            line: line.number,
            done: mark == Mark::Done,
            mark: inner,
            words: rest,
            is_starred,
        }),
        PlanLine::Unclear(_) | PlanLine::Other => None,
    };
    MarkdownLines::new(markdown).filter_map(checkbox).collect()
}

/// Returns the meaning of a line for the plan.
pub(crate) fn plan_line<'a>(line: &MarkdownLine<'a>) -> PlanLine<'a> {
    let text = &line.text[line.content..];
    let found = match line.kind {
        LineKind::ParagraphStart if line.begins_item => match box_at(text, true) {
            Some(found) if found.is_exact => return PlanLine::Checkbox(found),
            _ => loose_box(text, true),
        },
        LineKind::ParagraphStart | LineKind::ParagraphContinuation => loose_box(text, false),
        LineKind::Heading => loose_box(text.trim_start_matches('#').trim_start(), false),
        LineKind::Blank
        | LineKind::Rule
        | LineKind::Fence
        | LineKind::IndentedCode
        | LineKind::Comment
        | LineKind::FrontMatter => None,
    };
    found.filter(|found| !found.words.trim().is_empty()).map_or(PlanLine::Other, PlanLine::Unclear)
}

/// Collects the lines of a plan that look like items and are none, in one pass over its lines.
#[derive(Debug, Default)]
pub(crate) struct UnclearLines {
    found: Vec<UnclearLine>,
    /// Items in code fences and in comments that end nowhere so far.
    hidden: Vec<UnclearLine>,
    /// A checkbox without words, which the next line may have.
    without_words: Option<UnclearLine>,
}

impl UnclearLines {
    /// Looks at a line, and at what it means for the plan.
    pub(crate) fn take(&mut self, line: &MarkdownLine<'_>, meaning: &PlanLine<'_>) {
        let without_words = self.without_words.take();
        match meaning {
            PlanLine::Checkbox(found) if found.rest.trim_start().is_empty() => {
                self.without_words = Some(unclear(line, String::new()));
            }
            PlanLine::Checkbox(_) => {}
            PlanLine::Unclear(found) => self.found.push(unclear(line, found.item_text())),
            PlanLine::Other => match line.kind {
                LineKind::ParagraphContinuation => {
                    let item = one_line(&line.text[line.content..]);
                    self.found.extend(without_words.map(|above| UnclearLine { item, ..above }));
                }
                LineKind::Fence | LineKind::Comment => {
                    let text = line.text[line.content..].trim_start();
                    let found = listed_box(text).filter(|found| found.mark != Mark::Done);
                    self.hidden.extend(found.map(|found| unclear(line, found.item_text())));
                }
                _ => self.hidden.clear(),
            },
        }
    }

    /// The lines, in their order. Items that a fence hides are among them if nothing closes it.
    pub(crate) fn finish(mut self, unclosed_block: Option<usize>) -> Vec<UnclearLine> {
        if let Some(start) = unclosed_block {
            self.found.extend(self.hidden.into_iter().filter(|hidden| hidden.line > start + 1));
        }
        self.found
    }
}

fn unclear(line: &MarkdownLine<'_>, item: String) -> UnclearLine {
    UnclearLine { line: line.number + 1, text: one_line(line.text), item }
}

impl LooseBox<'_> {
    /// The words of the item that the line looks like.
    pub(crate) fn item_text(&self) -> String {
        one_line(&self.words_with_number())
    }

    /// The words behind the box, with a number or an emphasis that stands before it.
    pub(crate) fn words_with_number(&self) -> String {
        match self.before {
            "" => self.words.trim_start().to_owned(),
            emphasis if emphasis.starts_with(['*', '_']) => format!("{emphasis}{}", self.words.trim_start()),
            number => format!("{number} {}", self.words.trim_start()),
        }
    }
}

/// The box that a text begins with, exact or not. Behind a list marker any letter may be its mark.
fn box_at(text: &str, is_listed: bool) -> Option<BoxAt<'_>> {
    // Nearly all boxes are so.
    if let [b'[', mark @ (b' ' | b'x' | b'X'), b']', b' ', ..] = text.as_bytes() {
        let mark = if *mark == b' ' { Mark::Open } else { Mark::Done };
        let (inner, rest) = (&text[1..2], &text[3..]);
        return Some(BoxAt { mark, inner, rest, is_exact: true, is_starred: false });
    }
    let inside = text.strip_prefix('[')?;
    let end = inside.bytes().take(MAX_MARK_BYTES).position(|byte| matches!(byte, b']' | b'['))?;
    let (inner, rest) = (&inside[..end], inside[end..].strip_prefix(']')?);
    // `[x](address)`, `[x][name]` and `[x]: address` are links.
    let is_link = rest.starts_with(['(', '[', ':']);
    let has_gap = rest.bytes().next().is_none_or(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
    let words = rest.strip_prefix('*').filter(|rest| rest.starts_with([' ', '\t']));
    let is_starred = words.is_some();
    let rest = words.unwrap_or(rest);
    let found = |mark, is_exact| Some(BoxAt { mark, inner, rest, is_exact, is_starred });
    let is_apart = has_gap || is_starred;
    let is_blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c));
    match inner {
        " " | "\t" | "\u{b}" | "\u{c}" => found(Mark::Open, is_apart),
        "x" | "X" if !is_link => found(Mark::Done, is_apart),
        "~" | "/" if !is_link => found(Mark::Begun(inner.chars().next()?), is_apart),
        _ if is_link || !has_gap => None,
        inner if is_blank(inner) => found(Mark::Open, false),
        inner => {
            let mark = inner.trim();
            match mark {
                "x" | "X" => return found(Mark::Done, false),
                "~" | "/" => return found(Mark::Begun(mark.chars().next()?), false),
                _ => {}
            }
            let mut letters = mark.chars().filter(|letter| *letter != '\u{fe0f}');
            let (letter, None) = (letters.next()?, letters.next()) else { return None };
            // `[1]` names a source.
            let is_mark = if is_listed { !letter.is_numeric() } else { BARE_MARKS.contains(letter) };
            let mark = if CHECK_MARKS.contains(letter) { Mark::Done } else { Mark::Unknown };
            if is_mark { found(mark, false) } else { None }
        }
    }
}

/// The box in a text that is no checkbox: behind something that is meant as a list marker, in a table, in bold letters, or
/// alone.
fn loose_box(text: &str, is_listed: bool) -> Option<LooseBox<'_>> {
    match text.bytes().next()? {
        b'|' => box_in_table(text),
        b'[' | b'-' | b'*' | b'+' | b'_' | b'0'..=b'9' | 0x80.. => {
            bare_box(text, is_listed).or_else(|| listed_box(text))
        }
        // `a) [ ] …`
        b'a'..=b'z' | b'A'..=b'Z'
            if text.as_bytes().get(1).is_some_and(|byte| matches!(byte, b'.' | b')')) =>
        {
            listed_box(text)
        }
        _ => None,
    }
}

/// The box behind something that is meant as a list marker.
fn listed_box(text: &str) -> Option<LooseBox<'_>> {
    let (before, rest) = strip_marker(text)?;
    bare_box(rest, true).map(|found| LooseBox { before, ..found })
}

/// The box that a text begins with, also in bold letters or as a character of its own.
fn bare_box(text: &str, is_listed: bool) -> Option<LooseBox<'_>> {
    let found =
        |mark, inner, before, words| Some(LooseBox { mark, inner, before, words, is_in_table: false });
    if let Some(BoxAt { mark, inner, rest, .. }) = box_at(text, is_listed) {
        return found(mark, inner, "", rest);
    }
    let is_emphasis = text.starts_with("**") || text.starts_with("__");
    if is_emphasis {
        let (emphasis, rest) = text.split_at(2);
        let BoxAt { mark, inner, rest, .. } =
            box_at(rest, false).filter(|found| found.is_exact).or_else(|| bold_box(rest, emphasis))?;
        return match rest.strip_prefix(emphasis) {
            Some(words) => found(mark, inner, "", words),
            None => found(mark, inner, emphasis, rest),
        };
    }
    let letter = text.chars().next()?;
    let (_, mark) = BOX_CHARACTERS.into_iter().find(|(known, _)| *known == letter)?;
    let (inner, rest) = text.split_at(letter.len_utf8());
    let rest = rest.strip_prefix('\u{fe0f}').unwrap_or(rest);
    found(mark, inner, "", rest)
}

/// `**[ ]** …`: the box alone is in bold letters.
fn bold_box<'a>(text: &'a str, emphasis: &str) -> Option<BoxAt<'a>> {
    let (inner, mark) = [("[ ]", Mark::Open), ("[x]", Mark::Done), ("[X]", Mark::Done)]
        .into_iter()
        .find(|(inner, _)| text.strip_prefix(inner).is_some_and(|rest| rest.starts_with(emphasis)))?;
    let (inner, rest) = text.split_at(inner.len());
    Some(BoxAt { mark, inner: &inner[1..2], rest, is_exact: false, is_starred: false })
}

/// A row of a table with an open box in a cell.
fn box_in_table(text: &str) -> Option<LooseBox<'_>> {
    let cell = text.split('|').map(str::trim).find_map(|cell| {
        let found = bare_box(cell, false)?;
        matches!(found.mark, Mark::Open | Mark::Begun(_)).then_some(found)
    })?;
    let words = text.trim_matches(['|', ' ', '\t']);
    Some(LooseBox { words, before: "", is_in_table: true, ..cell })
}

/// What follows something that is meant as a list marker, and the number that is more than a place in a list: `1.2`.
fn strip_marker(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    let length = if BULLETS.contains(first) {
        first.len_utf8()
    } else if first.is_ascii_digit() {
        text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b')')).count()
    } else if first.is_ascii_alphabetic() && text[1..].starts_with(['.', ')']) {
        2
    } else {
        return None;
    };
    let (marker, rest) = text.split_at(length);
    let number = marker.trim_end_matches(['.', ')']);
    let before = if number.contains('.') { number } else { "" };
    Some((before, rest.trim_start_matches([' ', '\t'])))
}
