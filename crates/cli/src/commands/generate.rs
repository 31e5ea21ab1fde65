//! `plimsoll generate`: files for editors, shells and `man`, generated from the definitions of our settings and command lines.

mod completions;
mod man;
mod schema;

use clap::{Args, Subcommand};
use completions::CompletionsArguments;
use man::ManArguments;
use std::process::ExitCode;

/// Arguments of `plimsoll generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(subcommand)]
    command: GenerateCommand,
}

#[derive(Debug, Subcommand)]
enum GenerateCommand {
    /// Print the JSON Schema of the settings
    #[command(after_help = schema::EXAMPLES)]
    Schema,
    /// Print the completion script for a shell
    Completions(CompletionsArguments),
    /// Print a manual page
    Man(ManArguments),
}

/// Prints the schema, a completion script or a manual page to standard output.
pub(crate) fn print_generated_file(arguments: &GenerateArguments) -> ExitCode {
    match &arguments.command {
        GenerateCommand::Schema => schema::print_schema(),
        GenerateCommand::Completions(arguments) => completions::print_completions(arguments),
        GenerateCommand::Man(arguments) => man::print_man_page(arguments),
    }
}
