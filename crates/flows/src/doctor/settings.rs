//! The settings files that the client reads here, the one that rules first.

use super::{Files, shown};
use plimsoll_policy::doctor::{ClientFacts, ReadFailure, Scope, SettingsFacts, SettingsFile};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_store::{Project, config, disk, environment};
use std::path::{Path, PathBuf};

/// The files that are there.
pub(super) fn find(project: &Project, era: HookSupport) -> Vec<SettingsFile> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for (scope, path) in places(project) {
        // In the home folder the project's settings are the user's.
        let real = disk::canonical(&path);
        if seen.contains(&real) {
            continue;
        }
        found.extend(read(project, scope, &path, era));
        seen.push(real);
    }
    found
}

/// What is said for more than the rest comes first: a drop-in of the administrator's before the file that it changes.
fn places(project: &Project) -> Vec<(Scope, PathBuf)> {
    let managed = Path::new(config::MANAGED);
    let drop_ins = managed.join("managed-settings.d");
    let names = disk::names(&drop_ins).into_iter().rev();
    let names = names.filter(|name| name.ends_with(".json") && !name.starts_with('.'));
    let own = project.root().join(".claude");
    let mut places: Vec<(Scope, PathBuf)> = names.map(|name| (Scope::Managed, drop_ins.join(name))).collect();
    places.push((Scope::Managed, managed.join("managed-settings.json")));
    places.push((Scope::Local, own.join("settings.local.json")));
    places.push((Scope::Project, own.join("settings.json")));
    places.extend(environment::client_folder().map(|folder| (Scope::User, folder.join("settings.json"))));
    places
}

fn read(project: &Project, scope: Scope, path: &Path, era: HookSupport) -> Option<SettingsFile> {
    let bytes = match disk::read(path) {
        Ok(bytes) => bytes?,
        Err(error) => return Some(unreadable(project, scope, path, ReadFailure::new(&error))),
    };
    let text = match settings::decode(&bytes) {
        Ok(text) => text,
        Err(place) => return Some(unreadable(project, scope, path, ReadFailure::new(&place))),
    };
    Some(SettingsFile {
        path: shown(project, path),
        scope,
        survey: settings::survey(text).map_err(|place| ReadFailure::new(&place)),
        differences: settings::differences(text, era).unwrap_or_default(),
    })
}

fn unreadable(project: &Project, scope: Scope, path: &Path, why: ReadFailure) -> SettingsFile {
    SettingsFile { path: shown(project, path), scope, survey: Err(why), differences: Vec::new() }
}

/// The facts for the section about settings.
pub(super) fn facts(found: &Files, client: &ClientFacts, plugin: Option<String>) -> SettingsFacts {
    SettingsFacts { files: found.to_vec(), client: client.numbers(), era: Some(client.era()), plugin }
}
