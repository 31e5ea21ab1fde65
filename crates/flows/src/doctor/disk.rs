//! Facts about permissions, locks and free space.

use super::SettingsFiles;
use crate::install::git_exclude;
use crate::retention;
use plimsoll_domain::git_names::RepoPath;
use plimsoll_policy::doctor::{
    DiskInfo, FileSystem, LockStatus, PathInfo, RecordedBytes, SettingsFile, SettingsScope,
};
use plimsoll_store::volume::FileSystemKind;
use plimsoll_store::{Project, StoreError, disk, environment, formats, lock, memory, volume};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Plimsoll holds the state's lock for about a millisecond.
const STATE_LOCK_TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn collect_permissions_locks_and_disk_space(
    project: &Project,
    settings_files: &SettingsFiles,
) -> DiskInfo {
    let root = project.root();
    let client_folder = root.join(".claude");
    let inspect_path = |path: &Path, is_private: bool| {
        let access = volume::access_rights(path)?;
        let is_usable = access.is_writable && (disk::is_folder(path) || path == project.state_path());
        let path = project.relative_to_root(path);
        Some(PathInfo {
            path,
            is_writable: is_usable,
            permission_bits: access.mode,
            is_owned_by_user: access.is_owned_by_current_user,
            is_private,
        })
    };
    let plimsoll_paths = [
        project.data_folder(),
        &project.data_folder().join("sessions"),
        &project.handoffs_folder(),
        project.state_path(),
    ];
    let mut paths: Vec<PathInfo> =
        plimsoll_paths.into_iter().filter_map(|path| inspect_path(path, true)).collect();
    // A missing `.claude` folder will be created in the project's root.
    paths.extend(inspect_path(&client_folder, false).or_else(|| inspect_path(root, false)));
    paths.extend(project.run_lock_path().parent().and_then(|lock_folder| inspect_path(lock_folder, false)));
    DiskInfo {
        paths,
        state_lock: check_state_lock_with_timeout(project),
        file_system: classify_file_system(root),
        free_bytes: volume::available_bytes(root),
        is_git_repository: plimsoll_store::layout::find_git_folder(root).is_some(),
        incomplete_exclude_file: exclude_file_lacking_lines_for_project_hooks(project, settings_files),
        newer_format_files: formats::files_in_newer_format(project)
            .iter()
            .map(|path| super::path_relative_to_project_or_home(project, path))
            .collect(),
        recorded_files_tracked_by_git: run_files_tracked_by_git(project),
        in_memory_state_folder: state_folder_if_in_memory_unlike_project(root)
            .map(|folder| super::path_relative_to_project_or_home(project, &folder)),
        unused_second_memory_folder: memory::superseded_memory_folder(project)
            .map(|folder| super::path_relative_to_project_or_home(project, &folder)),
        oversized_memory_log: memory_log_path_if_too_long(project),
        recorded_bytes: retention::list_records_with_reasons_to_keep(project).ok().map(|records| {
            RecordedBytes {
                total: records.total_bytes(),
                older_than_30_days: records.plan_pruning(retention::OLDER_THAN_30_DAYS).freed_bytes,
            }
        }),
    }
}

/// Returns the user's state folder if it is in memory (tmpfs) and the project is on another file system. If both are on
/// the same tmpfs, nothing needs to survive a reboot.
fn state_folder_if_in_memory_unlike_project(root: &Path) -> Option<PathBuf> {
    let state_folder = environment::state_home()?.join("plimsoll");
    let nearest_existing_folder = state_folder.ancestors().find(|folder| disk::exists(folder))?;
    (volume::file_system_kind(nearest_existing_folder) == Some(FileSystemKind::Memory)
        && !volume::is_same_volume(nearest_existing_folder, root))
    .then(|| state_folder.clone())
}

fn memory_log_path_if_too_long(project: &Project) -> Option<String> {
    memory::is_log_too_long(project)
        .then(|| super::path_relative_to_project_or_home(project, &project.memory_folder().join("log.jsonl")))
}

fn check_state_lock_with_timeout(project: &Project) -> LockStatus {
    let path = project.state_lock_path();
    if !disk::exists(&path) {
        return LockStatus::Free;
    }
    match lock::acquire(&path, STATE_LOCK_TIMEOUT) {
        Err(StoreError::Locked { .. }) => LockStatus::Held(lock::lock_holder_pid(&path)),
        _ => LockStatus::Free,
    }
}

fn classify_file_system(path: &Path) -> FileSystem {
    match volume::file_system_kind(path) {
        // The driver for the drives of Windows.
        Some(FileSystemKind::Network("9p")) if volume::is_wsl() => FileSystem::WindowsDrive,
        Some(FileSystemKind::Network(protocol)) => FileSystem::Network(protocol),
        Some(FileSystemKind::Fuse) => FileSystem::Fuse,
        Some(FileSystemKind::Memory | FileSystemKind::Other) | None => FileSystem::Local,
    }
}

/// Returns our recorded files that git tracks. Names with a `*` are patterns for backups and drafts and are skipped.
fn run_files_tracked_by_git(project: &Project) -> Vec<String> {
    if plimsoll_store::layout::find_git_folder(project.root()).is_none() {
        return Vec::new();
    }
    let run_files = git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    // Names of folders end with a slash in that list.
    let run_paths: Vec<RepoPath> =
        run_files.filter_map(|name| RepoPath::parse(name.trim_end_matches('/')).ok()).collect();
    plimsoll_launcher::git::tracked_files_at_or_below(project.root(), &run_paths)
}

/// Returns the path of git's exclude file if our hooks are in the project's settings and the file does not
/// list all of our run files.
fn exclude_file_lacking_lines_for_project_hooks(
    project: &Project,
    settings_files: &SettingsFiles,
) -> Option<String> {
    let has_project_entries = |file: &SettingsFile| {
        let is_project_scope = matches!(file.scope, SettingsScope::Project | SettingsScope::Local);
        is_project_scope && file.summary_if_parsed().is_some_and(|summary| !summary.our_hooks.is_empty())
    };
    if !settings_files.iter().any(has_project_entries) {
        return None;
    }
    let exclude_file = git_exclude::find_exclude_file(project.root())?;
    let content = disk::read(&exclude_file.path).ok()?.unwrap_or_default();
    (exclude_file.with_our_lines(&content, &[]) != content)
        .then(|| super::path_relative_to_project_or_home(project, &exclude_file.path))
}
