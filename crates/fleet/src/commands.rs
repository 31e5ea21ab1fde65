//! `plimsoll-fleet`, the program: `plimsoll fleet` becomes it. One file for each verb.

mod status;

use crate::database::Database;
use crate::fault::FleetError;
use crate::found;
use clap::Parser;
use plimsoll_cli::console::{fail, say};
use plimsoll_cli::fleet_line::{FleetArguments, FleetVerb};
use plimsoll_domain::build::Build;
use std::process::ExitCode;

/// Lets several machines work on one plan, by a database and a git remote.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-fleet", bin_name = "plimsoll fleet", version, max_term_width = 100)]
struct Program {
    #[command(flatten)]
    arguments: FleetArguments,
}

/// As every system that we run on numbers it.
const SIGXFSZ: i32 = 25;

/// Does what the arguments of this process say.
pub fn main() -> ExitCode {
    // A file that grows beyond a limit (`ulimit -f`) is an error with a name, as on a full disk, and no end by a signal.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    if plimsoll_cli::asks_for_build() {
        say(Build::own("plimsoll-fleet").to_json());
        return ExitCode::SUCCESS;
    }
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return plimsoll_cli::misread(&error),
    };
    let done = match &program.arguments.verb {
        FleetVerb::Status(arguments) => status::status(arguments),
    };
    done.unwrap_or_else(|error| refused(&error))
}

/// The database that the user's environment names.
fn database() -> Result<Database, FleetError> {
    Database::connect(found::find()?)
}

/// Says what went wrong and what to do: exit code 1.
fn refused(error: &FleetError) -> ExitCode {
    match error.hint() {
        Some(hint) => fail(format!("{error}\nhint: {hint}"), 1),
        None => fail(error, 1),
    }
}
