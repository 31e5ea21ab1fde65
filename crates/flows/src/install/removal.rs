//! Plans the removal of everything that an installation wrote.

use super::command_links::plan_link_removal;
use super::files::{OwnFileOutcome, plan_exclude_removal, plan_own_file_removal};
use super::install_paths::{InstallPaths, has_memory_hooks, has_our_hooks};
use super::memory::plan_server_removal;
use super::restored_file::{RestoredFile, plan_stale_backup_removal};
use super::slash_commands::is_unchanged_command;
use super::team;
use super::{COMMANDS, FileChange, InstallError, InstallPlan, InstallScope, decode_settings};
use plimsoll_protocol::settings::{self, OurHookEntry};
use plimsoll_store::disk;
use std::path::{Path, PathBuf};

/// The result of planning an uninstallation.
#[derive(Debug)]
pub struct Uninstallation {
    pub settings_file: PathBuf,
    pub removed_hooks: Vec<OurHookEntry>,
    /// True if our status line is removed.
    pub status_line_removed: bool,
    /// True if the working memory's variable is removed.
    pub variable_removed: bool,
    /// The settings file without our entries; `None` if it had none.
    pub restored_settings: Option<RestoredFile>,
    pub command_files: Vec<(PathBuf, OwnFileOutcome)>,
    /// The project's list of MCP servers without our server, if it had one.
    pub restored_server_list: Option<RestoredFile>,
    /// The agent of a frame, if no other settings file needs it.
    pub agent_file: Option<(PathBuf, OwnFileOutcome)>,
    /// The exclude file, if our lines are removed from it.
    pub changed_exclude_file: Option<PathBuf>,
    /// Another settings file of the project that still needs the commands and the exclude lines.
    pub still_installed_in: Option<PathBuf>,
    /// Another settings file of the project that still needs the working memory.
    pub memory_still_used_in: Option<PathBuf>,
    /// Records of sessions and runs in the project, which the user may keep or delete.
    pub kept_records: Vec<PathBuf>,
    /// True if the user may have added our server to the user's own list, which is not changed.
    pub may_have_manual_server: bool,
    /// Our links in the user's folder of programs that are removed.
    pub removed_links: Vec<PathBuf>,
    /// The shared preferences and ignore rules that are removed.
    pub removed_team_files: Vec<PathBuf>,
    /// Other settings files that the client reads here and that have entries of ours.
    pub other_settings: Vec<(InstallScope, PathBuf)>,
}

/// Plans the removal of everything that an installation wrote.
pub fn plan_removal(
    scope: InstallScope,
    project: &Path,
) -> Result<InstallPlan<Uninstallation>, InstallError> {
    let paths = InstallPaths::for_scope(scope, project)?;
    let mut report = Uninstallation {
        settings_file: paths.settings_file.clone(),
        removed_hooks: Vec::new(),
        status_line_removed: false,
        variable_removed: false,
        restored_settings: None,
        command_files: Vec::new(),
        restored_server_list: None,
        agent_file: None,
        changed_exclude_file: None,
        still_installed_in: paths.sibling_settings.clone().filter(|path| has_our_hooks(path)),
        memory_still_used_in: paths.sibling_settings.clone().filter(|path| has_memory_hooks(path)),
        kept_records: Vec::new(),
        may_have_manual_server: false,
        removed_links: Vec::new(),
        removed_team_files: Vec::new(),
        other_settings: paths
            .other_settings
            .iter()
            .filter(|(_, path)| has_our_hooks(path))
            .cloned()
            .collect(),
    };
    let mut changes = Vec::new();
    if let Some(current_bytes) = disk::read(&paths.settings_file)? {
        remove_from_settings(&paths, &current_bytes, &mut report, &mut changes)?;
    }
    if report.memory_still_used_in.is_none() {
        if let Some((list_path, backup)) = &paths.server_list {
            report.restored_server_list = plan_server_removal(list_path, backup, &mut changes)?;
        }
        report.agent_file = Some(plan_own_file_removal(
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
    if report.still_installed_in.is_none() {
        for (name, file) in COMMANDS {
            let path = paths.command_folder.join(name);
            report.command_files.push(plan_own_file_removal(
                &path,
                |text| is_unchanged_command(text, file),
                &mut changes,
            )?);
        }
        if scope != InstallScope::User {
            report.changed_exclude_file = plan_exclude_removal(project, &mut changes)?;
            report.kept_records = existing_run_files(project);
        }
    }
    let mut links = Vec::new();
    if scope == InstallScope::User {
        report.removed_links = plan_link_removal(&mut links);
    }
    Ok(InstallPlan { changes, links, report, files: paths.all_files(scope, project) })
}

/// Returns the existing files of sessions and runs in a project. Names with a `*` stand for backups and
/// drafts and are skipped.
fn existing_run_files(project: &Path) -> Vec<PathBuf> {
    let names = crate::install::git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    names.map(|name| project.join(name.trim_end_matches('/'))).filter(|path| disk::exists(path)).collect()
}

fn remove_from_settings(
    paths: &InstallPaths,
    current_bytes: &[u8],
    report: &mut Uninstallation,
    changes: &mut Vec<FileChange>,
) -> Result<(), InstallError> {
    let text = decode_settings(&paths.settings_file, current_bytes)?;
    let backup = disk::read(&paths.backup_file)?;
    let original_text = backup.as_deref().and_then(|bytes| settings::decode_utf8(bytes).ok());
    let uninstalled = settings::uninstall(text, original_text)
        .map_err(|error| InstallError::InvalidSettings { path: paths.settings_file.clone(), error })?;
    if uninstalled.removed_hooks.is_empty() && !uninstalled.status_line_removed {
        plan_stale_backup_removal(&paths.backup_file, backup, current_bytes, changes);
        return Ok(());
    }
    let is_untouched =
        original_text.is_some_and(|original| settings::is_unchanged_since_install(original, text));
    let after = match original_text {
        Some(original) if is_untouched => Some(original.to_owned()),
        None if uninstalled.is_empty && backup.is_none() => None,
        _ => Some(uninstalled.text),
    };
    report.removed_hooks = uninstalled.removed_hooks;
    report.status_line_removed = uninstalled.status_line_removed;
    report.variable_removed = uninstalled.variable_removed;
    report.restored_settings = Some(RestoredFile::plan_text_and_remove_restored_backup(
        (&paths.settings_file, current_bytes),
        after,
        (&paths.backup_file, backup),
        changes,
    ));
    Ok(())
}
