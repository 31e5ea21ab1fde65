//! The plan: `- [ ]` and `- [x]` lines of a Markdown file that the agent ticks, what it notes below them, and what it asks
//! the user there. [`crate::checkbox`] says which lines are items.

mod vanished;

use crate::checkbox::{BoxAt, Mark, PlanLine, UnclearLine, UnclearLines, plan_line};
use crate::item_set;
use crate::markdown_lines::{LineKind, MarkdownLine, MarkdownLines};
use crate::question::{self, Question};
use crate::text::{is_plain_line, one_line};
use std::borrow::Cow;
use std::collections::HashSet;

/// The plan where none is named.
pub const DEFAULT_PLAN: &str = "fix_plan.md";

/// The items of a plan file, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TodoList {
    /// All items.
    pub items: Vec<Item>,
    /// Lines that look like items and are none.
    pub unclear: Vec<UnclearLine>,
}

/// One to-do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// The words after the box.
    pub text: String,
    /// True when it is ticked.
    pub done: bool,
    /// The indented `> …` lines below it: what the sessions found out.
    pub notes: Vec<String>,
    /// The indented `? …` lines below it, each with its answers.
    pub questions: Vec<Question>,
}

impl Item {
    /// The question that it waits for: its last one, while the item is open and nobody has answered.
    pub fn open_question(&self) -> Option<&str> {
        let last = self.questions.last().filter(|last| !self.done && last.answers.is_empty())?;
        Some(&last.text)
    }

    /// Takes a line below the item: a note, a question or an answer; any other line is no concern of ours.
    fn take_line(&mut self, line: &str) {
        if let Some(note) = note(line) {
            self.notes.push(note);
        } else if let Some(text) = question::question(line) {
            self.questions.push(Question { text, answers: Vec::new() });
        } else if let Some((last, answer)) = self.questions.last_mut().zip(question::answer(line)) {
            last.answers.push(answer);
        }
    }
}

impl TodoList {
    /// A plan of these items.
    pub fn from_items(items: Vec<Item>) -> TodoList {
        TodoList { items, unclear: Vec::new() }
    }

    /// Reads the items off a Markdown text; boxes in code and in comments are examples, not items.
    pub fn parse(markdown: &str) -> TodoList {
        let mut items: Vec<Item> = Vec::new();
        let mut lines = PlanLines::new(markdown);
        for (_, entry) in lines.by_ref() {
            match (entry, items.last_mut()) {
                (PlanEntry::Item(item), _) => items.push(item),
                (PlanEntry::Below(line), Some(last)) => last.take_line(line),
                (PlanEntry::Below(_) | PlanEntry::Other, _) => {}
            }
        }
        TodoList { items, unclear: lines.into_unclear() }
    }

    /// Open items.
    pub fn open(&self) -> Vec<String> {
        self.items.iter().filter(|item| !item.done).map(|item| item.text.clone()).collect()
    }

    /// Ticked items.
    pub fn done(&self) -> Vec<String> {
        self.items.iter().filter(|item| item.done).map(|item| item.text.clone()).collect()
    }

    /// True if these are its open and its ticked items.
    pub fn has_exactly(&self, open: &[String], done: &[String]) -> bool {
        let texts = |done| self.items.iter().filter(move |item| item.done == done).map(|item| &item.text);
        texts(false).eq(open) && texts(true).eq(done)
    }

    /// Items that are parked: open, with a question that nobody has answered. An item is known by its words, so one that is
    /// there a second time without a question is free.
    pub fn parked(&self) -> Vec<(&str, &str)> {
        let asked = |item: &Item| !item.done && item.open_question().is_some();
        if !self.items.iter().any(asked) {
            return Vec::new();
        }
        let free = self.items.iter().filter(|item| !item.done && !asked(item));
        let free = item_set::set(free.map(|item| &item.text));
        let parked = self.items.iter().filter_map(|item| Some((item.text.as_str(), item.open_question()?)));
        parked.filter(|(text, _)| !free.contains(text)).collect()
    }

    /// Open items that are not parked.
    pub fn free(&self) -> Vec<String> {
        let parked: HashSet<&str> = self.parked().into_iter().map(|(text, _)| text).collect();
        self.open().into_iter().filter(|item| !parked.contains(item.as_str())).collect()
    }

    /// Of the items once known, those that are no longer there in any form. A line that vanishes unticked is
    /// not a finished item. Words added behind an item (`… (done in abc123)`) do not make it another one.
    /// A line that has become unclear still has its item.
    pub fn vanished(&self, known: &[String]) -> Vec<String> {
        let unclear = self.unclear.iter().map(|line| line.item.as_str());
        vanished::vanished(self.items.iter().map(|item| item.text.as_str()).chain(unclear), known)
    }

    /// True when the item is ticked; a line of exactly its words speaks first.
    pub fn is_ticked(&self, known: &str) -> bool {
        let exact = self.items.iter().find(|item| plain(&item.text) == plain(known));
        let found = exact.or_else(|| self.items.iter().find(|item| same_item(&item.text, known)));
        found.is_some_and(|item| item.done)
    }

    /// The list as a Markdown file, for when the file itself is gone.
    pub fn render(&self) -> String {
        let line = |item: &Item| {
            let notes: String = item.notes.iter().map(|note| format!("  > {note}\n")).collect();
            let answers = |one: &Question| {
                one.answers.iter().map(|answer| format!("  ! {answer}\n")).collect::<String>()
            };
            let asked: String =
                item.questions.iter().map(|one| format!("  ? {}\n{}", one.text, answers(one))).collect();
            format!("- [{}] {}\n{notes}{asked}", if item.done { 'x' } else { ' ' }, item.text)
        };
        self.items.iter().map(line).collect()
    }
}

/// What a line is to the items of a plan.
#[derive(Debug)]
pub(crate) enum PlanEntry<'a> {
    /// An item.
    Item(Item),
    /// A line that may belong to the item above it, without the marks of the block quotes that the item is in.
    Below(&'a str),
    /// A line of an example or of metadata, or one that looks like an item.
    Other,
}

/// The lines of a plan with what they are to its items.
pub(crate) struct PlanLines<'a> {
    lines: MarkdownLines<'a>,
    unclear: UnclearLines,
    /// How many block quotes the last item is in; none before the first item.
    quotes: Option<usize>,
}

impl<'a> PlanLines<'a> {
    pub(crate) fn new(markdown: &'a str) -> PlanLines<'a> {
        PlanLines { lines: MarkdownLines::new(markdown), unclear: UnclearLines::default(), quotes: None }
    }

    /// The lines that look like items and are none, once all lines have been read.
    pub(crate) fn into_unclear(self) -> Vec<UnclearLine> {
        self.unclear.finish(self.lines.unclosed_block())
    }
}

impl<'a> Iterator for PlanLines<'a> {
    type Item = (MarkdownLine<'a>, PlanEntry<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        let own_text = without_quotes(line.text, self.quotes.unwrap_or(0));
        // A quotation that is indented below an item is a note, whatever it quotes.
        if line.quote_end > 0 && self.quotes.is_some() && quoted_note(own_text).is_some() {
            return Some((line, PlanEntry::Below(own_text)));
        }
        let meaning = plan_line(&line);
        self.unclear.take(&line, &meaning);
        let entry = match meaning {
            PlanLine::Checkbox(found) => match item(&found) {
                Some(item) => {
                    let prefix = &line.text.as_bytes()[..line.quote_end];
                    self.quotes = Some(prefix.iter().filter(|byte| **byte == b'>').count());
                    PlanEntry::Item(item)
                }
                None => PlanEntry::Below(own_text),
            },
            PlanLine::Unclear(_) => PlanEntry::Other,
            PlanLine::Other => match line.kind {
                LineKind::Fence | LineKind::Comment | LineKind::FrontMatter => PlanEntry::Other,
                LineKind::Blank
                | LineKind::ParagraphStart
                | LineKind::ParagraphContinuation
                | LineKind::Heading
                | LineKind::Rule
                | LineKind::IndentedCode => PlanEntry::Below(own_text),
            },
        };
        Some((line, entry))
    }
}

/// A line without the marks of so many block quotes, as far as it has them.
fn without_quotes(line: &str, count: usize) -> &str {
    let mut text = line;
    for _ in 0..count {
        let Some(rest) = text.trim_start_matches(' ').strip_prefix('>') else { break };
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    text
}

/// True when a line speaks of the item: the same words, or the same words with something behind them.
pub fn same_item(line: &str, known: &str) -> bool {
    let (line, known) = (plain(line), plain(known));
    line.strip_prefix(&*known).is_some_and(is_rest)
}

/// True for what may stand behind an item's words without making it another one.
fn is_rest(text: &str) -> bool {
    !text.starts_with(|letter: char| letter.is_alphanumeric())
}

/// The words without what agents like to add around them: emphasis, strike-through, doubled spaces.
fn plain(text: &str) -> Cow<'_, str> {
    let has_marks = text.contains("~~") || text.contains("**");
    match text {
        text if has_marks => Cow::Owned(one_line(&text.replace("~~", "").replace("**", ""))),
        // Mostly it has been made one line when it was read.
        text if is_plain_line(text) => Cow::Borrowed(text),
        text => Cow::Owned(one_line(text)),
    }
}

/// The item of a checkbox; none without words.
fn item(found: &BoxAt<'_>) -> Option<Item> {
    let text = one_line(found.rest);
    (!text.is_empty()).then_some(Item { text, done: found.mark == Mark::Done, ..Item::default() })
}

/// A quotation that is not indented is the user's own text.
fn note(line: &str) -> Option<String> {
    let text = one_line(quoted_note(line)?);
    (!text.is_empty()).then_some(text)
}

fn quoted_note(line: &str) -> Option<&str> {
    line.strip_prefix([' ', '\t'])?.trim_start().strip_prefix('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(markdown: &str) -> (Vec<String>, Vec<String>) {
        let todo = TodoList::parse(markdown);
        (todo.open(), todo.done())
    }

    #[test]
    fn a_byte_order_mark_costs_no_item() {
        let (open, done) = list("\u{feff}- [ ] One\n- [x] Two\n");
        assert_eq!((open, done), (vec!["One".to_owned()], vec!["Two".to_owned()]));
    }

    #[test]
    fn boxes_are_items_and_nothing_else_is() {
        let (open, done) = list(
            "# Plan\n- [ ] one\n  * [x] two\n+ [X]  three  words \n- [] no\n- [ ]\n1. no\n```\n- [ ] example\n```\n- [ ] four\n",
        );
        assert_eq!(open, ["one", "four"]);
        assert_eq!(done, ["two", "three words"]);
    }

    #[test]
    fn windows_line_ends_do_not_become_part_of_an_item() {
        assert_eq!(list("- [ ] one\r\n- [x] two\r\n"), (vec!["one".to_owned()], vec!["two".to_owned()]));
    }

    #[test]
    fn a_line_that_vanishes_unticked_is_noticed_and_a_note_behind_it_is_not_a_loss() {
        let known = ["Parse dates".to_owned(), "Parse".to_owned(), "Write docs".to_owned()];
        let now = TodoList::parse("- [x] ~~Parse dates~~ (done in abc123)\n- [ ] Parse\n");
        assert_eq!(now.vanished(&known), ["Write docs"]);
        assert_eq!(TodoList::parse("- [x] Parser\n").vanished(&known[1..2]), ["Parse"]);
    }

    #[test]
    fn a_longer_item_does_not_stand_in_for_a_shorter_one() {
        let known = ["Add tests".to_owned(), "Add tests for the parser".to_owned()];
        let lost = TodoList::parse("- [x] Add tests for the parser\n");
        assert_eq!(lost.vanished(&known), ["Add tests"]);
        let both = TodoList::parse("- [ ] Add tests\n- [x] Add tests for the parser\n");
        assert!(!both.is_ticked("Add tests") && both.is_ticked("Add tests for the parser"));
        assert!(both.vanished(&known).is_empty());
    }

    #[test]
    fn what_is_noted_below_an_item_belongs_to_it_and_a_quotation_does_not() {
        let todo = TodoList::parse(
            "  > nobody's\n- [x] one\n  > the port is 8042\n\t>   and  free \n> said by me\n- [ ] two\n  more\n  >\n",
        );
        let notes: Vec<&[String]> = todo.items.iter().map(|item| item.notes.as_slice()).collect();
        assert_eq!(notes, [&["the port is 8042".to_owned(), "and free".to_owned()][..], &[]]);
    }

    #[test]
    fn an_item_is_parked_while_nobody_has_answered_its_last_question() {
        for (below, parked) in [
            ("", None),
            ("  ? Which port?\n", Some("Which port?")),
            ("\t?  which   port \r\n", Some("which port")),
            ("  > a note\n\n    ? Which port?\n  > another note\n", Some("Which port?")),
            ("  ? Which port?\n  ! 8042\n", None),
            ("  ? Which port?\n  > 80 is taken\n\n  ! 8042\n  ! or 8043\n", None),
            ("  ? Which port?\n  ! 8042\n  ? And which host?\n", Some("And which host?")),
            ("  ? Which port?\n  ? And which host?\n  ! localhost\n", None),
            // An answer comes below its question.
            ("  ! 8042\n  ? Which port?\n", Some("Which port?")),
            ("  ? Which port?\n  !\n  ! \n", Some("Which port?")),
            ("  ? Which port?\n  ![picture](a.png)\n", Some("Which port?")),
            ("  ? Which port?\n! not indented\n", Some("Which port?")),
            // No questions.
            ("? not indented\n", None),
            ("  ?\n  ? \n  ?x=1\n", None),
            ("  ```\n  ? an example\n  ```\n", None),
            ("  ? Which port?\n  ```\n  ! an example\n  ```\n", Some("Which port?")),
        ] {
            let todo = TodoList::parse(&format!("- [ ] one\n{below}- [ ] two\n"));
            let expected: Vec<(&str, &str)> = parked.into_iter().map(|question| ("one", question)).collect();
            assert_eq!(todo.parked(), expected, "{below:?}");
            assert_eq!(todo.free().len(), 2 - expected.len(), "{below:?}");
            assert_eq!(todo.open(), ["one", "two"], "{below:?}");
        }
        let ticked = TodoList::parse("- [x] one\n  ? Which port?\n- [ ] two\n");
        assert_eq!((ticked.parked(), ticked.free()), (vec![], vec!["two".to_owned()]));
    }

    #[test]
    fn an_item_that_is_there_twice_is_free_while_one_line_of_it_is() {
        let twice = TodoList::parse("- [ ] one\n  ? Which port?\n- [ ] one\n");
        assert_eq!((twice.parked(), twice.free().len()), (vec![], 2));
        let both = TodoList::parse("- [ ] one\n  ? Which port?\n- [x] one\n");
        assert_eq!((both.parked(), both.free()), (vec![("one", "Which port?")], Vec::new()));
    }

    #[test]
    fn a_question_belongs_to_the_item_above_it_also_to_a_part_of_one() {
        let todo = TodoList::parse("  ? nobody's\n- [ ] one\n  - [ ] a part\n    ? Which port?\n  ! 8042?\n");
        assert!(todo.parked().is_empty());
        assert_eq!(
            todo.items[1].questions,
            [Question { text: "Which port?".to_owned(), answers: vec!["8042?".to_owned()] }]
        );
        assert!(todo.items[0].questions.is_empty());
    }

    #[test]
    fn a_rendered_list_reads_back_as_itself() {
        let todo = TodoList::parse("- [ ] a\n  > found\n  ? Why?\n  ! So.\n  ? And how?\n- [x] b\n");
        assert_eq!(TodoList::parse(&todo.render()), todo);
    }
}
