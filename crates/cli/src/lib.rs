//! RULE: `plimsoll`, the command. One file per subcommand in `commands`; logic that several of them share is
//! in `plimsoll_flows`.
//!
//! A command parses its arguments (clap), calls a flow or reads files, and describes the result. All terminal
//! output goes through `plimsoll_terminal::console`; `render` makes texts and pages safe to show; `endings`
//! has the texts for each ending of a run. Data is collected first and then rendered by pure functions, so the
//! tests need no terminal.
//!
//! Limits: sentences on a terminal change between versions; scripts use `--json`, the markers and the exit
//! codes. A command reads the files without locking them, so its output shows a single moment.

mod answers;
mod branch;
mod changed_checks;
mod client_usage;
mod commands;
mod endings;
mod foreign_state;
mod full_screen;
mod hook_response_output;
mod journal_lines;
mod linear_reporter;
mod marked_costs;
mod optional_program;
mod other_plans;
mod plan_checks;
mod questions;
mod record_json;
mod render;
mod reported_session;
mod reviews;
mod run_status;
mod target_session;
mod task_arguments;

pub use commands::command_line_definition;
use commands::{CliCommand, CommandLine};
use plimsoll_domain::build::BuildInfo;
use plimsoll_terminal::command_line::{is_version_json_request, print_clap_help_or_error};
use plimsoll_terminal::{console, signals};
use std::process::ExitCode;

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    if is_version_json_request() {
        console::print_text(BuildInfo::for_current_program("plimsoll").to_json());
        return ExitCode::SUCCESS;
    }
    let command = match CommandLine::parse_process_arguments() {
        Ok(command_line) => command_line.command,
        Err(error) => return print_clap_help_or_error(&error),
    };
    if let Some(code) = command.fail_if_unsupported().or_else(|| command.refuse_foreign_state()) {
        return code;
    }
    signals::turn_file_size_signal_into_error();
    // Only commands that the user starts may write the ledger. Hooks and other commands write only the project's
    // state file, whose claims are checked against the ledger.
    let plans_next_session = |command: &CliCommand| matches!(command, CliCommand::Prompt(arguments) if arguments.plans_next_session());
    if matches!(
        command,
        CliCommand::Run(_) | CliCommand::Start(_) | CliCommand::Gate(_) | CliCommand::Stop(_)
    ) || plans_next_session(&command)
    {
        plimsoll_store::ledger::enable_ledger_writes();
    }
    command.run()
}
