//! Edits the text of a plan: adds questions, answers and notes, and changes ticks. All other bytes of the
//! file are kept.

use crate::markdown_lines::MarkdownLine;
use crate::question::{OpenQuestion, parse_answer_line, parse_question_line};
use crate::text::{to_safe_single_line, truncate_end};
use crate::todo::{PlanLineRole, PlanLinesWithRoles, TodoList};
use std::collections::{BTreeMap, HashSet};

/// The maximum length of a line that is written (a question, a note or a line of an answer), in characters.
const MAX_LINE_CHARS: usize = 1_000;
/// The maximum number of lines that are written for one answer, or for one call with notes.
const MAX_LINES: usize = 40;

/// An item of a plan with the lines that belong to it. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ItemBlock {
    /// The text of the item.
    item_text: String,
    /// True if the item is ticked.
    is_ticked: bool,
    /// The line of the item, and the last line that belongs to it.
    first_and_last_line: (usize, usize),
    /// The prefix of a line that belongs to the item.
    indent: String,
    /// The line and the text of the item's last question, if it is not answered.
    open_question: Option<(usize, String)>,
}

/// Returns the plan with a question below the first line of this item that is open and waits for no answer.
/// Returns `None` if there is no such line. Line breaks and control characters of the question are removed.
pub fn add_question_to_unparked_open_item(plan: &[u8], item: &str, question: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let block = parse_item_blocks(&text).into_iter().find(|candidate| {
        !candidate.is_ticked && candidate.item_text == item && candidate.open_question.is_none()
    })?;
    Some(insert_lines_into_block(plan, &block, &[render_question_line(&block, question)]))
}

/// Returns the plan with these notes below the first line of this item. Notes that the item already has are
/// skipped, even if they differ in white space. Returns `None` if there is no new note or no such item.
pub fn add_new_notes_to_item(plan: &[u8], item: &str, notes: &[String]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let block = parse_item_blocks(&text).into_iter().find(|candidate| candidate.item_text == item)?;
    let indent = &block.indent;
    let normalize_note = |note: &String| truncate_end(&to_safe_single_line(note), MAX_LINE_CHARS);
    let matching_items =
        TodoList::parse(&text).items.into_iter().filter(|parsed_item| parsed_item.text == item);
    let mut existing_notes: HashSet<String> =
        matching_items.flat_map(|parsed_item| parsed_item.notes).map(|note| normalize_note(&note)).collect();
    let new_notes =
        notes.iter().map(normalize_note).filter(|note| existing_notes.insert(note.clone())).take(MAX_LINES);
    let new_lines: Vec<String> = new_notes.map(|note| format!("{indent}> {note}")).collect();
    (!new_lines.is_empty()).then(|| insert_lines_into_block(plan, &block, &new_lines))
}

/// Returns the plan with an answer below an open question. Returns `None` if the item no longer has that open
/// question, or if the answer is empty.
pub fn add_answer_to_open_question(
    plan: &[u8],
    asked_question: &OpenQuestion,
    answer: &str,
) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let line_of_open_question = |block: &ItemBlock| {
        let is_asked_question =
            |question_text: &str| OpenQuestion::clip_question(question_text) == asked_question.question;
        let open_question = block
            .open_question
            .as_ref()
            .filter(|_| !block.is_ticked && block.item_text == asked_question.item);
        open_question.filter(|(_, question_text)| is_asked_question(question_text)).map(|(line, _)| *line)
    };
    let question_line = parse_item_blocks(&text).iter().find_map(line_of_open_question)?;
    let indent = line_indent(&text, question_line);
    let answer_lines = answer.lines().map(to_safe_single_line).filter(|answer_line| !answer_line.is_empty());
    let lines: Vec<String> = answer_lines
        .take(MAX_LINES)
        .map(|answer_line| format!("{indent}! {}", truncate_end(&answer_line, MAX_LINE_CHARS)))
        .collect();
    (!lines.is_empty()).then(|| insert_lines_below(plan, question_line, &lines))
}

/// Returns the plan with these items unticked. Returns `None` if none of them is ticked.
pub fn untick_items(plan: &[u8], items: &[String]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let is_ticked_item = |block: &&ItemBlock| block.is_ticked && items.contains(&block.item_text);
    let unticked_marks = parse_item_blocks(&text)
        .iter()
        .filter(is_ticked_item)
        .map(|block| (block.first_and_last_line.0, b' '))
        .collect();
    set_checkbox_marks_on_lines(plan, &unticked_marks)
}

/// Returns the plan with these items unticked and this question below each of them. Returns `None` if none of
/// them is ticked, so that a retry after a kill does not repeat a question that the user may have answered.
pub fn untick_items_and_add_question(plan: &[u8], items: &[String], question: &str) -> Option<Vec<u8>> {
    let unticked = untick_items(plan, items)?;
    let text = String::from_utf8_lossy(plan);
    let ticked_blocks: Vec<ItemBlock> = parse_item_blocks(&text)
        .into_iter()
        .filter(|block| block.is_ticked && items.contains(&block.item_text))
        .collect();
    // From the last item to the first, because an inserted line changes the numbers of all lines below it.
    Some(ticked_blocks.iter().rev().fold(unticked, |plan, block| {
        insert_lines_into_block(&plan, block, &[render_question_line(block, question)])
    }))
}

/// Returns the plan with these questions below the open items on these lines, counted from 1. Items that
/// already wait for an answer are skipped.
pub(crate) fn add_questions_to_unparked_items_on_lines(
    plan: &str,
    questions_by_line_number: &[(usize, String)],
) -> String {
    let questions_by_line_index: BTreeMap<usize, &str> =
        questions_by_line_number.iter().map(|(line, question)| (*line - 1, question.as_str())).collect();
    let blocks = parse_item_blocks(plan);
    // From the last item to the first, because an inserted line changes the numbers of all lines below it.
    let new_plan = blocks.iter().rev().fold(plan.as_bytes().to_vec(), |plan, block| {
        let question = questions_by_line_index
            .get(&block.first_and_last_line.0)
            .filter(|_| !block.is_ticked && block.open_question.is_none());
        match question {
            Some(question) => insert_lines_into_block(&plan, block, &[render_question_line(block, question)]),
            None => plan,
        }
    });
    String::from_utf8_lossy(&new_plan).into_owned()
}

fn render_question_line(block: &ItemBlock, question: &str) -> String {
    format!("{}? {}", block.indent, truncate_end(&to_safe_single_line(question), MAX_LINE_CHARS))
}

/// Sets the ticks of these items, each a pair of its text and true for ticked. Items with the same text are
/// matched with their lines in order. Returns `None` if nothing changes.
pub fn set_item_ticks(plan: &[u8], items_with_ticks: &[(&str, bool)]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let mut remaining_items: Vec<(&str, bool)> = items_with_ticks.to_vec();
    let mut changed_marks = BTreeMap::new();
    for block in parse_item_blocks(&text) {
        let Some(position) = remaining_items.iter().position(|(item, _)| *item == block.item_text) else {
            continue;
        };
        let (_, should_be_ticked) = remaining_items.remove(position);
        if should_be_ticked != block.is_ticked {
            changed_marks.insert(block.first_and_last_line.0, if should_be_ticked { b'x' } else { b' ' });
        }
    }
    set_checkbox_marks_on_lines(plan, &changed_marks)
}

/// Returns for each of these items whether its line in the plan is ticked, or `None` if it has no line. Items with the same text are
/// matched with their lines in order, as by [`set_item_ticks`].
pub fn read_item_ticks(plan: &[u8], item_texts: &[&str]) -> Vec<Option<bool>> {
    let mut ticks = vec![None; item_texts.len()];
    for block in parse_item_blocks(&String::from_utf8_lossy(plan)) {
        let matching_item =
            (0..item_texts.len()).find(|item| ticks[*item].is_none() && item_texts[*item] == block.item_text);
        if let Some(item) = matching_item {
            ticks[item] = Some(block.is_ticked);
        }
    }
    ticks
}

/// Writes these marks into the checkboxes of these lines. Returns `None` if there are no marks.
fn set_checkbox_marks_on_lines(plan: &[u8], marks_by_line_index: &BTreeMap<usize, u8>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(plan.len());
    for (line_index, line) in plan.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let line_start = bytes.len();
        bytes.extend_from_slice(line);
        // The checkbox of an item begins with the first bracket of its line.
        let mark_index =
            line.iter().position(|byte| *byte == b'[').map(|bracket_index| line_start + bracket_index + 1);
        if let Some(mark) = marks_by_line_index.get(&line_index)
            && let Some(byte) = mark_index.and_then(|index| bytes.get_mut(index))
        {
            *byte = *mark;
        }
    }
    (!marks_by_line_index.is_empty()).then_some(bytes)
}

/// Parses the items of a plan with the lines that belong to them: the indented lines directly below, and later
/// questions and answers.
fn parse_item_blocks(text: &str) -> Vec<ItemBlock> {
    let mut blocks: Vec<ItemBlock> = Vec::new();
    for (line, role) in PlanLinesWithRoles::new(text) {
        let line_index = line.line_index;
        let text_below = match role {
            PlanLineRole::Item(item) => {
                let (lines, indent) = ((line_index, line_index), indent_for_lines_below(&line));
                blocks.push(ItemBlock {
                    item_text: item.text,
                    is_ticked: item.is_ticked,
                    first_and_last_line: lines,
                    indent,
                    open_question: None,
                });
                continue;
            }
            PlanLineRole::DetailLine(detail_text) => detail_text,
            PlanLineRole::Other => continue,
        };
        let Some(block) = blocks.last_mut() else { continue };
        let is_indented = text_below.starts_with([' ', '\t']) && !text_below.trim().is_empty();
        let continues_item = is_indented && block.first_and_last_line.1 + 1 == line_index;
        if let Some(question_text) = parse_question_line(text_below) {
            block.open_question = Some((line_index, question_text));
            block.first_and_last_line.1 = line_index;
        } else if parse_answer_line(text_below).is_some() {
            block.open_question = None;
            block.first_and_last_line.1 = line_index;
        } else if continues_item {
            block.first_and_last_line.1 = line_index;
        }
    }
    blocks
}

/// Returns the prefix of a line that belongs to this item: the block quote markers, and spaces up to the column in
/// which the text of the item begins.
fn indent_for_lines_below(line: &MarkdownLine<'_>) -> String {
    let marker_column = line.list_marker_start.unwrap_or(line.text_start);
    let prefix = line.text[..marker_column].trim_start_matches('\u{feff}');
    let indent_width = line.text[marker_column..line.text_start].chars().count();
    format!("{prefix}{}", " ".repeat(indent_width))
}

/// Returns the indentation of a line: its spaces, tabs and block quote markers.
fn line_indent(text: &str, line_index: usize) -> String {
    let line = text.lines().nth(line_index).unwrap_or_default();
    line.chars().take_while(|character| matches!(character, ' ' | '\t' | '>')).collect()
}

/// Inserts lines at the end of an item's block. A paragraph below would become part of the item if it continues an inserted
/// line, and what follows it could become an item. If the items would change in that way, the lines are inserted further up.
fn insert_lines_into_block(plan: &[u8], block: &ItemBlock, lines: &[String]) -> Vec<u8> {
    let items_with_ticks = |blocks: &[ItemBlock]| -> Vec<(String, bool)> {
        blocks.iter().map(|block| (block.item_text.clone(), block.is_ticked)).collect()
    };
    let original_items = items_with_ticks(&parse_item_blocks(&String::from_utf8_lossy(plan)));
    let is_question = lines.first().is_some_and(|line| parse_question_line(line).is_some());
    let (first_line, last_line) = block.first_and_last_line;
    let new_plan_if_items_are_kept = |line_index: usize| {
        let new_plan = insert_lines_below(plan, line_index, lines);
        let blocks = parse_item_blocks(&String::from_utf8_lossy(&new_plan));
        // An answer below would answer an inserted question.
        let mut open_questions = blocks.iter().filter_map(|block| block.open_question.as_ref());
        let is_question_open = open_questions.any(|(line, _)| *line == line_index + 1);
        (items_with_ticks(&blocks) == original_items && (is_question_open || !is_question))
            .then_some(new_plan)
    };
    (first_line..=last_line)
        .rev()
        .find_map(new_plan_if_items_are_kept)
        .unwrap_or_else(|| insert_lines_below(plan, last_line, lines))
}

/// Inserts lines below a line (counted from 0), with the same line ending.
// It works on bytes, because a plan that is not UTF-8 must keep its bytes. Line numbers are the same in the lossy
// text.
fn insert_lines_below(plan: &[u8], index_of_line_above: usize, new_lines: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(plan.len() + 200);
    for (line_index, line) in plan.split_inclusive(|byte| *byte == b'\n').enumerate() {
        bytes.extend_from_slice(line);
        let line_ending: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        // If the last line of the file has no line ending, the last inserted line gets none either.
        let lacks_line_ending = !line.ends_with(b"\n");
        for new_line in new_lines.iter().filter(|_| line_index == index_of_line_above) {
            let (ending_before, ending_after) =
                if lacks_line_ending { (line_ending, &b""[..]) } else { (&b""[..], line_ending) };
            bytes.extend([ending_before, new_line.as_bytes(), ending_after].concat());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open_question(item: &str, question: &str) -> OpenQuestion {
        let (item, question) = (item.to_owned(), OpenQuestion::clip_question(question));
        OpenQuestion { item, question, ..OpenQuestion::default() }
    }

    #[test]
    fn ticks_are_read_as_they_are_set() {
        let plan = b"- [ ] one\n- [x] twice\n- [ ] twice\n- [ ] two\n";
        let texts = ["two", "twice", "twice", "gone", "one", "twice"];
        let expected = [Some(false), Some(true), Some(false), None, Some(false), None];
        assert_eq!(read_item_ticks(plan, &texts), expected);
        let ticked: Vec<(&str, bool)> = texts.iter().map(|text| (*text, true)).collect();
        let ticked_plan = set_item_ticks(plan, &ticked).unwrap();
        let expected = expected.map(|tick| tick.map(|_| true));
        assert_eq!(read_item_ticks(&ticked_plan, &texts), expected);
    }

    #[test]
    fn notes_are_written_once_below_their_item() {
        let plan = "- [x] one\n  > old\n  more\n- [ ] two";
        let add_notes = |plan: &str, item: &str, notes: &[&str]| {
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            add_new_notes_to_item(plan.as_bytes(), item, &notes)
                .map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let plan_with_notes = add_notes(plan, "one", &["old", "new\n- [x] two"]).unwrap();
        assert_eq!(plan_with_notes, "- [x] one\n  > old\n  more\n  > new - [x] two\n- [ ] two");
        assert_eq!(add_notes(&plan_with_notes, "one", &["old", "new\n- [x] two"]), None);
        assert_eq!(add_notes(plan, "two", &["a"]).unwrap(), format!("{plan}\n  > a"));
        // Neither a note with other white space nor a repeated note is written twice.
        let plan_with_other_form = "- [ ] one\n\t>  old   note\n\n    > late\n";
        assert_eq!(add_notes(plan_with_other_form, "one", &["old note", "late"]), None);
        assert_eq!(add_notes("- [ ] one\n", "one", &["a", " a"]).unwrap(), "- [ ] one\n  > a\n");
        assert_eq!(add_notes(plan, "three", &["a"]), None);
    }

    #[test]
    fn ticks_are_set_as_given_and_matched_in_order() {
        let plan = "# P\r\n- [x] one\r\n- [ ] same\n  > [note]\n* [ ] same\n```\n- [ ] two\n```\n- [ ] two\n- [x] new";
        let set = |items: &[(&str, bool)]| {
            set_item_ticks(plan.as_bytes(), items).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let items = [("one", false), ("same", false), ("same", true), ("two", true), ("gone", true)];
        let expected = "# P\r\n- [ ] one\r\n- [ ] same\n  > [note]\n* [x] same\n```\n- [ ] two\n```\n- [x] two\n- [x] new";
        assert_eq!(set(&items).as_deref(), Some(expected));
        assert_eq!(set(&[("one", true), ("two", false)]), None);
    }

    fn add_port_question(plan: &str) -> Option<String> {
        add_question_to_unparked_open_item(plan.as_bytes(), "two", "Which port?")
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn add_port_answer(plan: &str) -> Option<String> {
        let bytes =
            add_answer_to_open_question(plan.as_bytes(), &open_question("two", "Which port?"), "8042");
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_question_is_inserted_below_all_lines_of_its_item() {
        for (before, after) in [
            ("- [ ] one\n- [ ] two\n- [ ] three\n", "- [ ] one\n- [ ] two\n  ? Which port?\n- [ ] three\n"),
            (
                "- [ ] two\n  and more\n  > a note\n\ntext\n",
                "- [ ] two\n  and more\n  > a note\n  ? Which port?\n\ntext\n",
            ),
            (
                "- [ ] two\n  ? Who?\n\n  ! Me\n- [ ] x\n",
                "- [ ] two\n  ? Who?\n\n  ! Me\n  ? Which port?\n- [ ] x\n",
            ),
            ("- [ ] one\n\t- [ ] two\n", "- [ ] one\n\t- [ ] two\n\t  ? Which port?\n"),
            ("- [ ] two\r\n- [ ] three\r\n", "- [ ] two\r\n  ? Which port?\r\n- [ ] three\r\n"),
            ("- [ ] two", "- [ ] two\n  ? Which port?"),
            ("\u{feff}- [ ] two\n", "\u{feff}- [ ] two\n  ? Which port?\n"),
            ("- [ ] two\n  ```\n  code\n  ```\n", "- [ ] two\n  ? Which port?\n  ```\n  code\n  ```\n"),
            ("```\n- [ ] two\n```\n- [ ] two\n", "```\n- [ ] two\n```\n- [ ] two\n  ? Which port?\n"),
            ("- [x] two\n- [ ] two\n", "- [x] two\n- [ ] two\n  ? Which port?\n"),
        ] {
            assert_eq!(add_port_question(before).as_deref(), Some(after), "{before:?}");
        }
        for plan in ["", "- [x] two\n", "- [ ] twofold\n", "- [ ] two\n  ? Who?\n", "```\n- [ ] two\n```\n"] {
            assert_eq!(add_port_question(plan), None, "{plan:?}");
        }
    }

    #[test]
    fn an_answer_is_inserted_only_below_its_open_question() {
        for (before, after) in [
            (
                "- [ ] two\n  ? Which port?\n  > 80 is taken\n- [ ] three\n",
                "- [ ] two\n  ? Which port?\n  ! 8042\n  > 80 is taken\n- [ ] three\n",
            ),
            ("- [ ] two\n\t?  Which  port?\r\n", "- [ ] two\n\t?  Which  port?\r\n\t! 8042\r\n"),
            ("- [ ] two\n  ? Which port?", "- [ ] two\n  ? Which port?\n  ! 8042"),
            (
                "- [ ] one\n  ? Which port?\n- [ ] two\n  ? Which port?\n",
                "- [ ] one\n  ? Which port?\n- [ ] two\n  ? Which port?\n  ! 8042\n",
            ),
        ] {
            assert_eq!(add_port_answer(before).as_deref(), Some(after), "{before:?}");
        }
        for plan in [
            "- [ ] two\n",
            "- [x] two\n  ? Which port?\n",
            "- [ ] two\n  ? Which port?\n  ! 80\n",
            "- [ ] two\n  ? Which port?\n  ? Which host?\n",
            "- [ ] one\n  ? Which port?\n- [ ] two\n",
        ] {
            assert_eq!(add_port_answer(plan), None, "{plan:?}");
        }
    }

    #[test]
    fn inserted_text_is_sanitized_and_other_bytes_are_kept() {
        let plan = b"- [ ] two \xff\n\xfe\n- [ ] two\n";
        let asked = add_question_to_unparked_open_item(plan, "two", "a\n- [x] two\r\x1b[2J b").unwrap();
        let line = b"  ? a - [x] two \\u{1b}[2J b\n";
        assert_eq!(asked, [&plan[..], line].concat());
        let long = add_question_to_unparked_open_item(b"- [ ] two\n", "two", &"x".repeat(5_000)).unwrap();
        assert!(long.len() < MAX_LINE_CHARS + 30, "{}", long.len());
        let answer = add_answer_to_open_question(
            b"- [ ] two\n  ? q\n",
            &open_question("two", "q"),
            " one\r\n\n\x1b  two\n- [x] two",
        )
        .unwrap();
        assert_eq!(answer, b"- [ ] two\n  ? q\n  ! one\n  ! \\u{1b} two\n  ! - [x] two\n");
        assert_eq!(
            add_answer_to_open_question(b"- [ ] two\n  ? q\n", &open_question("two", "q"), " \n\t"),
            None
        );
        let long = format!("- [ ] two\n  ? {}\n", "x".repeat(900));
        let answer =
            add_answer_to_open_question(long.as_bytes(), &open_question("two", &"x".repeat(900)), "y");
        assert_eq!(
            answer.unwrap(),
            format!("{long}  ! y\n").into_bytes(),
            "also to a question of which a part is kept"
        );
    }

    #[test]
    fn unticking_changes_one_byte_of_each_ticked_line_of_the_item() {
        for (before, after) in [
            ("- [x] one\n- [x] two\n", Some("- [x] one\n- [ ] two\n")),
            ("\u{feff}* [X]  two \r\n  > [x] a note", Some("\u{feff}* [ ]  two \r\n  > [x] a note")),
            (
                "-\ta\n\t+ [x] two\n- [ ] two\n> 1. [X] two",
                Some("-\ta\n\t+ [ ] two\n- [ ] two\n> 1. [ ] two"),
            ),
            ("```\n- [x] two\n```\n- [x] two\n", Some("```\n- [x] two\n```\n- [ ] two\n")),
            ("- [x] twofold\n- [x] Two\n- [ ] two\n", None),
            ("", None),
        ] {
            let unticked = untick_items(before.as_bytes(), &["two".to_owned()]);
            assert_eq!(unticked.as_deref(), after.map(str::as_bytes), "{before:?}");
        }
        let unticked = untick_items(b"\xff\n- [x] two \xff\n", &["two \u{fffd}".to_owned()]);
        assert_eq!(unticked.as_deref(), Some(&b"\xff\n- [ ] two \xff\n"[..]));
    }

    #[test]
    fn a_tick_becomes_a_question_and_a_repeat_changes_nothing() {
        let items = ["one".to_owned(), "two".to_owned()];
        let plan = "- [x] one\n  > a note\n  ? Who?\n  ! You\n- [ ] two\n\t- [x] two\n- [x] three\n";
        let asked = untick_items_and_add_question(plan.as_bytes(), &items, "Is it\ndone?").unwrap();
        let text = String::from_utf8(asked.clone()).unwrap();
        let question = "? Is it done?\n";
        assert_eq!(
            text,
            format!(
                "- [ ] one\n  > a note\n  ? Who?\n  ! You\n  {question}- [ ] two\n\t- [ ] two\n\t  {question}- [x] three\n"
            )
        );
        assert_eq!(untick_items_and_add_question(&asked, &items, "Is it done?"), None);
        // An open question from before the tick does not replace the new one.
        let plan = b"- [x] one\n  ? Who?\n";
        let asked = untick_items_and_add_question(plan, &items, "Is it done?").unwrap();
        let todo = TodoList::parse(std::str::from_utf8(&asked).unwrap());
        assert_eq!(todo.parked_items_with_questions(), [("one", "Is it done?")]);
    }

    fn plan_text_strategy() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ \t]{0,3}- \\[[ x]\\] [ab]",
            "[ \t]{0,3}[?!>] ?[ab]{0,2}",
            "```|~~~|# [a-z]{1,3}|  [a-z]{1,3}|",
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        prop::collection::vec((line, end), 0..10)
            .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    #[test]
    fn a_question_makes_no_item_of_a_paragraph_below() {
        let plan = "- [ ] a\n\t>\n!\n\t- [x] b\n";
        let asked = add_question_to_unparked_open_item(plan.as_bytes(), "a", "Why now?").unwrap();
        let asked = String::from_utf8(asked).unwrap();
        let todo = TodoList::parse(&asked);
        assert_eq!((todo.open_items(), todo.ticked_items()), (vec!["a".to_owned()], vec![]), "{asked}");
        assert_eq!(todo.items[0].unanswered_question(), Some("Why now?"), "{asked}");
    }

    proptest! {
        #[test]
        fn unticking_opens_the_items_and_keeps_every_other_byte(text in plan_text_strategy()) {
            let before = TodoList::parse(&text);
            let items = ["a".to_owned()];
            let taken = untick_items(text.as_bytes(), &items).map(|bytes| String::from_utf8(bytes).unwrap());
            prop_assert_eq!(taken.is_some(), before.ticked_items().contains(&items[0]));
            let taken = taken.unwrap_or(text.clone());
            let after = TodoList::parse(&taken);
            prop_assert!(!after.ticked_items().contains(&items[0]));
            prop_assert_eq!(after.ticked_items(), before.ticked_items().into_iter().filter(|item| *item != items[0]).collect::<Vec<_>>());
            let changed = text.bytes().zip(taken.bytes()).filter(|(one, other)| one != other);
            prop_assert!(changed.into_iter().all(|(one, other)| (one, other) == (b'x', b' ')));
            prop_assert_eq!(text.len(), taken.len());
        }

        #[test]
        fn a_question_parks_its_item_and_an_answer_unparks_it(text in plan_text_strategy()) {
            let before = TodoList::parse(&text);
            for item in before.unparked_open_items() {
                let asked = add_question_to_unparked_open_item(text.as_bytes(), &item, "Why now?").unwrap();
                let asked = String::from_utf8(asked).unwrap();
                let todo = TodoList::parse(&asked);
                prop_assert!(todo.items.iter().any(|now| now.text == item && now.unanswered_question() == Some("Why now?")), "{}", asked);
                prop_assert_eq!((todo.open_items(), todo.ticked_items()), (before.open_items(), before.ticked_items()));
                let rest: Vec<&str> = asked.split_inclusive('\n').filter(|line| !line.contains("? Why now?")).collect();
                prop_assert_eq!(rest.concat(), text.clone());
                let answered = add_answer_to_open_question(asked.as_bytes(), &open_question(&item, "Why now?"), "So.").unwrap();
                let answered = String::from_utf8(answered).unwrap();
                prop_assert!(TodoList::parse(&answered).unparked_open_items().contains(&item), "{}", answered);
                let rest: Vec<&str> = answered.split_inclusive('\n').filter(|line| !line.contains("! So.")).collect();
                prop_assert_eq!(rest.concat(), asked);
            }
        }
    }
}
