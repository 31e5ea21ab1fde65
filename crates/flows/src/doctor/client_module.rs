//! Collects whether our module is installed and loaded, and the modules of other plugins.

use super::plugins::{EnabledPlugin, module_file_of_plugin};
use super::{DoctorInput, SettingsFiles, path_relative_to_project_or_home};
use crate::client_modules::{find_other_modules_that_change_sessions, plugin_switches};
use crate::install::client_module::{InstalledModule, find_installed_module};
use plimsoll_domain::{Settings, settings::CompactionChoice};
use plimsoll_policy::client_modules::INSTALLED_MODULE_PLUGIN;
use plimsoll_policy::doctor::{
    InstalledModuleInfo, ModuleInfo, ModuleLoadStatus, PluginInfo, SettingsFile,
    deciding_file_if_it_disables_all_hooks,
};
use plimsoll_store::{clock, config, disk, environment};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Environment variables that switch off automatic compaction.
const AUTO_COMPACT_VARIABLES: [&str; 2] = ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"];

pub(super) fn collect_module_info(
    input: &DoctorInput<'_>,
    settings_files: &SettingsFiles,
    enabled_plugins: &[EnabledPlugin],
    our_plugin: Option<&PluginInfo>,
) -> ModuleInfo {
    let installed = find_installed_module();
    let plugin_module =
        our_plugin.and_then(|plugin| Some((plugin, module_file_of_plugin(&plugin.name, enabled_plugins)?)));
    let (plugin, plugin_module_file) = plugin_module.unzip();
    let summaries = || settings_files.iter().filter_map(SettingsFile::summary_if_parsed);
    let display = |path: &Path| path_relative_to_project_or_home(input.project, path);
    let disabling_file =
        settings_files.iter().filter_map(|file| Some((file.path.as_str(), file.summary_if_parsed()?)));
    ModuleInfo {
        load_status: load_status_of_last_session(input, installed.as_ref(), plugin_module_file.as_ref()),
        hooks_disabling_file: deciding_file_if_it_disables_all_hooks(disabling_file).map(str::to_owned),
        plugin_disabling_file: installed
            .as_ref()
            .and_then(|_| find_settings_file_that_disables_module(settings_files)),
        is_auto_compact_off: is_auto_compact_off(input, settings_files),
        setting_that_needs_module: setting_that_needs_module(&config::load_settings(input.project).0),
        other_modules: find_other_modules_that_change_sessions(input.project, &plugin_switches(summaries()))
            .into_iter()
            .map(|file| (file.module, display(&file.path)))
            .collect(),
        installed: installed
            .map(|module| InstalledModuleInfo { folder: display(&module.folder), version: module.version }),
        plugin: plugin.map(|plugin| plugin.name.clone()),
    }
}

fn setting_that_needs_module(settings: &Settings) -> Option<&'static str> {
    match (settings.compaction, settings.handoff_at) {
        (CompactionChoice::Client, None) => None,
        (CompactionChoice::Client, Some(_)) => Some("handoff_at"),
        (CompactionChoice::Ask | CompactionChoice::Handoff, _) => Some("compaction"),
    }
}

/// Returns the settings file that decides about the module of `init`, if it switches the module off.
fn find_settings_file_that_disables_module(settings_files: &SettingsFiles) -> Option<String> {
    let mut decisions = settings_files.iter().filter_map(|file| {
        let is_enabled = file.summary_if_parsed()?.plugins.get(INSTALLED_MODULE_PLUGIN)?;
        Some((file, *is_enabled))
    });
    decisions.next().filter(|(_, is_enabled)| !is_enabled).map(|(file, _)| file.path.clone())
}

fn is_auto_compact_off(input: &DoctorInput<'_>, settings_files: &SettingsFiles) -> bool {
    let is_on = |value: &String| !["", "0", "false", "no", "off"].contains(&value.to_lowercase().as_str());
    let summaries = || settings_files.iter().filter_map(SettingsFile::summary_if_parsed);
    let is_switched_off_by = |name: &&str| {
        environment::is_variable_on(name)
            || summaries().any(|summary| summary.env.get(*name).is_some_and(is_on))
    };
    config::load_client_settings(input.project).auto_compact_enabled == Some(false)
        || AUTO_COMPACT_VARIABLES.iter().any(is_switched_off_by)
}

/// Returns whether the recorded session loaded the module. A session that began before the module was installed, or
/// that has only just begun, cannot tell.
fn load_status_of_last_session(
    input: &DoctorInput<'_>,
    installed: Option<&InstalledModule>,
    plugin_module_file: Option<&PathBuf>,
) -> ModuleLoadStatus {
    let record = input.session_record;
    if let Some(reported_at) = &record.start.module_reported_at {
        return ModuleLoadStatus::Loaded(reported_at.clone());
    }
    let module_files = installed.map(|module| &module.module_file).into_iter().chain(plugin_module_file);
    // With two copies, the older one has been there for longer.
    let installed_at = module_files.filter_map(|file| disk::modified_at(file)).min();
    let started_at = record.start.started_at.as_ref().and_then(clock::parse_timestamp);
    let began_after_installation = started_at
        .zip(installed_at)
        .is_some_and(|(started_at, installed_at)| SystemTime::from(started_at) > installed_at);
    // The module reports when a session starts, so one that has come this far would have done so.
    let has_got_going =
        record.usage.last_reading.is_some() || record.end.stop.is_some() || record.end.ended_at.is_some();
    let is_session_of_run = record.start.run_id.is_some();
    if began_after_installation && has_got_going && !is_session_of_run {
        ModuleLoadStatus::NotLoaded
    } else {
        ModuleLoadStatus::Unknown
    }
}
