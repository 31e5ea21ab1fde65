//! The plan: the `- [ ]` and `- [x]` lines of a Markdown file that the agent ticks, with the agent's notes and its questions to
//! the user below them. [`crate::checkbox`] decides which lines are items.

mod missing_items;

use crate::checkbox::{
    CheckboxMark, ParsedBox, PlanLine, UnclearLine, UnclearLineCollector, classify_plan_line,
};
use crate::item_set;
use crate::markdown_lines::{LineKind, MarkdownLine, MarkdownLines};
use crate::question::{self, Question};
use crate::text::{is_normalized_ascii_line, to_safe_single_line};
use std::borrow::Cow;
use std::collections::HashSet;

/// The default file name of the plan.
pub const DEFAULT_PLAN: &str = "fix_plan.md";

/// The items of a plan file, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TodoList {
    pub items: Vec<PlanItem>,
    /// Lines that look like items but are not valid ones.
    pub unclear_lines: Vec<UnclearLine>,
}

/// One item of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanItem {
    /// The text after the checkbox, as one line.
    pub text: String,
    pub is_ticked: bool,
    /// The indented `> …` lines below the item: notes of the sessions.
    pub notes: Vec<String>,
    /// The indented `? …` lines below the item, each with its answers.
    pub questions: Vec<Question>,
}

impl PlanItem {
    /// Returns the question that blocks the item: its last one, if the item is open and the question has no answer.
    pub fn unanswered_question(&self) -> Option<&str> {
        let last_question =
            self.questions.last().filter(|last| !self.is_ticked && last.answers.is_empty())?;
        Some(&last_question.text)
    }

    /// Adds a line below the item if it is a note, a question or an answer. Ignores any other line.
    fn add_note_question_or_answer(&mut self, line: &str) {
        if let Some(note) = parse_note(line) {
            self.notes.push(note);
        } else if let Some(text) = question::parse_question_line(line) {
            self.questions.push(Question { text, answers: Vec::new() });
        } else if let Some((last_question, answer)) =
            self.questions.last_mut().zip(question::parse_answer_line(line))
        {
            last_question.answers.push(answer);
        }
    }
}

impl TodoList {
    /// Creates a plan from these items.
    pub fn from_items(items: Vec<PlanItem>) -> TodoList {
        TodoList { items, unclear_lines: Vec::new() }
    }

    /// Parses the items of a Markdown text. Checkboxes in code and in comments are examples, not items.
    pub fn parse(markdown: &str) -> TodoList {
        let mut items: Vec<PlanItem> = Vec::new();
        let mut lines = PlanLinesWithRoles::new(markdown);
        for (_, role) in lines.by_ref() {
            match (role, items.last_mut()) {
                (PlanLineRole::Item(item), _) => items.push(item),
                (PlanLineRole::DetailLine(line), Some(last_item)) => {
                    last_item.add_note_question_or_answer(line);
                }
                (PlanLineRole::DetailLine(_) | PlanLineRole::Other, _) => {}
            }
        }
        TodoList { items, unclear_lines: lines.into_unclear_lines() }
    }

    /// Returns the texts of the open items.
    pub fn open_items(&self) -> Vec<String> {
        self.items.iter().filter(|item| !item.is_ticked).map(|item| item.text.clone()).collect()
    }

    /// Returns the texts of the ticked items.
    pub fn ticked_items(&self) -> Vec<String> {
        self.items.iter().filter(|item| item.is_ticked).map(|item| item.text.clone()).collect()
    }

    /// Returns true if the open and the ticked items are exactly these, in this order.
    pub fn has_exactly_items(&self, open_items: &[String], ticked_items: &[String]) -> bool {
        let item_texts = |is_ticked| {
            self.items.iter().filter(move |item| item.is_ticked == is_ticked).map(|item| &item.text)
        };
        item_texts(false).eq(open_items) && item_texts(true).eq(ticked_items)
    }

    /// Returns the text and the question of each parked item: open, with an unanswered question. Items are identified by their
    /// text, so an item is not parked if the plan also has the same open item without a question.
    pub fn parked_items_with_questions(&self) -> Vec<(&str, &str)> {
        let is_parked = |item: &PlanItem| !item.is_ticked && item.unanswered_question().is_some();
        if !self.items.iter().any(is_parked) {
            return Vec::new();
        }
        let unparked_items = self.items.iter().filter(|item| !item.is_ticked && !is_parked(item));
        let unparked_texts = item_set::to_text_set(unparked_items.map(|item| &item.text));
        let items_with_questions =
            self.items.iter().filter_map(|item| Some((item.text.as_str(), item.unanswered_question()?)));
        items_with_questions.filter(|(text, _)| !unparked_texts.contains(text)).collect()
    }

    /// Returns the texts of the open items that are not parked.
    pub fn unparked_open_items(&self) -> Vec<String> {
        let parked_texts: HashSet<&str> =
            self.parked_items_with_questions().into_iter().map(|(text, _)| text).collect();
        self.open_items().into_iter().filter(|item| !parked_texts.contains(item.as_str())).collect()
    }

    /// Returns those of the known items that are no longer in the plan in any form. Removing a line does not finish its item.
    /// Text added after an item (`… (done in abc123)`) does not make it another item, and a line that has become unclear still
    /// counts for its item.
    pub fn known_items_missing_from_lines(&self, known_items: &[String]) -> Vec<String> {
        let unclear_items = self.unclear_lines.iter().map(|line| line.item_text.as_str());
        missing_items::known_items_missing_from_lines(
            self.items.iter().map(|item| item.text.as_str()).chain(unclear_items),
            known_items,
        )
    }

    /// Returns true if the item is ticked. A line with exactly the same text takes precedence over one with added text.
    pub fn is_item_ticked(&self, item_text: &str) -> bool {
        let exact_match = self.items.iter().find(|item| {
            strip_emphasis_and_extra_spaces(&item.text) == strip_emphasis_and_extra_spaces(item_text)
        });
        let matching_item =
            exact_match.or_else(|| self.items.iter().find(|item| matches_item_text(&item.text, item_text)));
        matching_item.is_some_and(|item| item.is_ticked)
    }

    /// Renders the plan as Markdown, to restore a deleted file.
    pub fn render_markdown(&self) -> String {
        let render_item = |item: &PlanItem| {
            let notes: String = item.notes.iter().map(|note| format!("  > {note}\n")).collect();
            let render_answers = |question: &Question| {
                question.answers.iter().map(|answer| format!("  ! {answer}\n")).collect::<String>()
            };
            let questions: String = item
                .questions
                .iter()
                .map(|question| format!("  ? {}\n{}", question.text, render_answers(question)))
                .collect();
            format!("- [{}] {}\n{notes}{questions}", if item.is_ticked { 'x' } else { ' ' }, item.text)
        };
        self.items.iter().map(render_item).collect()
    }
}

/// The role of a line in a plan.
#[derive(Debug)]
pub(crate) enum PlanLineRole<'a> {
    Item(PlanItem),
    /// A line that may belong to the item above it, without the `>` markers of the block quotes that contain the item.
    DetailLine(&'a str),
    /// A line of an example or of metadata, or a line that looks like an item but is not a valid one.
    Other,
}

/// Iterates over the lines of a plan, each with its role.
pub(crate) struct PlanLinesWithRoles<'a> {
    lines: MarkdownLines<'a>,
    unclear_lines: UnclearLineCollector,
    /// How many block quotes contain the last item; `None` before the first item.
    item_quote_depth: Option<usize>,
}

impl<'a> PlanLinesWithRoles<'a> {
    pub(crate) fn new(markdown: &'a str) -> PlanLinesWithRoles<'a> {
        PlanLinesWithRoles {
            lines: MarkdownLines::new(markdown),
            unclear_lines: UnclearLineCollector::default(),
            item_quote_depth: None,
        }
    }

    /// Returns the lines that look like items but are not valid ones. Call it after all lines have been read.
    pub(crate) fn into_unclear_lines(self) -> Vec<UnclearLine> {
        self.unclear_lines.into_lines_with_items_of_unclosed_block(self.lines.unclosed_block_start())
    }
}

impl<'a> Iterator for PlanLinesWithRoles<'a> {
    type Item = (MarkdownLine<'a>, PlanLineRole<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        let unquoted_text = strip_block_quote_markers(line.text, self.item_quote_depth.unwrap_or(0));
        // An indented quotation below an item is a note, even if the quoted text looks like an item.
        if line.quote_end > 0
            && self.item_quote_depth.is_some()
            && indented_quote_text(unquoted_text).is_some()
        {
            return Some((line, PlanLineRole::DetailLine(unquoted_text)));
        }
        let plan_line_kind = classify_plan_line(&line);
        self.unclear_lines.record_line_if_it_looks_like_item(&line, &plan_line_kind);
        let role = match plan_line_kind {
            PlanLine::Checkbox(checkbox) => match parse_item_with_text(&checkbox) {
                Some(item) => {
                    let prefix = &line.text.as_bytes()[..line.quote_end];
                    self.item_quote_depth = Some(prefix.iter().filter(|byte| **byte == b'>').count());
                    PlanLineRole::Item(item)
                }
                None => PlanLineRole::DetailLine(unquoted_text),
            },
            PlanLine::Unclear(_) => PlanLineRole::Other,
            PlanLine::Other => match line.kind {
                LineKind::Fence | LineKind::Comment | LineKind::FrontMatter => PlanLineRole::Other,
                LineKind::Blank
                | LineKind::ParagraphStart
                | LineKind::ParagraphContinuation
                | LineKind::Heading
                | LineKind::Rule
                | LineKind::IndentedCode => PlanLineRole::DetailLine(unquoted_text),
            },
        };
        Some((line, role))
    }
}

/// Removes the `>` markers of up to `max_depth` block quotes from the start of a line.
fn strip_block_quote_markers(line: &str, max_depth: usize) -> &str {
    let mut text = line;
    for _ in 0..max_depth {
        let Some(remaining) = text.trim_start_matches(' ').strip_prefix('>') else { break };
        text = remaining.strip_prefix(' ').unwrap_or(remaining);
    }
    text
}

/// Returns true if a line is about the item: it has the same text, or the same text with something added after it.
pub fn matches_item_text(line: &str, item_text: &str) -> bool {
    let (normalized_line, normalized_item_text) =
        (strip_emphasis_and_extra_spaces(line), strip_emphasis_and_extra_spaces(item_text));
    normalized_line.strip_prefix(&*normalized_item_text).is_some_and(can_follow_item_text)
}

/// Returns true if this text may follow an item's text without making it another item: it must not continue the last word.
fn can_follow_item_text(text: &str) -> bool {
    !text.starts_with(|character: char| character.is_alphanumeric())
}

/// Removes what agents often add to an item's text: bold (`**`), strike-through (`~~`) and repeated spaces.
fn strip_emphasis_and_extra_spaces(text: &str) -> Cow<'_, str> {
    let has_emphasis = text.contains("~~") || text.contains("**");
    match text {
        text if has_emphasis => Cow::Owned(to_safe_single_line(&text.replace("~~", "").replace("**", ""))),
        // Fast path: the text was usually converted to one line when it was parsed.
        text if is_normalized_ascii_line(text) => Cow::Borrowed(text),
        text => Cow::Owned(to_safe_single_line(text)),
    }
}

/// Creates the item of a checkbox; `None` if there is no text after the box.
fn parse_item_with_text(checkbox: &ParsedBox<'_>) -> Option<PlanItem> {
    let text = to_safe_single_line(checkbox.following_text);
    (!text.is_empty()).then_some(PlanItem {
        text,
        is_ticked: checkbox.mark == CheckboxMark::Done,
        ..PlanItem::default()
    })
}

/// Parses a note: an indented quotation. A quotation that is not indented belongs to the user's own text.
fn parse_note(line: &str) -> Option<String> {
    let text = to_safe_single_line(indented_quote_text(line)?);
    (!text.is_empty()).then_some(text)
}

fn indented_quote_text(line: &str) -> Option<&str> {
    line.strip_prefix([' ', '\t'])?.trim_start().strip_prefix('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_and_ticked_items(markdown: &str) -> (Vec<String>, Vec<String>) {
        let todo = TodoList::parse(markdown);
        (todo.open_items(), todo.ticked_items())
    }

    #[test]
    fn a_byte_order_mark_does_not_hide_the_first_item() {
        let (open, done) = open_and_ticked_items("\u{feff}- [ ] One\n- [x] Two\n");
        assert_eq!((open, done), (vec!["One".to_owned()], vec!["Two".to_owned()]));
    }

    #[test]
    fn boxes_are_items_and_nothing_else_is() {
        let (open, done) = open_and_ticked_items(
            "# Plan\n- [ ] one\n  * [x] two\n+ [X]  three  words \n- [] no\n- [ ]\n1. no\n```\n- [ ] example\n```\n- [ ] four\n",
        );
        assert_eq!(open, ["one", "four"]);
        assert_eq!(done, ["two", "three words"]);
    }

    #[test]
    fn windows_line_ends_do_not_become_part_of_an_item() {
        assert_eq!(
            open_and_ticked_items("- [ ] one\r\n- [x] two\r\n"),
            (vec!["one".to_owned()], vec!["two".to_owned()])
        );
    }

    #[test]
    fn an_item_removed_unticked_is_missing_and_one_with_added_text_is_not() {
        let known = ["Parse dates".to_owned(), "Parse".to_owned(), "Write docs".to_owned()];
        let now = TodoList::parse("- [x] ~~Parse dates~~ (done in abc123)\n- [ ] Parse\n");
        assert_eq!(now.known_items_missing_from_lines(&known), ["Write docs"]);
        assert_eq!(TodoList::parse("- [x] Parser\n").known_items_missing_from_lines(&known[1..2]), ["Parse"]);
    }

    #[test]
    fn a_longer_item_does_not_replace_a_shorter_one() {
        let known_items = ["Add tests".to_owned(), "Add tests for the parser".to_owned()];
        let shortened = TodoList::parse("- [x] Add tests for the parser\n");
        assert_eq!(shortened.known_items_missing_from_lines(&known_items), ["Add tests"]);
        let both = TodoList::parse("- [ ] Add tests\n- [x] Add tests for the parser\n");
        assert!(!both.is_item_ticked("Add tests") && both.is_item_ticked("Add tests for the parser"));
        assert!(both.known_items_missing_from_lines(&known_items).is_empty());
    }

    #[test]
    fn an_indented_note_belongs_to_its_item_and_a_quotation_does_not() {
        let todo = TodoList::parse(
            "  > nobody's\n- [x] one\n  > the port is 8042\n\t>   and  free \n> said by me\n- [ ] two\n  more\n  >\n",
        );
        let notes: Vec<&[String]> = todo.items.iter().map(|item| item.notes.as_slice()).collect();
        assert_eq!(notes, [&["the port is 8042".to_owned(), "and free".to_owned()][..], &[]]);
    }

    #[test]
    fn an_item_is_parked_while_its_last_question_is_unanswered() {
        for (lines_below, parked) in [
            ("", None),
            ("  ? Which port?\n", Some("Which port?")),
            ("\t?  which   port \r\n", Some("which port")),
            ("  > a note\n\n    ? Which port?\n  > another note\n", Some("Which port?")),
            ("  ? Which port?\n  ! 8042\n", None),
            ("  ? Which port?\n  > 80 is taken\n\n  ! 8042\n  ! or 8043\n", None),
            ("  ? Which port?\n  ! 8042\n  ? And which host?\n", Some("And which host?")),
            ("  ? Which port?\n  ? And which host?\n  ! localhost\n", None),
            // An answer must be below its question.
            ("  ! 8042\n  ? Which port?\n", Some("Which port?")),
            ("  ? Which port?\n  !\n  ! \n", Some("Which port?")),
            ("  ? Which port?\n  ![picture](a.png)\n", Some("Which port?")),
            ("  ? Which port?\n! not indented\n", Some("Which port?")),
            // These are no questions.
            ("? not indented\n", None),
            ("  ?\n  ? \n  ?x=1\n", None),
            ("  ```\n  ? an example\n  ```\n", None),
            ("  ? Which port?\n  ```\n  ! an example\n  ```\n", Some("Which port?")),
        ] {
            let todo = TodoList::parse(&format!("- [ ] one\n{lines_below}- [ ] two\n"));
            let expected: Vec<(&str, &str)> = parked.into_iter().map(|question| ("one", question)).collect();
            assert_eq!(todo.parked_items_with_questions(), expected, "{lines_below:?}");
            assert_eq!(todo.unparked_open_items().len(), 2 - expected.len(), "{lines_below:?}");
            assert_eq!(todo.open_items(), ["one", "two"], "{lines_below:?}");
        }
        let ticked = TodoList::parse("- [x] one\n  ? Which port?\n- [ ] two\n");
        assert_eq!(
            (ticked.parked_items_with_questions(), ticked.unparked_open_items()),
            (vec![], vec!["two".to_owned()])
        );
    }

    #[test]
    fn a_duplicate_item_is_not_parked_while_one_line_of_it_is_not() {
        let twice = TodoList::parse("- [ ] one\n  ? Which port?\n- [ ] one\n");
        assert_eq!((twice.parked_items_with_questions(), twice.unparked_open_items().len()), (vec![], 2));
        let both = TodoList::parse("- [ ] one\n  ? Which port?\n- [x] one\n");
        assert_eq!(
            (both.parked_items_with_questions(), both.unparked_open_items()),
            (vec![("one", "Which port?")], Vec::new())
        );
    }

    #[test]
    fn a_question_belongs_to_the_nearest_item_above_it() {
        let todo = TodoList::parse("  ? nobody's\n- [ ] one\n  - [ ] a part\n    ? Which port?\n  ! 8042?\n");
        assert!(todo.parked_items_with_questions().is_empty());
        assert_eq!(
            todo.items[1].questions,
            [Question { text: "Which port?".to_owned(), answers: vec!["8042?".to_owned()] }]
        );
        assert!(todo.items[0].questions.is_empty());
    }

    #[test]
    fn a_rendered_plan_parses_to_the_same_plan() {
        let todo = TodoList::parse("- [ ] a\n  > found\n  ? Why?\n  ! So.\n  ? And how?\n- [x] b\n");
        assert_eq!(TodoList::parse(&todo.render_markdown()), todo);
    }
}
