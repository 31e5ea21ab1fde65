//! `plimsoll generate schema`: what may stand in the settings, for editors and for people.

use plimsoll_terminal::console::say;
use std::process::ExitCode;

const SCHEMA: &str = include_str!("../../../../../hooks-config/plimsoll.schema.json");

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll generate schema > plimsoll.schema.json
    lets an editor check .claude/plimsoll.json";

/// Prints it.
pub(super) fn schema() -> ExitCode {
    say(SCHEMA.trim_end());
    ExitCode::SUCCESS
}
