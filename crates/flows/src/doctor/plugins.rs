//! The enabled plugins: ours, and the Stop hooks of the others.

use super::{SettingsFiles, path_relative_to_project_or_home};
use crate::client_modules::{module_files_in, plugin_switches};
use plimsoll_policy::doctor::{PluginInfo, StopHook};
use plimsoll_protocol::settings::{self, plugins, servers};
use plimsoll_store::{Project, disk, environment};
use std::path::{Path, PathBuf};

/// An enabled plugin and its folder.
pub(super) struct EnabledPlugin {
    name: String,
    folder: PathBuf,
}

pub(super) fn find_enabled_plugins(settings_files: &SettingsFiles) -> Vec<EnabledPlugin> {
    let Some(folder) = environment::client_config_folder() else { return Vec::new() };
    let installed_plugins_json =
        disk::read(&folder.join("plugins/installed_plugins.json")).ok().flatten().unwrap_or_default();
    let mut enabled_plugins = Vec::new();
    let summaries = settings_files.iter().filter_map(|file| file.summary_if_parsed());
    let enabled_switches = plugin_switches(summaries).into_iter().filter(|(_, is_enabled)| *is_enabled);
    for (name, _) in enabled_switches {
        let mut folders = plugins::install_paths(&installed_plugins_json, &name);
        folders.dedup();
        enabled_plugins.extend(
            folders.into_iter().map(|folder| EnabledPlugin { name: name.clone(), folder: folder.into() }),
        );
    }
    enabled_plugins
}

/// Finds the plugin that has our hooks.
pub(super) fn find_plugin_with_our_hooks(
    project: &Project,
    settings_files: &SettingsFiles,
    enabled_plugins: &[EnabledPlugin],
) -> Option<PluginInfo> {
    let has_our_hooks = |plugin: &&EnabledPlugin| {
        plugin
            .default_and_manifest_hooks_files()
            .iter()
            .any(|file| plugins::is_our_plugin(&read_text_or_empty(file)))
    };
    let plugin = enabled_plugins.iter().find(has_our_hooks)?;
    let manifest_path = plugin.manifest_path();
    let mcp_json_path = project.root().join(".mcp.json");
    let server_command = servers::server_command(&read_text_or_empty(&mcp_json_path));
    Some(PluginInfo {
        name: plugin.name.clone(),
        version: plugins::manifest_version(&disk::read(&manifest_path).ok().flatten().unwrap_or_default()),
        manifest_file: path_relative_to_project_or_home(project, &manifest_path),
        // The client starts one server for identical commands, so only another command starts a second one.
        other_server_list: server_command
            .filter(|command| {
                command != servers::SERVER_PROGRAM
                    && settings::program_name_at_path(command) == servers::SERVER_PROGRAM
            })
            .map(|_| path_relative_to_project_or_home(project, &mcp_json_path)),
        nesting_limit: super::memory::configured_nesting_limit(settings_files),
    })
}

/// Returns the module file of our plugin, if the plugin has one.
pub(super) fn module_file_of_plugin(name: &str, enabled_plugins: &[EnabledPlugin]) -> Option<PathBuf> {
    let folders = enabled_plugins.iter().filter(|plugin| plugin.name == name).map(|plugin| &plugin.folder);
    folders.flat_map(|folder| module_files_in(folder)).next()
}

/// Returns the Stop hooks of the enabled plugins that are not ours.
pub(super) fn foreign_stop_hooks_of_plugins(
    project: &Project,
    enabled_plugins: &[EnabledPlugin],
) -> Vec<StopHook> {
    let mut hooks = Vec::new();
    for plugin in enabled_plugins {
        let (_, manifest_commands) = plugin.hooks_path_and_stop_commands_in_manifest();
        let manifest_hooks = manifest_commands.into_iter().map(|command| (plugin.manifest_path(), command));
        let files = plugin.default_and_manifest_hooks_files().into_iter();
        let file_hooks = files.flat_map(|file| {
            let commands = plugins::foreign_stop_commands(&read_text_or_empty(&file));
            commands.into_iter().map(move |command| (file.clone(), command))
        });
        hooks.extend(manifest_hooks.chain(file_hooks).map(|(file, command)| StopHook {
            file: path_relative_to_project_or_home(project, &file),
            plugin: Some(plugin.name.clone()),
            command,
        }));
    }
    hooks
}

impl EnabledPlugin {
    fn manifest_path(&self) -> PathBuf {
        self.folder.join(".claude-plugin/plugin.json")
    }

    fn hooks_path_and_stop_commands_in_manifest(&self) -> (Option<String>, Vec<String>) {
        plugins::parse_hooks_path_and_foreign_stop_commands(
            &disk::read(&self.manifest_path()).ok().flatten().unwrap_or_default(),
        )
    }

    /// Returns the default hooks file, and the one that the manifest names.
    fn default_and_manifest_hooks_files(&self) -> Vec<PathBuf> {
        let default_path = self.folder.join("hooks/hooks.json");
        let manifest_hooks_path =
            self.hooks_path_and_stop_commands_in_manifest().0.map(|path| self.folder.join(path));
        let distinct_manifest_hooks_path = manifest_hooks_path
            .filter(|path| disk::canonicalize_or_keep(path) != disk::canonicalize_or_keep(&default_path));
        [default_path].into_iter().chain(distinct_manifest_hooks_path).collect()
    }
}

fn read_text_or_empty(path: &Path) -> String {
    disk::read_text(path).ok().flatten().unwrap_or_default()
}
