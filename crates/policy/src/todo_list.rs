//! Checks whether a run can begin with a plan. With a plan without items a run would cost money and do nothing. With lines that
//! only look like items a run would end as completed without having done them.
//!
//! A plan whose items are all ticked is not an error: the objective may be a different one, and sessions may add items.

use plimsoll_domain::TodoList;
use plimsoll_domain::checkbox::UnclearLine;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::todo_without_boxes::{ItemLookalike, find_item_lookalikes_if_no_boxes};
use std::fmt::Write as _;

/// A problem with a plan before a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanProblem {
    /// The file is empty or has only white space.
    Empty,
    /// No line has a checkbox; these lines look like items.
    NoItems(Vec<ItemLookalike>),
    /// These lines look like items but are not.
    UnclearLines(Vec<UnclearLine>),
    /// All items are ticked; the field is their number. Not an error, but the user is informed.
    AllTicked(usize),
}

/// The maximum number of lines that a message lists.
const MAX_LISTED_LINES: usize = 5;
/// The maximum number of unclear lines that a message lists. It is higher because the user has to look at each of them.
const MAX_LISTED_UNCLEAR_LINES: usize = 20;
/// The maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 80;

/// Parses a plan and returns its problem; `None` if a run can begin with it.
pub fn find_plan_problem(text: &str) -> Option<PlanProblem> {
    find_unclear_lines_or_lack_of_open_items(&TodoList::parse(text), text)
}

/// Returns the problem of a plan that is already parsed from `text`; `None` if a run can begin with it.
pub fn find_unclear_lines_or_lack_of_open_items(plan: &TodoList, text: &str) -> Option<PlanProblem> {
    match plan.items.len() {
        0 if text.trim().is_empty() => Some(PlanProblem::Empty),
        _ if !plan.unclear_lines.is_empty() => Some(PlanProblem::UnclearLines(plan.unclear_lines.clone())),
        0 => Some(PlanProblem::NoItems(find_item_lookalikes_if_no_boxes(text))),
        item_count => {
            plan.items.iter().all(|item| item.is_ticked).then_some(PlanProblem::AllTicked(item_count))
        }
    }
}

/// Describes the problem and how to fix it. `is_named_by_user` is true if the user named the file with `--todo`.
pub fn render_plan_problem_with_fix(problem: &PlanProblem, file: &str, is_named_by_user: bool) -> String {
    let shown_file = to_safe_single_line(file);
    let hint_to_run_without_plan = if is_named_by_user {
        "for a run without a plan leave out --todo".to_owned()
    } else {
        format!("for a run without a plan rename it: mv {0} notes-{0}", quote_for_shell(file))
    };
    match problem {
        PlanProblem::Empty => {
            format!(
                "the plan {shown_file} is empty: write `- [ ] …` lines, one for each item; {hint_to_run_without_plan}"
            )
        }
        PlanProblem::NoItems(lines) if lines.is_empty() => {
            format!(
                "the plan {shown_file} has no item: write `- [ ] …` lines, one for each item; {hint_to_run_without_plan}"
            )
        }
        PlanProblem::NoItems(lines) => {
            let hint_to_fix =
                format!("to add the checkboxes: {}", render_fix_command(file, is_named_by_user));
            format!(
                "the plan {shown_file} has no item; these lines look like items without a checkbox (`- [ ] …`):\n{}{hint_to_fix}\n{hint_to_run_without_plan}",
                render_numbered_lines(
                    &shown_file,
                    lines.iter().map(|line| (line.line_number, line.text.as_str())),
                    MAX_LISTED_LINES
                )
            )
        }
        PlanProblem::UnclearLines(lines) => {
            let description = if lines.len() == 1 {
                "a line that looks like an item but is not, so no session would work on it"
            } else {
                "lines that look like items but are not, so no session would work on them"
            };
            let numbered_lines = lines.iter().map(|line| (line.line_number, line.text.as_str()));
            format!(
                "the plan {shown_file} has {description}:\n{}to rewrite: {}\nto keep a line as text: write `\\[` for `[`",
                render_numbered_lines(&shown_file, numbered_lines, MAX_LISTED_UNCLEAR_LINES),
                render_fix_command(file, is_named_by_user)
            )
        }
        PlanProblem::AllTicked(count) => {
            let subject = if *count == 1 {
                "the only item".to_owned()
            } else {
                format!("all {}", count_with_noun(*count, "item"))
            };
            let verb = if *count == 1 { "is" } else { "are" };
            format!(
                "{subject} of {shown_file} {verb} ticked, so no session has an item to work on: add `- [ ] …` lines; {hint_to_run_without_plan}"
            )
        }
    }
}

/// Lists the lines that `plimsoll plan --fix` cannot rewrite, with the reason and what to do instead.
pub fn render_unfixable_lines(lines: &[UnclearLine], file: &str) -> String {
    let shown_file = to_safe_single_line(file);
    let listed_lines = render_numbered_lines(
        &shown_file,
        lines.iter().map(|line| (line.line_number, line.text.as_str())),
        MAX_LISTED_UNCLEAR_LINES,
    );
    format!(
        "{} of {shown_file} cannot be rewritten, because of a table, an unclosed code fence or comment, or a checkbox without text:\n{listed_lines}write them as `- [ ] …` lines, or close the fence",
        count_with_noun(lines.len(), "line")
    )
}

/// Renders at most `max_lines` lines as `file:number: text`, followed by the number of the remaining ones.
fn render_numbered_lines<'a>(
    file: &str,
    lines: impl ExactSizeIterator<Item = (usize, &'a str)>,
    max_lines: usize,
) -> String {
    let unlisted_count = lines.len().saturating_sub(max_lines);
    let mut text = String::new();
    for (number, line) in lines.take(max_lines) {
        let shown_line = truncate_end(&to_safe_single_line(&to_safe_single_line(line)), MAX_LINE_CHARS);
        let _ = writeln!(text, "  {file}:{number}: {shown_line}");
    }
    if unlisted_count > 0 {
        let _ = writeln!(text, "  and {unlisted_count} more");
    }
    text
}

/// Explains why a run does not end as completed although no item is open: lines of its plan look like items but are not. Returns
/// `None` if there are no such lines, or if an item is open.
pub fn render_unclear_lines_if_no_item_open(plan: &TodoList, file: &str) -> Option<String> {
    let (first_line, remaining_lines) = plan.unclear_lines.split_first()?;
    if plan.items.iter().any(|item| !item.is_ticked) {
        return None;
    }
    let listed_lines = remaining_lines
        .iter()
        .take(MAX_LISTED_LINES - 1)
        .fold(quote_line_with_number(first_line), |text, line| {
            format!("{text}, {}", quote_line_with_number(line))
        });
    let unlisted_count = remaining_lines.len().saturating_sub(MAX_LISTED_LINES - 1);
    let unlisted_text =
        if unlisted_count > 0 { format!(" and {unlisted_count} more") } else { String::new() };
    let (description, pronoun) = if remaining_lines.is_empty() {
        ("a line that looks like an item but is not", "it")
    } else {
        ("lines that look like items but are not", "them")
    };
    Some(format!(
        "{} has {description}: {listed_lines}{unlisted_text}; rewrite {pronoun} with `{}`, then resume",
        to_safe_single_line(file),
        render_fix_command(file, file != DEFAULT_PLAN)
    ))
}

fn quote_line_with_number(line: &UnclearLine) -> String {
    format!(
        "line {} \"{}\"",
        line.line_number,
        truncate_end(&to_safe_single_line(&line.text), MAX_LINE_CHARS)
    )
}

/// Returns the `plimsoll plan --fix` command for this file.
fn render_fix_command(file: &str, is_named_by_user: bool) -> String {
    if is_named_by_user {
        format!("plimsoll plan --fix --todo {}", quote_for_shell(file))
    } else {
        "plimsoll plan --fix".to_owned()
    }
}

/// Quotes text as one argument of a shell command line. Text without special characters stays as it is.
pub fn quote_for_shell(text: &str) -> String {
    let is_safe_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./,:=@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_safe_byte) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plan_with_an_open_item_has_no_problem() {
        let line = |line, text: &str| ItemLookalike { line_number: line, text: text.to_owned() };
        let unclear = |line, text: &str, item: &str| UnclearLine {
            line_number: line,
            text: text.to_owned(),
            item_text: item.to_owned(),
        };
        for (text, expected) in [
            ("- [ ] one\n", None),
            ("- [x] one\n- [ ] two\n", None),
            ("- [ ] one\n1. two\n", None),
            ("", Some(PlanProblem::Empty)),
            (" \n\t\n", Some(PlanProblem::Empty)),
            ("Make it good.\n", Some(PlanProblem::NoItems(vec![]))),
            ("```\n- [ ] example\n```\n", Some(PlanProblem::NoItems(vec![]))),
            (
                "# Plan\n1. one\n2. two\n",
                Some(PlanProblem::NoItems(vec![line(2, "1. one"), line(3, "2. two")])),
            ),
            ("- [x] one\n- [X] two\n", Some(PlanProblem::AllTicked(2))),
            ("- [ ] one\n- [-] two\n", Some(PlanProblem::UnclearLines(vec![unclear(2, "- [-] two", "two")]))),
            ("- [] one\n", Some(PlanProblem::UnclearLines(vec![unclear(1, "- [] one", "one")]))),
        ] {
            assert_eq!(find_plan_problem(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_message_lists_the_lines_and_a_command_to_copy() {
        let text: String = (1..=8).map(|number| format!("{number}. do {number}\n")).collect();
        let problem = find_plan_problem(&text).expect("no item");
        assert_eq!(
            render_plan_problem_with_fix(&problem, "fix_plan.md", false),
            "the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):\n  \
             fix_plan.md:1: 1. do 1\n  fix_plan.md:2: 2. do 2\n  fix_plan.md:3: 3. do 3\n  fix_plan.md:4: 4. do 4\n  \
             fix_plan.md:5: 5. do 5\n  and 3 more\nto add the checkboxes: plimsoll plan --fix\n\
             for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md"
        );
        insta::assert_snapshot!(render_plan_problem_with_fix(&problem, "my plan.md", true), @"
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
        let five = render_plan_problem_with_fix(
            &PlanProblem::NoItems(find_item_lookalikes_if_no_boxes("* a\n* b\n* c\n* d\n* e\n")),
            "a",
            false,
        );
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
    fn escape_sequences_in_a_plan_are_not_printed() {
        let shown = render_plan_problem_with_fix(
            &PlanProblem::NoItems(find_item_lookalikes_if_no_boxes("* a\u{1b}[2Jb\n")),
            "fix_plan.md",
            false,
        );
        insta::assert_snapshot!(shown, @r"
        the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
          fix_plan.md:1: * a\u{1b}[2Jb
        to add the checkboxes: plimsoll plan --fix
        for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
        ");
    }

    #[test]
    fn unclear_lines_are_listed_with_a_command_to_copy() {
        // Two lines more than are listed.
        let text: String = (1..=22).map(|number| format!("- [-] do {number}\n")).collect();
        let many = render_plan_problem_with_fix(
            &find_plan_problem(&format!("- [ ] one\n{text}")).expect("unclear lines"),
            "my plan.md",
            true,
        );
        insta::assert_snapshot!(many, @r"
        the plan my plan.md has lines that look like items but are not, so no session would work on them:
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
            render_plan_problem_with_fix(
                &find_plan_problem("- [ ] one\n- [] a\u{1b}b\n").expect("an unclear line"),
                "fix_plan.md",
                false
            ),
            "the plan fix_plan.md has a line that looks like an item but is not, so no session would work on it:\n  \
             fix_plan.md:2: - [] a\\u{1b}b\nto rewrite: plimsoll plan --fix\nto keep a line as text: write `\\[` for `[`"
        );
    }

    #[test]
    fn unclear_lines_matter_at_the_end_only_if_no_item_is_open() {
        let message_at_end =
            |text: &str| render_unclear_lines_if_no_item_open(&TodoList::parse(text), "fix_plan.md");
        assert_eq!(message_at_end("- [x] one\n"), None);
        assert_eq!(message_at_end("- [x] one\n- [ ] two\n- [-] three\n"), None, "a session has work");
        assert_eq!(
            message_at_end("- [x] one\n- [-] three\n").as_deref(),
            Some(
                "fix_plan.md has a line that looks like an item but is not: line 2 \"- [-] three\"; rewrite it with `plimsoll plan --fix`, then resume"
            )
        );
        let many = message_at_end(&"- [] a\n".repeat(7)).expect("unclear lines");
        insta::assert_snapshot!(many, @r#"fix_plan.md has lines that look like items but are not: line 1 "- [] a", line 2 "- [] a", line 3 "- [] a", line 4 "- [] a", line 5 "- [] a" and 2 more; rewrite them with `plimsoll plan --fix`, then resume"#);
    }

    #[test]
    fn the_message_uses_the_singular_for_one_ticked_item() {
        insta::assert_snapshot!(render_plan_problem_with_fix(&PlanProblem::AllTicked(1), "fix_plan.md", false), @"the only item of fix_plan.md is ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
        insta::assert_snapshot!(render_plan_problem_with_fix(&PlanProblem::AllTicked(3), "fix_plan.md", false), @"all 3 items of fix_plan.md are ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
    }
}
