//! Entries that yield to others, so that nothing is done twice. A plugin's yield to the same programs from a settings file or
//! from `plimsoll run`; a project's guarded ones, to those of a user's own installation and to a run's; those of an installation
//! without the memory, to a run's with it. Of two servers with one command the client itself starts only one.

use crate::hook_invocation::{HookInvocation, SESSION_VARIABLE};
use crate::install::places::{hooks_in, settings_files};
use plimsoll_domain::SessionId;
use plimsoll_protocol::event::Event;
use plimsoll_protocol::settings::{GUARDED, OurHook, Parts, WITH_MEMORY, programs_of};
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
    /// One that a project's settings have for everybody.
    Guarded,
    /// The plugin's.
    ByPlugin,
}

impl HookOrigin {
    /// By the arguments of the program.
    pub fn of(arguments: &[String]) -> HookOrigin {
        let has = |word: &str| arguments.iter().any(|argument| argument == word);
        if has(WORD) {
            HookOrigin::ByPlugin
        } else if has(GUARDED) {
            HookOrigin::Guarded
        } else {
            HookOrigin::ByHand
        }
    }
}

/// What of an entry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halves {
    /// What the load line does with the event.
    pub load_line: bool,
    /// What the working memory does with it.
    pub memory: bool,
}

impl Halves {
    /// By the program and the arguments of its entry: a plugin's and a guarded one leave out what the client starts by
    /// itself, too.
    pub fn of(program: &str, arguments: &[String]) -> Halves {
        let memory = arguments.iter().any(|argument| argument == WITH_MEMORY);
        let origin = HookOrigin::of(arguments);
        if origin == HookOrigin::ByHand {
            return Halves { load_line: true, memory };
        }
        let given = environment::variable(GIVEN_VARIABLE).unwrap_or_default();
        let session = environment::variable(SESSION_VARIABLE).unwrap_or_default();
        let of_project = |project: Project| -> Vec<OurHook> {
            settings_files(project.root()).flat_map(|file| hooks_in(&file)).collect()
        };
        let named = Project::of_hook(None).map(of_project).unwrap_or_default();
        // The client runs identical commands once, but these have one word more, so both would run.
        let yields_to = |hook: &&OurHook| origin == HookOrigin::ByPlugin || !hook.guarded;
        let is_started = |program: &str| {
            is_given(&given, &session, program)
                || named.iter().filter(yields_to).any(|hook| hook.program == program)
        };
        Halves { load_line: !is_started(program), memory: memory && !is_started(MEMORY_PROGRAM) }
    }

    /// True if nothing runs.
    pub fn is_none(self) -> bool {
        self == Halves { load_line: false, memory: false }
    }
}

/// Every installation of the memory has an entry of this program.
const MEMORY_PROGRAM: &str = "plimsoll-memory";

/// The program that does both halves of an event's work.
fn program_of_both(event: &Event) -> Option<&'static str> {
    match event {
        Event::SessionStart(_) => Some("plimsoll-session-start"),
        Event::PostToolBatch(_) => Some("plimsoll-post-tool"),
        Event::Stop(_) | Event::SubagentStop(_) => Some("plimsoll-stop-gate"),
        Event::SessionEnd { .. }
        | Event::UserPromptSubmit { .. }
        | Event::PreToolUse(_)
        | Event::SubagentStart
        | Event::PostToolUse(_)
        | Event::PostToolUseFailure { .. }
        | Event::StopFailure(_)
        | Event::PreCompact
        | Event::PostCompact
        | Event::Other(_) => None,
    }
}

/// True if `plimsoll run` has given this session an entry that does both halves of an event's work: a settings file's, which
/// does one of them, yields. Only a run's word counts: no file of a project may silence the monitor.
pub(crate) fn is_given_both(call: &HookInvocation) -> bool {
    let given = environment::variable(GIVEN_VARIABLE).unwrap_or_default();
    program_of_both(call.event()).is_some() && is_given(&given, &call.session_id, WITH_MEMORY)
}

/// The variable for a session of a run that is given these entries.
pub(crate) fn given(session: &SessionId, parts: Parts) -> (String, String) {
    let mut words = programs_of(parts);
    words.extend(parts.memory.then(|| WITH_MEMORY.to_owned()));
    (GIVEN_VARIABLE.to_owned(), format!("{session} {}", words.join(" ")))
}

fn is_given(given: &str, session: &str, program: &str) -> bool {
    let mut words = given.split(' ');
    words.next().is_some_and(|given_to| given_to == session && !session.is_empty())
        && words.any(|given| given == program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::settings::HookSupport;

    #[test]
    fn a_run_gives_its_hooks_to_its_own_session_alone() {
        let of = |parts: Parts| given(&"s-1".into(), parts).1;
        let (plain, with_memory) = (of(HookSupport::Modern.into()), of(HookSupport::Modern.with_memory()));
        for (given, session, program, expected) in [
            (&plain, "s-1", "plimsoll-stop-gate", true),
            (&plain, "s-1", "plimsoll-memory", false),
            (&plain, "s-1", WITH_MEMORY, false),
            (&plain, "s-1", "s-1", false),
            (&plain, "s-2", "plimsoll-stop-gate", false),
            (&plain, "", "plimsoll-stop-gate", false),
            (&with_memory, "s-1", "plimsoll-memory", true),
            (&with_memory, "s-1", WITH_MEMORY, true),
            (&with_memory, "s-2", WITH_MEMORY, false),
        ] {
            assert_eq!(is_given(given, session, program), expected, "{session} {program}");
        }
        assert!(!is_given("", "", "plimsoll-frame"));
    }
}
