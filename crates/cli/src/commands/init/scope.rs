//! Chooses what `init` sets up: from the options, else from a question on the terminal, else the user's own settings.

use super::InitArguments;
use plimsoll_flows::install::InstallScope;
use plimsoll_terminal::console;
use std::io::IsTerminal as _;

/// The parts that `init` sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetupChoice {
    /// Hooks in the settings file of this scope.
    Hooks(InstallScope),
    /// Preferences and ignore rules for the team, without hooks.
    TeamFiles,
}

const QUESTION: &str = "\
Set up Plimsoll
  1  for you, in every project      hooks and status line in ~/.claude/settings.json
  2  for you, in this project       hooks and status line in .claude/settings.local.json";
const TEAM_OPTION: &str = "  3  for everybody in this project  preferences and ignore rules to commit; each teammate runs `init` for the hooks";

/// Returns `None` if the user ends the input at the question.
pub(super) fn choose_setup(
    selected_scope: Option<InstallScope>,
    arguments: &InitArguments,
) -> Option<SetupChoice> {
    Some(match selected_scope {
        Some(InstallScope::Project) if !arguments.entries => SetupChoice::TeamFiles,
        Some(scope) => SetupChoice::Hooks(scope),
        None if arguments.module || arguments.no_module => SetupChoice::Hooks(InstallScope::User),
        None if can_prompt_user() => return prompt_for_setup(!arguments.memory && !arguments.wrap),
        None => SetupChoice::Hooks(InstallScope::User),
    })
}

/// Returns true if the user sees a question and can answer it.
pub(super) fn can_prompt_user() -> bool {
    console::is_terminal() && std::io::stdin().is_terminal()
}

/// Asks until the answer is valid. An empty line chooses the first option. Returns `None` at the end of the input.
fn prompt_for_setup(allow_team_files: bool) -> Option<SetupChoice> {
    console::print_text(QUESTION);
    if allow_team_files {
        console::print_text(TEAM_OPTION);
    }
    let numbers = if allow_team_files { "1, 2 or 3" } else { "1 or 2" };
    loop {
        console::print_question(format!("Choose {numbers} [1]: "));
        match console::read_answer_line()?.as_str() {
            "" | "1" => return Some(SetupChoice::Hooks(InstallScope::User)),
            "2" => return Some(SetupChoice::Hooks(InstallScope::Local)),
            "3" if allow_team_files => return Some(SetupChoice::TeamFiles),
            _ => {}
        }
    }
}
