//! `plimsoll generate completions`: what a shell needs to complete our command lines, made from their very definitions.

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// For which shell.
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

/// Prints the script.
pub(super) fn completions(arguments: &CompletionsArguments) -> ExitCode {
    let whole = crate::commands::Command::command();
    // The library also completes hidden commands.
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut line = Command::new("plimsoll").version(env!("CARGO_PKG_VERSION")).propagate_version(true);
    line = line.subcommands(shown);
    let mut script = Vec::new();
    generate(arguments.shell, &mut line, "plimsoll", &mut script);
    plimsoll_terminal::console::say(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
