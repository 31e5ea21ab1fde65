//! RULE: `plimsoll-linear` is one of the optional programs that open connections to other computers. `plimsoll linear` executes it,
//! and `plimsoll run` starts it to deliver a run's notes. If it is not installed, notes stay in the outbox.
//!
//! It reads the notes that hooks and runs left in the outbox (`plimsoll_store::outbox`), renders the comment with
//! `plimsoll_policy::linear`, and sends it with [`client`]. Each run has one comment, and each delivery sends its full text.
//!
//! Limits: a note may be delivered late or twice, but is not lost. The comments of two runs may be out of order. Without a key,
//! network or issue it reports the problem, and the run continues.

mod check;
mod client;
mod client_setup;
mod commands_for_run;
mod deliver;
mod sync;

use plimsoll_domain::Settings;
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::linear::command::LinearCommand;
use plimsoll_store::{Project, config};
use plimsoll_terminal::command_line::missing_or_unknown_command_message;
use plimsoll_terminal::console::{fail_with, fail_with_store_error, print_text};
use plimsoll_terminal::project_choice::fail_if_project_state_ignored_warn_if_parent;
use plimsoll_terminal::signals;
use std::process::ExitCode;

const USAGE: &str = "Delivers the notes of Plimsoll's runs to Linear. `plimsoll linear --help` says more.

Usage: plimsoll-linear check             check settings, key, network, issue and permissions
       plimsoll-linear sync [--dry-run]  deliver the notes that wait
       plimsoll-linear --version         print the version; with --json also target and commit
       plimsoll-linear --help            print this

`plimsoll run` starts it to deliver a run's notes.";

/// Runs the command that the arguments of this process select.
pub fn main() -> ExitCode {
    signals::turn_file_size_signal_into_error();
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--version" | "-V"] => {
            print_text(format!("plimsoll-linear {}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        ["--version", "--json"] => {
            print_text(BuildInfo::for_current_program("plimsoll-linear").to_json());
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            print_text(USAGE);
            ExitCode::SUCCESS
        }
        _ => match LinearCommand::parse(&arguments) {
            Some(command) => run_command(&command),
            None => fail_with(
                format!("{}\n\n{USAGE}", missing_or_unknown_command_message(&arguments)),
                ExitStatus::Usage,
            ),
        },
    }
}

fn run_command(command: &LinearCommand) -> ExitCode {
    match command {
        LinearCommand::Check => run_for_user_with_settings(check::check_setup_and_print),
        LinearCommand::Sync { dry_run: true } => {
            run_for_user_with_settings(|project, _| sync::print_undelivered_comments(project))
        }
        LinearCommand::Sync { dry_run: false } => run_for_user_with_settings(sync::deliver_notes_for_user),
        LinearCommand::Ready { source } => commands_for_run::check_delivery_setup(*source),
        LinearCommand::Deliver { issue, time_limit } => {
            commands_for_run::deliver_notes_and_print_new_error(issue, *time_limit)
        }
    }
}

fn run_for_user_with_settings(command: impl FnOnce(&Project, &Settings) -> ExitCode) -> ExitCode {
    if let Some(exit_code) = fail_if_project_state_ignored_warn_if_parent(ExitStatus::Failure) {
        return exit_code;
    }
    let project = Project::find_upwards_from_current_dir();
    let (settings, settings_error) = config::load_settings(&project);
    match &settings_error {
        Some(settings_error) => fail_with_store_error(settings_error),
        None => command(&project, &settings),
    }
}
