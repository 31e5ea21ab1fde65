//! `plimsoll linear`: parses its command line, then runs `plimsoll-linear`, the only program that uses the network.

use crate::optional_program::replace_process_with_program;
use clap::{Args, Subcommand};
use plimsoll_flows::linear::command::LinearCommand;
use plimsoll_flows::optional_program::LINEAR_PROGRAM;
use std::process::ExitCode;

/// What is asked about Linear.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinearArguments {
    #[command(subcommand)]
    command: LinearVerb,
}

#[derive(Debug, Subcommand)]
enum LinearVerb {
    /// Check settings, key, network, issue and permissions; writes nothing to Linear
    Check,
    /// Deliver the notes that wait
    Sync {
        /// Print each comment that would be sent; send nothing (needs no key)
        #[arg(long)]
        dry_run: bool,
    },
}

const EXAMPLES: &str = "\
Examples:
  plimsoll linear check            check key, issue, permissions and network
  plimsoll linear sync --dry-run   show what would be sent
  plimsoll linear sync             deliver notes that could not be sent

The issue is `linear.issue` in your own ~/.config/plimsoll/settings.json, for one project below `projects`;
the key is LINEAR_API_KEY, or what `linear.key_command` there prints. A project's own file can name neither.

Exit codes:
  0  all is well, or everything was delivered
  1  something failed; the output says what to do, and notes stay queued";

impl LinearVerb {
    fn to_linear_command(&self) -> LinearCommand {
        match *self {
            LinearVerb::Check => LinearCommand::Check,
            LinearVerb::Sync { dry_run } => LinearCommand::Sync { dry_run },
        }
    }
}

/// Replaces this process with `plimsoll-linear`. Returns exit code 1 if it cannot be started.
pub(crate) fn exec_linear_program(arguments: &LinearArguments) -> ExitCode {
    replace_process_with_program(LINEAR_PROGRAM, &arguments.command.to_linear_command().to_arguments())
}
