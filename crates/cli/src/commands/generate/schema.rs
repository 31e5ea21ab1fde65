//! `plimsoll generate schema`: the JSON schema of the settings files, for editors and for people.

use plimsoll_terminal::console::print_text;
use std::process::ExitCode;

const SCHEMA: &str = include_str!("../../../../../hooks-config/plimsoll.schema.json");

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll generate schema > plimsoll.schema.json
    lets an editor check .claude/plimsoll.json";

pub(super) fn print_schema() -> ExitCode {
    print_text(SCHEMA.trim_end());
    ExitCode::SUCCESS
}
