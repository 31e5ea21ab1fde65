//! `plimsoll fleet`: `plimsoll-fleet` reads the same command line, and does what it says: `plimsoll` links no database.

use crate::optional_program::become_program;
use plimsoll_flows::optional_program::FLEET;
use std::process::ExitCode;

/// Becomes `plimsoll-fleet`, with the words behind `plimsoll fleet`; exit code 1 where that cannot be started.
pub(crate) fn become_fleet() -> ExitCode {
    become_program(FLEET, &std::env::args_os().skip(2).collect::<Vec<_>>())
}
