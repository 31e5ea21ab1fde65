//! `plimsoll fleet answer` and `reopen`: opens items again that were set aside.

use super::{CommandError, ask_fleet};
use plimsoll_domain::text::one_line;
use plimsoll_terminal::console::say;
use plimsoll_terminal::fleet_line::{AnswerArguments, ReopenArguments, words_of};
use std::process::ExitCode;

/// Answers the question of an item.
pub(super) fn answer(arguments: &AnswerArguments) -> Result<ExitCode, CommandError> {
    let (name, number) = (one_line(&arguments.name), arguments.item);
    let words = words_of(&arguments.text)?;
    if words.trim().is_empty() {
        return Err(CommandError::EmptyAnswer { name, item: number });
    }
    let is_open = match place(number) {
        Some(place) => {
            ask_fleet(&arguments.name, "answer a question", move |fleet| fleet.answer(place, words.trim()))?
        }
        None => false,
    };
    if !is_open {
        return Err(CommandError::Item { name, number, why: "waits for no answer" });
    }
    say(format!("answered: item {number} of the fleet `{name}` is open again"));
    Ok(ExitCode::SUCCESS)
}

/// Opens an item again that waits for no answer.
pub(super) fn reopen(arguments: &ReopenArguments) -> Result<ExitCode, CommandError> {
    let (name, number) = (one_line(&arguments.name), arguments.item);
    let no_such = |why| CommandError::Item { name: name.clone(), number, why };
    let Some(place) = place(number) else { return Err(no_such("is not set aside")) };
    let opened = ask_fleet(&arguments.name, "open an item again", move |fleet| {
        let items = fleet.items()?;
        let is_question = items.get(place).is_some_and(|item| item.aside.as_deref() == Some("question"));
        // Whoever answers at this moment opens it, too.
        if is_question { Ok(None) } else { fleet.reopen(place).map(Some) }
    })?;
    match opened {
        Some(true) => {
            say(format!("item {number} of the fleet `{name}` is open again"));
            Ok(ExitCode::SUCCESS)
        }
        Some(false) => Err(no_such("is not set aside")),
        None => Err(no_such("waits for an answer: plimsoll fleet answer gives it")),
    }
}

/// The place on the board of an item that a user names.
fn place(number: usize) -> Option<usize> {
    number.checked_sub(1)
}
