//! Rights, locks and room.

use super::Files;
use crate::install::git_exclude;
use crate::keeping;
use plimsoll_domain::git_names::RepoPath;
use plimsoll_policy::doctor::{DiskFacts, FileSystem, Folder, Lock, RecordedBytes, Scope, SettingsFile};
use plimsoll_store::{Project, StoreError, disk, environment, formats, lock, memory, volume};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An honest writer holds the state's lock for about a millisecond.
const TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn facts(project: &Project, found: &Files) -> DiskFacts {
    let root = project.root();
    let own = root.join(".claude");
    let folder = |path: &Path, private: bool| {
        let rights = volume::rights(path)?;
        let usable = rights.writable && (disk::is_folder(path) || path == project.state());
        let path = project.relative(path);
        Some(Folder { path, writable: usable, mode: rights.mode, own: rights.own, private })
    };
    let ours = [project.own(), &project.own().join("sessions"), &project.handoffs(), project.state()];
    let mut folders: Vec<Folder> = ours.into_iter().filter_map(|path| folder(path, true)).collect();
    // Where nothing is yet, it is made in the project's own folder.
    folders.extend(folder(&own, false).or_else(|| folder(root, false)));
    folders.extend(project.run_lock().parent().and_then(|locks| folder(locks, false)));
    DiskFacts {
        folders,
        state_lock: state_lock(project),
        file_system: file_system(root),
        free: volume::free_space(root),
        repository: plimsoll_store::layout::git_folder_of(root).is_some(),
        not_excluded: not_excluded(project, found),
        newer: formats::newer(project).iter().map(|path| super::shown(project, path)).collect(),
        tracked: tracked(project),
        fleeting_state: fleeting_state(root).map(|folder| super::shown(project, &folder)),
        hidden_memory: memory::hidden_memory(project).map(|folder| super::shown(project, &folder)),
        long_memory: long_memory(project),
        records: keeping::look(project).ok().map(|records| RecordedBytes {
            all: records.bytes(),
            old: records.pruning(keeping::A_MONTH).freed,
        }),
    }
}

/// The user's state folder, if it is in the computer's memory and the project is not. Where both are, nothing here is meant to stay.
fn fleeting_state(root: &Path) -> Option<PathBuf> {
    /// TMPFS_MAGIC of statfs(2).
    const TMPFS: u64 = 0x0102_1994;
    let state = environment::state_home()?.join("plimsoll");
    let nearest = state.ancestors().find(|folder| disk::exists(folder))?;
    (volume::kind(nearest) == Some(TMPFS) && !volume::is_same_volume(nearest, root)).then(|| state.clone())
}

fn long_memory(project: &Project) -> Option<String> {
    memory::is_too_long(project).then(|| super::shown(project, &project.memory().join("log.jsonl")))
}

fn state_lock(project: &Project) -> Lock {
    let path = project.state_lock();
    if !disk::exists(&path) {
        return Lock::Free;
    }
    match lock::acquire(&path, TIMEOUT) {
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

/// What git tracks of what we recorded. (Names with a `*` are of backups and drafts.)
fn tracked(project: &Project) -> Vec<String> {
    if plimsoll_store::layout::git_folder_of(project.root()).is_none() {
        return Vec::new();
    }
    let recorded = git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    // A folder's name ends with a slash there.
    let recorded: Vec<RepoPath> =
        recorded.filter_map(|name| RepoPath::parse(name.trim_end_matches('/')).ok()).collect();
    plimsoll_launcher::git::tracked(project.root(), &recorded)
}

/// The exclude file, where our entries are the project's and it does not list our run files.
fn not_excluded(project: &Project, found: &Files) -> Option<String> {
    let ours = |one: &SettingsFile| {
        let of_project = matches!(one.scope, Scope::Project | Scope::Local);
        of_project && one.said().is_some_and(|survey| !survey.ours.is_empty())
    };
    if !found.iter().any(ours) {
        return None;
    }
    let place = git_exclude::place_of(project.root())?;
    let now = disk::read(&place.file).ok()?.unwrap_or_default();
    (place.with_ours(&now, &[]) != now).then(|| super::shown(project, &place.file))
}
