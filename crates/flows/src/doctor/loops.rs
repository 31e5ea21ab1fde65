//! Other loops: hooks at Stop that are not ours, in settings and in enabled plugins, and what loops leave in a project.

use super::{Files, shown};
use policy::doctor::{KNOWN_STATE_FILES, LoopFacts, StopHook};
use protocol::settings::plugins;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Project, config, disk};

pub(super) fn facts(project: &Project, found: &Files) -> LoopFacts {
    let mut hooks = Vec::new();
    for one in found {
        let commands = one.said().map(|survey| survey.foreign_stop.clone()).unwrap_or_default();
        let file = one.path.clone();
        hooks.extend(commands.into_iter().map(|command| StopHook {
            file: file.clone(),
            plugin: None,
            command,
        }));
    }
    hooks.extend(of_plugins(project, found));
    let files = KNOWN_STATE_FILES.into_iter().filter(|file| disk::exists(&project.root().join(file)));
    LoopFacts { hooks, state_files: files.map(str::to_owned).collect() }
}

fn of_plugins(project: &Project, found: &Files) -> Vec<StopHook> {
    let Some(folder) = config::client_folder() else { return Vec::new() };
    let list = disk::read(&folder.join("plugins/installed_plugins.json")).ok().flatten().unwrap_or_default();
    let mut hooks = Vec::new();
    for plugin in enabled(found) {
        let mut folders = plugins::folders(&list, plugin);
        folders.dedup();
        for (file, command) in folders.iter().flat_map(|folder| hooks_of(Path::new(folder))) {
            hooks.push(StopHook { file: shown(project, &file), plugin: Some(plugin.to_owned()), command });
        }
    }
    hooks
}

/// The first file that names a plugin decides.
fn enabled(found: &Files) -> impl Iterator<Item = &str> {
    let mut said: BTreeMap<&str, bool> = BTreeMap::new();
    for (plugin, on) in found.iter().filter_map(|one| one.said()).flat_map(|survey| &survey.plugins) {
        said.entry(plugin).or_insert(*on);
    }
    said.into_iter().filter(|(_, on)| *on).map(|(plugin, _)| plugin)
}

fn hooks_of(folder: &Path) -> Vec<(PathBuf, String)> {
    let manifest = folder.join(".claude-plugin/plugin.json");
    let (elsewhere, in_manifest) =
        plugins::hooks_of_manifest(&disk::read(&manifest).ok().flatten().unwrap_or_default());
    let usual = folder.join("hooks/hooks.json");
    let mut files = vec![usual.clone()];
    files.extend(
        elsewhere
            .map(|path| folder.join(path))
            .filter(|path| disk::canonical(path) != disk::canonical(&usual)),
    );
    let mut hooks: Vec<(PathBuf, String)> =
        in_manifest.into_iter().map(|command| (manifest.clone(), command)).collect();
    for file in files {
        let text = disk::read_text(&file).ok().flatten().unwrap_or_default();
        hooks.extend(plugins::stop_hooks(&text).into_iter().map(|command| (file.clone(), command)));
    }
    hooks
}
