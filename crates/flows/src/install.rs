//! `init` and `uninstall`: first plans every file with its bytes before and after, then writes.
//!
//! Rules: a user's file is changed only if we can read all of it; the original settings are saved beside the
//! file before the first change; nothing that is not ours is removed.

mod client;
mod command_links;
mod files;
pub mod git_exclude;
mod hook_links;
pub mod hook_precedence;
pub(crate) mod install_paths;
mod memory;
mod program_home;
mod removal;
mod restored_file;
mod slash_commands;
mod team;

use crate::install::git_exclude::ExcludeOutcome;
pub use client::InstalledClient;
pub(crate) use command_links::command_link_folder;
use command_links::plan_command_links;
pub use command_links::{CommandLink, CommandLinks};
pub use files::OwnFileOutcome;
use files::{plan_exclude_lines, plan_own_file};
use install_paths::{InstallPaths, has_our_hooks, has_unguarded_hooks};
pub use memory::{MemoryInstallation, ServerEntryOutcome};
use plimsoll_protocol::settings::{self, EntryOptions, HookSupport, InvalidSettings};
use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{StoreError, environment};
use program_home::program_path_for_settings;
pub(crate) use program_home::{
    are_programs_copied, copy_programs_and_create_hook_links, upgrade_safe_path_or_own_path,
};
pub use program_home::{own_folder_or_permanent_copy, planned_copy_folder, set_up_programs_and_version_link};
pub use removal::{Uninstallation, plan_removal};
pub use restored_file::RestoredFile;
pub use slash_commands::COMMANDS;
use slash_commands::{replace_program_name, shell_word_for_program};
use std::path::{Path, PathBuf};
pub use team::{TeamFiles, plan_team_files};

/// The settings file that is installed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// `.claude/settings.json` of the project, shared by its team: guarded entries, and no status line.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `settings.json` in the user's own client folder.
    User,
}

/// Why nothing, or not everything, was done.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A settings file that cannot be changed safely.
    #[error("{}: {error}", path.display())]
    InvalidSettings {
        path: PathBuf,
        /// The position and the reason.
        error: InvalidSettings,
    },
    /// The working memory needs events that this client does not know.
    #[error("the working memory needs a client from {first} on, and {client}")]
    OldClient {
        /// The first version that supports it.
        first: String,
        /// A description of the client.
        client: String,
    },
    /// `--user` without a home folder.
    #[error("no home directory: neither CLAUDE_CONFIG_DIR nor HOME is set")]
    NoHome,
    /// `--project` in the home folder, whose settings are the user's own.
    #[error("{} is your own settings file, not a project's", path.display())]
    HomeIsNoProject { path: PathBuf },
    /// Another program wrote the file between our reading and our writing.
    #[error("{} was changed by another program in the meantime", path.display())]
    ChangedMeanwhile { path: PathBuf },
}

impl InstallError {
    /// Returns what the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            InstallError::Store(error) => error.hint(),
            InstallError::InvalidSettings { .. } => "nothing was changed; fix the file and try again",
            InstallError::OldClient { .. } => {
                "nothing was changed; update Claude Code, or run `plimsoll init` without --memory"
            }
            InstallError::NoHome => "set HOME, or use --local in a project",
            InstallError::HomeIsNoProject { .. } => "use --user, or go to the project first",
            InstallError::ChangedMeanwhile { .. } => "try again",
        }
    }
}

/// A file that is written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// Its current bytes; `None` if it is missing.
    pub before: Option<Vec<u8>>,
    /// Its new bytes; `None` if it is removed.
    pub after: Option<Vec<u8>>,
}

/// A link that is made, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    pub path: PathBuf,
    /// Its current target; `None` if there is no link.
    pub before: Option<PathBuf>,
    /// Its new target; `None` if it is removed.
    pub after: Option<PathBuf>,
}

/// Everything that will be written, in order, and the report for the user.
#[derive(Debug)]
pub struct InstallPlan<Report> {
    /// In the order of writing; empty if there is nothing to do.
    pub changes: Vec<FileChange>,
    /// Changed after the files.
    pub links: Vec<LinkChange>,
    pub report: Report,
    /// Every file that an installation writes: a killed one may have left drafts of them.
    pub files: Vec<PathBuf>,
}

/// The result of planning an installation.
#[derive(Debug)]
pub struct Installation {
    pub settings_file: PathBuf,
    pub client: InstalledClient,
    /// The client's hook support, which decides the template.
    pub hook_support: HookSupport,
    /// The events that have an entry of ours.
    pub events: Vec<String>,
    /// Number of other programs' entries, which stay.
    pub other_hook_count: usize,
    /// Another status line, which stays.
    pub other_status_line: Option<String>,
    /// True if the file sets `disableAllHooks`.
    pub hooks_disabled: bool,
    /// Other settings files that the client reads here and whose entries of ours also run.
    pub other_settings_files: Vec<PathBuf>,
    /// Preferences and ignore rules, if the entries are for the whole team.
    pub team_files: Option<TeamFiles>,
    /// Where the original settings are saved, if that happens now.
    pub backup_file: Option<PathBuf>,
    pub command_files: Vec<(PathBuf, OwnFileOutcome)>,
    /// The working memory, if it is requested or was installed before.
    pub memory: Option<MemoryInstallation>,
    /// True if the working memory's entries are removed because this client does not know their events.
    pub memory_removed: bool,
    /// The exclude file; `None` for the user's settings, which belong to no project.
    pub exclude_outcome: Option<ExcludeOutcome>,
    /// The links with which a terminal finds the copied programs; `None` if it finds them without.
    pub command_links: Option<CommandLinks>,
    /// Programs that the settings name and that are not installed beside this one.
    pub missing_programs: Vec<PathBuf>,
}

/// The optional parts of an installation.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstallOptions {
    pub install_memory: bool,
    /// True to measure through another status line.
    pub wrap_status_line: bool,
}

/// Plans the installation of our entries for the installed client, with these options. A working memory that
/// is already installed is updated without being requested.
pub fn plan_installation(
    scope: InstallScope,
    project: &Path,
    client: InstalledClient,
    options: InstallOptions,
) -> Result<InstallPlan<Installation>, InstallError> {
    let InstallOptions { install_memory, wrap_status_line } = options;
    let hook_support = client.hook_support();
    if install_memory && hook_support == HookSupport::Classic {
        return Err(client.no_memory_support_error());
    }
    let paths = InstallPaths::for_scope(scope, project)?;
    let all_files = paths.all_files(scope, project);
    let current_bytes = disk::read(&paths.settings_file)?;
    let settings_text = decode_settings(&paths.settings_file, current_bytes.as_deref().unwrap_or_default())?;
    let is_guarded = scope == InstallScope::Project;
    let installed = settings::install(
        settings_text,
        EntryOptions { hook_support, include_memory: install_memory, wrap_status_line, guarded: is_guarded },
        &absolute_command,
    )
    .map_err(|error| InstallError::InvalidSettings { path: paths.settings_file.clone(), error })?;
    let had_memory = settings::find_our_hooks(settings_text)
        .unwrap_or_default()
        .iter()
        .any(settings::OurHookEntry::is_for_memory);
    let mut changes = Vec::new();
    let backup_file = if installed.text == settings_text {
        None
    } else {
        plan_settings_change(&paths, &current_bytes, installed.text, &mut changes)?
    };
    // A project's folder has one file of each kind: if the team's entries are there, the files are the
    // team's.
    let are_shared = is_guarded
        || scope == InstallScope::Local && paths.sibling_settings.as_deref().is_some_and(has_our_hooks);
    let command_files = plan_slash_commands(&paths.command_folder, are_shared, &mut changes)?;
    let plan_memory =
        || memory::plan_memory(&paths, install_memory, are_shared, installed.memory_variable, &mut changes);
    let memory_installation = installed.has_memory.then(plan_memory).transpose()?;
    let exclude_outcome = match scope {
        InstallScope::User => None,
        // The path in them is valid only on this user's machine, so they should not be committed.
        InstallScope::Project | InstallScope::Local => {
            Some(plan_exclude_lines(project, !are_shared, &mut changes)?)
        }
    };
    let team_files = match scope {
        InstallScope::Project => Some(team::plan_preferences_and_gitignore(&paths, project, &mut changes)?),
        InstallScope::User | InstallScope::Local => None,
    };
    changes.retain(|change| change.before != change.after);
    let mut links = Vec::new();
    let report = Installation {
        command_links: plan_command_links(&mut links),
        settings_file: paths.settings_file,
        client,
        hook_support,
        events: installed.events,
        other_hook_count: installed.foreign_hook_count,
        other_status_line: installed.foreign_status_line,
        hooks_disabled: installed.hooks_disabled,
        other_settings_files: files_with_unguarded_hooks(paths.other_settings, is_guarded),
        team_files,
        backup_file,
        command_files,
        memory: memory_installation,
        memory_removed: had_memory && !installed.has_memory,
        exclude_outcome,
        missing_programs: missing_programs(EntryOptions {
            include_memory: installed.has_memory,
            ..hook_support.into()
        }),
    };
    Ok(InstallPlan { changes, links, report, files: all_files })
}

/// Plans the slash commands. They name the program by its path, unless a team shares them.
fn plan_slash_commands(
    folder: &Path,
    are_shared: bool,
    changes: &mut Vec<FileChange>,
) -> Result<Vec<(PathBuf, OwnFileOutcome)>, InstallError> {
    let program_word = shell_word_for_program();
    let file_text =
        |file: &str| if are_shared { file.to_owned() } else { replace_program_name(file, &program_word) };
    COMMANDS.iter().map(|(name, file)| plan_own_file(&folder.join(name), &file_text(file), changes)).collect()
}

/// Plans the new text of the settings, and a backup if the file has no entries of ours. Returns the path of
/// the backup.
fn plan_settings_change(
    paths: &InstallPaths,
    current_bytes: &Option<Vec<u8>>,
    new_text: String,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
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

/// Returns the other settings files whose entries of ours also run. Guarded entries yield to them.
fn files_with_unguarded_hooks(
    settings_files: Vec<(InstallScope, PathBuf)>,
    is_guarded: bool,
) -> Vec<PathBuf> {
    settings_files
        .into_iter()
        .map(|(_, path)| path)
        .filter(|path| !is_guarded && has_unguarded_hooks(path))
        .collect()
}

/// Plans the backup of a file before our first change.
fn plan_backup(path: &Path, bytes: &[u8]) -> Result<FileChange, InstallError> {
    Ok(FileChange { path: path.to_owned(), before: disk::read(path)?, after: Some(bytes.to_vec()) })
}

/// Applies a plan, unless a file has changed since it was read. Removes the drafts of a killed installation
/// or removal.
pub fn apply_plan<Report>(plan: &InstallPlan<Report>) -> Result<(), InstallError> {
    plan.files.iter().for_each(|path| disk::remove_abandoned_drafts_of_file(path));
    let changes = &plan.changes;
    // In the plan's order, the backup before the settings: a kill in between leaves at most an unneeded
    // backup.
    for change in changes {
        if disk::read(&change.path)? != change.before {
            return Err(InstallError::ChangedMeanwhile { path: change.path.clone() });
        }
        match &change.after {
            Some(bytes) => disk::replace(&change.path, bytes, Durability::Durable)?,
            // A link to the file is the user's and stays.
            None => disk::remove_if_exists(&disk::resolve_if_link(&change.path))?,
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
    Ok(())
}

/// Returns the command by which a run's sessions start one of our programs: its bare name if the PATH, which
/// they inherit from the run, leads to the program next to this one, otherwise its path. The client starts
/// only one of two servers with the same command.
pub fn program_name_or_path_for_session(program: &str) -> String {
    let Some(home) = own_folder_or_permanent_copy() else { return program.to_owned() };
    let program_on_path = environment::find_program(program).map(|path| disk::canonicalize_or_keep(&path));
    if program_on_path.as_deref().and_then(Path::parent) == Some(home.as_path()) {
        program.to_owned()
    } else {
        home.join(program).display().to_string()
    }
}

/// Returns the absolute path by which a settings file names one of our programs.
fn absolute_command(program: &str) -> String {
    program_path_for_settings(program).map_or_else(|| program.to_owned(), |path| path.display().to_string())
}

fn decode_settings<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, InstallError> {
    settings::decode_utf8(bytes)
        .map_err(|error| InstallError::InvalidSettings { path: path.to_owned(), error })
}

fn missing_programs(options: EntryOptions) -> Vec<PathBuf> {
    let Some(home) = own_folder_or_permanent_copy() else { return Vec::new() };
    let mut names = settings::program_names(options);
    names.extend(options.include_memory.then(|| settings::servers::SERVER_PROGRAM.to_owned()));
    let paths = names.into_iter().map(|program| home.join(program));
    paths.filter(|path| !program_home::will_exist_after_setup(path)).collect()
}
