//! The program `plimsoll-fleet`, which `plimsoll fleet` executes. Each verb has its own file.
//!
//! Every database operation has a timeout ([`crate::run_with_settings_and_timeout`]).

mod answer;
mod check;
mod clone_remote;
mod create;
mod event_text;
mod fleet_text;
mod forget;
mod join;
mod log;
mod report;
mod status;
mod steer;

use crate::database::Database;
use crate::database_fault::FleetError;
use crate::deadline::{DATABASE_TIMEOUT, run_with_settings_and_timeout};
use crate::fleet::Fleet;
use crate::settings_loader;
use clap::Parser;
use plimsoll_domain::build::BuildInfo;
use plimsoll_terminal::command_line::{is_version_json_request, print_clap_error};
use plimsoll_terminal::console::{fail, print_text};
use plimsoll_terminal::fleet_command_line::{FleetArguments, FleetCommand};
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

/// An error of a `plimsoll fleet` command.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Create(#[from] create::CreateError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("item {number} of the fleet `{name}` {reason}; plimsoll fleet status {name} shows the items")]
    WrongItemState { name: String, number: usize, reason: &'static str },
    #[error("the answer is empty: plimsoll fleet answer {name} {item} TEXT, or - for standard input")]
    EmptyAnswer { name: String, item: usize },
    #[error("the fleet `{name}` is over ({end_reason}): it goes on no more")]
    FleetEnded { name: String, end_reason: String },
    #[error("nothing was done")]
    NotConfirmed,
}

/// Runs the command of this process's arguments.
pub fn main() -> ExitCode {
    signals::turn_file_size_signal_into_error();
    if is_version_json_request() {
        print_text(BuildInfo::for_current_program("plimsoll-fleet").to_json());
        return ExitCode::SUCCESS;
    }
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return print_clap_error(&error),
    };
    let result = match &program.arguments.command {
        FleetCommand::Join(arguments) => Ok(join::join_fleet(arguments)),
        FleetCommand::Create(arguments) => create::create_fleet(arguments),
        FleetCommand::Status(arguments) => status::print_status(arguments),
        FleetCommand::Log(arguments) => log::print_log(arguments),
        FleetCommand::Report(arguments) => report::print_report(arguments),
        FleetCommand::Answer(arguments) => answer::answer_question(arguments),
        FleetCommand::Reopen(arguments) => answer::reopen_item_set_aside(arguments),
        FleetCommand::Drain(arguments) => steer::drain_fleet(arguments),
        FleetCommand::Resume(arguments) => steer::resume_fleet(arguments),
        FleetCommand::Stop(arguments) => steer::stop_fleet(arguments),
        FleetCommand::Forget(arguments) => forget::forget_fleet(arguments),
        FleetCommand::Check(arguments) => check::check_fleet(arguments),
    };
    result.unwrap_or_else(|error| fail_with_command_error(&error))
}

/// Connects to the database of the user's environment and runs `operation` on it, with a timeout.
fn run_on_database<T: Send + 'static>(
    action: &'static str,
    operation: impl FnOnce(Database) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    run_with_settings_and_timeout(
        DATABASE_TIMEOUT,
        settings_loader::load_settings_from_environment()?,
        action,
        |settings| operation(Database::connect(settings)?),
    )
}

/// Opens a fleet by name and runs `operation` on it, with a timeout.
fn run_on_fleet<T: Send + 'static>(
    name: &str,
    action: &'static str,
    operation: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    let name = name.to_owned();
    run_on_database(action, move |database| operation(&mut Fleet::open(database, &name)?))
}

/// Prints the error and its hint, and returns exit code 1.
fn fail_with_command_error(error: &CommandError) -> ExitCode {
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
            | CommandError::WrongItemState { .. }
            | CommandError::EmptyAnswer { .. }
            | CommandError::FleetEnded { .. }
            | CommandError::NotConfirmed => None,
        }
    }
}
