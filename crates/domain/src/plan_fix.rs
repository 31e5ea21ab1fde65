//! `plimsoll plan --fix`: rewrites each line that looks like an item as an item. All other bytes are kept.
//!
//! A line with an ambiguous mark becomes an open item with a question to the user: `[-]` means canceled in
//! Obsidian, started in Kiro and partly done in Org. A run would waste money on canceled work and lose
//! started work that it ignores, so only the user can decide. Until then a run skips the item.

use crate::checkbox::{CheckboxMark, PlanLine, UnclearBox, UnclearLine, classify_plan_line};
use crate::markdown_lines::MarkdownLine;
use crate::plan_edit::add_questions_to_unparked_items_on_lines;
use crate::todo::{PlanLineRole, PlanLinesWithRoles, TodoList};
use crate::todo_without_boxes::insert_boxes_if_none_exist;

/// The result of fixing a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedPlan {
    /// The text of the fixed plan.
    pub text: String,
    /// The number of questions to the user that were added because of ambiguous marks.
    pub question_count: usize,
    /// The lines that still look like items but are not.
    pub unclear_lines: Vec<UnclearLine>,
}

/// The maximum number of passes. A line that becomes an item can expose more such lines in its list. No real plan
/// needs more passes.
const MAX_PASSES: usize = 8;

/// Rewrites lines that look like items as items. In a plan without any checkbox, adds a checkbox to each bullet.
pub fn add_missing_boxes_and_fix_unclear_lines(markdown: &str) -> FixedPlan {
    let plan = TodoList::parse(markdown);
    let has_no_boxes = plan.items.is_empty() && plan.unclear_lines.is_empty();
    let text = if has_no_boxes { insert_boxes_if_none_exist(markdown) } else { markdown.to_owned() };
    // A checkbox moves the text of its list item, so code below it can now look like an item.
    let plan = if has_no_boxes { TodoList::parse(&text) } else { plan };
    let mut fixed_plan = FixedPlan { text, question_count: 0, unclear_lines: plan.unclear_lines };
    let mut item_count = plan.items.len();
    for _ in 0..MAX_PASSES {
        let (text, questions) = rewrite_unclear_lines_asking_about_marks(&fixed_plan.text);
        let plan = TodoList::parse(&text);
        if plan.items.len() <= item_count {
            break;
        }
        item_count = plan.items.len();
        fixed_plan.unclear_lines = plan.unclear_lines;
        fixed_plan.question_count += questions.len();
        fixed_plan.text = text;
        if !questions.is_empty() {
            fixed_plan.text = add_questions_to_unparked_items_on_lines(&fixed_plan.text, &questions);
            fixed_plan.unclear_lines = TodoList::parse(&fixed_plan.text).unclear_lines;
        }
    }
    fixed_plan
}

/// Rewrites each unclear line as an item. Returns the new text, and the questions about ambiguous marks by line
/// number, counted from 1.
fn rewrite_unclear_lines_asking_about_marks(markdown: &str) -> (String, Vec<(usize, String)>) {
    let mut text = String::with_capacity(markdown.len() + 100);
    let mut questions = Vec::new();
    for ((line, role), line_with_ending) in
        PlanLinesWithRoles::new(markdown).zip(markdown.split_inclusive('\n'))
    {
        match (role, classify_plan_line(&line)) {
            (PlanLineRole::Other, PlanLine::Unclear(unclear_box)) if !unclear_box.is_in_table => {
                text.push_str(&rewrite_as_item_line(&line, &unclear_box));
                text.push_str(&line_with_ending[line.text.len()..]);
                if unclear_box.mark == CheckboxMark::Unknown {
                    questions.push((line.line_index + 1, render_question_about_mark(&unclear_box)));
                }
            }
            _ => text.push_str(line_with_ending),
        }
    }
    (text, questions)
}

fn rewrite_as_item_line(line: &MarkdownLine<'_>, unclear_box: &UnclearBox<'_>) -> String {
    let mark = match unclear_box.mark {
        CheckboxMark::Open | CheckboxMark::Unknown => ' ',
        CheckboxMark::Done => 'x',
        CheckboxMark::InProgress(mark) => mark,
    };
    let item = format!("[{mark}] {}", unclear_box.text_with_number_or_emphasis_prefix());
    if line.is_first_of_list_item {
        return format!("{}{item}", &line.text[..line.text_start]);
    }
    if line.is_overindented_continuation {
        // The item becomes a child of the item above, at the deepest indentation that Markdown still reads as
        // a list there.
        return format!("{}{}- {item}", &line.text[..line.quote_end], " ".repeat(line.item_indent));
    }
    format!("{}- {item}", &line.text[..line.text_start])
}

fn render_question_about_mark(unclear_box: &UnclearBox<'_>) -> String {
    let shown_mark = if unclear_box.mark_text.is_ascii() {
        format!("[{}]", unclear_box.mark_text)
    } else {
        unclear_box.mark_text.to_owned()
    };
    format!(
        "The mark was {shown_mark}: is this still to be done? Answer here, or tick the item, or remove it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_revealed_by_a_new_checkbox_are_fixed_or_reported() {
        let fixed = add_missing_boxes_and_fix_unclear_lines("-    one\n\n    - [?] two\n");
        assert_eq!(fixed.unclear_lines, TodoList::parse(&fixed.text).unclear_lines);
        assert_eq!(
            add_missing_boxes_and_fix_unclear_lines(&fixed.text),
            FixedPlan { question_count: 0, ..fixed }
        );
    }

    #[test]
    fn each_line_that_looks_like_an_item_becomes_one() {
        for (before, after) in [
            // Checkboxes that are not written as GitHub does.
            ("- [] one\n- [ x ] two\n- [X ] three\n", "- [ ] one\n- [x] two\n- [x] three\n"),
            ("- [ ]one\r\n- [x]two\r\n", "- [ ] one\r\n- [x] two\r\n"),
            ("-[ ] one\n*[x] two", "- [ ] one\n- [x] two"),
            ("[ ] one\n[x] two\n  [ ] three\n", "- [ ] one\n- [x] two\n  - [ ] three\n"),
            (
                "- [✓] one\n- [✔\u{fe0f}] two\n- ☐ three\n☑ four\n",
                "- [x] one\n- [x] two\n- [ ] three\n- [x] four\n",
            ),
            ("- [~]one\n- [/ ] two\n", "- [~] one\n- [/] two\n"),
            (
                "• [ ] one\n1.1 [ ] two\na) [ ] three\n1.[x] four\n",
                "- [ ] one\n- [ ] 1.1 two\n- [ ] three\n- [x] four\n",
            ),
            (
                "### [ ] Task 1: one\n\n1. **[ ] two**\n- **[x]** three\n",
                "- [ ] Task 1: one\n\n1. [ ] **two**\n- [x] three\n",
            ),
            // Checkboxes in places where Markdown allows no list.
            ("Text\n2. [ ] one\n", "Text\n- [ ] one\n"),
            ("- [ ] one\n      - [ ] two\n", "- [ ] one\n  - [ ] two\n"),
            ("> - [ ] one\n>       * [x] two\n", "> - [ ] one\n>   - [x] two\n"),
            ("<details>\n- [ ] one\n- [] two\n", "<details>\n- [ ] one\n- [ ] two\n"),
            // Plans without any checkbox.
            ("1. one\n2. two\n", "- [ ] one\n- [ ] two\n"),
        ] {
            let fixed = add_missing_boxes_and_fix_unclear_lines(before);
            assert_eq!(fixed.text, after, "{before:?}");
            assert_eq!((fixed.question_count, fixed.unclear_lines), (0, Vec::new()), "{before:?}");
            assert_eq!(add_missing_boxes_and_fix_unclear_lines(after).text, after, "{after:?}");
        }
    }

    #[test]
    fn an_ambiguous_mark_becomes_a_question_that_parks_the_item() {
        let question = |mark: &str| {
            format!(
                "? The mark was {mark}: is this still to be done? Answer here, or tick the item, or remove it."
            )
        };
        for (before, after) in [
            ("- [-] one\n- [ ] two\n", format!("- [ ] one\n  {}\n- [ ] two\n", question("[-]"))),
            (
                "1. [>] one\n   more\n   > a note\n",
                format!("1. [ ] one\n   more\n   > a note\n   {}\n", question("[>]")),
            ),
            ("> * [!] one", format!("> * [ ] one\n>   {}", question("[!]"))),
            ("- ☒ one\r\n", format!("- [ ] one\r\n  {}\r\n", question("☒"))),
        ] {
            let fixed = add_missing_boxes_and_fix_unclear_lines(before);
            assert_eq!(fixed.text, after, "{before:?}");
            assert_eq!((fixed.question_count, fixed.unclear_lines), (1, Vec::new()), "{before:?}");
            assert_eq!(TodoList::parse(&after).parked_items_with_questions().len(), 1, "{after:?}");
        }
        let plan_with_question = "- [-] one\n  ? Who?\n";
        assert_eq!(add_missing_boxes_and_fix_unclear_lines(plan_with_question).text, "- [ ] one\n  ? Who?\n");
    }

    #[test]
    fn lines_that_only_a_person_can_fix_are_kept_and_reported() {
        for (text, lines) in [
            ("- [ ] one\n\n| | task |\n|---|---|\n| [ ] | two |\n", &[5][..]),
            ("- [ ] one\n```sh\n- [ ] two\n", &[3]),
            ("- [ ] one\n<!--\n- [ ] two\n", &[3]),
            ("- [ ]\n  one\n", &[1]),
        ] {
            let fixed = add_missing_boxes_and_fix_unclear_lines(text);
            assert_eq!(fixed.text, text);
            let unclear_lines: Vec<usize> = fixed.unclear_lines.iter().map(|line| line.line_number).collect();
            assert_eq!(unclear_lines, lines, "{text:?}");
        }
    }
}
