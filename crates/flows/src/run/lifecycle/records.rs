//! Checks where the records of runs are: a run does not begin, and is not resumed, if its sessions could
//! write them.

use super::StartError;
use crate::install::install_paths::settings_files;
use plimsoll_policy::records_location::{RecordsLocation, parse_added_folders, unsafe_location_reason};
use plimsoll_store::{Project, disk, environment, ledger};
use std::path::{Path, PathBuf};

/// Rejects a location that a session may write. The arguments are those for the client.
pub(super) fn check_records_location(
    project: &Project,
    client_arguments: &[String],
) -> Result<(), StartError> {
    let Some(records) = ledger::records_folder(project) else { return Ok(()) };
    let temporary_folders = ["TMPDIR", "CLAUDE_CODE_TMPDIR"].into_iter().filter_map(environment::variable);
    let temporary_folders =
        temporary_folders.chain(["/tmp", "/var/tmp", "/dev/shm"].map(str::to_owned)).map(PathBuf::from);
    let folders_in_settings = settings_files(project.root()).flat_map(|file| {
        let text = disk::read_text(&file).ok().flatten().unwrap_or_default();
        plimsoll_protocol::settings::additional_directories(&text)
    });
    let folders_in_arguments = parse_added_folders(client_arguments).into_iter().map(str::to_owned);
    let added_folders =
        folders_in_settings.chain(folders_in_arguments).map(|folder| to_absolute(project, &folder));
    let location = RecordsLocation {
        records_folder: resolve_existing_links(&records),
        project: disk::canonicalize_or_keep(project.root()),
        home: environment::home_folder().map(disk::canonicalize_or_keep),
        temporary_folders: temporary_folders
            .filter(|folder| folder.is_absolute())
            .map(|folder| disk::canonicalize_or_keep(&folder))
            .collect(),
        added_folders: added_folders.map(|folder| disk::canonicalize_or_keep(&folder)).collect(),
    };
    unsafe_location_reason(&location).map_or(Ok(()), |reason| Err(StartError::UnsafeRecordsLocation(reason)))
}

fn to_absolute(project: &Project, folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), environment::home_folder()) {
        (Some(relative_path), Some(home)) => home.join(relative_path),
        (None, Some(home)) if folder == "~" => home.to_owned(),
        _ => project.root().join(folder),
    }
}

/// Returns the path with the links of its existing part resolved: the folder itself may still have to be
/// created.
fn resolve_existing_links(path: &Path) -> PathBuf {
    let existing_ancestor = path.ancestors().find(|ancestor| disk::exists(ancestor));
    let existing_and_rest =
        existing_ancestor.and_then(|ancestor| path.strip_prefix(ancestor).ok().map(|rest| (ancestor, rest)));
    existing_and_rest
        .map_or_else(|| path.to_owned(), |(ancestor, rest)| disk::canonicalize_or_keep(ancestor).join(rest))
}
