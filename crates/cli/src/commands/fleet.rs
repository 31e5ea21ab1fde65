//! `plimsoll fleet`: hands its command line to `plimsoll-fleet`, because `plimsoll` itself links no database client.

use crate::optional_program::replace_process_with_program;
use plimsoll_flows::optional_program::FLEET_PROGRAM;
use std::process::ExitCode;

/// Replaces this process with `plimsoll-fleet`, passing the arguments after `plimsoll fleet`. Returns exit code 1 if it cannot be
/// started.
pub(crate) fn exec_fleet_program() -> ExitCode {
    replace_process_with_program(FLEET_PROGRAM, &std::env::args_os().skip(2).collect::<Vec<_>>())
}
