//! Adds a question or an answer to the text of a plan, and takes ticks back. Everything else in the file stays as it is, byte for byte.

use crate::markdown_lines::MarkdownLine;
use crate::question::{OpenQuestion, answer, question};
use crate::text::{clip, one_line};
use crate::todo::{PlanEntry, PlanLines, TodoList};
use std::collections::{BTreeMap, HashSet};

/// How much of a question or of one line of an answer is written.
const LINE: usize = 1_000;
/// How many lines of an answer are written.
const LINES: usize = 40;

/// A question that waits for an answer, with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The item's words.
    item: String,
    /// True for a ticked item.
    done: bool,
    /// Its line, and the last line that belongs to it.
    lines: (usize, usize),
    /// What a line below it begins with.
    indent: String,
    /// The line of its last question, while that has no answer.
    open_question: Option<(usize, String)>,
}

/// The plan with a question below the first open line of this item; none if there is no such line. Control characters do
/// not get into the file, and no line break does.
pub fn with_question(plan: &[u8], item: &str, question: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let place = places(&text)
        .into_iter()
        .find(|place| !place.done && place.item == item && place.open_question.is_none())?;
    Some(insert(plan, place.lines.1, &[question_line(&place, question)]))
}

/// Returns the plan with these notes below the first line of this item. A note that is below the item already, in whatever form, is
/// not written again. Returns `None` without a new note, or without the item.
pub fn with_notes(plan: &[u8], item: &str, notes: &[String]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let place = places(&text).into_iter().find(|place| place.item == item)?;
    let (_, last) = place.lines;
    let indent = place.indent;
    let written = |note: &String| clip(&one_line(note), LINE);
    let items = TodoList::parse(&text).items.into_iter().filter(|known| known.text == item);
    let mut known: HashSet<String> = items.flat_map(|known| known.notes).map(|note| written(&note)).collect();
    let new = notes.iter().map(written).filter(|note| known.insert(note.clone())).take(LINES);
    let new: Vec<String> = new.map(|note| format!("{indent}> {note}")).collect();
    (!new.is_empty()).then(|| insert(plan, last, &new))
}

/// The plan with an answer below an open question; none if the item has no such open question any more.
pub fn with_answer(plan: &[u8], asked: &OpenQuestion, answer: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let line = |place: &Place| {
        let is_it = |words: &str| OpenQuestion::kept(words) == asked.question;
        let open = place.open_question.as_ref().filter(|_| !place.done && place.item == asked.item);
        open.filter(|(_, words)| is_it(words)).map(|(line, _)| *line)
    };
    let line = places(&text).iter().find_map(line)?;
    let indent = indent_of(&text, line);
    let words = answer.lines().map(one_line).filter(|words| !words.is_empty());
    let lines: Vec<String> =
        words.take(LINES).map(|words| format!("{indent}! {}", clip(&words, LINE))).collect();
    (!lines.is_empty()).then(|| insert(plan, line, &lines))
}

/// The plan with the boxes of these items empty again; none if none of them is ticked.
pub fn without_ticks(plan: &[u8], items: &[String]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let is_meant = |place: &&Place| place.done && items.contains(&place.item);
    let ticked = places(&text).iter().filter(is_meant).map(|place| (place.lines.0, b' ')).collect();
    with_boxes(plan, &ticked)
}

/// Returns the plan with the boxes of these items empty again, and this question below each of them. Returns `None` if none of
/// them is ticked: a repeat after a kill must not ask again what the user may have answered.
pub fn with_questions_for_ticks(plan: &[u8], items: &[String], question: &str) -> Option<Vec<u8>> {
    let unticked = without_ticks(plan, items)?;
    let text = String::from_utf8_lossy(plan);
    let ticked: Vec<Place> =
        places(&text).into_iter().filter(|place| place.done && items.contains(&place.item)).collect();
    // From the last one upwards: a new line moves only what is below it.
    Some(
        ticked
            .iter()
            .rev()
            .fold(unticked, |plan, place| insert(&plan, place.lines.1, &[question_line(place, question)])),
    )
}

/// Returns the plan with this question below the open items on these lines, counted from 1. An item that waits for an answer
/// already gets none.
pub(crate) fn with_questions_on_lines(plan: &str, lines: &[(usize, String)]) -> String {
    let questions: BTreeMap<usize, &str> =
        lines.iter().map(|(line, question)| (*line - 1, question.as_str())).collect();
    let ask = |place: Place| {
        let question =
            questions.get(&place.lines.0).filter(|_| !place.done && place.open_question.is_none())?;
        Some((place.lines.1, vec![question_line(&place, question)]))
    };
    let new: BTreeMap<usize, Vec<String>> = places(plan).into_iter().filter_map(ask).collect();
    String::from_utf8_lossy(&insert_all(plan.as_bytes(), &new)).into_owned()
}

fn question_line(place: &Place, question: &str) -> String {
    format!("{}? {}", place.indent, clip(&one_line(question), LINE))
}

/// The plan with the boxes of these items as they are said to be, whoever has ticked them: each with its words, and true for a
/// ticked one. Of several with the same words each line has its own. None if all are so already.
pub fn with_ticks(plan: &[u8], items: &[(&str, bool)]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(plan);
    let mut left: Vec<(&str, bool)> = items.to_vec();
    let mut changed = BTreeMap::new();
    for place in places(&text) {
        let Some(known) = left.iter().position(|(item, _)| *item == place.item) else { continue };
        let (_, is_done) = left.remove(known);
        if is_done != place.done {
            changed.insert(place.lines.0, if is_done { b'x' } else { b' ' });
        }
    }
    with_boxes(plan, &changed)
}

/// The plan with these marks in the boxes of these lines; none without any.
fn with_boxes(plan: &[u8], marks: &BTreeMap<usize, u8>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(plan.len());
    for (number, line) in plan.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let begins = bytes.len();
        bytes.extend_from_slice(line);
        // The box of an item is the first bracket of its line.
        let place = line.iter().position(|byte| *byte == b'[').map(|place| begins + place + 1);
        if let Some(mark) = marks.get(&number)
            && let Some(place) = place.and_then(|place| bytes.get_mut(place))
        {
            *place = *mark;
        }
    }
    (!marks.is_empty()).then_some(bytes)
}

/// The items of a plan with the lines that belong to them: indented ones that follow at once, and later ones that we read.
fn places(text: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (line, entry) in PlanLines::new(text) {
        let number = line.number;
        let below = match entry {
            PlanEntry::Item(found) => {
                let (lines, indent) = ((number, number), indent_below(&line));
                places.push(Place { item: found.text, done: found.done, lines, indent, open_question: None });
                continue;
            }
            PlanEntry::Below(below) => below,
            PlanEntry::Other => continue,
        };
        let Some(place) = places.last_mut() else { continue };
        let is_indented = below.starts_with([' ', '\t']) && !below.trim().is_empty();
        let follows = is_indented && place.lines.1 + 1 == number;
        if let Some(words) = question(below) {
            place.open_question = Some((number, words));
            place.lines.1 = number;
        } else if answer(below).is_some() {
            place.open_question = None;
            place.lines.1 = number;
        } else if follows {
            place.lines.1 = number;
        }
    }
    places
}

/// What a line below an item begins with, so that it belongs to the item: the marks of its block quotes, and blanks up to where
/// its text begins.
fn indent_below(line: &MarkdownLine<'_>) -> String {
    let marker = line.marker.unwrap_or(line.content);
    let prefix = line.text[..marker].trim_start_matches('\u{feff}');
    let blanks = line.text[marker..line.content].chars().count();
    format!("{prefix}{}", " ".repeat(blanks))
}

/// What a question begins with: blanks and tabs, behind the marks of block quotes.
fn indent_of(text: &str, number: usize) -> String {
    let line = text.lines().nth(number).unwrap_or_default();
    line.chars().take_while(|letter| matches!(letter, ' ' | '\t' | '>')).collect()
}

/// The bytes with lines below the one of this number, with its line end.
fn insert(plan: &[u8], number: usize, lines: &[String]) -> Vec<u8> {
    insert_all(plan, &BTreeMap::from([(number, lines.to_vec())]))
}

/// The bytes with lines below those of these numbers, each with the line end of the line above it.
// Bytes, because a plan that is not UTF-8 must keep its letters; a line has the same number in its lossy text.
fn insert_all(plan: &[u8], lines: &BTreeMap<usize, Vec<String>>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(plan.len() + 200);
    for (place, line) in plan.split_inclusive(|byte| *byte == b'\n').enumerate() {
        bytes.extend_from_slice(line);
        let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        // The last line of a file that does not end with a line break: nor does it afterwards.
        let is_cut = !line.ends_with(b"\n");
        for new in lines.get(&place).into_iter().flatten() {
            let (before, after) = if is_cut { (end, &b""[..]) } else { (&b""[..], end) };
            bytes.extend([before, new.as_bytes(), after].concat());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question_of(item: &str, question: &str) -> OpenQuestion {
        let (item, question) = (item.to_owned(), OpenQuestion::kept(question));
        OpenQuestion { item, question, ..OpenQuestion::default() }
    }

    #[test]
    fn notes_come_below_their_item_once() {
        let plan = "- [x] one\n  > old\n  more\n- [ ] two";
        let with = |plan: &str, item: &str, notes: &[&str]| {
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            with_notes(plan.as_bytes(), item, &notes).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let noted = with(plan, "one", &["old", "new\n- [x] two"]).unwrap();
        assert_eq!(noted, "- [x] one\n  > old\n  more\n  > new - [x] two\n- [ ] two");
        assert_eq!(with(&noted, "one", &["old", "new\n- [x] two"]), None);
        assert_eq!(with(plan, "two", &["a"]).unwrap(), format!("{plan}\n  > a"));
        // Also one that is there in another form, or twice in what is to be written.
        let formed = "- [ ] one\n\t>  old   note\n\n    > late\n";
        assert_eq!(with(formed, "one", &["old note", "late"]), None);
        assert_eq!(with("- [ ] one\n", "one", &["a", " a"]).unwrap(), "- [ ] one\n  > a\n");
        assert_eq!(with(plan, "three", &["a"]), None);
    }

    #[test]
    fn boxes_are_as_they_are_said_to_be_whoever_ticked_them() {
        let plan = "# P\r\n- [x] one\r\n- [ ] same\n  > [note]\n* [ ] same\n```\n- [ ] two\n```\n- [ ] two\n- [x] new";
        let set = |items: &[(&str, bool)]| {
            with_ticks(plan.as_bytes(), items).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let wanted = [("one", false), ("same", false), ("same", true), ("two", true), ("gone", true)];
        let expected = "# P\r\n- [ ] one\r\n- [ ] same\n  > [note]\n* [x] same\n```\n- [ ] two\n```\n- [x] two\n- [x] new";
        assert_eq!(set(&wanted).as_deref(), Some(expected));
        assert_eq!(set(&[("one", true), ("two", false)]), None);
    }

    fn asked(plan: &str) -> Option<String> {
        with_question(plan.as_bytes(), "two", "Which port?").map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn answered(plan: &str) -> Option<String> {
        let bytes = with_answer(plan.as_bytes(), &question_of("two", "Which port?"), "8042");
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_question_goes_below_all_that_belongs_to_its_item() {
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
            assert_eq!(asked(before).as_deref(), Some(after), "{before:?}");
        }
        for without in
            ["", "- [x] two\n", "- [ ] twofold\n", "- [ ] two\n  ? Who?\n", "```\n- [ ] two\n```\n"]
        {
            assert_eq!(asked(without), None, "{without:?}");
        }
    }

    #[test]
    fn an_answer_goes_below_its_question_and_nowhere_else() {
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
            assert_eq!(answered(before).as_deref(), Some(after), "{before:?}");
        }
        for gone in [
            "- [ ] two\n",
            "- [x] two\n  ? Which port?\n",
            "- [ ] two\n  ? Which port?\n  ! 80\n",
            "- [ ] two\n  ? Which port?\n  ? Which host?\n",
            "- [ ] one\n  ? Which port?\n- [ ] two\n",
        ] {
            assert_eq!(answered(gone), None, "{gone:?}");
        }
    }

    #[test]
    fn what_is_written_is_one_line_that_steers_nothing_and_other_bytes_stay() {
        let plan = b"- [ ] two \xff\n\xfe\n- [ ] two\n";
        let asked = with_question(plan, "two", "a\n- [x] two\r\x1b[2J b").unwrap();
        let line = b"  ? a - [x] two \\u{1b}[2J b\n";
        assert_eq!(asked, [&plan[..], line].concat());
        let long = with_question(b"- [ ] two\n", "two", &"x".repeat(5_000)).unwrap();
        assert!(long.len() < LINE + 30, "{}", long.len());
        let answer =
            with_answer(b"- [ ] two\n  ? q\n", &question_of("two", "q"), " one\r\n\n\x1b  two\n- [x] two")
                .unwrap();
        assert_eq!(answer, b"- [ ] two\n  ? q\n  ! one\n  ! \\u{1b} two\n  ! - [x] two\n");
        assert_eq!(with_answer(b"- [ ] two\n  ? q\n", &question_of("two", "q"), " \n\t"), None);
        let long = format!("- [ ] two\n  ? {}\n", "x".repeat(900));
        let answer = with_answer(long.as_bytes(), &question_of("two", &"x".repeat(900)), "y");
        assert_eq!(
            answer.unwrap(),
            format!("{long}  ! y\n").into_bytes(),
            "also to a question of which a part is kept"
        );
    }

    #[test]
    fn a_tick_that_is_taken_back_changes_one_byte_of_each_line_of_its_item() {
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
            let taken = without_ticks(before.as_bytes(), &["two".to_owned()]);
            assert_eq!(taken.as_deref(), after.map(str::as_bytes), "{before:?}");
        }
        let foreign = without_ticks(b"\xff\n- [x] two \xff\n", &["two \u{fffd}".to_owned()]);
        assert_eq!(foreign.as_deref(), Some(&b"\xff\n- [ ] two \xff\n"[..]));
    }

    #[test]
    fn a_tick_becomes_a_question_and_a_repeat_asks_nothing() {
        let items = ["one".to_owned(), "two".to_owned()];
        let plan = "- [x] one\n  > a note\n  ? Who?\n  ! You\n- [ ] two\n\t- [x] two\n- [x] three\n";
        let asked = with_questions_for_ticks(plan.as_bytes(), &items, "Is it\ndone?").unwrap();
        let text = String::from_utf8(asked.clone()).unwrap();
        let question = "? Is it done?\n";
        assert_eq!(
            text,
            format!(
                "- [ ] one\n  > a note\n  ? Who?\n  ! You\n  {question}- [ ] two\n\t- [ ] two\n\t  {question}- [x] three\n"
            )
        );
        assert_eq!(with_questions_for_ticks(&asked, &items, "Is it done?"), None);
        // An open question from before the tick is not the one that counts.
        let plan = b"- [x] one\n  ? Who?\n";
        let asked = with_questions_for_ticks(plan, &items, "Is it done?").unwrap();
        let todo = TodoList::parse(std::str::from_utf8(&asked).unwrap());
        assert_eq!(todo.parked(), [("one", "Is it done?")]);
    }

    fn lines() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ \t]{0,3}- \\[[ x]\\] [ab]",
            "[ \t]{0,3}[?!>] ?[ab]{0,2}",
            "```|~~~|# [a-z]{1,3}|  [a-z]{1,3}|",
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        prop::collection::vec((line, end), 0..10)
            .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    proptest! {
        #[test]
        fn ticks_that_are_taken_back_are_open_and_every_other_byte_stays(text in lines()) {
            let before = TodoList::parse(&text);
            let items = ["a".to_owned()];
            let taken = without_ticks(text.as_bytes(), &items).map(|bytes| String::from_utf8(bytes).unwrap());
            prop_assert_eq!(taken.is_some(), before.done().contains(&items[0]));
            let taken = taken.unwrap_or(text.clone());
            let after = TodoList::parse(&taken);
            prop_assert!(!after.done().contains(&items[0]));
            prop_assert_eq!(after.done(), before.done().into_iter().filter(|item| *item != items[0]).collect::<Vec<_>>());
            let changed = text.bytes().zip(taken.bytes()).filter(|(one, other)| one != other);
            prop_assert!(changed.into_iter().all(|(one, other)| (one, other) == (b'x', b' ')));
            prop_assert_eq!(text.len(), taken.len());
        }

        #[test]
        fn a_question_parks_its_item_and_an_answer_frees_it_and_every_other_byte_stays(text in lines()) {
            let before = TodoList::parse(&text);
            for item in before.free() {
                let asked = with_question(text.as_bytes(), &item, "Why now?").unwrap();
                let asked = String::from_utf8(asked).unwrap();
                let todo = TodoList::parse(&asked);
                prop_assert!(todo.items.iter().any(|now| now.text == item && now.open_question() == Some("Why now?")), "{}", asked);
                prop_assert_eq!((todo.open(), todo.done()), (before.open(), before.done()));
                let rest: Vec<&str> = asked.split_inclusive('\n').filter(|line| !line.contains("? Why now?")).collect();
                prop_assert_eq!(rest.concat(), text.clone());
                let answered = with_answer(asked.as_bytes(), &question_of(&item, "Why now?"), "So.").unwrap();
                let answered = String::from_utf8(answered).unwrap();
                prop_assert!(TodoList::parse(&answered).free().contains(&item), "{}", answered);
                let rest: Vec<&str> = answered.split_inclusive('\n').filter(|line| !line.contains("! So.")).collect();
                prop_assert_eq!(rest.concat(), asked);
            }
        }
    }
}
