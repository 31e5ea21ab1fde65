//! `plimsoll-fleet`, the program: `plimsoll fleet` becomes it. One file for each verb.
//!
//! Every answer of the database is waited for with an end ([`crate::within`]).

mod answer;
mod check;
mod clone_remote;
mod create;
mod event_words;
mod forget;
mod join;
mod log;
mod report;
mod status;
mod steer;
mod words;

use crate::database::Database;
use crate::deadline::{ANSWER, within};
use crate::fault::FleetError;
use crate::fleet::Fleet;
use crate::found;
use clap::Parser;
use plimsoll_domain::build::Build;
use plimsoll_terminal::command_line::{asks_for_build, misread};
use plimsoll_terminal::console::{fail, say};
use plimsoll_terminal::fleet_line::{FleetArguments, FleetVerb};
use plimsoll_terminal::signals;
use plimsoll_terminal::standard_input::InputError;
use std::process::ExitCode;

/// Lets several machines work on one plan, by a database and a git remote.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-fleet", bin_name = "plimsoll fleet", version, max_term_width = 100)]
struct Program {
    #[command(flatten)]
    arguments: FleetArguments,
}

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Create(#[from] create::CreateError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("item {number} of the fleet `{name}` {why}; plimsoll fleet status {name} shows the items")]
    Item { name: String, number: usize, why: &'static str },
    #[error("the answer is empty: plimsoll fleet answer {name} {item} TEXT, or - for standard input")]
    EmptyAnswer { name: String, item: usize },
    #[error("the fleet `{name}` is over ({how}): it goes on no more")]
    Over { name: String, how: String },
    #[error("nothing was done")]
    NotSure,
}

/// Does what the arguments of this process say.
pub fn main() -> ExitCode {
    signals::survive_file_size_limit();
    if asks_for_build() {
        say(Build::own("plimsoll-fleet").to_json());
        return ExitCode::SUCCESS;
    }
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return misread(&error),
    };
    let done = match &program.arguments.verb {
        FleetVerb::Join(arguments) => Ok(join::join(arguments)),
        FleetVerb::Create(arguments) => create::create(arguments),
        FleetVerb::Status(arguments) => status::status(arguments),
        FleetVerb::Log(arguments) => log::log(arguments),
        FleetVerb::Report(arguments) => report::report(arguments),
        FleetVerb::Answer(arguments) => answer::answer(arguments),
        FleetVerb::Reopen(arguments) => answer::reopen(arguments),
        FleetVerb::Drain(arguments) => steer::drain(arguments),
        FleetVerb::Resume(arguments) => steer::resume(arguments),
        FleetVerb::Stop(arguments) => steer::stop(arguments),
        FleetVerb::Forget(arguments) => forget::forget(arguments),
        FleetVerb::Check(arguments) => check::check(arguments),
    };
    done.unwrap_or_else(|error| refused(&error))
}

/// Asks the database that the user's environment names.
fn ask<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce(Database) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    within(ANSWER, found::find_settings()?, doing, |settings| work(Database::connect(settings)?))
}

/// Asks about a fleet in it.
fn ask_fleet<T: Send + 'static>(
    name: &str,
    doing: &'static str,
    work: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    let name = name.to_owned();
    ask(doing, move |database| work(&mut Fleet::open(database, &name)?))
}

/// Says what went wrong and what to do: exit code 1.
fn refused(error: &CommandError) -> ExitCode {
    match error.hint() {
        Some(hint) => fail(format!("{error}\nhint: {hint}")),
        None => fail(error),
    }
}

impl CommandError {
    fn hint(&self) -> Option<String> {
        match self {
            CommandError::Fleet(error) => error.hint(),
            CommandError::Create(error) => error.hint(),
            CommandError::Input(_)
            | CommandError::Item { .. }
            | CommandError::EmptyAnswer { .. }
            | CommandError::Over { .. }
            | CommandError::NotSure => None,
        }
    }
}
