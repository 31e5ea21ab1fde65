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
        records_folder,
        project: project.root().to_owned(),
        home: environment::home_folder().map(Path::to_owned),
        temporary_folders: temporary_folders.filter(|folder| folder.is_absolute()).collect(),
        added_folders: added_folders.collect(),
    };
    // The records' folder may not exist yet, and any of the folders may be spelled differently or lead through links.
    describe_unsafe_records_location(&location, disk::is_inside)
        .map_or(Ok(()), |reason| Err(StartError::UnsafeRecordsLocation(reason)))
}

fn expand_home_or_join_project_root(project: &Project, folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), environment::home_folder()) {
        (Some(relative_path), Some(home)) => home.join(relative_path),
        (None, Some(home)) if folder == "~" => home.to_owned(),
        _ => project.root().join(folder),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_store::Durability;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_that_will_contain_the_records_is_recognized_in_every_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let root = disk::canonicalize_or_keep(folder.path());
        let project_folder = root.join("project");
        disk::create_folder(&project_folder.join("src")).unwrap();
        disk::create_folder(&root.join("state")).unwrap();
        symlink(&root, project_folder.join("up")).unwrap();
        symlink("../state/new", project_folder.join("soon")).unwrap();
        // Neither `new` nor anything in it exists.
        let project =
            Project::with_local_files(&project_folder).with_runs_folder(&root.join("state/new/runs"));
        for (added_folder, is_recognized) in [
            ("../state/new", true),
            ("../state/NEW", true),
            ("../state/new/runs", true),
            ("src/../../state/new", true),
            ("missing/../../state/new", true),
            ("up/state/new", true),
            ("up/state/New/Runs", true),
            ("soon", true),
            ("soon/../new", true),
            ("up/state", true),
            ("../state/newer", false),
            ("../state/new/runs/deeper", false),
            ("src", false),
            ("soon/other", false),
        ] {
            let settings = format!(r#"{{"permissions": {{"additionalDirectories": ["{added_folder}"]}}}}"#);
            let settings_file = project_folder.join(".claude/settings.json");
            disk::replace(&settings_file, settings.as_bytes(), Durability::Lazy).unwrap();
            let in_settings = reject_records_writable_by_sessions(&project, &[]);
            disk::remove_if_exists(&settings_file).unwrap();
            let arguments = ["--add-dir".to_owned(), added_folder.to_owned()];
            let in_arguments = reject_records_writable_by_sessions(&project, &arguments);
            for result in [in_settings, in_arguments] {
                // The temporary folder that contains the whole test may be refused, too.
                let reason = result.err().map(|error| error.to_string()).unwrap_or_default();
                assert_eq!(
                    reason.contains("was added to the sessions"),
                    is_recognized,
                    "{added_folder}: {reason}"
                );
            }
        }
    }
}
