//! The settings files that the client reads here, in order of precedence.

use super::{SettingsFiles, shorten_path};
use plimsoll_policy::doctor::{ClientFacts, ReadFailure, SettingsFacts, SettingsFile, SettingsScope};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_store::{Project, config, disk, environment};
use std::path::{Path, PathBuf};

/// Reads the settings files that exist.
pub(super) fn read_settings_files(project: &Project, hook_support: HookSupport) -> Vec<SettingsFile> {
    let mut seen_paths: Vec<PathBuf> = Vec::new();
    let mut settings_files = Vec::new();
    for (scope, path) in settings_paths(project) {
        // In the home folder, the project's settings are the user's.
        let canonical_path = disk::canonicalize_or_keep(&path);
        if seen_paths.contains(&canonical_path) {
            continue;
        }
        settings_files.extend(read_settings_file(project, scope, &path, hook_support));
        seen_paths.push(canonical_path);
    }
    settings_files
}

/// Returns the paths of the settings files, the one with the highest precedence first: an administrator's
/// drop-in comes before the file that it changes.
fn settings_paths(project: &Project) -> Vec<(SettingsScope, PathBuf)> {
    let managed_folder = Path::new(config::MANAGED_SETTINGS_FOLDER);
    let drop_ins = managed_folder.join("managed-settings.d");
    let names = disk::list_names(&drop_ins).into_iter().rev();
    let names = names.filter(|name| name.ends_with(".json") && !name.starts_with('.'));
    let client_folder = project.root().join(".claude");
    let mut paths: Vec<(SettingsScope, PathBuf)> =
        names.map(|name| (SettingsScope::Managed, drop_ins.join(name))).collect();
    paths.push((SettingsScope::Managed, managed_folder.join("managed-settings.json")));
    paths.push((SettingsScope::Local, client_folder.join("settings.local.json")));
    paths.push((SettingsScope::Project, client_folder.join("settings.json")));
    paths.extend(
        environment::client_config_folder().map(|folder| (SettingsScope::User, folder.join("settings.json"))),
    );
    paths
}

fn read_settings_file(
    project: &Project,
    scope: SettingsScope,
    path: &Path,
    hook_support: HookSupport,
) -> Option<SettingsFile> {
    let bytes = match disk::read(path) {
        Ok(bytes) => bytes?,
        Err(error) => return Some(unreadable_file(project, scope, path, ReadFailure::new(&error))),
    };
    let text = match settings::decode_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => return Some(unreadable_file(project, scope, path, ReadFailure::new(&error))),
    };
    Some(SettingsFile {
        path: shorten_path(project, path),
        scope,
        survey: settings::summarize_settings(text).map_err(|error| ReadFailure::new(&error)),
        differences: settings::find_differences(text, hook_support).unwrap_or_default(),
    })
}

fn unreadable_file(
    project: &Project,
    scope: SettingsScope,
    path: &Path,
    failure: ReadFailure,
) -> SettingsFile {
    SettingsFile { path: shorten_path(project, path), scope, survey: Err(failure), differences: Vec::new() }
}

pub(super) fn gather_settings_facts(
    settings_files: &SettingsFiles,
    client: &ClientFacts,
    plugin: Option<String>,
) -> SettingsFacts {
    SettingsFacts {
        files: settings_files.to_vec(),
        client_version: client.version_numbers(),
        hook_support: Some(client.hook_support()),
        plugin_name: plugin,
    }
}
