//! Precedence among several hook entries for the same program, so that nothing is done twice. A plugin's
//! entries yield to the same programs in a settings file or from `plimsoll run`. A team's entries (with
//! `--guarded`) yield to those of a user's own installation and of a run. The entries of an installation
//! without the working memory yield to a run's entries with it. Of two MCP servers with the same command, the
//! client itself starts only one.

use crate::hook_invocation::{HookInvocation, SESSION_VARIABLE};
use crate::install::install_paths::{our_hooks_in_file, settings_files};
use plimsoll_domain::SessionId;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::settings::{
    EntryOptions, GUARDED_FLAG, MEMORY_ARGUMENT, OurHookEntry, hook_and_status_line_programs,
};
use plimsoll_store::{Project, environment};

/// The argument that the plugin's entries pass to our programs.
const PLUGIN_ARGUMENT: &str = "--plugin";
/// The session for which `plimsoll run` configures hooks, and the programs of these hooks, separated by spaces.
const RUN_HOOKS_VARIABLE: &str = "PLIMSOLL_HOOKS_GIVEN";

/// The kind of hook entry that started this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// An entry of a user's own settings file, or one that `plimsoll run` passed to the client.
    PersonalSettingsOrRun,
    /// An entry in the project's settings that are shared with the team.
    TeamSettings,
    Plugin,
}

impl HookOrigin {
    /// Determines the kind of entry from the program's arguments.
    pub fn from_plugin_flag_or_team_guarded_flag(arguments: &[String]) -> HookOrigin {
        let has_argument = |expected: &str| arguments.iter().any(|argument| argument == expected);
        if has_argument(PLUGIN_ARGUMENT) {
            HookOrigin::Plugin
        } else if has_argument(GUARDED_FLAG) {
            HookOrigin::TeamSettings
        } else {
            HookOrigin::PersonalSettingsOrRun
        }
    }
}

/// The parts of a hook that run in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPartsToRun {
    /// True to run the part that monitors the context window.
    pub runs_usage: bool,
    /// True to run the part for the working memory.
    pub runs_memory: bool,
}

impl HookPartsToRun {
    /// Returns the parts that this program runs. A plugin's or a team's entry skips each part that the client
    /// also starts from an entry with precedence.
    pub fn without_parts_that_other_entries_run(program: &str, arguments: &[String]) -> HookPartsToRun {
        let is_memory_requested = arguments.iter().any(|argument| argument == MEMORY_ARGUMENT);
        let origin = HookOrigin::from_plugin_flag_or_team_guarded_flag(arguments);
        if origin == HookOrigin::PersonalSettingsOrRun {
            return HookPartsToRun { runs_usage: true, runs_memory: is_memory_requested };
        }
        let run_hooks = environment::variable(RUN_HOOKS_VARIABLE).unwrap_or_default();
        let session_id = environment::variable(SESSION_VARIABLE).unwrap_or_default();
        let hooks_of_project = |project: Project| -> Vec<OurHookEntry> {
            let hooks = settings_files(project.root()).flat_map(|file| our_hooks_in_file(&file));
            // In WSL the user's settings may be those of Windows.
            hooks.filter(|hook| plimsoll_system::IS_WINDOWS || !hook.has_windows_path()).collect()
        };
        let configured_hooks =
            Project::from_project_dir_variable_or_cwd(None).map(hooks_of_project).unwrap_or_default();
        // The client runs identical commands only once, but these entries have an additional argument, so without
        // this check both would run.
        let has_precedence = |hook: &&OurHookEntry| origin == HookOrigin::Plugin || !hook.is_team_entry;
        let other_entry_runs = |program: &str| {
            run_hooks_include_program(&run_hooks, &session_id, program)
                || configured_hooks.iter().filter(has_precedence).any(|hook| hook.program == program)
        };
        HookPartsToRun {
            runs_usage: !other_entry_runs(program),
            runs_memory: is_memory_requested && !other_entry_runs(MEMORY_PROGRAM),
        }
    }

    pub fn runs_nothing(self) -> bool {
        self == HookPartsToRun { runs_usage: false, runs_memory: false }
    }
}

/// The hook program that every installation of the working memory has.
const MEMORY_PROGRAM: &str = "plimsoll-memory";

/// Returns the program that handles both usage and memory for an event; `None` if no program handles both.
fn program_for_usage_and_memory(event: &HookEvent) -> Option<&'static str> {
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
        | HookEvent::PreModelSwitch(_)
        | HookEvent::Other(_) => None,
    }
}

/// Returns true if `plimsoll run` has configured a hook for this session that handles both usage and memory at
/// this event. The settings file's entry, which handles only usage, then yields. Only a run counts, because no
/// file in a project may disable the monitor.
pub(crate) fn run_provides_usage_and_memory(invocation: &HookInvocation) -> bool {
    let run_hooks = environment::variable(RUN_HOOKS_VARIABLE).unwrap_or_default();
    program_for_usage_and_memory(invocation.event()).is_some()
        && run_hooks_include_program(&run_hooks, &invocation.session_id, MEMORY_ARGUMENT)
}

/// Returns the environment variable that tells hooks which programs a run's session has configured.
pub(crate) fn run_hooks_variable(session_id: &SessionId, options: EntryOptions) -> (String, String) {
    let mut programs = hook_and_status_line_programs(options);
    programs.extend(options.include_memory.then(|| MEMORY_ARGUMENT.to_owned()));
    (RUN_HOOKS_VARIABLE.to_owned(), format!("{session_id} {}", programs.join(" ")))
}

fn run_hooks_include_program(variable_value: &str, session_id: &str, program: &str) -> bool {
    let mut session_and_programs = variable_value.split(' ');
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
            assert_eq!(
                run_hooks_include_program(run_hooks, session, program),
                expected,
                "{session} {program}"
            );
        }
        assert!(!run_hooks_include_program("", "", "plimsoll-frame"));
    }
}
