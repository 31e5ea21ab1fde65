//! `plimsoll fleet drain`, `resume` and `stop`.

use super::fleet_text::{count_u64_with_noun, merge_command_if_on_separate_branch};
use super::{CommandError, open_fleet_and_run_with_timeout};
use crate::fleet::Fleet;
use crate::fleet::fleet_status::FleetStatus;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_terminal::console::{self, print_text};
use plimsoll_terminal::fleet_command_line::{ConfirmArguments, NameArgument};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Stops new claims, and prints what will still be finished.
pub(super) fn drain_fleet(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    let (has_changed, fleet) = set_draining_or_error_if_ended(&arguments.name, true)?;
    let name = to_safe_single_line(&fleet.name);
    let outcome_text = if has_changed { "is draining" } else { "is already draining" };
    let unfinished_count = fleet.item_counts.in_progress + fleet.item_counts.offered;
    let unfinished_text = match unfinished_count {
        0 => "nothing is running".to_owned(),
        count => format!("{} will be finished and merged", count_u64_with_noun(count, "item")),
    };
    print_text(format!(
        "the fleet `{name}` {outcome_text}: no new item starts; {unfinished_text}\nto resume: plimsoll fleet resume {name}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Allows claims again.
pub(super) fn resume_fleet(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    let (has_changed, fleet) = set_draining_or_error_if_ended(&arguments.name, false)?;
    let name = to_safe_single_line(&fleet.name);
    if !has_changed {
        print_text(format!("the fleet `{name}` was not draining"));
    } else if fleet.active_workers == 0 {
        print_text(format!(
            "the fleet `{name}` is resumed and continues when a machine joins: plimsoll fleet join {name} --workers N -- CLIENT ARGS"
        ));
    } else {
        print_text(format!("the fleet `{name}` is resumed"));
    }
    Ok(ExitCode::SUCCESS)
}

fn set_draining_or_error_if_ended(
    name: &str,
    is_draining: bool,
) -> Result<(bool, FleetStatus), CommandError> {
    let (has_changed, fleet) = open_fleet_and_run_with_timeout(name, "drain the fleet", move |fleet| {
        Ok((fleet.set_draining(is_draining)?, fleet.read_status()?))
    })?;
    match &fleet.end_reason {
        Some(end_reason) => Err(CommandError::FleetEnded {
            name: to_safe_single_line(name),
            end_reason: to_safe_single_line(end_reason),
        }),
        None => Ok((has_changed, fleet)),
    }
}

/// Ends the fleet permanently, after a confirmation.
pub(super) fn confirm_and_stop_fleet_permanently(
    arguments: &ConfirmArguments,
) -> Result<ExitCode, CommandError> {
    let fleet = open_fleet_and_run_with_timeout(&arguments.name, "read the fleet", Fleet::read_status)?;
    let name = to_safe_single_line(&fleet.name);
    if let Some(end_reason) = &fleet.end_reason {
        print_text(format!("the fleet `{name}` has already ended: {}", to_safe_single_line(end_reason)));
        return Ok(ExitCode::SUCCESS);
    }
    confirm("stop", arguments, &render_stop_question(&fleet))?;
    let fleet = open_fleet_and_run_with_timeout(&arguments.name, "stop the fleet", |fleet| {
        fleet.end_as_stopped()?;
        fleet.read_status()
    })?;
    print_text(format!(
        "the fleet `{name}` is stopped; unfinished work stays on its branches plimsoll-items/{name}/…"
    ));
    merge_command_if_on_separate_branch(&fleet)
        .iter()
        .for_each(|command| print_text(format!("to merge what is done: {command}")));
    Ok(ExitCode::SUCCESS)
}

fn render_stop_question(fleet: &FleetStatus) -> String {
    let unmerged_count = fleet.item_counts.total - fleet.item_counts.merged;
    format!(
        "Stop the fleet \"{}\" for good, with {} not merged and {} at work? It cannot be resumed. `plimsoll fleet drain` \
         finishes the started items first. [y/N] ",
        to_safe_single_line(&fleet.name),
        count_u64_with_noun(unmerged_count, "item"),
        count_u64_with_noun(fleet.active_workers, "worker")
    )
}

/// Fails unless `--yes` is given or the user confirms. Without a terminal nobody can confirm.
pub(super) fn confirm(
    verb: &'static str,
    arguments: &ConfirmArguments,
    question: &str,
) -> Result<(), CommandError> {
    if arguments.yes {
        return Ok(());
    }
    if !console::is_terminal() || !std::io::stdin().is_terminal() {
        return Err(CommandError::NoTerminalToConfirm { name: to_safe_single_line(&arguments.name), verb });
    }
    console::print_question(question);
    if console::read_confirmation() { Ok(()) } else { Err(CommandError::NotConfirmed) }
}
