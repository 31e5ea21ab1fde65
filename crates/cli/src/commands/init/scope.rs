//! For whom `init` sets up the hooks: as the options say, else as the user says on a terminal, else for the user.

use super::InitArguments;
use plimsoll_flows::install::Scope;
use plimsoll_terminal::console;
use std::io::IsTerminal as _;

/// What is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Hooks, in such a settings file.
    Hooks(Scope),
    /// Preferences and ignore rules for everybody, without hooks.
    TeamFiles,
}

const QUESTION: &str = "\
Set up Plimsoll
  1  for you, in every project      hooks and status line in ~/.claude/settings.json
  2  for you, in this project       hooks and status line in .claude/settings.local.json";
const TEAM: &str =
    "  3  for everybody in this project  preferences and ignore rules to commit; hooks stay each user's own";

pub(super) fn choose(named: Option<Scope>, arguments: &InitArguments) -> Choice {
    match named {
        Some(Scope::Project) if !arguments.entries => Choice::TeamFiles,
        Some(scope) => Choice::Hooks(scope),
        None if console::is_terminal() && std::io::stdin().is_terminal() => {
            ask(!arguments.memory && !arguments.wrap)
        }
        None => Choice::Hooks(Scope::User),
    }
}

/// Asks until there is an answer; Enter alone, and the end of the input, take the first.
fn ask(with_team: bool) -> Choice {
    console::say(QUESTION);
    if with_team {
        console::say(TEAM);
    }
    let numbers = if with_team { "1, 2 or 3" } else { "1 or 2" };
    loop {
        console::ask(format!("Choose {numbers} [1]: "));
        match console::answer().as_deref() {
            None | Some("" | "1") => return Choice::Hooks(Scope::User),
            Some("2") => return Choice::Hooks(Scope::Local),
            Some("3") if with_team => return Choice::TeamFiles,
            Some(_) => {}
        }
    }
}
