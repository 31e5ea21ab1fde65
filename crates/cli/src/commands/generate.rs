//! `plimsoll generate`: what editors, shells and `man` read, made from the very definitions of our settings and command
//! lines.

mod completions;
mod man;
mod schema;

use clap::{Args, Subcommand};
use completions::CompletionsArguments;
use man::ManArguments;
use std::process::ExitCode;

/// What is made.
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(subcommand)]
    product: Product,
}

#[derive(Debug, Subcommand)]
enum Product {
    /// Print the JSON Schema of the settings
    #[command(after_help = schema::EXAMPLES)]
    Schema,
    /// Print the completion script for a shell
    Completions(CompletionsArguments),
    /// Print a manual page
    Man(ManArguments),
}

/// Prints it.
pub(crate) fn generate(arguments: &GenerateArguments) -> ExitCode {
    match &arguments.product {
        Product::Schema => schema::schema(),
        Product::Completions(arguments) => completions::completions(arguments),
        Product::Man(arguments) => man::man(arguments),
    }
}
