//! Can a run begin with this plan? A run of a plan without an item would cost money and do nothing.
//!
//! A list whose items are all ticked is no error: the objective may be another one, and sessions may add items.

use plimsoll_domain::TodoList;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::todo_without_boxes::{Lookalike, lookalikes};
use std::fmt::Write as _;

/// Why a run cannot begin with a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Nothing is in the file.
    Empty,
    /// No line has a box; these look like items.
    NoItems(Vec<Lookalike>),
    /// The number of items, which are all ticked: the user is told.
    AllTicked(usize),
}

/// How many lines are named at most.
const LINES_NAMED: usize = 5;
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
                list(&shown, lines)
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

fn list(file: &str, lines: &[Lookalike]) -> String {
    let mut text = String::new();
    for line in lines.iter().take(LINES_NAMED) {
        let words = clip(&one_line(&one_line(&line.text)), LINE_SHOWN);
        let _ = writeln!(text, "  {file}:{}: {words}", line.line);
    }
    if let Some(rest @ 1..) = lines.len().checked_sub(LINES_NAMED) {
        let _ = writeln!(text, "  and {rest} more");
    }
    text
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
        let named = words(&unfit, "my plan.md", true);
        assert!(named.contains("plimsoll plan --fix --todo 'my plan.md'\n"), "{named}");
        assert!(named.ends_with("leave out --todo"), "{named}");
        let five = words(&Unfit::NoItems(lookalikes("* a\n* b\n* c\n* d\n* e\n")), "a", false);
        assert!(!five.contains("more"), "{five}");
    }

    #[test]
    fn what_stands_in_the_file_steers_no_terminal() {
        let shown = words(&Unfit::NoItems(lookalikes("* a\u{1b}[2Jb\n")), "fix_plan.md", false);
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }

    #[test]
    fn one_ticked_item_is_one() {
        let one = words(&Unfit::AllTicked(1), "fix_plan.md", false);
        assert!(
            one.starts_with("the only item of fix_plan.md is ticked, so no session has an item to work on"),
            "{one}"
        );
        let all = words(&Unfit::AllTicked(3), "fix_plan.md", false);
        assert!(all.starts_with("all 3 items of fix_plan.md are ticked"), "{all}");
    }
}
