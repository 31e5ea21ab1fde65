//! `plimsoll statusline`: what the status line shows and why, and how it is to look.

mod explain;
mod payload;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// What about it.
#[derive(Debug, Args)]
pub(crate) struct StatusLineArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Tell of each segment its value, where that comes from, and why it is hidden
    #[command(after_help = "What the client hands to a status line may be piped in: \
                            plimsoll statusline explain < payload.json\n\
                            Otherwise the session that was measured last is shown, with what is known of it.")]
    Explain(explain::ExplainArguments),
}

/// Does it.
pub(crate) fn statusline(arguments: &StatusLineArguments) -> ExitCode {
    match &arguments.verb {
        Verb::Explain(arguments) => explain::explain(arguments),
    }
}
