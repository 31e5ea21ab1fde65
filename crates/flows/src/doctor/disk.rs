//! Facts about permissions, locks and free space.

use super::SettingsFiles;
use crate::install::git_exclude;
use crate::retention;
use plimsoll_domain::git_names::RepoPath;
use plimsoll_policy::doctor::{
    DiskFacts, FileSystem, LockStatus, PathFacts, RecordedBytes, SettingsFile, SettingsScope,
};
use plimsoll_store::{Project, StoreError, disk, environment, formats, lock, memory, volume};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Our writers hold the state's lock for about a millisecond.
const STATE_LOCK_TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn gather_disk_facts(project: &Project, settings_files: &SettingsFiles) -> DiskFacts {
    let root = project.root();
    let client_folder = root.join(".claude");
    let path_facts = |path: &Path, is_private: bool| {
        let rights = volume::access_rights(path)?;
        let is_usable = rights.is_writable && (disk::is_folder(path) || path == project.state_path());
        let path = project.relative_to_root(path);
        Some(PathFacts {
            path,
            is_writable: is_usable,
            permission_bits: rights.mode,
            is_own: rights.is_owned,
            is_private,
        })
    };
    let own_paths = [
        project.data_folder(),
        &project.data_folder().join("sessions"),
        &project.handoffs_folder(),
        project.state_path(),
    ];
    let mut paths: Vec<PathFacts> = own_paths.into_iter().filter_map(|path| path_facts(path, true)).collect();
    // A missing `.claude` folder will be created in the project's root.
    paths.extend(path_facts(&client_folder, false).or_else(|| path_facts(root, false)));
    paths.extend(project.run_lock_path().parent().and_then(|lock_folder| path_facts(lock_folder, false)));
    DiskFacts {
        paths,
        state_lock: state_lock_status(project),
        file_system: classify_file_system(root),
        free_bytes: volume::available_bytes(root),
        is_git_repository: plimsoll_store::layout::find_git_folder(root).is_some(),
        incomplete_exclude_file: incomplete_exclude_file(project, settings_files),
        newer_format_files: formats::files_of_newer_version(project)
            .iter()
            .map(|path| super::shorten_path(project, path))
            .collect(),
        tracked_records: tracked_run_files(project),
        in_memory_state_folder: in_memory_state_folder(root)
            .map(|folder| super::shorten_path(project, &folder)),
        hidden_memory_folder: memory::superseded_memory_folder(project)
            .map(|folder| super::shorten_path(project, &folder)),
        oversized_memory_log: oversized_memory_log(project),
        recorded_bytes: retention::list_records(project).ok().map(|records| RecordedBytes {
            total: records.total_bytes(),
            older_than_30_days: records.plan_pruning(retention::OLDER_THAN_30_DAYS).freed_bytes,
        }),
    }
}

/// Returns the user's state folder if it is in memory (tmpfs) while the project is on disk. If both are in
/// memory, nothing here is meant to last.
fn in_memory_state_folder(root: &Path) -> Option<PathBuf> {
    /// TMPFS_MAGIC of statfs(2).
    const TMPFS: u64 = 0x0102_1994;
    let state_folder = environment::state_home()?.join("plimsoll");
    let nearest_existing = state_folder.ancestors().find(|folder| disk::exists(folder))?;
    (volume::file_system_type(nearest_existing) == Some(TMPFS)
        && !volume::is_same_volume(nearest_existing, root))
    .then(|| state_folder.clone())
}

fn oversized_memory_log(project: &Project) -> Option<String> {
    memory::is_log_too_long(project)
        .then(|| super::shorten_path(project, &project.memory_folder().join("log.jsonl")))
}

fn state_lock_status(project: &Project) -> LockStatus {
    let path = project.state_lock_path();
    if !disk::exists(&path) {
        return LockStatus::Free;
    }
    match lock::acquire(&path, STATE_LOCK_TIMEOUT) {
        Err(StoreError::Locked { .. }) => LockStatus::Held(lock::lock_holder_pid(&path)),
        _ => LockStatus::Free,
    }
}

/// Recognizes file systems by the kernel's numbers (statfs(2)).
fn classify_file_system(path: &Path) -> FileSystem {
    match volume::file_system_type(path) {
        Some(0x6969) => FileSystem::Network("NFS"),
        Some(0xFF53_4D42 | 0x517B | 0xFE53_4D42) => FileSystem::Network("SMB"),
        Some(0x0102_1997) => FileSystem::Network("9p"),
        Some(0x6573_5546) => FileSystem::Fuse,
        _ => FileSystem::Local,
    }
}

/// Returns our recorded files that git tracks. Names with a `*` stand for backups and drafts and are skipped.
fn tracked_run_files(project: &Project) -> Vec<String> {
    if plimsoll_store::layout::find_git_folder(project.root()).is_none() {
        return Vec::new();
    }
    let run_files = git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    // Names of folders end with a slash in that list.
    let run_paths: Vec<RepoPath> =
        run_files.filter_map(|name| RepoPath::parse(name.trim_end_matches('/')).ok()).collect();
    plimsoll_launcher::git::tracked_files(project.root(), &run_paths)
}

/// Returns the exclude file if our hooks are in the project's settings and the file does not list our run
/// files.
fn incomplete_exclude_file(project: &Project, settings_files: &SettingsFiles) -> Option<String> {
    let has_project_entries = |file: &SettingsFile| {
        let is_project_scope = matches!(file.scope, SettingsScope::Project | SettingsScope::Local);
        is_project_scope && file.readable_survey().is_some_and(|survey| !survey.our_hooks.is_empty())
    };
    if !settings_files.iter().any(has_project_entries) {
        return None;
    }
    let exclude_file = git_exclude::find_exclude_file(project.root())?;
    let content = disk::read(&exclude_file.path).ok()?.unwrap_or_default();
    (exclude_file.with_our_lines(&content, &[]) != content)
        .then(|| super::shorten_path(project, &exclude_file.path))
}
