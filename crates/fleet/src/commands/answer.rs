//! `plimsoll fleet answer` and `reopen`: reopen items that were set aside.

use super::{CommandError, open_fleet_and_run_with_timeout};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_terminal::console::print_text;
use plimsoll_terminal::fleet_command_line::{AnswerArguments, ReopenArguments, read_answer_text};
use std::process::ExitCode;

/// Stores the answer to an item's question, which reopens the item. Fails if the item does not wait for an answer.
pub(super) fn answer_question_and_reopen_item(arguments: &AnswerArguments) -> Result<ExitCode, CommandError> {
    let (name, item_number) = (to_safe_single_line(&arguments.name), arguments.item);
    let answer_text = read_answer_text(&arguments.text)?;
    if answer_text.trim().is_empty() {
        return Err(CommandError::EmptyAnswer { name, item: item_number });
    }
    let was_reopened = match item_index(item_number) {
        Some(index) => open_fleet_and_run_with_timeout(&arguments.name, "answer a question", move |fleet| {
            fleet.answer_question_and_reopen_item(index, answer_text.trim())
        })?,
        None => false,
    };
    if !was_reopened {
        return Err(CommandError::WrongItemState {
            name,
            number: item_number,
            reason: "waits for no answer",
        });
    }
    print_text(format!("answered: item {item_number} of the fleet `{name}` is open again"));
    Ok(ExitCode::SUCCESS)
}

/// Reopens an item that was set aside. Fails if it waits for an answer to its question.
pub(super) fn reopen_set_aside_item_unless_question(
    arguments: &ReopenArguments,
) -> Result<ExitCode, CommandError> {
    let (name, item_number) = (to_safe_single_line(&arguments.name), arguments.item);
    let wrong_state_error =
        |reason| CommandError::WrongItemState { name: name.clone(), number: item_number, reason };
    let Some(index) = item_index(item_number) else { return Err(wrong_state_error("is not set aside")) };
    let reopened_unless_question =
        open_fleet_and_run_with_timeout(&arguments.name, "open an item again", move |fleet| {
            let items = fleet.read_item_statuses()?;
            let is_question =
                items.get(index).is_some_and(|item| item.set_aside_kind.as_deref() == Some("question"));
            // Another user may answer the question at this moment, which also reopens the item.
            if is_question { Ok(None) } else { fleet.reopen_set_aside_item(index).map(Some) }
        })?;
    match reopened_unless_question {
        Some(true) => {
            print_text(format!("item {item_number} of the fleet `{name}` is open again"));
            Ok(ExitCode::SUCCESS)
        }
        Some(false) => Err(wrong_state_error("is not set aside")),
        None => Err(wrong_state_error("waits for an answer: plimsoll fleet answer gives it")),
    }
}

/// Converts an item's number into its index on the board. Returns `None` for 0.
fn item_index(item_number: usize) -> Option<usize> {
    item_number.checked_sub(1)
}
