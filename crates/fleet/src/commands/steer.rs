//! `plimsoll fleet drain`, `resume` and `stop`.

use super::words::{count, merge_command};
use super::{CommandError, ask_fleet};
use crate::fleet::Fleet;
use crate::fleet::standing::Standing;
use plimsoll_domain::text::one_line;
use plimsoll_terminal::console::{self, say};
use plimsoll_terminal::fleet_line::{NameArgument, SureArguments};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Lets nothing new begin.
pub(super) fn drain(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    let (is_changed, fleet) = drained(&arguments.name, true)?;
    let name = one_line(&fleet.name);
    let what = if is_changed { "drains" } else { "drains already" };
    let at_work = fleet.items.at_work + fleet.items.offered;
    say(format!(
        "the fleet `{name}` {what}: nothing new is begun, {} will be finished and merged; to go on: plimsoll fleet resume {name}",
        count(at_work, "item")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Lets new items begin again.
pub(super) fn resume(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    let (is_changed, fleet) = drained(&arguments.name, false)?;
    let name = one_line(&fleet.name);
    if !is_changed {
        say(format!("the fleet `{name}` was not draining"));
    } else if fleet.workers == 0 {
        say(format!(
            "the fleet `{name}` goes on once somebody joins: plimsoll fleet join {name} --workers N -- CLIENT ARGS"
        ));
    } else {
        say(format!("the fleet `{name}` goes on"));
    }
    Ok(ExitCode::SUCCESS)
}

fn drained(name: &str, is_draining: bool) -> Result<(bool, Standing), CommandError> {
    let (is_changed, fleet) =
        ask_fleet(name, "drain the fleet", move |fleet| Ok((fleet.drain(is_draining)?, fleet.standing()?)))?;
    match &fleet.ended {
        Some(how) => Err(CommandError::Over { name: one_line(name), how: one_line(how) }),
        None => Ok((is_changed, fleet)),
    }
}

/// Ends it for good, after asking.
pub(super) fn stop(arguments: &SureArguments) -> Result<ExitCode, CommandError> {
    let fleet = ask_fleet(&arguments.name, "look at the fleet", Fleet::standing)?;
    let name = one_line(&fleet.name);
    if let Some(how) = &fleet.ended {
        say(format!("the fleet `{name}` is over already: {}", one_line(how)));
        return Ok(ExitCode::SUCCESS);
    }
    if !is_sure(arguments, &question(&fleet)) {
        return Err(CommandError::NotSure);
    }
    let fleet = ask_fleet(&arguments.name, "stop the fleet", |fleet| {
        fleet.stop()?;
        fleet.standing()
    })?;
    say(format!(
        "the fleet `{name}` is stopped; unfinished work stays on its branches plimsoll-items/{name}/…"
    ));
    merge_command(&fleet).iter().for_each(|command| say(format!("to merge what is done: {command}")));
    Ok(ExitCode::SUCCESS)
}

fn question(fleet: &Standing) -> String {
    let left = fleet.items.all - fleet.items.merged;
    format!(
        "Stop the fleet \"{}\" for good, with {} not merged and {} at work? It cannot be resumed; `plimsoll fleet drain` lets what \
         is begun be finished. [y/N] ",
        one_line(&fleet.name),
        count(left, "item"),
        count(fleet.workers, "worker")
    )
}

/// True with `--yes`, without a terminal, or if the user agrees.
pub(super) fn is_sure(arguments: &SureArguments, question: &str) -> bool {
    if arguments.yes || !console::is_terminal() || !std::io::stdin().is_terminal() {
        return true;
    }
    console::ask(question);
    console::agrees()
}
