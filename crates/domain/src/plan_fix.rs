//! `plimsoll plan --fix`: a plan in which each line that looks like an item is one. Every other byte stays as it is.
//!
//! A mark that has no one meaning becomes an open item with a question to the user: `[-]` is canceled for Obsidian, begun for Kiro
//! and partly done for Org. As canceled work that a run does is paid for, and begun work that a run ignores is lost, only the user
//! can decide; until then a run passes the item over.

use crate::checkbox::{LooseBox, Mark, PlanLine, UnclearLine, plan_line};
use crate::markdown_lines::MarkdownLine;
use crate::plan_edit::with_questions_on_lines;
use crate::todo::{PlanEntry, PlanLines, TodoList};
use crate::todo_without_boxes::with_boxes;

/// A plan after the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedPlan {
    /// Its text.
    pub text: String,
    /// How many items have a question to the user now, because nobody can know what their mark means.
    pub questions: usize,
    /// Lines that look like items still.
    pub left: Vec<UnclearLine>,
}

/// A line that becomes an item can reveal more lines in its list. More passes are no plan.
const MAX_PASSES: usize = 8;

/// Makes items of the lines that look like items. In a plan without any box these are the bullets.
pub fn fix(markdown: &str) -> FixedPlan {
    let plan = TodoList::parse(markdown);
    let is_without_boxes = plan.items.is_empty() && plan.unclear.is_empty();
    let text = if is_without_boxes { with_boxes(markdown) } else { markdown.to_owned() };
    // A box moves the text of its list item, and what was code below it can look like an item then.
    let plan = if is_without_boxes { TodoList::parse(&text) } else { plan };
    let mut fixed = FixedPlan { text, questions: 0, left: plan.unclear };
    let mut known_items = plan.items.len();
    for _ in 0..MAX_PASSES {
        let (text, questions) = rewrite(&fixed.text);
        let plan = TodoList::parse(&text);
        if plan.items.len() <= known_items {
            break;
        }
        known_items = plan.items.len();
        fixed.left = plan.unclear;
        fixed.questions += questions.len();
        fixed.text = text;
        if !questions.is_empty() {
            fixed.text = with_questions_on_lines(&fixed.text, &questions);
            fixed.left = TodoList::parse(&fixed.text).unclear;
        }
    }
    fixed
}

/// The plan with each unclear line rewritten, and the questions for some of the new lines, by their numbers from 1.
fn rewrite(markdown: &str) -> (String, Vec<(usize, String)>) {
    let mut text = String::with_capacity(markdown.len() + 100);
    let mut questions = Vec::new();
    for ((line, entry), whole) in PlanLines::new(markdown).zip(markdown.split_inclusive('\n')) {
        match (entry, plan_line(&line)) {
            (PlanEntry::Other, PlanLine::Unclear(loose)) if !loose.is_in_table => {
                text.push_str(&rewritten_line(&line, &loose));
                text.push_str(&whole[line.text.len()..]);
                if loose.mark == Mark::Unknown {
                    questions.push((line.number + 1, question(&loose)));
                }
            }
            _ => text.push_str(whole),
        }
    }
    (text, questions)
}

fn rewritten_line(line: &MarkdownLine<'_>, loose: &LooseBox<'_>) -> String {
    let mark = match loose.mark {
        Mark::Open | Mark::Unknown => ' ',
        Mark::Done => 'x',
        Mark::Begun(mark) => mark,
    };
    let item = format!("[{mark}] {}", loose.words_with_number());
    if line.begins_item {
        return format!("{}{item}", &line.text[..line.content]);
    }
    if line.is_too_deep {
        // Below the item above it, as deep as Markdown takes for a list there.
        return format!("{}{}- {item}", &line.text[..line.quote_end], " ".repeat(line.item_column));
    }
    format!("{}- {item}", &line.text[..line.content])
}

fn question(loose: &LooseBox<'_>) -> String {
    let shown = if loose.inner.is_ascii() { format!("[{}]", loose.inner) } else { loose.inner.to_owned() };
    format!("The mark was {shown}: is this still to be done? Answer here, or tick the item, or remove it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_new_box_makes_an_item_of_is_fixed_or_named() {
        let fixed = fix("-    one\n\n    - [?] two\n");
        assert_eq!(fixed.left, TodoList::parse(&fixed.text).unclear);
        assert_eq!(fix(&fixed.text), FixedPlan { questions: 0, ..fixed });
    }

    #[test]
    fn each_line_that_looks_like_an_item_becomes_one() {
        for (before, after) in [
            // Boxes that are written in another way.
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
            // Places where Markdown has no list.
            ("Text\n2. [ ] one\n", "Text\n- [ ] one\n"),
            ("- [ ] one\n      - [ ] two\n", "- [ ] one\n  - [ ] two\n"),
            ("> - [ ] one\n>       * [x] two\n", "> - [ ] one\n>   - [x] two\n"),
            ("<details>\n- [ ] one\n- [] two\n", "<details>\n- [ ] one\n- [ ] two\n"),
            // What has no box at all.
            ("1. one\n2. two\n", "- [ ] one\n- [ ] two\n"),
        ] {
            let fixed = fix(before);
            assert_eq!(fixed.text, after, "{before:?}");
            assert_eq!((fixed.questions, fixed.left), (0, Vec::new()), "{before:?}");
            assert_eq!(fix(after).text, after, "{after:?}");
        }
    }

    #[test]
    fn a_mark_of_several_meanings_becomes_a_question_that_parks_the_item() {
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
            let fixed = fix(before);
            assert_eq!(fixed.text, after, "{before:?}");
            assert_eq!((fixed.questions, fixed.left), (1, Vec::new()), "{before:?}");
            assert_eq!(TodoList::parse(&after).parked().len(), 1, "{after:?}");
        }
        let asked_before = "- [-] one\n  ? Who?\n";
        assert_eq!(fix(asked_before).text, "- [ ] one\n  ? Who?\n");
    }

    #[test]
    fn what_only_a_person_can_do_is_left_and_named() {
        for (text, lines) in [
            ("- [ ] one\n\n| | task |\n|---|---|\n| [ ] | two |\n", &[5][..]),
            ("- [ ] one\n```sh\n- [ ] two\n", &[3]),
            ("- [ ] one\n<!--\n- [ ] two\n", &[3]),
            ("- [ ]\n  one\n", &[1]),
        ] {
            let fixed = fix(text);
            assert_eq!(fixed.text, text);
            let left: Vec<usize> = fixed.left.iter().map(|line| line.line).collect();
            assert_eq!(left, lines, "{text:?}");
        }
    }
}
