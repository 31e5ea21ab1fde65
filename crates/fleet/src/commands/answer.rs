//! `plimsoll fleet answer` and `reopen`: reopen items that were set aside.

use super::check::find_unconfirmed_item_numbers;
use super::clone_remote::CloneRemote;
use super::status::read_overview_of;
use super::{CommandError, open_fleet_and_run_with_timeout};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
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
    let (was_reopened, item_count) =
        open_fleet_and_run_with_timeout(&arguments.name, "answer a question", move |fleet| {
            let item_count = fleet.read_item_statuses()?.len();
            match item_index(item_number, item_count) {
                Some(index) => {
                    Ok((fleet.answer_question_and_reopen_item(index, answer_text.trim())?, item_count))
                }
                None => Ok((false, item_count)),
            }
        })?;
    if item_index(item_number, item_count).is_none() {
        return Err(no_such_item_error(name, item_number, item_count));
    }
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

/// Reopens an item that was set aside, or one that is recorded as merged although the target branch does not contain it. Fails if it
/// waits for an answer to its question.
pub(super) fn reopen_set_aside_or_unconfirmed_item(
    arguments: &ReopenArguments,
) -> Result<ExitCode, CommandError> {
    let (name, item_number) = (to_safe_single_line(&arguments.name), arguments.item);
    let wrong_state_error =
        |reason| CommandError::WrongItemState { name: name.clone(), number: item_number, reason };
    let (overview, plan) = open_fleet_and_run_with_timeout(&arguments.name, "read the fleet", |fleet| {
        Ok((read_overview_of(fleet)?, fleet.read_shared_plan()?))
    })?;
    let Some(index) = item_index(item_number, overview.items.len()) else {
        return Err(no_such_item_error(name, item_number, overview.items.len()));
    };
    let item = overview.items.get(index);
    if item.is_some_and(|item| item.set_aside_kind.as_deref() == Some("question")) {
        return Err(wrong_state_error("waits for an answer: plimsoll fleet answer gives it"));
    }
    let is_recorded_as_merged = item.is_some_and(|item| item.stage == "merged");
    if is_recorded_as_merged {
        let remote = CloneRemote::open_in_current_folder(&arguments.remote).ok_or_else(|| {
            wrong_state_error("is recorded as merged: run this in a clone, where the branch can be checked")
        })??;
        if !find_unconfirmed_item_numbers(&remote, &overview, &plan)?.contains(&item_number) {
            return Err(wrong_state_error("is merged: the branch contains it"));
        }
    }
    let was_reopened =
        open_fleet_and_run_with_timeout(&arguments.name, "open an item again", move |fleet| {
            if is_recorded_as_merged {
                fleet.reopen_item_missing_from_target(index)
            } else {
                fleet.reopen_set_aside_item(index)
            }
        })?;
    if !was_reopened {
        return Err(wrong_state_error("is not set aside"));
    }
    print_text(format!("item {item_number} of the fleet `{name}` is open again"));
    Ok(ExitCode::SUCCESS)
}

/// Converts an item's number into its index on the board. Returns `None` if there is no such item.
fn item_index(item_number: usize, item_count: usize) -> Option<usize> {
    item_number.checked_sub(1).filter(|index| *index < item_count)
}

fn no_such_item_error(name: String, number: usize, item_count: usize) -> CommandError {
    CommandError::NoSuchItem { name, number, item_count: count_with_noun(item_count, "item") }
}
