//! `plimsoll fleet answer` and `reopen`: reopen items that were set aside.

use super::{CommandError, run_on_fleet};
use plimsoll_domain::text::to_single_line;
use plimsoll_terminal::console::print_text;
use plimsoll_terminal::fleet_command_line::{AnswerArguments, ReopenArguments, read_answer_text};
use std::process::ExitCode;

/// Answers the question of an item, which reopens it.
pub(super) fn answer_question(arguments: &AnswerArguments) -> Result<ExitCode, CommandError> {
    let (name, item_number) = (to_single_line(&arguments.name), arguments.item);
    let answer_text = read_answer_text(&arguments.text)?;
    if answer_text.trim().is_empty() {
        return Err(CommandError::EmptyAnswer { name, item: item_number });
    }
    let was_reopened = match item_index(item_number) {
        Some(index) => run_on_fleet(&arguments.name, "answer a question", move |fleet| {
            fleet.answer_question(index, answer_text.trim())
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

/// Reopens an item that was set aside and does not wait for an answer.
pub(super) fn reopen_item_set_aside(arguments: &ReopenArguments) -> Result<ExitCode, CommandError> {
    let (name, item_number) = (to_single_line(&arguments.name), arguments.item);
    let item_error =
        |reason| CommandError::WrongItemState { name: name.clone(), number: item_number, reason };
    let Some(index) = item_index(item_number) else { return Err(item_error("is not set aside")) };
    let was_reopened = run_on_fleet(&arguments.name, "open an item again", move |fleet| {
        let items = fleet.read_items()?;
        let is_question =
            items.get(index).is_some_and(|item| item.set_aside_kind.as_deref() == Some("question"));
        // Another user may answer the question at this moment, which also reopens the item.
        if is_question { Ok(None) } else { fleet.reopen_item_set_aside(index).map(Some) }
    })?;
    match was_reopened {
        Some(true) => {
            print_text(format!("item {item_number} of the fleet `{name}` is open again"));
            Ok(ExitCode::SUCCESS)
        }
        Some(false) => Err(item_error("is not set aside")),
        None => Err(item_error("waits for an answer: plimsoll fleet answer gives it")),
    }
}

/// Converts an item's number into its index on the board. Returns `None` for 0.
fn item_index(item_number: usize) -> Option<usize> {
    item_number.checked_sub(1)
}
