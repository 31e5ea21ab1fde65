//! `plimsoll schema`: what may stand in the settings, for editors and for people.

use crate::console::say;
use std::process::ExitCode;

const SCHEMA: &str = include_str!("../../../../hooks-config/plimsoll.schema.json");

/// Prints it.
pub(crate) fn schema() -> ExitCode {
    say(SCHEMA.trim_end());
    ExitCode::SUCCESS
}
