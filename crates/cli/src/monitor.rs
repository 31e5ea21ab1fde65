//! `plimsoll monitor`: the monitor's decision for shell glue.

use crate::whose::{Whose, marker_of, payload};
use crate::{fail, say, standard_input};
use flows::monitor::post_tool;
use std::process::ExitCode;
use store::Project;

/// Our own fault, for a script: sysexits' EX_SOFTWARE.
const FAULT: u8 = 70;

/// The hook's JSON on standard input, or the session found from the state; a bare marker line, the same exit
/// code as the hook.
pub(crate) fn monitor() -> ExitCode {
    let input = match standard_input::document() {
        Some(document) => document,
        None => match Whose::find(&Project::of_command()) {
            Ok(Some(whose)) => payload("PostToolBatch", &whose.record).into_bytes(),
            Ok(None) => return ExitCode::SUCCESS,
            Err(error) => return fail(error, FAULT),
        },
    };
    let signal = post_tool(&input);
    if let Some(marker) = signal.stdout.as_deref().and_then(marker_of) {
        say(marker);
    }
    match signal.complaints.first() {
        Some(complaint) => fail(complaint, FAULT),
        None => ExitCode::from(signal.exit),
    }
}
