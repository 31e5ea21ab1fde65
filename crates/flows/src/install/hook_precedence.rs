//! Hook entries that yield to others, so that nothing is done twice. A plugin's entries yield to the same
//! programs from a settings file or from `plimsoll run`. A project's guarded entries yield to those of a
//! user's own installation and of a run. The entries of an installation without the memory yield to a run's
//! entries with it. Of two servers with the same command, the client itself starts only one.

use crate::hook_invocation::{HookInvocation, SESSION_VARIABLE};
use crate::install::install_paths::{our_hooks_in_file, settings_files};
use plimsoll_domain::SessionId;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::settings::{EntryOptions, GUARDED_FLAG, MEMORY_ARGUMENT, OurHookEntry, program_names};
use plimsoll_store::{Project, environment};

/// The argument with which the plugin's entries start our programs.
const PLUGIN_ARGUMENT: &str = "--plugin";
/// Names the session to which `plimsoll run` gives its own hooks, and the programs of these hooks.
const RUN_HOOKS_VARIABLE: &str = "PLIMSOLL_HOOKS_GIVEN";

/// The kind of entry that started a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// An entry of a settings file, or one that `plimsoll run` gave to the client.
    SettingsOrRun,
    /// An entry that a project's settings have for everybody.
    GuardedSettings,
    Plugin,
}

impl HookOrigin {
    /// Recognizes the kind of entry by the program's arguments.
    pub fn from_arguments(arguments: &[String]) -> HookOrigin {
        let has_argument = |expected: &str| arguments.iter().any(|argument| argument == expected);
        if has_argument(PLUGIN_ARGUMENT) {
            HookOrigin::Plugin
        } else if has_argument(GUARDED_FLAG) {
            HookOrigin::GuardedSettings
        } else {
            HookOrigin::SettingsOrRun
        }
    }
}

/// The parts of an entry that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryParts {
    /// The part that monitors the context window.
    pub usage: bool,
    /// The working memory's part.
    pub memory: bool,
}

impl EntryParts {
    /// Returns the parts that run, by the program and its arguments. A plugin's and a guarded entry leave out
    /// what the client also starts from another entry.
    pub fn parts_to_run(program: &str, arguments: &[String]) -> EntryParts {
        let memory = arguments.iter().any(|argument| argument == MEMORY_ARGUMENT);
        let origin = HookOrigin::from_arguments(arguments);
        if origin == HookOrigin::SettingsOrRun {
            return EntryParts { usage: true, memory };
        }
        let run_hooks = environment::variable(RUN_HOOKS_VARIABLE).unwrap_or_default();
        let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
        let hooks_of_project = |project: Project| -> Vec<OurHookEntry> {
            settings_files(project.root()).flat_map(|file| our_hooks_in_file(&file)).collect()
        };
        let configured_hooks = Project::for_hook(None).map(hooks_of_project).unwrap_or_default();
        // The client runs identical commands once, but these have an additional argument, so both would run.
        let yields_to = |hook: &&OurHookEntry| origin == HookOrigin::Plugin || !hook.guarded;
        let runs_elsewhere = |program: &str| {
            run_provides_program(&run_hooks, &session_id, program)
                || configured_hooks.iter().filter(yields_to).any(|hook| hook.program == program)
        };
        EntryParts { usage: !runs_elsewhere(program), memory: memory && !runs_elsewhere(MEMORY_PROGRAM) }
    }

    pub fn runs_nothing(self) -> bool {
        self == EntryParts { usage: false, memory: false }
    }
}

/// Every installation of the memory has an entry of this program.
const MEMORY_PROGRAM: &str = "plimsoll-memory";

/// Returns the program that does both parts of an event's work.
fn program_for_both_parts(event: &HookEvent) -> Option<&'static str> {
    match event {
        HookEvent::SessionStart(_) => Some("plimsoll-session-start"),
        HookEvent::PostToolBatch(_) => Some("plimsoll-post-tool"),
        HookEvent::Stop(_) | HookEvent::SubagentStop(_) => Some("plimsoll-stop-gate"),
        HookEvent::SessionEnd { .. }
        | HookEvent::UserPromptSubmit { .. }
        | HookEvent::PreToolUse(_)
        | HookEvent::SubagentStart
        | HookEvent::PostToolUse(_)
        | HookEvent::PostToolUseFailure { .. }
        | HookEvent::StopFailure(_)
        | HookEvent::PreCompact
        | HookEvent::PostCompact
        | HookEvent::Other(_) => None,
    }
}

/// Returns true if `plimsoll run` has given this session an entry that does both parts of an event's work. A
/// settings file's entry, which does one of them, then yields. Only a run counts: no file of a project may
/// silence the monitor.
pub(crate) fn run_provides_both_parts(invocation: &HookInvocation) -> bool {
    let run_hooks = environment::variable(RUN_HOOKS_VARIABLE).unwrap_or_default();
    program_for_both_parts(invocation.event()).is_some()
        && run_provides_program(&run_hooks, &invocation.session_id, MEMORY_ARGUMENT)
}

/// Returns the variable for a session of a run that gets these entries.
pub(crate) fn run_hooks_variable(session_id: &SessionId, options: EntryOptions) -> (String, String) {
    let mut programs = program_names(options);
    programs.extend(options.include_memory.then(|| MEMORY_ARGUMENT.to_owned()));
    (RUN_HOOKS_VARIABLE.to_owned(), format!("{session_id} {}", programs.join(" ")))
}

fn run_provides_program(run_hooks: &str, session_id: &str, program: &str) -> bool {
    let mut session_and_programs = run_hooks.split(' ');
    session_and_programs
        .next()
        .is_some_and(|listed_session| listed_session == session_id && !session_id.is_empty())
        && session_and_programs.any(|listed_program| listed_program == program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::settings::HookSupport;

    #[test]
    fn a_run_provides_hooks_only_to_its_own_session() {
        let value_for = |parts: EntryOptions| run_hooks_variable(&"s-1".into(), parts).1;
        let (without_memory, with_memory) =
            (value_for(HookSupport::Modern.into()), value_for(HookSupport::Modern.with_memory()));
        for (run_hooks, session, program, expected) in [
            (&without_memory, "s-1", "plimsoll-stop-gate", true),
            (&without_memory, "s-1", "plimsoll-memory", false),
            (&without_memory, "s-1", MEMORY_ARGUMENT, false),
            (&without_memory, "s-1", "s-1", false),
            (&without_memory, "s-2", "plimsoll-stop-gate", false),
            (&without_memory, "", "plimsoll-stop-gate", false),
            (&with_memory, "s-1", "plimsoll-memory", true),
            (&with_memory, "s-1", MEMORY_ARGUMENT, true),
            (&with_memory, "s-2", MEMORY_ARGUMENT, false),
        ] {
            assert_eq!(run_provides_program(run_hooks, session, program), expected, "{session} {program}");
        }
        assert!(!run_provides_program("", "", "plimsoll-frame"));
    }
}
