//! The settings files that the client reads here, in order of precedence.

use super::{SettingsFiles, path_relative_to_project_or_home};
use plimsoll_policy::doctor::{ClientInfo, InspectionError, SettingsFile, SettingsInfo, SettingsScope};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_store::{Project, config, disk, environment};
use std::path::{Path, PathBuf};

/// Reads the settings files that exist, each file once.
pub(super) fn read_settings_files(project: &Project, hook_support: HookSupport) -> Vec<SettingsFile> {
    let mut read_paths: Vec<PathBuf> = Vec::new();
    let mut settings_files = Vec::new();
    for (scope, path) in settings_paths_by_precedence(project) {
        // If the project is the home folder, the project's settings file is also the user's.
        let canonical_path = disk::canonicalize_or_keep(&path);
        if read_paths.contains(&canonical_path) {
            continue;
        }
        settings_files.extend(read_settings_file_if_exists(project, scope, &path, hook_support));
        read_paths.push(canonical_path);
    }
    settings_files
}

/// Returns the paths of the settings files, highest precedence first. An administrator's drop-in file precedes the file
/// that it overrides.
fn settings_paths_by_precedence(project: &Project) -> Vec<(SettingsScope, PathBuf)> {
    let managed_folder = config::managed_settings_folder();
    let drop_in_folder = managed_folder.join("managed-settings.d");
    let names = disk::list_names(&drop_in_folder).into_iter().rev();
    let names = names.filter(|name| name.ends_with(".json") && !name.starts_with('.'));
    let claude_folder = project.root().join(".claude");
    let mut paths: Vec<(SettingsScope, PathBuf)> =
        names.map(|name| (SettingsScope::Managed, drop_in_folder.join(name))).collect();
    paths.push((SettingsScope::Managed, managed_folder.join("managed-settings.json")));
    paths.push((SettingsScope::Local, claude_folder.join("settings.local.json")));
    paths.push((SettingsScope::Project, claude_folder.join("settings.json")));
    paths.extend(
        environment::client_config_folder().map(|folder| (SettingsScope::User, folder.join("settings.json"))),
    );
    paths
}

fn read_settings_file_if_exists(
    project: &Project,
    scope: SettingsScope,
    path: &Path,
    hook_support: HookSupport,
) -> Option<SettingsFile> {
    let bytes = match disk::read(path) {
        Ok(bytes) => bytes?,
        Err(error) => {
            return Some(settings_file_with_read_failure(project, scope, path, InspectionError::new(&error)));
        }
    };
    let text = match settings::decode_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            return Some(settings_file_with_read_failure(project, scope, path, InspectionError::new(&error)));
        }
    };
    Some(SettingsFile {
        path: path_relative_to_project_or_home(project, path),
        scope,
        summary: settings::summarize_settings(text).map_err(|error| InspectionError::new(&error)),
        differences: settings::find_template_differences_if_installed(text, hook_support).unwrap_or_default(),
    })
}

fn settings_file_with_read_failure(
    project: &Project,
    scope: SettingsScope,
    path: &Path,
    failure: InspectionError,
) -> SettingsFile {
    SettingsFile {
        path: path_relative_to_project_or_home(project, path),
        scope,
        summary: Err(failure),
        differences: Vec::new(),
    }
}

pub(super) fn build_settings_check_input(
    settings_files: &SettingsFiles,
    client: &ClientInfo,
    plugin: Option<String>,
) -> SettingsInfo {
    SettingsInfo {
        files: settings_files.to_vec(),
        client_version: client.parsed_version(),
        hook_support: Some(client.hook_support_assuming_modern_if_missing()),
        plugin_name: plugin,
        is_on_windows: client.is_on_windows,
    }
}
