//! Whether the records of runs may be where they would be: never where a session's command may write.

use std::path::{Path, PathBuf};

/// Where they would be, and what a session may write. Every path absolute, its links resolved.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// The folder of the records.
    pub records: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// The user's home; none if there is none.
    pub home: Option<PathBuf>,
    /// Temporary folders.
    pub temporary: Vec<PathBuf>,
    /// Folders that were added to the session: `--add-dir`, `permissions.additionalDirectories`.
    pub added: Vec<PathBuf>,
}

/// Why they must not be there; none if they may.
pub fn unfit(ground: &Ground) -> Option<String> {
    let Ground { records, project, home, temporary, added } = ground;
    let holds = |folder: &Path| records.starts_with(folder);
    // Whose whole home is temporary (a container, a test) has no other place.
    let is_home_in = |folder: &Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let what = match () {
        () if holds(project) => "in the project".to_owned(),
        () => match added.iter().find(|folder| holds(folder)) {
            Some(folder) => format!("in {}, which was added to the sessions", folder.display()),
            None => {
                let folder = temporary.iter().find(|folder| holds(folder) && !is_home_in(folder))?;
                format!("in the temporary folder {}", folder.display())
            }
        },
    };
    Some(format!(
        "the records of runs would be {what}, where a session's commands may write ({}): set XDG_STATE_HOME to another folder of yours",
        records.display()
    ))
}

/// The folders that arguments for the client add to its sessions: `--add-dir A B`, `--add-dir=A`.
pub fn added_by(arguments: &[String]) -> Vec<&str> {
    const FLAG: &str = "--add-dir";
    let mut added = Vec::new();
    let mut takes = false;
    for argument in arguments {
        match argument.strip_prefix(FLAG) {
            Some("") => takes = true,
            Some(joined) => added.extend(joined.strip_prefix('=')),
            None if argument.starts_with('-') => takes = false,
            None if takes => added.push(argument),
            None => {}
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lie_nowhere_that_a_session_may_write() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        for (records, home, added, expected) in [
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
            let ground = Ground {
                records: records.into(),
                project: "/home/u/work/p".into(),
                home: Some(home.into()),
                temporary: paths(&["/var/tmp", "/tmp"]),
                added: paths(added),
            };
            let found = unfit(&ground);
            let is_right = match (&found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected) && found.contains(records),
                _ => false,
            };
            assert!(is_right, "{records} {added:?}: {found:?}");
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
            assert_eq!(added_by(&arguments), expected, "{arguments:?}");
        }
    }
}
