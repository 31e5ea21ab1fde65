//! Checks that the records of runs are not in a folder that a session's commands may write.

use std::path::{Path, PathBuf};

/// The folder of the records, and the folders that a session may write. All paths are absolute.
#[derive(Debug, Clone, Default)]
pub struct RecordsLocation {
    pub records_folder: PathBuf,
    pub project: PathBuf,
    /// The user's home folder, if there is one.
    pub home: Option<PathBuf>,
    pub temporary_folders: Vec<PathBuf>,
    /// Folders that were added to the session: `--add-dir`, `permissions.additionalDirectories`.
    pub added_folders: Vec<PathBuf>,
}

/// Returns why the records must not be in this folder, or `None` if the folder is safe. `is_inside` returns true if its
/// second path is in the folder at its first path, which the text of the paths does not tell.
pub fn describe_unsafe_records_location(
    location: &RecordsLocation,
    is_inside: impl Fn(&Path, &Path) -> bool,
) -> Option<String> {
    let RecordsLocation { records_folder, project, home, temporary_folders, added_folders } = location;
    let contains_records = |folder: &Path| is_inside(folder, records_folder);
    // If the home folder itself is temporary (a container, a test), there is no better location.
    let contains_home = |folder: &Path| home.as_ref().is_some_and(|home| is_inside(folder, home));
    let location_text = match () {
        () if contains_records(project) => "in the project".to_owned(),
        () => match added_folders.iter().find(|folder| contains_records(folder)) {
            Some(folder) => format!("in {}, which was added to the sessions", folder.display()),
            None => {
                let folder = temporary_folders
                    .iter()
                    .find(|folder| contains_records(folder) && !contains_home(folder))?;
                format!("in the temporary folder {}", folder.display())
            }
        },
    };
    Some(format!(
        "the records of runs would be {location_text}, where a session's commands may write ({}): set XDG_STATE_HOME to another folder of yours",
        records_folder.display()
    ))
}

/// Returns the folders that the client's arguments add to its sessions: `--add-dir A B`, `--add-dir=A`.
pub fn parse_added_folders(arguments: &[String]) -> Vec<&str> {
    const ADD_DIR_OPTION: &str = "--add-dir";
    let mut folders = Vec::new();
    let mut is_in_value_list = false;
    for argument in arguments {
        match argument.strip_prefix(ADD_DIR_OPTION) {
            Some("") => is_in_value_list = true,
            Some(suffix) => folders.extend(suffix.strip_prefix('=')),
            None if argument.starts_with('-') => is_in_value_list = false,
            None if is_in_value_list => folders.push(argument),
            None => {}
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_never_where_a_session_may_write() {
        let to_paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        for (records_folder, home, added_folders, expected) in [
            ("/home/u/.local/state/plimsoll/runs", "/home/u", &[][..], None),
            ("/home/u/work/p/.state/plimsoll/runs", "/home/u", &[], Some("in the project")),
            ("/home/u/work/p2/plimsoll/runs", "/home/u", &[], None),
            ("/tmp/state/plimsoll/runs", "/home/u", &[], Some("in the temporary folder /tmp")),
            ("/tmp/home/.local/state/plimsoll/runs", "/tmp/home", &[], None),
            (
                "/home/u/.local/state/plimsoll/runs",
                "/home/u",
                &["/srv", "/home/u"],
                Some("in /home/u, which was"),
            ),
            ("/tmp/home/.local/state/plimsoll/runs", "/tmp/home", &["/tmp"], Some("in /tmp, which was")),
        ] {
            let location = RecordsLocation {
                records_folder: records_folder.into(),
                project: "/home/u/work/p".into(),
                home: Some(home.into()),
                temporary_folders: to_paths(&["/var/tmp", "/tmp"]),
                added_folders: to_paths(added_folders),
            };
            let reason = describe_unsafe_records_location(&location, |folder, path| path.starts_with(folder));
            let is_expected = match (&reason, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected) && found.contains(records_folder),
                _ => false,
            };
            assert!(is_expected, "{records_folder} {added_folders:?}: {reason:?}");
        }
    }

    #[test]
    fn folders_are_added_by_every_spelling_of_the_flag() {
        for (arguments, expected) in [
            ("--model opus", &[][..]),
            ("--add-dir ../a /b --model opus c", &["../a", "/b"]),
            ("--add-dir=/a --add-dir /b", &["/a", "/b"]),
            ("--add-directory /a", &[]),
        ] {
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_added_folders(&arguments), expected, "{arguments:?}");
        }
    }
}
