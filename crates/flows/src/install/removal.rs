//! Plans the removal of everything that an installation wrote.

use super::client_module::{ModuleRemoval, plan_module_removal};
use super::command_links::plan_removal_of_our_links;
use super::files::{InstalledFileOutcome, plan_exclude_lines_removal, plan_file_removal_if_unchanged};
use super::install_paths::{InstallPaths, has_memory_hooks, has_our_hooks};
use super::memory::plan_server_entry_removal;
use super::restored_file::{RestoredFile, plan_redundant_backup_removal};
use super::slash_commands::is_unchanged_except_program_path;
use super::team;
use super::{FileChange, InstallError, InstallPlan, InstallScope, SLASH_COMMAND_FILES, decode_settings};
use plimsoll_protocol::settings::{self, OurHookEntry};
use plimsoll_store::{disk, environment};
use std::path::{Path, PathBuf};

/// The result of planning an uninstallation.
#[derive(Debug)]
pub struct UninstallationReport {
    pub settings_file: PathBuf,
    pub removed_hooks: Vec<OurHookEntry>,
    /// True if our status line is removed.
    pub status_line_removed: bool,
    /// True if the working memory's variable is removed.
    pub variable_removed: bool,
    /// The settings file without our entries; `None` if it has none.
    pub restored_settings: Option<RestoredFile>,
    pub command_files: Vec<(PathBuf, InstalledFileOutcome)>,
    /// The project's list of MCP servers without our server; `None` if it has none.
    pub restored_server_list: Option<RestoredFile>,
    /// The file of the frame agent; `None` if another settings file still needs it.
    pub agent_file: Option<(PathBuf, InstalledFileOutcome)>,
    /// The exclude file from which our lines are removed.
    pub changed_exclude_file: Option<PathBuf>,
    /// Another settings file of the project that still needs the commands and the exclude lines.
    pub sibling_settings_with_hooks: Option<PathBuf>,
    /// Another settings file of the project that still needs the working memory.
    pub sibling_settings_with_memory: Option<PathBuf>,
    /// Records of sessions and runs in the project, which the user may keep or delete.
    pub kept_records: Vec<PathBuf>,
    /// The user's state folder, with the records of all projects, which the user may keep or delete.
    pub kept_state_folder: Option<PathBuf>,
    /// True if the user may have added our server to the user's own list, which is not changed.
    pub may_have_manual_server: bool,
    /// Our module for the client; `None` if it is not installed.
    pub module: Option<ModuleRemoval>,
    /// Our links in `~/.local/bin` that are removed.
    pub removed_links: Vec<PathBuf>,
    /// The shared preferences and ignore rules that are removed.
    pub removed_team_files: Vec<PathBuf>,
    /// Other settings files that the client reads in this project and that have Plimsoll hooks.
    pub other_settings: Vec<(InstallScope, PathBuf)>,
}

impl UninstallationReport {
    /// Returns a report that names the other settings files with our entries, but no removal yet.
    fn before_any_removal(paths: &InstallPaths) -> UninstallationReport {
        UninstallationReport {
            settings_file: paths.settings_file.clone(),
            removed_hooks: Vec::new(),
            status_line_removed: false,
            variable_removed: false,
            restored_settings: None,
            command_files: Vec::new(),
            restored_server_list: None,
            agent_file: None,
            changed_exclude_file: None,
            sibling_settings_with_hooks: paths.sibling_settings.clone().filter(|path| has_our_hooks(path)),
            sibling_settings_with_memory: paths
                .sibling_settings
                .clone()
                .filter(|path| has_memory_hooks(path)),
            kept_records: Vec::new(),
            kept_state_folder: None,
            may_have_manual_server: false,
            module: None,
            removed_links: Vec::new(),
            removed_team_files: Vec::new(),
            other_settings: paths
                .other_settings
                .iter()
                .filter(|(_, path)| has_our_hooks(path))
                .cloned()
                .collect(),
        }
    }
}

/// Plans the removal of everything that an installation wrote.
pub fn plan_removal(
    scope: InstallScope,
    project: &Path,
) -> Result<InstallPlan<UninstallationReport>, InstallError> {
    let paths = InstallPaths::for_scope(scope, project)?;
    let mut report = UninstallationReport::before_any_removal(&paths);
    let mut changes = Vec::new();
    if let Some(current_bytes) = disk::read(&paths.settings_file)? {
        plan_entry_removal_and_fill_report(&paths, &current_bytes, &mut report, &mut changes)?;
    }
    if report.sibling_settings_with_memory.is_none() {
        if let Some((server_list_path, backup_path)) = &paths.server_list {
            report.restored_server_list =
                plan_server_entry_removal(server_list_path, backup_path, &mut changes)?;
        }
        report.agent_file = Some(plan_file_removal_if_unchanged(
            &paths.agent_file,
            |text| text == settings::agent::FRAME_AGENT_FILE,
            &mut changes,
        )?);
    }
    if scope == InstallScope::Project {
        report.removed_team_files =
            team::plan_preferences_and_gitignore_removal(&paths, project, &mut changes)?;
    }
    report.may_have_manual_server =
        scope == InstallScope::User && report.removed_hooks.iter().any(OurHookEntry::is_for_memory);
    if report.sibling_settings_with_hooks.is_none() {
        for (name, file) in SLASH_COMMAND_FILES {
            let path = paths.command_folder.join(name);
            report.command_files.push(plan_file_removal_if_unchanged(
                &path,
                |text| is_unchanged_except_program_path(text, file),
                &mut changes,
            )?);
        }
        if scope != InstallScope::User {
            report.changed_exclude_file = plan_exclude_lines_removal(project, &mut changes)?;
            report.kept_records = existing_run_files(project);
        }
    }
    let (mut links, mut emptied_folders) = (Vec::new(), Vec::new());
    if scope == InstallScope::User {
        report.module = plan_module_removal(&mut changes, &mut emptied_folders)?;
        report.removed_links = plan_removal_of_our_links(&mut links);
        report.kept_state_folder = environment::state_home()
            .map(|home| home.join("plimsoll"))
            .filter(|folder| disk::is_folder(folder));
    }
    Ok(InstallPlan {
        changes,
        links,
        report,
        emptied_folders,
        files_with_leftover_temporary_files: paths.written_or_removed_files(scope, project),
    })
}

/// Returns the existing files of sessions and runs in a project. Skips names with a `*`, which are patterns
/// for backups and drafts.
fn existing_run_files(project: &Path) -> Vec<PathBuf> {
    let names = crate::install::git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    names.map(|name| project.join(name.trim_end_matches('/'))).filter(|path| disk::exists(path)).collect()
}

fn plan_entry_removal_and_fill_report(
    paths: &InstallPaths,
    current_bytes: &[u8],
    report: &mut UninstallationReport,
    changes: &mut Vec<FileChange>,
) -> Result<(), InstallError> {
    let text = decode_settings(&paths.settings_file, current_bytes)?;
    let backup_bytes = disk::read(&paths.backup_file)?;
    let original_text = backup_bytes.as_deref().and_then(|bytes| settings::decode_utf8(bytes).ok());
    let removal_result = settings::remove_our_entries_and_empty_containers(text, original_text)
        .map_err(|error| InstallError::InvalidSettings { path: paths.settings_file.clone(), error })?;
    if removal_result.removed_hooks.is_empty() && !removal_result.status_line_removed {
        plan_redundant_backup_removal(&paths.backup_file, backup_bytes, current_bytes, changes);
        return Ok(());
    }
    let has_no_user_edits =
        original_text.is_some_and(|original| settings::is_unchanged_since_install(original, text));
    let restored_text = match original_text {
        Some(original) if has_no_user_edits => Some(original.to_owned()),
        None if removal_result.is_empty && backup_bytes.is_none() => None,
        _ => Some(removal_result.text),
    };
    report.removed_hooks = removal_result.removed_hooks;
    report.status_line_removed = removal_result.status_line_removed;
    report.variable_removed = removal_result.variable_removed;
    report.restored_settings = Some(RestoredFile::plan_text_and_backup_removal_if_original(
        (&paths.settings_file, current_bytes),
        restored_text,
        (&paths.backup_file, backup_bytes),
        changes,
    ));
    Ok(())
}
