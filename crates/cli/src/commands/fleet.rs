//! `plimsoll fleet`: its command line. `plimsoll-fleet` reads the same one and does what it says: `plimsoll` links no database.

use crate::console::fail;
use clap::{Args, Subcommand};
use plimsoll_flows::optional_program::{self, FLEET};
use plimsoll_store::Project;
use std::ffi::OsString;
use std::process::ExitCode;

/// What is asked of a fleet.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FleetArguments {
    /// The verb.
    #[command(subcommand)]
    pub verb: FleetVerb,
}

/// What can be done with fleets.
#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Show the fleets of the database, or how far one has come
    Status(StatusArguments),
}

/// Which fleet, and how to show it.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The fleet [default: all, in a line each]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll fleet status             every fleet in the database

The database is PLIMSOLL_DATABASE_URL, or what libpq's variables, service files and ~/.pgpass say.";

/// Becomes `plimsoll-fleet`, with the words behind `plimsoll fleet`; exit code 1 where that cannot be started.
pub(crate) fn become_fleet() -> ExitCode {
    let program = match optional_program::find(&Project::of_command(), FLEET) {
        Ok(program) => program,
        Err(error) => return fail(format!("{error}\nhint: {}", error.hint()), 1),
    };
    let words: Vec<OsString> = std::env::args_os().skip(2).collect();
    let error = plimsoll_launcher::become_successor(&program, &words);
    fail(format!("{} cannot be started: {error}", program.display()), 1)
}
