//! `plimsoll doctor`: collects the facts about programs, client, settings, disk, context window and run
//! without writing anything; `plimsoll_policy::doctor` judges them.

mod client_module;
mod disk;
mod memory;
mod plugins;
mod programs;
mod settings;
mod window;

use plimsoll_domain::{SessionRecord, Timestamp};
use plimsoll_policy::doctor::{
    ClientInfo, HookFailureInTranscript, HookFailures, InspectionError, LinearInfo, LinearProgram,
    PreferenceInfo, RunInfo, RunProcess, SettingsFile, StopHook, is_windows_program,
};
pub use plimsoll_policy::doctor::{
    Diagnostics, Finding, ModuleInfo, ModuleLoadStatus, ProgramInfo, ProgramStatus, Section, Severity,
    has_problem, render_conclusion_line, run_installation_checks,
};
use plimsoll_store::{
    Project, StoreError, clock, config, environment, hook_failures, lock, outbox, state_file, tail, volume,
};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct DoctorInput<'a> {
    pub project: &'a Project,
    /// The client's program, if the user named one.
    pub client_path: Option<&'a Path>,
    /// The record of the current session.
    pub session_record: &'a SessionRecord,
}

/// How many bytes at the end of the session's transcript are searched for failed hooks.
const MAX_TRANSCRIPT_TAIL_BYTES: u64 = 1024 * 1024;

/// Collects the facts for all sections of the report.
pub fn collect_diagnostics(input: &DoctorInput<'_>) -> Diagnostics {
    let project = input.project;
    let client = find_client_and_query_version(input.client_path);
    let settings_files =
        settings::read_settings_files(project, client.hook_support_assuming_modern_if_missing());
    let enabled_plugins = plugins::find_enabled_plugins(&settings_files);
    let plugin = plugins::find_plugin_with_our_hooks(project, &settings_files, &enabled_plugins);
    let settings = settings::build_settings_check_input(
        &settings_files,
        &client,
        plugin.as_ref().map(|plugin| plugin.name.clone()),
    );
    Diagnostics {
        programs: programs::inspect_installed_programs(project, &settings_files),
        module: client_module::collect_module_info(input, &settings_files, &enabled_plugins, plugin.as_ref()),
        plugin,
        memory: memory::collect_memory_status_if_installed(project, &settings_files),
        linear: collect_linear_status_if_issue_set(project),
        stop_hooks: find_foreign_stop_hooks(project, &settings_files, &enabled_plugins),
        disk: disk::collect_permissions_locks_and_disk_space(project, &settings_files),
        window: window::measure_session_and_resolve_window(input, &settings_files, &client),
        preferences: collect_ignored_keys_and_user_file(project),
        hook_failures: collect_recorded_and_client_hook_failures(input),
        run: collect_run_state_and_process(project),
        client,
        settings,
    }
}

/// Returns the Stop hooks in settings and plugins that are not ours.
fn find_foreign_stop_hooks(
    project: &Project,
    settings_files: &SettingsFiles,
    enabled_plugins: &[plugins::EnabledPlugin],
) -> Vec<StopHook> {
    let hooks_of_file = |file: &SettingsFile| {
        let commands =
            file.summary_if_parsed().map(|summary| summary.foreign_stop_commands.clone()).unwrap_or_default();
        let to_stop_hook = |command| StopHook { file: file.path.clone(), plugin: None, command };
        commands.into_iter().map(to_stop_hook).collect::<Vec<_>>()
    };
    settings_files
        .iter()
        .flat_map(hooks_of_file)
        .chain(plugins::foreign_stop_hooks_of_plugins(project, enabled_plugins))
        .collect()
}

fn find_client_and_query_version(requested_client: Option<&Path>) -> ClientInfo {
    let program = match requested_client {
        Some(path) => environment::find_program(&path.to_string_lossy()),
        None => environment::find_program("claude"),
    };
    let canonical_path = program.as_deref().map(plimsoll_store::disk::canonicalize_or_keep);
    ClientInfo {
        runs_in_windows: volume::is_wsl()
            && canonical_path.is_some_and(|path| is_windows_program(&path.to_string_lossy())),
        is_on_windows: plimsoll_system::IS_WINDOWS,
        requested_program: requested_client.map(|path| path.display().to_string()),
        version_text: program.as_deref().and_then(plimsoll_launcher::query_client_version),
        path: program.map(|path| path.display().to_string()),
    }
}

fn collect_recorded_and_client_hook_failures(input: &DoctorInput<'_>) -> HookFailures {
    let transcript = input.session_record.start.transcript_path.as_ref().map(PathBuf::from);
    let hook_failures =
        transcript.map(|path| tail::read_hook_failures(&path, MAX_TRANSCRIPT_TAIL_BYTES).unwrap_or_default());
    let plimsoll_hook_failures = hook_failures.into_iter().flatten().filter(|failure| {
        plimsoll_protocol::settings::runs_our_program_in_exec_or_shell_form(&failure.command)
    });
    HookFailures {
        recorded_failures: hook_failures::all_hook_failures(input.project),
        client_failures: plimsoll_hook_failures
            .map(|failure| HookFailureInTranscript {
                occurred_at: Timestamp::from(failure.timestamp),
                command: failure.command,
                error: failure.description,
            })
            .collect(),
        recent_cutoff: clock::to_millis_timestamp(clock::now() - chrono::Duration::days(1)),
    }
}

fn collect_run_state_and_process(project: &Project) -> RunInfo {
    let state = state_file::load_state(project, None).map(|state| state.map(Box::new));
    let process = if lock::is_run_locked(project) {
        RunProcess::PlimsollRun(lock::run_lock_holder_pid(project))
    } else {
        let open_run =
            state.as_ref().ok().and_then(Option::as_ref).filter(|state| !state.lifecycle.has_ended());
        match open_run.and_then(|state| crate::run::lifecycle::find_live_client_of_current_iteration(state)) {
            Some(client) => RunProcess::ClientOnly(client.pid),
            None => RunProcess::NoProcess,
        }
    };
    RunInfo {
        is_newer_format: matches!(state, Err(StoreError::NewerFormat { .. })),
        state: state.map_err(|error| InspectionError::new(&error)),
        state_file: project.relative_to_root(project.state_path()),
        process,
    }
}

/// Returns the state of the connection to Linear, or `None` if no Linear issue is set.
fn collect_linear_status_if_issue_set(project: &Project) -> Option<LinearInfo> {
    let settings = config::load_from_current_files(project).settings;
    Some(LinearInfo {
        issue: settings.linear.issue?,
        program: find_linear_program_and_query_status(project),
        has_key: settings.linear.key_command.is_some() || environment::variable("LINEAR_API_KEY").is_some(),
        undelivered_count: outbox::undelivered_note_count_of_all_runs(project),
        last_error: outbox::load_backoff(project).map(|backoff| backoff.last_error),
    })
}

fn find_linear_program_and_query_status(project: &Project) -> LinearProgram {
    match crate::optional_program::find_sibling_or_trusted_program(
        project,
        crate::optional_program::LINEAR_PROGRAM,
    ) {
        Err(error) => {
            LinearProgram::Missing { message: error.to_string(), advice: error.install_hint().to_owned() }
        }
        Ok(path) if path.parent() == environment::executable_folder().as_deref() => {
            LinearProgram::NextToPlimsoll
        }
        Ok(path) => LinearProgram::OnPath {
            status: programs::run_program_to_query_status(&path),
            path: path.display().to_string(),
        },
    }
}

fn collect_ignored_keys_and_user_file(project: &Project) -> PreferenceInfo {
    let ignored = config::load_from_current_files(project).ignored_keys;
    PreferenceInfo {
        ignored_keys: ignored
            .into_iter()
            .map(|(file, ignored_key)| (path_relative_to_project_or_home(project, &file), ignored_key))
            .collect(),
        user_file: config::user_settings_path().map(|file| path_relative_to_project_or_home(project, &file)),
        project_folder: project.root().display().to_string(),
    }
}

/// Shortens a path: relative to the project, or to the home folder with `~`.
fn path_relative_to_project_or_home(project: &Project, path: &Path) -> String {
    if let Ok(path_in_project) = path.strip_prefix(project.root()) {
        return path_in_project.display().to_string();
    }
    let path_below_home =
        environment::home_folder().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    path_below_home
        .map_or_else(|| path.display().to_string(), |path_in_home| format!("~/{}", path_in_home.display()))
}

/// The settings files that exist, the one with the highest precedence first.
type SettingsFiles = [SettingsFile];
