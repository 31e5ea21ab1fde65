//! `plimsoll generate completions`: the completion script for a shell, generated from the definition of the command line.

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Arguments of `plimsoll generate completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
scripts/install.sh puts them where your shells look. By hand:

Examples:
  eval \"$(plimsoll generate completions bash)\"    in ~/.bashrc
  eval \"$(plimsoll generate completions zsh)\"     in ~/.zshrc, after compinit
  plimsoll generate completions fish | source     in ~/.config/fish/config.fish";

/// Prints the completion script for the requested shell, without hidden commands.
pub(super) fn print_completions(arguments: &CompletionsArguments) -> ExitCode {
    let definition = crate::commands::CommandLine::command();
    // clap_complete would also complete hidden commands.
    let visible_subcommands = definition.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut visible_definition =
        Command::new("plimsoll").version(env!("CARGO_PKG_VERSION")).propagate_version(true);
    visible_definition = visible_definition.subcommands(visible_subcommands);
    let mut script = Vec::new();
    generate(arguments.shell, &mut visible_definition, "plimsoll", &mut script);
    plimsoll_terminal::console::print_text(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
