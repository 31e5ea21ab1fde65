//! `init` and `uninstall`: first plans every file with its bytes before and after, then writes.
//!
//! A user's file is changed only if all of it can be parsed. The original settings are saved next to the file
//! before the first change. Only our own entries and files are removed.

mod client;
pub(crate) mod client_module;
mod command_links;
mod compaction_setting;
mod files;
pub mod git_exclude;
mod hook_links;
pub mod hook_precedence;
pub(crate) mod install_paths;
mod memory;
mod module_files;
mod program_home;
mod removal;
mod restored_file;
mod slash_commands;
mod team;

use crate::install::git_exclude::ExcludeOutcome;
pub use client::InstalledClient;
use client_module::plan_module_request;
pub use client_module::{
    InstalledModule, ModuleChange, ModuleInstallation, ModuleRemoval, ModuleRequest, SettingOutcome,
    find_installed_module, is_compaction_set_or_unreadable, is_module_installed,
};
pub(crate) use command_links::command_link_folder;
use command_links::plan_links_if_copied_and_no_other_plimsoll;
pub use command_links::{CommandLink, CommandLinks};
pub use files::InstalledFileOutcome;
use files::{plan_exclude_lines_with_or_without_commands, plan_file_unless_user_owned};
use install_paths::{InstallPaths, has_hooks_that_never_yield, has_our_hooks};
use memory::plan_server_entry_and_frame_agent;
pub use memory::{MemoryInstallationReport, ServerEntryOutcome};
pub use plimsoll_domain::settings::CompactionChoice;
use plimsoll_protocol::settings::{
    self, EntryOptions, HookSupport, InvalidSettings, is_plain_in_windows_shells,
};
use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{StoreError, environment};
use plimsoll_system::paths::{program_path, program_path_for_shells};
use program_home::version_link_or_upgrade_safe_program_path;
pub use program_home::{
    copy_programs_and_update_version_link, planned_copy_folder, program_folder_or_copy_if_in_npm_or_plugin,
};
pub(crate) use program_home::{
    copy_programs_if_needed_and_create_hook_links, needs_permanent_copy, upgrade_safe_or_direct_program_path,
};
pub use removal::{UninstallationReport, plan_removal};
pub use restored_file::RestoredFile;
pub use slash_commands::SLASH_COMMAND_FILES;
use slash_commands::{replace_program_in_permission_and_code, shell_quoted_program_path_or_name};
use std::path::{Path, PathBuf};
pub use team::{TeamFiles, plan_team_preferences_and_gitignore};

/// The settings file into which the hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// `.claude/settings.json` of the project, shared by its team. Its entries yield to a user's own, and it has
    /// no status line.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `settings.json` in the user's own client folder.
    User,
}

/// An error of `init` or `uninstall`.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings file is not valid, so it cannot be changed safely.
    #[error("{}: {error}", path.display())]
    InvalidSettings {
        path: PathBuf,
        /// The position and the reason.
        error: InvalidSettings,
    },
    /// The working memory needs hook events that this client does not support.
    #[error("the working memory needs a client from {first} on, and {client}")]
    ClientWithoutMemorySupport {
        /// The first version that supports it.
        first: String,
        /// A description of the client.
        client: String,
    },
    /// `--user` without a home folder.
    #[error("no home directory: neither CLAUDE_CONFIG_DIR nor HOME is set")]
    NoHome,
    /// `--project` was used in the home folder, whose `.claude/settings.json` is the user's own.
    #[error("{} is your own settings file, not a project's", path.display())]
    ProjectIsHomeFolder { path: PathBuf },
    /// Another program changed the file after it was read for the plan.
    #[error("{} was changed by another program in the meantime", path.display())]
    ChangedMeanwhile { path: PathBuf },
}

impl InstallError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            InstallError::Store(error) => error.hint(),
            InstallError::InvalidSettings { .. } => "nothing was changed; fix the file and try again",
            InstallError::ClientWithoutMemorySupport { .. } => {
                "nothing was changed; update Claude Code, or run `plimsoll init` without --memory"
            }
            InstallError::NoHome => "set HOME, or use --local in a project",
            InstallError::ProjectIsHomeFolder { .. } => "use --user, or go to the project first",
            InstallError::ChangedMeanwhile { .. } => "try again",
        }
    }
}

/// A planned write or removal of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// The current content; `None` if there is no file.
    pub before: Option<Vec<u8>>,
    /// The new content; `None` to remove the file.
    pub after: Option<Vec<u8>>,
}

/// A planned creation, replacement or removal of a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    pub path: PathBuf,
    /// The current target; `None` if there is no link.
    pub before: Option<PathBuf>,
    /// The new target; `None` to remove the link.
    pub after: Option<PathBuf>,
}

/// The changes that `init` or `uninstall` will make, and the report for the user.
#[derive(Debug)]
pub struct InstallPlan<Report> {
    /// File changes in the order in which they are applied; empty if no file changes.
    pub changes: Vec<FileChange>,
    /// Link changes, applied after the files.
    pub links: Vec<LinkChange>,
    pub report: Report,
    /// Folders that are removed at the end if they are empty, the subfolders before the folders that contain them.
    pub emptied_folders: Vec<PathBuf>,
    /// Every file that an installation may write. A killed installation may have left temporary files next to
    /// them.
    pub files_with_leftover_temporary_files: Vec<PathBuf>,
}

/// The result of planning an installation.
#[derive(Debug)]
pub struct InstallationReport {
    pub settings_file: PathBuf,
    pub client: InstalledClient,
    /// The client's hook support, which selects the template of the entries.
    pub hook_support: HookSupport,
    /// The events that have an entry of ours.
    pub events: Vec<String>,
    /// Number of hook entries of other programs, which are kept.
    pub other_hook_count: usize,
    /// The status line of another program, which is kept.
    pub other_status_line: Option<String>,
    /// True if the file sets `disableAllHooks`.
    pub hooks_disabled: bool,
    /// Other settings files that the client reads in this project and whose Plimsoll hooks run as well.
    pub other_settings_files: Vec<PathBuf>,
    /// Preferences and ignore rules; `None` unless the hooks are installed for the whole team.
    pub team_files: Option<TeamFiles>,
    /// The backup of the original settings; `None` if this installation writes none.
    pub backup_file: Option<PathBuf>,
    pub command_files: Vec<(PathBuf, InstalledFileOutcome)>,
    /// The working memory; `None` unless it is requested or was installed before.
    pub memory: Option<MemoryInstallationReport>,
    /// True if the working memory's entries are removed because this client does not support their events.
    pub memory_removed: bool,
    /// Our module for the client; `None` if it is neither requested nor installed.
    pub module: Option<ModuleChange>,
    /// The exclude file; `None` for the user's settings, which belong to no project.
    pub exclude_outcome: Option<ExcludeOutcome>,
    /// The links that put the copied programs on the PATH; `None` if no links are needed.
    pub command_links: Option<CommandLinks>,
    /// Programs that the settings name but that will not exist next to this program.
    pub missing_programs: Vec<PathBuf>,
}

/// The optional parts of an installation.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstallOptions {
    pub install_memory: bool,
    /// True to wrap another program's status line, so that usage is read through it.
    pub wrap_status_line: bool,
    /// What to do about our module for the client, which is only in the user's own folder.
    pub module: ModuleRequest,
}

/// Plans the installation of our hooks for the installed client, with these options. A working memory that is
/// already installed is updated even if it is not requested.
pub fn plan_installation(
    scope: InstallScope,
    project: &Path,
    client: InstalledClient,
    options: InstallOptions,
) -> Result<InstallPlan<InstallationReport>, InstallError> {
    let InstallOptions { install_memory, wrap_status_line, module } = options;
    let hook_support = client.hook_support_or_modern_if_missing();
    if install_memory && hook_support == HookSupport::Classic {
        return Err(client.no_memory_support_error());
    }
    let paths = InstallPaths::for_scope(scope, project)?;
    let files_with_leftover_temporary_files = paths.written_or_removed_files(scope, project);
    let current_bytes = disk::read(&paths.settings_file)?;
    let settings_text = decode_settings(&paths.settings_file, current_bytes.as_deref().unwrap_or_default())?;
    let is_team_install = scope == InstallScope::Project;
    let entry_options = EntryOptions {
        hook_support,
        include_memory: install_memory,
        wrap_status_line,
        for_team: is_team_install,
    };
    let updated_settings =
        settings::install_or_update_our_entries(settings_text, entry_options, &absolute_program_path_or_name)
            .map_err(|error| InstallError::InvalidSettings { path: paths.settings_file.clone(), error })?;
    let mut changes = Vec::new();
    let backup_file = plan_settings_and_backup_before_first_install(
        &paths,
        &current_bytes,
        updated_settings.text,
        &mut changes,
    )?;
    let shared_with_team = is_project_scope_or_local_beside_team_hooks(scope, &paths);
    let command_files = plan_slash_command_files(&paths.command_folder, shared_with_team, &mut changes)?;
    let variable = updated_settings.memory_variable;
    let plan_memory_files = || {
        plan_server_entry_and_frame_agent(&paths, install_memory, shared_with_team, variable, &mut changes)
    };
    let memory_installation = updated_settings.has_memory.then(plan_memory_files).transpose()?;
    let mut emptied_folders = Vec::new();
    let (exclude_outcome, module_report) = match scope {
        InstallScope::User => (None, plan_module_request(module, &mut changes, &mut emptied_folders)?),
        InstallScope::Local | InstallScope::Project => {
            // Slash commands with a path are valid only on this user's machine, so they should not be committed.
            let exclude_commands = !shared_with_team;
            (
                Some(plan_exclude_lines_with_or_without_commands(project, exclude_commands, &mut changes)?),
                None,
            )
        }
    };
    let plan_team_files = || team::plan_preferences_and_gitignore(&paths, project, &mut changes);
    let team_files = is_team_install.then(plan_team_files).transpose()?;
    changes.retain(|change| change.before != change.after);
    let mut links = Vec::new();
    let report = InstallationReport {
        command_links: plan_links_if_copied_and_no_other_plimsoll(&mut links),
        settings_file: paths.settings_file,
        client,
        hook_support,
        events: updated_settings.events,
        other_hook_count: updated_settings.foreign_hook_count,
        other_status_line: updated_settings.foreign_status_line,
        hooks_disabled: updated_settings.hooks_disabled,
        other_settings_files: files_whose_hooks_run_beside_new_ones(paths.other_settings, is_team_install),
        team_files,
        backup_file,
        command_files,
        memory: memory_installation,
        memory_removed: has_our_memory_hooks(settings_text) && !updated_settings.has_memory,
        module: module_report,
        exclude_outcome,
        missing_programs: programs_missing_after_setup(EntryOptions {
            include_memory: updated_settings.has_memory,
            ..hook_support.into()
        }),
    };
    Ok(InstallPlan { changes, links, report, emptied_folders, files_with_leftover_temporary_files })
}

/// Returns true if the slash commands and server entries belong to the team. A project has only one set of them, so they
/// do as soon as the team's settings have hooks.
fn is_project_scope_or_local_beside_team_hooks(scope: InstallScope, paths: &InstallPaths) -> bool {
    match scope {
        InstallScope::Project => true,
        InstallScope::Local => paths.sibling_settings.as_deref().is_some_and(has_our_hooks),
        InstallScope::User => false,
    }
}

fn has_our_memory_hooks(settings_text: &str) -> bool {
    let our_hooks = settings::find_our_hooks(settings_text).unwrap_or_default();
    our_hooks.iter().any(settings::OurHookEntry::is_for_memory)
}

/// Plans the files of the slash commands. They name the program by its path, or by its bare name if a team
/// shares them.
fn plan_slash_command_files(
    folder: &Path,
    shared_with_team: bool,
    changes: &mut Vec<FileChange>,
) -> Result<Vec<(PathBuf, InstalledFileOutcome)>, InstallError> {
    let quoted_program = shell_quoted_program_path_or_name();
    let text_to_install = |template: &str| {
        if shared_with_team {
            template.to_owned()
        } else {
            replace_program_in_permission_and_code(template, &quoted_program)
        }
    };
    SLASH_COMMAND_FILES
        .iter()
        .map(|(name, template)| {
            plan_file_unless_user_owned(&folder.join(name), &text_to_install(template), changes)
        })
        .collect()
}

/// Plans the new text of the settings if it differs, and before it a backup if the file has no entries of ours yet.
/// Returns the path of the backup, or `None` if none is planned.
fn plan_settings_and_backup_before_first_install(
    paths: &InstallPaths,
    current_bytes: &Option<Vec<u8>>,
    new_text: String,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
    if current_bytes.as_deref().unwrap_or_default() == new_text.as_bytes() {
        return Ok(None);
    }
    let is_free_of_our_entries = |bytes: &&Vec<u8>| {
        let text = settings::decode_utf8(bytes).unwrap_or_default();
        settings::has_no_plimsoll_entries(text).unwrap_or(false)
    };
    let original_bytes = current_bytes.as_ref().filter(is_free_of_our_entries);
    if let Some(bytes) = original_bytes {
        changes.push(plan_backup(&paths.backup_file, bytes)?);
    }
    let has_backup = original_bytes.is_some();
    let after = Some(new_text.into_bytes());
    changes.push(FileChange { path: paths.settings_file.clone(), before: current_bytes.clone(), after });
    Ok(has_backup.then(|| paths.backup_file.clone()))
}

/// Returns the other settings files whose Plimsoll hooks run in addition to the new ones. Returns none if the
/// new hooks yield to those of other files.
fn files_whose_hooks_run_beside_new_ones(
    settings_files: Vec<(InstallScope, PathBuf)>,
    new_hooks_yield: bool,
) -> Vec<PathBuf> {
    settings_files
        .into_iter()
        .map(|(_, path)| path)
        .filter(|path| !new_hooks_yield && has_hooks_that_never_yield(path))
        .collect()
}

/// Plans the backup of a file before our first change.
fn plan_backup(path: &Path, bytes: &[u8]) -> Result<FileChange, InstallError> {
    Ok(FileChange { path: path.to_owned(), before: disk::read(path)?, after: Some(bytes.to_vec()) })
}

/// Applies a plan. Stops with an error at the first file or link that has changed since it was read. Also
/// removes the temporary files of a killed installation or removal, and folders that become empty.
pub fn apply_plan<Report>(plan: &InstallPlan<Report>) -> Result<(), InstallError> {
    plan.files_with_leftover_temporary_files
        .iter()
        .for_each(|path| disk::remove_leftover_temporary_files_of(path));
    let changes = &plan.changes;
    // The plan lists the backup before the settings, so a kill in between leaves at most an unneeded backup.
    for change in changes {
        if disk::read(&change.path)? != change.before {
            return Err(InstallError::ChangedMeanwhile { path: change.path.clone() });
        }
        match &change.after {
            Some(bytes) => disk::replace(&change.path, bytes, Durability::Durable)?,
            // If the path is a link, the link is the user's and is kept; only its target is removed.
            None => disk::remove_if_exists(&disk::canonicalize_if_link(&change.path))?,
        }
    }
    for link in &plan.links {
        let is_unchanged = disk::read_link_target(&link.path) == link.before;
        if !is_unchanged || link.before.is_none() && disk::exists(&link.path) {
            return Err(InstallError::ChangedMeanwhile { path: link.path.clone() });
        }
        match &link.after {
            Some(target) => disk::replace_link(target, &link.path)?,
            None => disk::remove_if_exists(&link.path)?,
        }
    }
    // The project's root is never removed, even if it is empty.
    let is_in_root =
        |path: &Path| install_paths::FILES_IN_PROJECT_ROOT.iter().any(|name| path.ends_with(name));
    let is_removed_in_subfolder = |change: &&FileChange| change.after.is_none() && !is_in_root(&change.path);
    let removed_files = changes.iter().filter(is_removed_in_subfolder);
    let mut folders: Vec<&Path> = removed_files.filter_map(|change| change.path.parent()).collect();
    // Subfolders before the folders that contain them.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders.into_iter().for_each(disk::remove_empty_folder);
    plan.emptied_folders.iter().for_each(|folder| disk::remove_empty_folder(folder));
    Ok(())
}

/// Returns the command with which a run's sessions start one of our programs: its bare name if the PATH finds
/// the program next to this one, otherwise its path. The sessions inherit the PATH from the run. The bare name
/// is preferred because the client starts only one of two MCP servers with the same command.
pub fn program_name_or_path_for_session(program: &str) -> String {
    let Some(program_folder) = program_folder_or_copy_if_in_npm_or_plugin() else {
        return program.to_owned();
    };
    let program_on_path = environment::find_program(program).map(|path| disk::canonicalize_or_keep(&path));
    if program_on_path.as_deref().and_then(Path::parent) == Some(program_folder.as_path()) {
        program.to_owned()
    } else {
        program_path(&program_folder, program).display().to_string()
    }
}

/// Returns the absolute path of one of our programs for a settings file, or its bare name if the path is
/// unknown.
fn absolute_program_path_or_name(program: &str) -> String {
    version_link_or_upgrade_safe_program_path(program)
        .map_or_else(|| program.to_owned(), |path| program_path_for_shells(&path, is_plain_in_windows_shells))
}

fn decode_settings<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, InstallError> {
    settings::decode_utf8(bytes)
        .map_err(|error| InstallError::InvalidSettings { path: path.to_owned(), error })
}

fn programs_missing_after_setup(options: EntryOptions) -> Vec<PathBuf> {
    let Some(program_folder) = program_folder_or_copy_if_in_npm_or_plugin() else { return Vec::new() };
    let mut names = settings::hook_and_status_line_programs(options);
    names.extend(options.include_memory.then(|| settings::servers::SERVER_PROGRAM.to_owned()));
    let paths = names.into_iter().map(|program| program_path(&program_folder, &program));
    paths.filter(|path| !program_home::will_exist_after_setup(path)).collect()
}
