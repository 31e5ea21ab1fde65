//! Checks the location of the run records: a run is neither started nor resumed if its sessions could write to
//! them.

use super::StartError;
use crate::install::install_paths::settings_files;
use plimsoll_policy::records_location::{
    RecordsLocation, describe_unsafe_records_location, parse_added_folders,
};
use plimsoll_store::{Project, disk, environment, ledger};
use std::path::{Path, PathBuf};

/// Returns an error if a session may write to the folder of the run records.
pub(super) fn reject_records_writable_by_sessions(
    project: &Project,
    client_arguments: &[String],
) -> Result<(), StartError> {
    let Some(records_folder) = ledger::records_folder(project) else { return Ok(()) };
    let temporary_folders = ["TMPDIR", "CLAUDE_CODE_TMPDIR"].into_iter().filter_map(environment::variable);
    let temporary_folders =
        temporary_folders.chain(["/tmp", "/var/tmp", "/dev/shm"].map(str::to_owned)).map(PathBuf::from);
    let folders_in_settings = settings_files(project.root()).flat_map(|file| {
        let text = disk::read_text(&file).ok().flatten().unwrap_or_default();
        plimsoll_protocol::settings::additional_directories(&text)
    });
    let folders_in_arguments = parse_added_folders(client_arguments).into_iter().map(str::to_owned);
    let added_folders = folders_in_settings
        .chain(folders_in_arguments)
        .map(|folder| expand_home_or_join_project_root(project, &folder));
    let location = RecordsLocation {
        records_folder: canonicalize_existing_prefix(&records_folder),
        project: disk::canonicalize_or_keep(project.root()),
        home: environment::home_folder().map(disk::canonicalize_or_keep),
        temporary_folders: temporary_folders
            .filter(|folder| folder.is_absolute())
            .map(|folder| disk::canonicalize_or_keep(&folder))
            .collect(),
        added_folders: added_folders.map(|folder| disk::canonicalize_or_keep(&folder)).collect(),
    };
    describe_unsafe_records_location(&location)
        .map_or(Ok(()), |reason| Err(StartError::UnsafeRecordsLocation(reason)))
}

fn expand_home_or_join_project_root(project: &Project, folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), environment::home_folder()) {
        (Some(relative_path), Some(home)) => home.join(relative_path),
        (None, Some(home)) if folder == "~" => home.to_owned(),
        _ => project.root().join(folder),
    }
}

/// Resolves the links in the existing part of a path. The folder itself may not exist yet.
fn canonicalize_existing_prefix(path: &Path) -> PathBuf {
    let existing_ancestor = path.ancestors().find(|ancestor| disk::exists(ancestor));
    let ancestor_and_tail =
        existing_ancestor.and_then(|ancestor| path.strip_prefix(ancestor).ok().map(|tail| (ancestor, tail)));
    ancestor_and_tail
        .map_or_else(|| path.to_owned(), |(ancestor, tail)| disk::canonicalize_or_keep(ancestor).join(tail))
}
