//! Checks the preconditions of a run: arguments, client, hook programs, and the lock that allows only one
//! `plimsoll run`.

use super::{ClientError, ClientSettingsError, LaunchOptions, RunError};
use crate::install::install_paths::{our_hooks_in_file, settings_files};
use crate::install::{
    copy_programs_if_needed_and_create_hook_links, needs_permanent_copy,
    program_folder_or_copy_if_in_npm_or_plugin, program_name_or_path_for_session,
};
use plimsoll_policy::models::{MODEL_OPTION, split_off_option};
use plimsoll_policy::read_only::supports_restricted_mode;
use plimsoll_protocol::settings::{self, EntryOptions, HookSupport, OurHookEntry, agent, servers};
use plimsoll_store::{Project, StoreError, disk, environment, lock, state_file};
use plimsoll_system::paths::program_path;
use std::path::Path;
use std::time::Duration;

/// Arguments that only `plimsoll run` itself may set.
// Each iteration is a fresh session under an id that we choose, and its output is read as stream-json.
const RESERVED_ARGUMENTS: [&str; 10] = [
    "-p",
    "--print",
    "--output-format",
    "--session-id",
    "--resume",
    "-r",
    "--continue",
    "-c",
    "--input-format",
    "--fork-session",
];

/// How long to wait for the run lock: a killed `run` takes a moment to release it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The results of the checks before a run is created or changed: a start that fails leaves no run behind.
#[derive(Debug)]
pub struct Preflight {
    /// The value for `--settings`: our hooks, merged with the user's own `--settings`.
    pub(super) hook_settings: String,
    /// The client's arguments for the working memory's server and agent; empty without the memory.
    pub(super) memory_arguments: Vec<String>,
    /// The other arguments that the user passes on to the client.
    pub(super) client_arguments: Vec<String>,
    /// The model that the user passes on to the client.
    pub(super) user_model: Option<String>,
    /// Which hook events the client supports.
    pub(super) hook_support: HookSupport,
    /// Which of our hook entries each session gets.
    pub(super) entry_options: EntryOptions,
    /// The client's version, as it reports it.
    pub(super) client_version: String,
    /// Held for as long as the run is active.
    pub(super) _run_lock: lock::RunLock,
}

/// Rejects arguments that only `plimsoll run` itself may set.
pub(crate) fn check_reserved_arguments(arguments: &[String]) -> Result<(), RunError> {
    let is_reserved =
        |argument: &&String| RESERVED_ARGUMENTS.contains(&argument.split('=').next().unwrap_or_default());
    match arguments.iter().find(is_reserved) {
        Some(argument) => Err(RunError::ReservedArgument(argument.clone())),
        None => Ok(()),
    }
}

/// Returns the version that the client reports. Fails for another program, and for a client that is too old
/// for our hooks.
pub(crate) fn check_client_version(client: &Path) -> Result<String, ClientError> {
    let version = plimsoll_launcher::query_client_version(client)
        .ok_or_else(|| ClientError::NoVersionOutput(client.to_owned()))?;
    if !version.contains("Claude Code") {
        let version_output =
            plimsoll_domain::text::truncate_end(&plimsoll_domain::text::to_safe_single_line(&version), 80);
        return Err(ClientError::OtherProgram { program: client.to_owned(), version_output });
    }
    match plimsoll_policy::client::unsupported_client_reason(&version) {
        Some(message) => Err(ClientError::TooOld(message)),
        None => Ok(version),
    }
}

/// Fails if the client's version has no restricted mode, which confines a session to the project.
pub(crate) fn check_client_supports_restricted_mode(
    feature: &'static str,
    client: &Path,
    version: &str,
) -> Result<(), ClientError> {
    if supports_restricted_mode(version) {
        return Ok(());
    }
    let version_output =
        plimsoll_domain::text::truncate_end(&plimsoll_domain::text::to_safe_single_line(version), 80);
    Err(ClientError::TooOldForRestrictedMode { feature, program: client.to_owned(), version_output })
}

impl Preflight {
    /// Rejects reviews, one after this many items (0 for none), by a client that cannot confine them to the
    /// project.
    pub fn check_review_support(
        &self,
        options: &LaunchOptions,
        items_per_review: u32,
    ) -> Result<(), RunError> {
        match items_per_review {
            0 => Ok(()),
            _ => {
                Ok(check_client_supports_restricted_mode("--review", &options.client, &self.client_version)?)
            }
        }
    }
}

/// Checks the arguments and the client, installs missing hook programs, and acquires the lock that allows only
/// one `plimsoll run`.
pub fn check_client_prepare_hooks_and_lock_run(
    project: &Project,
    options: &LaunchOptions,
) -> Result<Preflight, RunError> {
    check_reserved_arguments(&options.client_arguments)?;
    let (client_arguments, user_settings) = split_off_option(&options.client_arguments, SETTINGS_FLAG);
    let (client_arguments, user_model) = split_off_option(&client_arguments, MODEL_OPTION);
    let (base_options, client_version) = check_client_and_install_hook_programs(options)?;
    let installed_hooks: Vec<OurHookEntry> =
        settings_files(project.root()).flat_map(|file| our_hooks_in_file(&file)).collect();
    // If the project's settings have memory hooks, ours must have them too: the client runs two entries once
    // only if their command texts are identical.
    let has_memory = base_options.include_memory || installed_hooks.iter().any(OurHookEntry::is_for_memory);
    let entry_options = EntryOptions {
        include_memory: has_memory && base_options.hook_support == HookSupport::Modern,
        ..base_options
    };
    let hook_settings = match user_settings {
        Some(user_settings) => {
            merge_hooks_into_settings(project, &user_settings, entry_options, &installed_hooks)
                .map_err(|error| ClientError::Settings { argument: user_settings, error })?
        }
        None => settings::hooks_settings(entry_options, &installed_or_default_hook_command(&installed_hooks))
            .to_string(),
    };
    let memory_arguments = if base_options.include_memory {
        arguments_for_missing_memory_server_and_agent(project, options)?
    } else {
        Vec::new()
    };
    let _run_lock = lock::acquire_run_lock(project, LOCK_TIMEOUT).map_err(|error| match error {
        StoreError::Locked { .. } => RunError::Busy(active_run_error_suffix(project)),
        error => RunError::Store(error),
    })?;
    let hook_support = base_options.hook_support;
    Ok(Preflight {
        hook_settings,
        memory_arguments,
        client_arguments,
        user_model,
        hook_support,
        entry_options,
        client_version,
        _run_lock,
    })
}

// The client uses only the last `--settings`, so the user's own would turn our hooks off.
const SETTINGS_FLAG: &str = "--settings";

/// Returns the user's settings (JSON, or a file with it) with our hooks merged in.
fn merge_hooks_into_settings(
    project: &Project,
    user_settings_json_or_path: &str,
    entry_options: EntryOptions,
    installed_hooks: &[OurHookEntry],
) -> Result<String, ClientSettingsError> {
    let settings_text = if user_settings_json_or_path.trim_start().starts_with('{') {
        user_settings_json_or_path.to_owned()
    } else {
        disk::read_text(&project.root().join(user_settings_json_or_path))?
            .ok_or(ClientSettingsError::Missing)?
    };
    Ok(settings::install_or_update_our_entries(
        &settings_text,
        entry_options,
        &installed_or_default_hook_command(installed_hooks),
    )?
    .text)
}

/// Returns the end of the error message, which names the active run; empty if there is no readable state.
fn active_run_error_suffix(project: &Project) -> String {
    let state = state_file::load_state(project, None).ok().flatten();
    state.map_or(String::new(), |state| {
        format!(
            ": the run \"{}\" ({}), session {}",
            plimsoll_domain::text::to_safe_single_line(&state.options.task_name),
            state.run_id,
            state.iteration
        )
    })
}

/// Checks the client and installs missing hook programs. Returns the hook entries that the client's version
/// supports, and the version number. The hooks are always passed to the client: identical entries in the project's
/// settings run only once, and an agent's `git clean` cannot remove the passed ones.
fn check_client_and_install_hook_programs(
    options: &LaunchOptions,
) -> Result<(EntryOptions, String), RunError> {
    let client = &options.client;
    let version = check_client_version(client)?;
    let version_output = || plimsoll_domain::text::to_safe_single_line(&version);
    let hook_support = HookSupport::from_client_version_or_classic(&version);
    if options.uses_working_memory && hook_support != HookSupport::Modern {
        return Err(ClientError::TooOldForMemory {
            program: client.clone(),
            version_output: version_output(),
        }
        .into());
    }
    let entry_options =
        if options.uses_working_memory { hook_support.with_memory() } else { hook_support.into() };
    let server_program = options.uses_working_memory.then(|| servers::SERVER_PROGRAM.to_owned());
    let programs: Vec<String> =
        settings::hook_and_status_line_programs(entry_options).into_iter().chain(server_program).collect();
    if needs_permanent_copy() || !missing_programs(&programs).is_empty() {
        copy_programs_if_needed_and_create_hook_links()?;
    }
    let missing_programs = missing_programs(&programs);
    if !missing_programs.is_empty() {
        return Err(RunError::HookProgramsMissing(missing_programs));
    }
    Ok((entry_options, version.split_whitespace().next().unwrap_or_default().to_owned()))
}

/// Returns those of these programs that are neither next to this one nor on the PATH, each once.
fn missing_programs(programs: &[String]) -> Vec<String> {
    let is_missing = |program: &&String| {
        let sibling_path =
            program_folder_or_copy_if_in_npm_or_plugin().map(|folder| program_path(&folder, program));
        !sibling_path.is_some_and(|path| disk::exists(&path)) && environment::find_program(program).is_none()
    };
    let mut missing: Vec<String> = Vec::new();
    for program in programs.iter().filter(is_missing) {
        if !missing.contains(program) {
            missing.push(program.clone());
        }
    }
    missing
}

/// Returns the arguments for the memory's server and agent, without those that the project already defines.
/// Fails if the user passes the same flag, because the client uses only one of each.
fn arguments_for_missing_memory_server_and_agent(
    project: &Project,
    options: &LaunchOptions,
) -> Result<Vec<String>, RunError> {
    let mcp_config_text = disk::read_text(&project.root().join(".mcp.json"))?.unwrap_or_default();
    let has_server = servers::find_server_entry_author(&mcp_config_text).ok().flatten().is_some();
    let has_agent =
        disk::exists(&project.root().join(".claude/agents").join(format!("{}.md", agent::FRAME_AGENT_NAME)));
    let definitions = [
        ("--mcp-config", has_server, servers::mcp_config(&program_name_or_path_for_session)),
        ("--agents", has_agent, agent::agents_flag_value()),
    ];
    let mut arguments = Vec::new();
    for (flag, is_installed, value) in definitions {
        let is_user_flag = |argument: &String| argument.split('=').next() == Some(flag);
        if is_installed {
            continue;
        }
        if options.client_arguments.iter().any(is_user_flag) {
            return Err(ClientError::FlagInUse(flag).into());
        }
        arguments.extend([flag.to_owned(), value.to_string()]);
    }
    Ok(arguments)
}

/// Returns the function that maps a hook program to the command in our settings. An installed entry's command
/// is reused, because the client runs two entries once only if they are identical; otherwise it is the
/// program's name or path. A team entry, in a shared project file, is never identical, and does nothing if a
/// run passes its own entries.
fn installed_or_default_hook_command(installed_hooks: &[OurHookEntry]) -> impl Fn(&str) -> String + '_ {
    move |program| {
        let non_team_hook =
            installed_hooks.iter().find(|hook| hook.program == program && !hook.is_team_entry);
        let runnable_hook = non_team_hook.filter(|hook| environment::find_program(&hook.command).is_some());
        runnable_hook.map_or_else(|| program_name_or_path_for_session(program), |hook| hook.command.clone())
    }
}
