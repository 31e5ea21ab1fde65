//! Finds modules of other plugins that the client would load: the plugins that the settings enable, and the folders with a
//! manifest in the user's and the project's skills. The project's plugins load once the user trusts the project
//! (observed on 2.1.329).
//!
//! These files belong to others, and those of a project may be hostile: reads are bounded, and no link is followed out of
//! a plugin's folder.

use crate::install::install_paths::settings_files;
use plimsoll_domain::journal::OtherModule;
use plimsoll_policy::client_modules::{INSTALLED_MODULE_PLUGIN, module_paths, session_changing_events};
use plimsoll_protocol::settings::{SettingsSummary, plugins, summarize_settings};
use plimsoll_store::{Project, disk, environment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How many bytes of a file are searched. Modules are small; a bundled one is searched at its beginning.
const MAX_READ_BYTES: usize = 1024 * 1024;

/// How many folders of skills are examined.
const MAX_SKILL_FOLDERS: usize = 500;

/// The suffix of the client's name for a plugin in a folder of skills.
const SKILLS_SUFFIX: &str = "@skills-dir";

/// `enabledPlugins` of all settings files, by the plugin's name.
pub(crate) type PluginSwitches = BTreeMap<String, bool>;

/// A module of a plugin that the client loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFile {
    pub(crate) module: OtherModule,
    pub(crate) path: PathBuf,
}

/// A plugin, and its folder without links.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PluginFolder {
    name: String,
    folder: PathBuf,
}

/// Merges `enabledPlugins` of settings files, the one with the highest precedence first. The first file that names a
/// plugin decides.
pub(crate) fn plugin_switches<'s>(
    summaries: impl IntoIterator<Item = &'s SettingsSummary>,
) -> PluginSwitches {
    let mut switches = PluginSwitches::new();
    for (plugin, is_enabled) in summaries.into_iter().flat_map(|summary| &summary.plugins) {
        switches.entry(plugin.clone()).or_insert(*is_enabled);
    }
    switches
}

/// Finds the modules of other plugins that change sessions which begin now in this project.
pub(crate) fn find_other_modules_from_settings_files(project: &Project) -> Vec<OtherModule> {
    let texts = settings_files(project.root()).filter_map(|file| disk::read_text(&file).ok().flatten());
    let summaries: Vec<SettingsSummary> = texts.filter_map(|text| summarize_settings(&text).ok()).collect();
    let modules = find_other_modules_that_change_sessions(project, &plugin_switches(&summaries));
    modules.into_iter().map(|file| file.module).collect()
}

/// Finds the modules of other plugins that handle an event which changes a session.
pub(crate) fn find_other_modules_that_change_sessions(
    project: &Project,
    switches: &PluginSwitches,
) -> Vec<ModuleFile> {
    let mut module_files = Vec::new();
    for plugin in enabled_plugin_folders(switches).into_iter().chain(skill_plugin_folders(project, switches))
    {
        for path in plugin.module_files_of_other_plugin() {
            let events = session_changing_events(&read_start_of_text(&path));
            if !events.is_empty() {
                let module = OtherModule { plugin: plugin.name.clone(), events };
                module_files.push(ModuleFile { module, path });
            }
        }
    }
    module_files
}

/// Returns the module files of a plugin: those that its hooks file lists, inside the plugin's folder.
pub(crate) fn module_files_in(plugin_folder: &Path) -> Vec<PathBuf> {
    let folder = disk::canonicalize_or_keep(plugin_folder);
    hooks_files(&folder).iter().flat_map(|file| listed_module_files(&folder, file)).collect()
}

impl PluginFolder {
    /// Returns the plugin's module files; none if the plugin is ours.
    fn module_files_of_other_plugin(&self) -> Vec<PathBuf> {
        let hooks_files = hooks_files(&self.folder);
        let is_ours = hooks_files.iter().any(|file| plugins::is_our_plugin(&read_start_of_text(file)));
        match is_ours {
            true => Vec::new(),
            false => hooks_files.iter().flat_map(|file| listed_module_files(&self.folder, file)).collect(),
        }
    }
}

/// Returns the plugins with a marketplace that the settings enable.
fn enabled_plugin_folders(switches: &PluginSwitches) -> Vec<PluginFolder> {
    let Some(config_folder) = environment::client_config_folder() else { return Vec::new() };
    let installed_plugins_json =
        disk::read(&config_folder.join("plugins/installed_plugins.json")).ok().flatten().unwrap_or_default();
    let enabled_names = switches.iter().filter(|(_, is_enabled)| **is_enabled).map(|(name, _)| name);
    let mut plugin_folders: Vec<PluginFolder> = enabled_names
        .flat_map(|name| {
            let folders = plugins::install_paths(&installed_plugins_json, name).into_iter();
            folders.map(|folder| PluginFolder {
                name: name.clone(),
                folder: disk::canonicalize_or_keep(Path::new(&folder)),
            })
        })
        .collect();
    plugin_folders.dedup();
    plugin_folders
}

/// Returns the plugins in the folders of skills that are not switched off, without the one that `init` writes.
fn skill_plugin_folders(project: &Project, switches: &PluginSwitches) -> Vec<PluginFolder> {
    let user_skills = environment::client_config_folder().map(|folder| (folder.join("skills"), true));
    let project_skills = (project.root().join(".claude/skills"), false);
    let mut plugin_folders: Vec<PluginFolder> = Vec::new();
    for (skills_folder, is_users) in user_skills.into_iter().chain([project_skills]) {
        for folder_name in disk::list_names(&skills_folder).into_iter().take(MAX_SKILL_FOLDERS) {
            let folder = skills_folder.join(&folder_name);
            let Some(name) = plugin_name_with_skills_suffix(&folder) else { continue };
            let is_ours = is_users && name == INSTALLED_MODULE_PLUGIN;
            let folder = disk::canonicalize_or_keep(&folder);
            // In the home folder, the project's skills are the user's.
            let is_known = plugin_folders.iter().any(|plugin| plugin.folder == folder);
            if !is_ours && !is_known && switches.get(&name) != Some(&false) {
                plugin_folders.push(PluginFolder { name, folder });
            }
        }
    }
    plugin_folders
}

/// Returns the client's name for a plugin in a folder of skills; `None` if the folder has no manifest.
fn plugin_name_with_skills_suffix(folder: &Path) -> Option<String> {
    let manifest_path = folder.join(".claude-plugin/plugin.json");
    if !disk::is_file(&manifest_path) {
        return None;
    }
    let manifest: Value = serde_json::from_str(&read_start_of_text(&manifest_path)).unwrap_or_default();
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = manifest.get("name").and_then(Value::as_str).unwrap_or(&folder_name);
    Some(format!("{name}{SKILLS_SUFFIX}"))
}

/// Returns the default hooks file of a plugin, and the one that its manifest names.
fn hooks_files(plugin_folder: &Path) -> Vec<PathBuf> {
    let manifest = read_start_of_text(&plugin_folder.join(".claude-plugin/plugin.json"));
    let (manifest_path, _) = plugins::parse_hooks_path_and_foreign_stop_commands(manifest.as_bytes());
    let mut files = vec![plugin_folder.join("hooks/hooks.json")];
    files.extend(manifest_path.map(|path| plugin_folder.join(path)));
    let mut files: Vec<PathBuf> =
        files.iter().filter_map(|file| path_inside_or_none(plugin_folder, file)).collect();
    files.dedup();
    files
}

fn listed_module_files(plugin_folder: &Path, hooks_file: &Path) -> Vec<PathBuf> {
    let paths = module_paths(&read_start_of_text(hooks_file)).into_iter();
    let files = paths.map(|path| hooks_file.with_file_name("").join(path));
    files.filter_map(|file| path_inside_or_none(plugin_folder, &file)).collect()
}

/// Returns the path of an existing file without links and `..`; `None` if it is not inside the folder.
fn path_inside_or_none(folder: &Path, file: &Path) -> Option<PathBuf> {
    let path = disk::canonicalize_or_keep(file);
    (path.starts_with(folder) && disk::is_file(&path)).then_some(path)
}

fn read_start_of_text(path: &Path) -> String {
    let (bytes, _) = disk::read_chunk_and_next_offset(path, 0, MAX_READ_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
