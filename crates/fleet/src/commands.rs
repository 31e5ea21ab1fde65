//! The program `plimsoll-fleet`, which `plimsoll fleet` executes. Each subcommand has its own file.
//!
//! Every database operation has a timeout ([`crate::run_with_settings_and_timeout`]).

mod answer;
mod check;
mod clone_remote;
mod create;
mod event_text;
mod fleet_control;
mod fleet_text;
mod forget;
mod join;
mod log;
mod report;
mod status;

use crate::database::Database;
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::settings_loader;
use crate::timeout::{DATABASE_TIMEOUT, run_with_settings_and_timeout};
use clap::{CommandFactory, FromArgMatches, Parser};
use clone_remote::CloneRemoteError;
use plimsoll_domain::build::BuildInfo;
use plimsoll_terminal::command_line::{
    fail_if_runs_are_unsupported, is_help, is_version_json_request, print_clap_help_or_error,
};
use plimsoll_terminal::console::{fail, print_text};
use plimsoll_terminal::fleet_command_line::{FleetArguments, FleetCommand};
use plimsoll_terminal::help_layout::{help_width, with_help_width};
use plimsoll_terminal::signals;
use plimsoll_terminal::standard_input::InputError;
use std::process::ExitCode;

/// Lets several machines work on one plan, by a database and a git remote.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-fleet", bin_name = "plimsoll fleet", version)]
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
    Remote(#[from] CloneRemoteError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("item {number} of the fleet `{name}` {reason}; plimsoll fleet status {name} shows the items")]
    WrongItemState { name: String, number: usize, reason: &'static str },
    #[error("there is no item {number} in the fleet `{name}`, which has {item_count}")]
    NoSuchItem { name: String, number: usize, item_count: String },
    #[error("the answer is empty: plimsoll fleet answer {name} {item} TEXT, or - for standard input")]
    EmptyAnswer { name: String, item: usize },
    #[error("the fleet `{name}` has ended ({end_reason}) and cannot be resumed")]
    FleetEnded { name: String, end_reason: String },
    #[error("nothing was done")]
    NotConfirmed,
    #[error("`fleet {verb}` asks for confirmation, and there is no terminal")]
    NoTerminalToConfirm { name: String, verb: &'static str },
}

/// Runs the subcommand in this process's arguments and returns its exit code. Also answers `--version --json`.
pub fn main() -> ExitCode {
    signals::turn_file_size_signal_into_error();
    if is_version_json_request() {
        print_text(BuildInfo::for_current_program("plimsoll-fleet").to_json());
        return ExitCode::SUCCESS;
    }
    let program = match parse_process_arguments() {
        Ok(program) => program,
        Err(error) => return print_clap_help_or_error(&error),
    };
    if let Some(code) = fail_if_runs_are_unsupported("plimsoll fleet") {
        return code;
    }
    let result = match &program.arguments.command {
        FleetCommand::Join(arguments) => Ok(join::join_fleet(arguments)),
        FleetCommand::Create(arguments) => create::create_fleet(arguments),
        FleetCommand::Status(arguments) => status::print_status(arguments),
        FleetCommand::Log(arguments) => log::print_log(arguments),
        FleetCommand::Report(arguments) => report::print_report(arguments),
        FleetCommand::Answer(arguments) => answer::answer_question_and_reopen_item(arguments),
        FleetCommand::Reopen(arguments) => answer::reopen_set_aside_or_unconfirmed_item(arguments),
        FleetCommand::Drain(arguments) => fleet_control::drain_fleet(arguments),
        FleetCommand::Resume(arguments) => fleet_control::resume_fleet(arguments),
        FleetCommand::Stop(arguments) => fleet_control::confirm_and_stop_fleet_permanently(arguments),
        FleetCommand::Forget(arguments) => forget::confirm_and_delete_fleet(arguments),
        FleetCommand::Check(arguments) => check::check_fleet_and_print_findings(arguments),
    };
    result.unwrap_or_else(|error| fail_with_command_error(&error))
}

fn parse_process_arguments() -> Result<Program, clap::Error> {
    let result = Program::try_parse();
    if !result.as_ref().err().is_some_and(is_help) {
        return result;
    }
    let definition = with_help_width(Program::command(), help_width());
    definition.try_get_matches().and_then(|matches| Program::from_arg_matches(&matches))
}

/// Connects to the database that the environment configures and runs `operation` on it, with a timeout.
fn connect_and_run_with_timeout<T: Send + 'static>(
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
fn open_fleet_and_run_with_timeout<T: Send + 'static>(
    name: &str,
    action: &'static str,
    operation: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, FleetError> {
    let name = name.to_owned();
    connect_and_run_with_timeout(action, move |database| operation(&mut Fleet::open(database, &name)?))
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
            CommandError::NoTerminalToConfirm { name, verb } => {
                Some(format!("plimsoll fleet {verb} {name} --yes"))
            }
            CommandError::NoSuchItem { name, .. } => {
                Some(format!("plimsoll fleet status {name} shows the items"))
            }
            CommandError::Remote(_)
            | CommandError::Input(_)
            | CommandError::WrongItemState { .. }
            | CommandError::EmptyAnswer { .. }
            | CommandError::FleetEnded { .. }
            | CommandError::NotConfirmed => None,
        }
    }
}
