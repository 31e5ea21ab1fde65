//! `plimsoll generate completions`: what a shell needs to complete our command lines, made from their very definitions.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
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
    let mut script = Vec::new();
    generate(arguments.shell, &mut crate::commands::Command::command(), "plimsoll", &mut script);
    crate::console::say(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
