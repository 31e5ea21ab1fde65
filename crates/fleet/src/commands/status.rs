//! `plimsoll fleet status`: every fleet of the database in a line, or how far one has come.

use super::database;
use crate::fault::FleetError;
use crate::fleet::standing::{Standing, standings};
use plimsoll_cli::console::say;
use plimsoll_cli::fleet_line::StatusArguments;
use plimsoll_domain::text::{counted, one_line};
use std::process::ExitCode;

/// Shows it.
pub(super) fn status(_arguments: &StatusArguments) -> Result<ExitCode, FleetError> {
    let fleets = standings(&mut database()?)?;
    if fleets.is_empty() {
        say("There is no fleet in the database. Create one with `plimsoll fleet create NAME`.");
    }
    fleets.iter().map(line).for_each(say);
    Ok(ExitCode::SUCCESS)
}

fn line(fleet: &Standing) -> String {
    let name = one_line(&fleet.name);
    let items = &fleet.items;
    format!(
        "{name}: {} of {} merged",
        items.merged,
        counted(usize::try_from(items.all).unwrap_or(usize::MAX), "item")
    )
}
