//! `plimsoll statusline`: what the status line shows and why, and how it is to look.

mod edit;
mod explain;
mod payload;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// What about it.
#[derive(Debug, Args)]
pub(crate) struct StatusLineArguments {
    #[command(subcommand)]
    subcommand: StatusLineSubcommand,
}

#[derive(Debug, Subcommand)]
enum StatusLineSubcommand {
    /// Choose segments, formats, colours and theme on the full screen, with a live preview
    #[command(
        after_help = "Writes only the settings of the status line: to .claude/plimsoll.json of this project, \
                            or with --user to ~/.config/plimsoll/settings.json. \
                            Commands of your own segments are not written to a project's file, which may not start \
                            programs."
    )]
    Edit(edit::EditArguments),
    /// Show each segment's value, source and visibility
    #[command(after_help = "Examples:
  plimsoll statusline explain                   the session measured last
  plimsoll statusline explain < payload.json    a payload of Claude Code")]
    Explain(explain::ExplainArguments),
}

/// Runs the subcommand.
pub(crate) fn statusline(arguments: &StatusLineArguments) -> ExitCode {
    match &arguments.subcommand {
        StatusLineSubcommand::Edit(arguments) => edit::edit_status_line(arguments),
        StatusLineSubcommand::Explain(arguments) => explain::print_status_line_explanation(arguments),
    }
}
