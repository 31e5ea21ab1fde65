//! Can a run begin with this plan? A run of a plan without an item would cost money and do nothing, and one of a plan with lines
//! that only look like items would end as completed without them.
//!
//! A list whose items are all ticked is no error: the objective may be another one, and sessions may add items.

use plimsoll_domain::TodoList;
use plimsoll_domain::checkbox::UnclearLine;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::todo_without_boxes::{Lookalike, lookalikes};
use std::fmt::Write as _;

/// Why a run cannot begin with a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Nothing is in the file.
    Empty,
    /// No line has a box; these look like items.
    NoItems(Vec<Lookalike>),
    /// These lines look like items and are none.
    Unclear(Vec<UnclearLine>),
    /// The number of items, which are all ticked: the user is told.
    AllTicked(usize),
}

/// How many lines are named at most.
const LINES_NAMED: usize = 5;
/// How many lines that look like items are named at most: each has to be looked at.
const UNCLEAR_NAMED: usize = 20;
/// How much of a line is shown.
const LINE_SHOWN: usize = 80;

/// Why a run cannot begin with this plan; none if it can.
pub fn unfit(text: &str) -> Option<Unfit> {
    unfit_list(&TodoList::parse(text), text)
}

/// The same where the text has been read already.
pub fn unfit_list(list: &TodoList, text: &str) -> Option<Unfit> {
    match list.items.len() {
        0 if text.trim().is_empty() => Some(Unfit::Empty),
        _ if !list.unclear.is_empty() => Some(Unfit::Unclear(list.unclear.clone())),
        0 => Some(Unfit::NoItems(lookalikes(text))),
        known => list.items.iter().all(|item| item.done).then_some(Unfit::AllTicked(known)),
    }
}

/// What is wrong with the list, and what to do. `named` is true if the user named the file with `--todo`.
pub fn words(unfit: &Unfit, file: &str, named: bool) -> String {
    let shown = one_line(file);
    let without = if named {
        "for a run without a plan leave out --todo".to_owned()
    } else {
        format!("for a run without a plan rename it: mv {0} notes-{0}", shell_word(file))
    };
    match unfit {
        Unfit::Empty => {
            format!("the plan {shown} is empty: write `- [ ] …` lines, one for each item; {without}")
        }
        Unfit::NoItems(lines) if lines.is_empty() => {
            format!("the plan {shown} has no item: write `- [ ] …` lines, one for each item; {without}")
        }
        Unfit::NoItems(lines) => {
            let fix = format!("to add the checkboxes: {}", fix_command(file, named));
            format!(
                "the plan {shown} has no item; these lines look like items without a checkbox (`- [ ] …`):\n{}{fix}\n{without}",
                list(&shown, lines.iter().map(|line| (line.line, line.text.as_str())), LINES_NAMED)
            )
        }
        Unfit::Unclear(lines) => {
            let what = if lines.len() == 1 {
                "a line that looks like an item and is"
            } else {
                "lines that look like items and are"
            };
            let named_lines = lines.iter().map(|line| (line.line, line.text.as_str()));
            format!(
                "the plan {shown} has {what} none, so nobody would do it:\n{}to rewrite: {}\nto keep a line as text: write `\\[` for `[`",
                list(&shown, named_lines, UNCLEAR_NAMED),
                fix_command(file, named)
            )
        }
        Unfit::AllTicked(count) => {
            let what = if *count == 1 {
                "the only item".to_owned()
            } else {
                format!("all {}", counted(*count, "item"))
            };
            let verb = if *count == 1 { "is" } else { "are" };
            format!(
                "{what} of {shown} {verb} ticked, so no session has an item to work on: add `- [ ] …` lines; {without}"
            )
        }
    }
}

/// The lines that `plimsoll plan --fix` cannot rewrite, and what to do.
pub fn by_hand_words(lines: &[UnclearLine], file: &str) -> String {
    let shown = one_line(file);
    let named = list(&shown, lines.iter().map(|line| (line.line, line.text.as_str())), UNCLEAR_NAMED);
    format!(
        "{} of {shown} cannot be rewritten, because they are in a table, in a code fence or comment that nothing closes, or above their words:\n{named}write them as `- [ ] …` lines, or close the fence",
        counted(lines.len(), "line")
    )
}

/// The first lines, each with its number.
fn list<'a>(file: &str, lines: impl ExactSizeIterator<Item = (usize, &'a str)>, most: usize) -> String {
    let rest = lines.len().saturating_sub(most);
    let mut text = String::new();
    for (number, line) in lines.take(most) {
        let words = clip(&one_line(&one_line(line)), LINE_SHOWN);
        let _ = writeln!(text, "  {file}:{number}: {words}");
    }
    if rest > 0 {
        let _ = writeln!(text, "  and {rest} more");
    }
    text
}

/// Why a run whose open items are all done does not end as completed: lines of its plan look like items and are none. None if
/// there are no such lines, or if an item is open.
pub fn unclear_at_end(list: &TodoList, file: &str) -> Option<String> {
    let (first, rest) = list.unclear.split_first()?;
    if list.items.iter().any(|item| !item.done) {
        return None;
    }
    let named = rest
        .iter()
        .take(LINES_NAMED - 1)
        .fold(shown_line(first), |text, line| format!("{text}, {}", shown_line(line)));
    let more = rest.len().saturating_sub(LINES_NAMED - 1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (what, them) = if rest.is_empty() {
        ("a line that looks like an item and is", "it")
    } else {
        ("lines that look like items and are", "them")
    };
    Some(format!(
        "{} has {what} none: {named}{more}; rewrite {them} with `{}`, then resume",
        one_line(file),
        fix_command(file, file != DEFAULT_PLAN)
    ))
}

fn shown_line(line: &UnclearLine) -> String {
    format!("line {} \"{}\"", line.line, clip(&one_line(&line.text), LINE_SHOWN))
}

/// The command that makes boxes of the lines.
fn fix_command(file: &str, named: bool) -> String {
    if named {
        format!("plimsoll plan --fix --todo {}", shell_word(file))
    } else {
        "plimsoll plan --fix".to_owned()
    }
}

/// A text as one word of a shell's command line.
pub fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./,:=@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_with_an_open_item_is_fit() {
        let line = |line, text: &str| Lookalike { line, text: text.to_owned() };
        let unclear =
            |line, text: &str, item: &str| UnclearLine { line, text: text.to_owned(), item: item.to_owned() };
        for (text, expected) in [
            ("- [ ] one\n", None),
            ("- [x] one\n- [ ] two\n", None),
            ("- [ ] one\n1. two\n", None),
            ("", Some(Unfit::Empty)),
            (" \n\t\n", Some(Unfit::Empty)),
            ("Make it good.\n", Some(Unfit::NoItems(vec![]))),
            ("```\n- [ ] example\n```\n", Some(Unfit::NoItems(vec![]))),
            ("# Plan\n1. one\n2. two\n", Some(Unfit::NoItems(vec![line(2, "1. one"), line(3, "2. two")]))),
            ("- [x] one\n- [X] two\n", Some(Unfit::AllTicked(2))),
            ("- [ ] one\n- [-] two\n", Some(Unfit::Unclear(vec![unclear(2, "- [-] two", "two")]))),
            ("- [] one\n", Some(Unfit::Unclear(vec![unclear(1, "- [] one", "one")]))),
        ] {
            assert_eq!(unfit(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_words_name_the_lines_and_a_command_that_can_be_copied() {
        let text: String = (1..=8).map(|number| format!("{number}. do {number}\n")).collect();
        let unfit = unfit(&text).expect("no item");
        assert_eq!(
            words(&unfit, "fix_plan.md", false),
            "the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):\n  \
             fix_plan.md:1: 1. do 1\n  fix_plan.md:2: 2. do 2\n  fix_plan.md:3: 3. do 3\n  fix_plan.md:4: 4. do 4\n  \
             fix_plan.md:5: 5. do 5\n  and 3 more\nto add the checkboxes: plimsoll plan --fix\n\
             for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md"
        );
        insta::assert_snapshot!(words(&unfit, "my plan.md", true), @"
        the plan my plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
          my plan.md:1: 1. do 1
          my plan.md:2: 2. do 2
          my plan.md:3: 3. do 3
          my plan.md:4: 4. do 4
          my plan.md:5: 5. do 5
          and 3 more
        to add the checkboxes: plimsoll plan --fix --todo 'my plan.md'
        for a run without a plan leave out --todo
        ");
        let five = words(&Unfit::NoItems(lookalikes("* a\n* b\n* c\n* d\n* e\n")), "a", false);
        insta::assert_snapshot!(five, @"
        the plan a has no item; these lines look like items without a checkbox (`- [ ] …`):
          a:1: * a
          a:2: * b
          a:3: * c
          a:4: * d
          a:5: * e
        to add the checkboxes: plimsoll plan --fix
        for a run without a plan rename it: mv a notes-a
        ");
    }

    #[test]
    fn what_stands_in_the_file_steers_no_terminal() {
        let shown = words(&Unfit::NoItems(lookalikes("* a\u{1b}[2Jb\n")), "fix_plan.md", false);
        insta::assert_snapshot!(shown, @r"
        the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
          fix_plan.md:1: * a\u{1b}[2Jb
        to add the checkboxes: plimsoll plan --fix
        for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
        ");
    }

    #[test]
    fn lines_that_only_look_like_items_are_named_with_a_command_that_can_be_copied() {
        // As many lines as are named, and two more.
        let text: String = (1..=22).map(|number| format!("- [-] do {number}\n")).collect();
        let many = words(&unfit(&format!("- [ ] one\n{text}")).expect("unclear lines"), "my plan.md", true);
        insta::assert_snapshot!(many, @r"
        the plan my plan.md has lines that look like items and are none, so nobody would do it:
          my plan.md:2: - [-] do 1
          my plan.md:3: - [-] do 2
          my plan.md:4: - [-] do 3
          my plan.md:5: - [-] do 4
          my plan.md:6: - [-] do 5
          my plan.md:7: - [-] do 6
          my plan.md:8: - [-] do 7
          my plan.md:9: - [-] do 8
          my plan.md:10: - [-] do 9
          my plan.md:11: - [-] do 10
          my plan.md:12: - [-] do 11
          my plan.md:13: - [-] do 12
          my plan.md:14: - [-] do 13
          my plan.md:15: - [-] do 14
          my plan.md:16: - [-] do 15
          my plan.md:17: - [-] do 16
          my plan.md:18: - [-] do 17
          my plan.md:19: - [-] do 18
          my plan.md:20: - [-] do 19
          my plan.md:21: - [-] do 20
          and 2 more
        to rewrite: plimsoll plan --fix --todo 'my plan.md'
        to keep a line as text: write `\[` for `[`
        ");
        assert_eq!(
            words(&unfit("- [ ] one\n- [] a\u{1b}b\n").expect("an unclear line"), "fix_plan.md", false),
            "the plan fix_plan.md has a line that looks like an item and is none, so nobody would do it:\n  \
             fix_plan.md:2: - [] a\\u{1b}b\nto rewrite: plimsoll plan --fix\nto keep a line as text: write `\\[` for `[`"
        );
    }

    #[test]
    fn unclear_lines_count_at_the_end_once_nothing_is_open() {
        let at_end = |text: &str| unclear_at_end(&TodoList::parse(text), "fix_plan.md");
        assert_eq!(at_end("- [x] one\n"), None);
        assert_eq!(at_end("- [x] one\n- [ ] two\n- [-] three\n"), None, "a session has work");
        assert_eq!(
            at_end("- [x] one\n- [-] three\n").as_deref(),
            Some(
                "fix_plan.md has a line that looks like an item and is none: line 2 \"- [-] three\"; rewrite it with `plimsoll plan --fix`, then resume"
            )
        );
        let many = at_end(&"- [] a\n".repeat(7)).expect("unclear lines");
        insta::assert_snapshot!(many, @r#"fix_plan.md has lines that look like items and are none: line 1 "- [] a", line 2 "- [] a", line 3 "- [] a", line 4 "- [] a", line 5 "- [] a" and 2 more; rewrite them with `plimsoll plan --fix`, then resume"#);
    }

    #[test]
    fn one_ticked_item_is_one() {
        insta::assert_snapshot!(words(&Unfit::AllTicked(1), "fix_plan.md", false), @"the only item of fix_plan.md is ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
        insta::assert_snapshot!(words(&Unfit::AllTicked(3), "fix_plan.md", false), @"all 3 items of fix_plan.md are ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
    }
}
