//! Renders the questions that wait for the user's answer.

use plimsoll_domain::RunState;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

/// Maximum characters of an item, and of its question, on one line.
const MAX_ITEM_CHARS: usize = 60;
const MAX_QUESTION_CHARS: usize = 200;

/// Renders a question on one line, with the number for `--answer`.
pub(crate) fn question_line(number: usize, open_question: &OpenQuestion) -> String {
    let (item, question) = (
        truncate_end(&to_safe_single_line(&open_question.item), MAX_ITEM_CHARS),
        truncate_end(&to_safe_single_line(&open_question.question), MAX_QUESTION_CHARS),
    );
    format!("{number}. \"{item}\": {question}")
}

/// Returns the command that answers a question.
pub(crate) fn answer_command(number: usize) -> String {
    format!("plimsoll status --answer {number} 'your answer'")
}

/// Describes how many items wait for an answer; `None` if there are none.
pub(crate) fn waiting_item_count_text(state: &RunState) -> Option<String> {
    match state.plan_items.parked_questions.len() {
        0 => None,
        1 => Some("1 item waits for your answer".to_owned()),
        count => Some(format!("{} wait for your answers", count_with_noun(count, "item"))),
    }
}

/// Returns all questions, and the command that answers one, as lines.
pub(crate) fn questions_and_answer_command(state: &RunState) -> Vec<String> {
    let Some(waiting_items) = waiting_item_count_text(state) else { return Vec::new() };
    let questions = (1..)
        .zip(&state.plan_items.parked_questions)
        .map(|(number, question)| format!("  {}", question_line(number, question)));
    std::iter::once(format!("{waiting_items}:"))
        .chain(questions)
        .chain([format!("to answer: {}", answer_command(1))])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::PlanItems;

    #[test]
    fn each_question_has_its_number_and_no_control_characters() {
        let open = |item: &str| OpenQuestion {
            item: item.to_owned(),
            question: "Which\u{1b}[2J port?".to_owned(),
            ..OpenQuestion::default()
        };
        let state_with_parked = |parked| RunState {
            plan_items: PlanItems { parked_questions: parked, ..PlanItems::default() },
            ..RunState::default()
        };
        let lines = questions_and_answer_command(&state_with_parked(vec![open("one"), open("two")]));
        assert_eq!(
            lines,
            [
                "2 items wait for your answers:",
                "  1. \"one\": Which\\u{1b}[2J port?",
                "  2. \"two\": Which\\u{1b}[2J port?",
                "to answer: plimsoll status --answer 1 'your answer'"
            ]
        );
        assert_eq!(
            waiting_item_count_text(&state_with_parked(vec![open("one")])).as_deref(),
            Some("1 item waits for your answer")
        );
        assert!(questions_and_answer_command(&state_with_parked(Vec::new())).is_empty());
    }
}
