//! Our hooks as a plugin brings them. Where the client has the same program from a settings file or from `plimsoll run`,
//! the plugin's gives way: nothing is done twice. Of two servers with one command the client itself starts only one.

use crate::hook_invocation::SESSION_VARIABLE;
use crate::install::places::{hooks_in, settings_files};
use plimsoll_domain::SessionId;
use plimsoll_store::{Project, environment};

/// The word by which the plugin's entries start our programs.
const WORD: &str = "--plugin";
/// By this variable `plimsoll run` says to which session it gives hooks of its own, and which programs.
const GIVEN_VARIABLE: &str = "PLIMSOLL_HOOKS_GIVEN";

/// Whose entry started a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// A settings file's, or one that `plimsoll run` gave to the client.
    ByHand,
    /// The plugin's.
    ByPlugin,
}

impl HookOrigin {
    /// By the arguments of the program.
    pub fn of(arguments: &[String]) -> HookOrigin {
        if arguments.iter().any(|argument| argument == WORD) {
            HookOrigin::ByPlugin
        } else {
            HookOrigin::ByHand
        }
    }
}

/// True if the client starts this program by itself, too. Sessions that a run's session begins inherit its variable,
/// and not its hooks.
pub fn gives_way(program: &str) -> bool {
    let given = environment::variable(GIVEN_VARIABLE).unwrap_or_default();
    let session = environment::variable(SESSION_VARIABLE).unwrap_or_default();
    let names = |project: Project| {
        settings_files(project.root()).any(|file| hooks_in(&file).iter().any(|hook| hook.program == program))
    };
    // The client runs identical commands once, but the plugin's has one word more, so both would run.
    is_given(&given, &session, program) || Project::of_hook(None).is_ok_and(names)
}

/// The variable for a session of a run that is given these programs.
pub(crate) fn given(session: &SessionId, programs: &[String]) -> (String, String) {
    (GIVEN_VARIABLE.to_owned(), format!("{session} {}", programs.join(" ")))
}

fn is_given(given: &str, session: &str, program: &str) -> bool {
    let mut words = given.split(' ');
    words.next().is_some_and(|given_to| given_to == session && !session.is_empty())
        && words.any(|given| given == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_its_hooks_to_its_own_session_alone() {
        let (_, given) =
            given(&"s-1".into(), &["plimsoll-frame".to_owned(), "plimsoll-stop-gate".to_owned()]);
        for (session, program, expected) in [
            ("s-1", "plimsoll-frame", true),
            ("s-1", "plimsoll-stop-gate", true),
            ("s-1", "plimsoll-memory", false),
            ("s-1", "s-1", false),
            ("s-2", "plimsoll-frame", false),
            ("", "plimsoll-frame", false),
        ] {
            assert_eq!(is_given(&given, session, program), expected, "{session} {program}");
        }
        assert!(!is_given("", "", "plimsoll-frame"));
    }
}
