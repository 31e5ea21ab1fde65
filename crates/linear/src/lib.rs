//! RULE: `plimsoll-linear`, one of the optional programs that open connections to other computers. `plimsoll linear` becomes it, and
//! `plimsoll run` starts it to deliver a run's notes. It may be missing: then notes stay in the outbox.
//!
//! It reads the notes that hooks and runs left in the outbox (`plimsoll_store::outbox`), asks `plimsoll_policy::linear` what the
//! comment says, and sends it with [`client`]. A run is one comment, and each delivery sends all of its text.
//!
//! Limits: a note is delivered late or twice rather than lost, and the order of two runs' comments is not kept. Without a key,
//! network or issue it says so, and the run goes on.

mod check;
mod client;
mod deliver;
mod for_run;
mod sync;
mod way;

use plimsoll_domain::Settings;
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::linear::command::LinearCommand;
use plimsoll_store::{Project, config};
use plimsoll_terminal::console::{fail_with, fail_with_store_error, print_text};
use plimsoll_terminal::project_choice::refuse_state_of_other_owner;
use plimsoll_terminal::signals;
use std::process::ExitCode;

const USAGE: &str = "Delivers the notes of Plimsoll's runs to Linear. `plimsoll linear --help` says more.

Usage: plimsoll-linear check             check settings, key, network, issue and permissions
       plimsoll-linear sync [--dry-run]  deliver the notes that wait
       plimsoll-linear --version         print the version; with --json also target and commit
       plimsoll-linear --help            print this

`plimsoll run` starts it to deliver a run's notes.";

/// Does what the arguments of this process say.
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
            Some(command) => run(&command),
            None => fail_with(
                format!("plimsoll-linear does not know the arguments {arguments:?}\n\n{USAGE}"),
                ExitStatus::Usage,
            ),
        },
    }
}

fn run(command: &LinearCommand) -> ExitCode {
    match command {
        LinearCommand::Check => for_user(check::check),
        LinearCommand::Sync { dry_run: true } => for_user(|project, _| sync::show(project)),
        LinearCommand::Sync { dry_run: false } => for_user(sync::sync),
        LinearCommand::Ready { source } => for_run::ready(*source),
        LinearCommand::Deliver { issue, time_limit: within } => for_run::deliver_for_run(issue, *within),
    }
}

fn for_user(action: impl FnOnce(&Project, &Settings) -> ExitCode) -> ExitCode {
    if let Some(code) = refuse_state_of_other_owner(ExitStatus::Failure) {
        return code;
    }
    let project = Project::find_for_command();
    let (settings, complaint) = config::load_settings(&project);
    match &complaint {
        Some(complaint) => fail_with_store_error(complaint),
        None => action(&project, &settings),
    }
}
