//! The plugins that are switched on: ours, and what the others do at Stop.

use super::{Files, shown};
use plimsoll_policy::doctor::{PluginFacts, StopHook};
use plimsoll_protocol::settings::{plugins, servers};
use plimsoll_store::{Project, disk, environment};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A plugin in its folder.
pub(super) struct Plugin {
    name: String,
    folder: PathBuf,
}

/// The plugins that are switched on.
pub(super) fn find(found: &Files) -> Vec<Plugin> {
    let Some(folder) = environment::client_folder() else { return Vec::new() };
    let list = disk::read(&folder.join("plugins/installed_plugins.json")).ok().flatten().unwrap_or_default();
    let mut all = Vec::new();
    for name in enabled(found) {
        let mut folders = plugins::folders(&list, name);
        folders.dedup();
        all.extend(folders.into_iter().map(|folder| Plugin { name: name.to_owned(), folder: folder.into() }));
    }
    all
}

/// Ours.
pub(super) fn ours(project: &Project, found: &Files, all: &[Plugin]) -> Option<PluginFacts> {
    let brings_ours =
        |plugin: &&Plugin| plugin.hooks_files().iter().any(|file| plugins::brings_ours(&text_of(file)));
    let plugin = all.iter().find(brings_ours)?;
    let manifest = plugin.manifest();
    let list = project.root().join(".mcp.json");
    let started_by = servers::command(&text_of(&list));
    Some(PluginFacts {
        name: plugin.name.clone(),
        version: plugins::version(&disk::read(&manifest).ok().flatten().unwrap_or_default()),
        manifest: shown(project, &manifest),
        // By the same words the client starts one.
        other_server: started_by
            .filter(|command| command != servers::PROGRAM && command.ends_with(servers::PROGRAM))
            .map(|_| shown(project, &list)),
        depth: super::memory::depth(found),
    })
}

/// What the others do at Stop.
pub(super) fn stop_hooks(project: &Project, all: &[Plugin]) -> Vec<StopHook> {
    let mut hooks = Vec::new();
    for plugin in all {
        let (_, in_manifest) = plugin.said_of_hooks();
        let of_manifest = in_manifest.into_iter().map(|command| (plugin.manifest(), command));
        let files = plugin.hooks_files().into_iter();
        let of_files = files.flat_map(|file| {
            let commands = plugins::stop_hooks(&text_of(&file));
            commands.into_iter().map(move |command| (file.clone(), command))
        });
        hooks.extend(of_manifest.chain(of_files).map(|(file, command)| StopHook {
            file: shown(project, &file),
            plugin: Some(plugin.name.clone()),
            command,
        }));
    }
    hooks
}

impl Plugin {
    fn manifest(&self) -> PathBuf {
        self.folder.join(".claude-plugin/plugin.json")
    }

    fn said_of_hooks(&self) -> (Option<String>, Vec<String>) {
        plugins::hooks_of_manifest(&disk::read(&self.manifest()).ok().flatten().unwrap_or_default())
    }

    /// The usual one, and the one that the manifest names.
    fn hooks_files(&self) -> Vec<PathBuf> {
        let usual = self.folder.join("hooks/hooks.json");
        let named = self.said_of_hooks().0.map(|path| self.folder.join(path));
        let named = named.filter(|path| disk::canonical(path) != disk::canonical(&usual));
        [usual].into_iter().chain(named).collect()
    }
}

/// The first file that names a plugin decides.
fn enabled(found: &Files) -> impl Iterator<Item = &str> {
    let mut said: BTreeMap<&str, bool> = BTreeMap::new();
    for (plugin, on) in found.iter().filter_map(|one| one.said()).flat_map(|survey| &survey.plugins) {
        said.entry(plugin).or_insert(*on);
    }
    said.into_iter().filter(|(_, on)| *on).map(|(plugin, _)| plugin)
}

fn text_of(path: &Path) -> String {
    disk::read_text(path).ok().flatten().unwrap_or_default()
}
