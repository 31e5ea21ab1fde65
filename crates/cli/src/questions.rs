//! What the command says of questions that wait for the user's answer.

use plimsoll_domain::RunState;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{clip, counted, one_line};

/// How much of an item and of its question stands on one line.
const ITEM: usize = 60;
const QUESTION: usize = 200;

/// One question on a line, with the number that `--answer` takes.
pub(crate) fn line(number: usize, open: &OpenQuestion) -> String {
    let (item, question) = (clip(&one_line(&open.item), ITEM), clip(&one_line(&open.question), QUESTION));
    format!("{number}. \"{item}\": {question}")
}

/// The command that answers a question.
pub(crate) fn command(number: usize) -> String {
    format!("plimsoll status --answer {number} 'your answer'")
}

/// How many items wait; none if none does.
pub(crate) fn waiting(state: &RunState) -> Option<String> {
    match state.items.parked.len() {
        0 => None,
        1 => Some("1 item waits for your answer".to_owned()),
        many => Some(format!("{} wait for your answers", counted(many, "item"))),
    }
}

/// All questions, and how to answer, as lines.
pub(crate) fn lines(state: &RunState) -> Vec<String> {
    let Some(waiting) = waiting(state) else { return Vec::new() };
    let questions = (1..).zip(&state.items.parked).map(|(number, open)| format!("  {}", line(number, open)));
    std::iter::once(format!("{waiting}:"))
        .chain(questions)
        .chain([format!("to answer: {}", command(1))])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::Items;

    #[test]
    fn each_question_has_its_number_and_steers_nothing() {
        let open = |item: &str| OpenQuestion {
            item: item.to_owned(),
            question: "Which\u{1b}[2J port?".to_owned(),
            ..OpenQuestion::default()
        };
        let of = |parked| RunState { items: Items { parked, ..Items::default() }, ..RunState::default() };
        let lines = lines(&of(vec![open("one"), open("two")]));
        assert_eq!(
            lines,
            [
                "2 items wait for your answers:",
                "  1. \"one\": Which\\u{1b}[2J port?",
                "  2. \"two\": Which\\u{1b}[2J port?",
                "to answer: plimsoll status --answer 1 'your answer'"
            ]
        );
        assert_eq!(waiting(&of(vec![open("one")])).as_deref(), Some("1 item waits for your answer"));
        assert!(super::lines(&of(Vec::new())).is_empty());
    }
}
