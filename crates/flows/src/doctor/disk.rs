//! Rights, locks and room.

use super::Files;
use crate::exclude;
use policy::doctor::{DiskFacts, FileSystem, Folder, Lock, Scope, SettingsFile};
use std::path::Path;
use std::time::Duration;
use store::{Project, StoreError, disk, lock, volume};

/// An honest writer holds the state's lock for about a millisecond.
const PATIENCE: Duration = Duration::from_millis(300);

pub(super) fn facts(project: &Project, found: &Files) -> DiskFacts {
    let root = project.root();
    let own = root.join(".claude");
    let places = [
        (own.clone(), false),
        (project.own(), true),
        (project.own().join("sessions"), true),
        (project.handoffs(), true),
        (project.state().to_owned(), true),
    ];
    let folder = |(path, private): &(std::path::PathBuf, bool)| {
        let rights = volume::rights(path)?;
        let path = project.relative(path);
        Some(Folder {
            path,
            writable: rights.writable,
            mode: rights.mode,
            own: rights.own,
            private: *private,
        })
    };
    let mut folders: Vec<Folder> = places.iter().filter_map(folder).collect();
    if !disk::exists(&own) {
        let of_root = volume::rights(root).map(|rights| Folder {
            path: root.display().to_string(),
            writable: rights.writable,
            mode: rights.mode,
            own: rights.own,
            private: false,
        });
        folders.extend(of_root);
    }
    DiskFacts {
        folders,
        state_lock: state_lock(project),
        file_system: file_system(root),
        free: volume::free_space(root),
        repository: project.git_folder().is_some(),
        not_excluded: not_excluded(project, found),
    }
}

fn state_lock(project: &Project) -> Lock {
    let path = project.state_lock();
    if !disk::exists(&path) {
        return Lock::Free;
    }
    match lock::acquire(&path, PATIENCE) {
        Err(StoreError::Busy { .. }) => Lock::Held(lock::holder(&path)),
        _ => Lock::Free,
    }
}

/// By the kernel's numbers (statfs(2)).
fn file_system(path: &Path) -> FileSystem {
    match volume::kind(path) {
        Some(0x6969) => FileSystem::Network("NFS"),
        Some(0xFF53_4D42 | 0x517B | 0xFE53_4D42) => FileSystem::Network("SMB"),
        Some(0x0102_1997) => FileSystem::Network("9p"),
        Some(0x6573_5546) => FileSystem::Fuse,
        _ => FileSystem::Local,
    }
}

/// The exclude file, where our entries are the project's and it does not list our run files.
fn not_excluded(project: &Project, found: &Files) -> Option<String> {
    let ours = |one: &SettingsFile| {
        let of_project = matches!(one.scope, Scope::Project | Scope::Local);
        of_project && one.said().is_some_and(|survey| !survey.ours.is_empty())
    };
    let place = exclude::place_of(project.root()).filter(|_| found.iter().any(ours))?;
    let now = disk::read(&place.file).ok()?.unwrap_or_default();
    (place.with_ours(&now, &[]) != now).then(|| super::shown(project, &place.file))
}
