//! Searches the parent folders for the project of a command, but not above the repository's root, and not in
//! folders of another owner. A state there may be a stranger's, and `--resume` would start the programs that
//! it names.

use super::resolve_git_folder;
use crate::{disk, environment};
use plimsoll_system::files::{Metadata, current_user_id, link_metadata, metadata};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SearchEnd {
    Repository(PathBuf),
    /// The search ended below this folder or file, which belongs to another user.
    ForeignOwner(PathBuf),
    /// At the root of the file system.
    FileSystemRoot,
}

/// The folders from the current one upwards that may be the project, and where the search ended.
pub(super) struct AncestorSearch<'a> {
    pub(super) folders: Vec<&'a Path>,
    pub(super) end: SearchEnd,
}

impl<'a> AncestorSearch<'a> {
    pub(super) fn search_upwards_from(start: &'a Path) -> AncestorSearch<'a> {
        AncestorSearch::search_trusted_up_to_repository_root(start, &is_trusted_or_missing, &|folder| {
            resolve_git_folder(&folder.join(".git")).is_some()
        })
    }

    fn search_trusted_up_to_repository_root(
        start: &'a Path,
        is_trusted: &dyn Fn(&Path) -> bool,
        is_repository_root: &dyn Fn(&Path) -> bool,
    ) -> AncestorSearch<'a> {
        let mut folders = Vec::new();
        for folder in start.ancestors() {
            if !is_trusted(folder) {
                return AncestorSearch { folders, end: SearchEnd::ForeignOwner(folder.to_owned()) };
            }
            // In a world-writable folder, these may belong to another user (in `/tmp`, for root).
            for client_path in [".claude", ".claude/ralph-state.json"].map(|name| folder.join(name)) {
                if !is_trusted(&client_path) {
                    return AncestorSearch { folders, end: SearchEnd::ForeignOwner(client_path) };
                }
            }
            folders.push(folder);
            if is_repository_root(folder) {
                return AncestorSearch { folders, end: SearchEnd::Repository(folder.to_owned()) };
            }
        }
        AncestorSearch { folders, end: SearchEnd::FileSystemRoot }
    }

    /// Returns a state file in a folder where the search did not look, with the reason why it is ignored.
    pub(super) fn find_state_file_beyond_search_end(&self, start: &Path) -> Option<IgnoredStateFile> {
        let folders_above = start.ancestors().skip(self.folders.len());
        let state_file = folders_above
            .map(|folder| folder.join(".claude/ralph-state.json"))
            .find(|path| disk::exists(path))?;
        let is_in_start_folder = self.folders.is_empty() && state_file.starts_with(start.join(".claude"));
        Some(IgnoredStateFile {
            state_path: state_file,
            end: self.end.clone(),
            is_in_current_folder: is_in_start_folder,
        })
    }
}

/// A state file that is not used for the project, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredStateFile {
    state_path: PathBuf,
    end: SearchEnd,
    is_in_current_folder: bool,
}

impl IgnoredStateFile {
    /// Returns true if the ignored state is the current folder's own, because that folder belongs to another
    /// user. Then Plimsoll must not use it.
    pub fn is_in_current_folder(&self) -> bool {
        self.is_in_current_folder
    }
}

impl fmt::Display for IgnoredStateFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state_path.display();
        match &self.end {
            SearchEnd::ForeignOwner(path) => {
                let path = path.display();
                write!(
                    formatter,
                    "{state} is not used: {path} belongs to another user (to share it, list the project's "
                )?;
                write!(formatter, "folder in git's safe.directory)")
            }
            SearchEnd::Repository(root) => {
                write!(formatter, "{state} is not used: it is above the repository {}", root.display())
            }
            SearchEnd::FileSystemRoot => write!(formatter, "{state} is not used"),
        }
    }
}

/// Returns true if the path and its link's target belong to this user, or if git's `safe.directory` lists its
/// repository, or if the path does not exist.
fn is_trusted_or_missing(path: &Path) -> bool {
    let (Ok(link_metadata), Ok(target_metadata)) = (link_metadata(path), metadata(path)) else {
        return true;
    };
    let is_trusted_owner = |metadata: Metadata| match (metadata.owner_id(), current_user_id()) {
        (Some(owner_id), Some(user_id)) => owner_id == user_id || is_uid_of_sudo_caller(owner_id),
        // Windows reports no owner. By default, every user may create folders at the root of its system drive.
        _ => !is_root_folder_or_session_file_in_it(path),
    };
    (is_trusted_owner(link_metadata) && is_trusted_owner(target_metadata))
        || is_enclosing_repository_in_safe_directory(path)
}

/// Returns true for the root folder, and for a `.claude` or a state file in it.
fn is_root_folder_or_session_file_in_it(path: &Path) -> bool {
    let is_client_name = |name: &std::ffi::OsStr| name == ".claude" || name == "ralph-state.json";
    let folder = path.ancestors().find(|path| !path.file_name().is_some_and(is_client_name));
    folder.is_none_or(|folder| folder.parent().is_none())
}

/// Returns true for the uid of the user who called `sudo`. As in git, root may then work on that user's files.
fn is_uid_of_sudo_caller(owner_uid: u32) -> bool {
    current_user_id() == Some(0)
        && environment::variable("SUDO_UID").is_some_and(|uid| uid.parse() == Ok(owner_uid))
}

/// Returns true if git's `safe.directory` lists the repository that contains the path, or its folder.
fn is_enclosing_repository_in_safe_directory(path: &Path) -> bool {
    let is_repository_root = |folder: &&Path| resolve_git_folder(&folder.join(".git")).is_some();
    let is_client_name = |name: &std::ffi::OsStr| name == ".claude" || name == "ralph-state.json";
    let folder = path.ancestors().find(|path| !path.file_name().is_some_and(is_client_name)).unwrap_or(path);
    let repository = folder.ancestors().find(is_repository_root).unwrap_or(folder);
    matches_safe_directory(
        &read_safe_directories(),
        &disk::canonicalize_or_keep(repository),
        environment::home_folder(),
    )
}

fn matches_safe_directory(safe_directories: &[String], folder: &Path, home: Option<&Path>) -> bool {
    safe_directories.iter().any(|entry| {
        let path = match (entry.strip_prefix("~/"), home) {
            (Some(relative), Some(home)) => home.join(relative),
            _ => PathBuf::from(entry),
        };
        // `/shared/*` matches every folder below `/shared`.
        let parent = path.to_str().and_then(|path| path.strip_suffix("/*"));
        entry == "*"
            || parent.map_or_else(
                || path == folder,
                |parent| folder != Path::new(parent) && folder.starts_with(parent),
            )
    })
}

/// Reads `safe.directory` from the user's and the system's git configuration. As in git, a repository's own
/// configuration does not count. Included files are not read.
fn read_safe_directories() -> Vec<String> {
    let home = environment::home_folder();
    let config_home = environment::variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config_home = config_home.or_else(|| Some(home.as_ref()?.join(".config")));
    let global_config = environment::variable("GIT_CONFIG_GLOBAL").map(PathBuf::from);
    let user_files = match global_config {
        Some(path) => [Some(path), None],
        None => {
            [config_home.map(|folder| folder.join("git/config")), home.map(|home| home.join(".gitconfig"))]
        }
    };
    let system_file = (!environment::is_variable_on("GIT_CONFIG_NOSYSTEM")).then(|| {
        environment::variable("GIT_CONFIG_SYSTEM")
            .map_or_else(|| PathBuf::from("/etc/gitconfig"), PathBuf::from)
    });
    // On Windows `/etc` is a folder of the current drive, which any user may create.
    let system_file = system_file.filter(|path| path.is_absolute());
    let mut directories = Vec::new();
    for path in [system_file].into_iter().chain(user_files).flatten().filter(|path| disk::is_file(path)) {
        collect_safe_directories(
            &disk::read_text(&path).ok().flatten().unwrap_or_default(),
            &mut directories,
        );
    }
    directories
}

/// Appends the `directory` values of the section `[safe]`; an empty value clears the list, as in git.
fn collect_safe_directories(config_text: &str, directories: &mut Vec<String>) {
    let mut is_in_safe_section = false;
    for line in config_text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_in_safe_section = line.to_ascii_lowercase().starts_with("[safe]");
        }
        if !is_in_safe_section {
            continue;
        }
        let line = line.rsplit(']').next().unwrap_or(line);
        let Some((key, value)) = line.split_once('=') else { continue };
        if key.trim().eq_ignore_ascii_case("directory") {
            match value.trim().trim_matches('"') {
                "" => directories.clear(),
                value => directories.push(value.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_from(start: &str, foreign: &[&str], roots: &[&str]) -> (Vec<String>, SearchEnd) {
        let is_in = |list: &[&str], path: &Path| list.iter().any(|entry| Path::new(entry) == path);
        let search = AncestorSearch::search_trusted_up_to_repository_root(
            Path::new(start),
            &|path| !is_in(foreign, path),
            &|folder| is_in(roots, folder),
        );
        (search.folders.iter().map(|folder| folder.display().to_string()).collect(), search.end)
    }

    #[test]
    fn the_search_ends_at_the_repository_and_below_foreign_folders() {
        let foreign_owner = |path: &str| SearchEnd::ForeignOwner(path.into());
        for (here, foreign, roots, folders, end) in [
            ("/h/r/a", &[][..], &["/h/r"][..], &["/h/r/a", "/h/r"][..], SearchEnd::Repository("/h/r".into())),
            ("/h/r", &[], &["/h/r", "/h"], &["/h/r"], SearchEnd::Repository("/h/r".into())),
            ("/h/p", &["/h", "/"], &[], &["/h/p"], foreign_owner("/h")),
            ("/h/p", &["/h/p"], &["/h/p"], &[], foreign_owner("/h/p")),
            ("/t/p", &["/t/.claude"], &[], &["/t/p"], foreign_owner("/t/.claude")),
            (
                "/t/p",
                &["/t/.claude/ralph-state.json"],
                &[],
                &["/t/p"],
                foreign_owner("/t/.claude/ralph-state.json"),
            ),
            ("/h/p", &[], &[], &["/h/p", "/h", "/"], SearchEnd::FileSystemRoot),
        ] {
            let (found_folders, found_end) = search_from(here, foreign, roots);
            assert_eq!(
                (found_folders.as_slice(), found_end),
                (folders.iter().map(|folder| (*folder).to_owned()).collect::<Vec<_>>().as_slice(), end),
                "{here}"
            );
        }
    }

    #[test]
    fn safe_directories_are_matched_as_in_git() {
        let listed = |text: &str| {
            let mut listed = vec!["/before".to_owned()];
            collect_safe_directories(text, &mut listed);
            listed
        };
        assert_eq!(listed("[user]\n\tdirectory = /x\n[safe]\n\tbareRepository = explicit\n"), ["/before"]);
        assert_eq!(listed("[SAFE]\n\tDirectory = \"/a b\"\n[core]\ndirectory=/c"), ["/before", "/a b"]);
        assert_eq!(listed("[safe] directory =\n directory = *"), ["*"]);
        let home = Some(Path::new("/home/me"));
        for (line, place, is_safe) in [
            ("*", "/srv/p", true),
            ("/srv/p", "/srv/p", true),
            ("/srv/p", "/srv/p/inner", false),
            ("/srv/p", "/srv/pp", false),
            ("/srv/*", "/srv/p", true),
            ("/srv/*", "/srv", false),
            ("~/p", "/home/me/p", true),
            ("", "/srv/p", false),
        ] {
            assert_eq!(
                matches_safe_directory(&[line.to_owned()], Path::new(place), home),
                is_safe,
                "{line} {place}"
            );
        }
    }
}
