//! Which folders upwards may be the project of a command: none above the repository's root, and none of another owner.
//! A state up there may be a stranger's, and `--resume` would start what it names.

use super::git_folder_at;
use crate::{disk, environment};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the search ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// At the root of the repository.
    Repository(PathBuf),
    /// Below this folder, or this file: it belongs to another user.
    OfAnother(PathBuf),
    /// At the root of the file system.
    Root,
}

/// The folders from here upwards that may be the project, and where they end.
pub(super) struct Upwards<'a> {
    pub(super) folders: Vec<&'a Path>,
    pub(super) end: End,
}

impl<'a> Upwards<'a> {
    pub(super) fn from(here: &'a Path) -> Upwards<'a> {
        Upwards::with(here, &is_own, &|folder| git_folder_at(&folder.join(".git")).is_some())
    }

    fn with(here: &'a Path, is_own: &dyn Fn(&Path) -> bool, is_root: &dyn Fn(&Path) -> bool) -> Upwards<'a> {
        let mut folders = Vec::new();
        for folder in here.ancestors() {
            if !is_own(folder) {
                return Upwards { folders, end: End::OfAnother(folder.to_owned()) };
            }
            // One of another owner in a folder that anybody may write into, `/tmp` for root.
            for mark in [".claude", ".claude/ralph-state.json"].map(|name| folder.join(name)) {
                if !is_own(&mark) {
                    return Upwards { folders, end: End::OfAnother(mark) };
                }
            }
            folders.push(folder);
            if is_root(folder) {
                return Upwards { folders, end: End::Repository(folder.to_owned()) };
            }
        }
        Upwards { folders, end: End::Root }
    }

    /// A state further up, and why it is not the project's.
    pub(super) fn passed_over(&self, here: &Path) -> Option<PassedOver> {
        let beyond = here.ancestors().skip(self.folders.len());
        let state =
            beyond.map(|folder| folder.join(".claude/ralph-state.json")).find(|it| disk::exists(it))?;
        let is_here = self.folders.is_empty() && state.starts_with(here.join(".claude"));
        Some(PassedOver { state, end: self.end.clone(), is_here })
    }
}

/// A state that is not taken for the project's, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    state: PathBuf,
    end: End,
    is_here: bool,
}

impl PassedOver {
    /// True if we are in the very project that is not ours: nothing may be done with it.
    pub fn is_here(&self) -> bool {
        self.is_here
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.display();
        match &self.end {
            End::OfAnother(path) => {
                let path = path.display();
                write!(
                    to,
                    "{state} is not used: {path} belongs to another user (to share it, list the project's "
                )?;
                write!(to, "folder in git's safe.directory)")
            }
            End::Repository(root) => {
                write!(to, "{state} is not used: it is above the repository {}", root.display())
            }
            End::Root => write!(to, "{state} is not used"),
        }
    }
}

/// Ours, or one that the user has named to git as safe, or not there at all.
fn is_own(path: &Path) -> bool {
    let (Ok(found), Ok(behind)) = (rustix::fs::lstat(path), rustix::fs::stat(path)) else { return true };
    let mine = |owner: u32| owner == rustix::process::geteuid().as_raw() || is_before_sudo(owner);
    (mine(found.st_uid) && mine(behind.st_uid)) || is_named_safe(path)
}

/// As git does: who becomes root with `sudo` still works on his own files.
fn is_before_sudo(owner: u32) -> bool {
    rustix::process::geteuid().is_root()
        && environment::variable("SUDO_UID").is_some_and(|uid| uid.parse() == Ok(owner))
}

/// Whether git's `safe.directory` names the repository that this is in, or the folder. Rarely asked.
fn is_named_safe(path: &Path) -> bool {
    let is_root = |folder: &&Path| git_folder_at(&folder.join(".git")).is_some();
    let is_ours = |name: &std::ffi::OsStr| name == ".claude" || name == "ralph-state.json";
    let folder = path.ancestors().find(|path| !path.file_name().is_some_and(is_ours)).unwrap_or(path);
    let place = folder.ancestors().find(is_root).unwrap_or(folder);
    names_safe(&safe_directories(), &disk::canonical(place), environment::home())
}

fn names_safe(listed: &[String], place: &Path, home: Option<&Path>) -> bool {
    listed.iter().any(|line| {
        let path = match (line.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(line),
        };
        // `/shared/*` names what is below.
        let below = path.to_str().and_then(|path| path.strip_suffix("/*"));
        line == "*"
            || below
                .map_or_else(|| path == place, |above| place != Path::new(above) && place.starts_with(above))
    })
}

/// What the user's own settings of git list. Git honours none that is in a repository; what they include is not read.
fn safe_directories() -> Vec<String> {
    let home = environment::home();
    let config = environment::variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
    let global = environment::variable("GIT_CONFIG_GLOBAL").map(PathBuf::from);
    let own = match global {
        Some(file) => [Some(file), None],
        None => [config.map(|folder| folder.join("git/config")), home.map(|home| home.join(".gitconfig"))],
    };
    let system = (!environment::flag("GIT_CONFIG_NOSYSTEM")).then(|| {
        environment::variable("GIT_CONFIG_SYSTEM")
            .map_or_else(|| PathBuf::from("/etc/gitconfig"), PathBuf::from)
    });
    let mut listed = Vec::new();
    for path in [system].into_iter().chain(own).flatten().filter(|path| disk::is_file(path)) {
        listed_in(&disk::read_text(&path).ok().flatten().unwrap_or_default(), &mut listed);
    }
    listed
}

/// The `directory` lines of the section `[safe]`; an empty one takes back all before it.
fn listed_in(text: &str, listed: &mut Vec<String>) {
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_inside = line.to_ascii_lowercase().starts_with("[safe]");
        }
        if !is_inside {
            continue;
        }
        let line = line.rsplit(']').next().unwrap_or(line);
        let Some((key, value)) = line.split_once('=') else { continue };
        if key.trim().eq_ignore_ascii_case("directory") {
            match value.trim().trim_matches('"') {
                "" => listed.clear(),
                value => listed.push(value.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(here: &str, foreign: &[&str], roots: &[&str]) -> (Vec<String>, End) {
        let is_in = |list: &[&str], path: &Path| list.iter().any(|it| Path::new(it) == path);
        let found =
            Upwards::with(Path::new(here), &|path| !is_in(foreign, path), &|folder| is_in(roots, folder));
        (found.folders.iter().map(|folder| folder.display().to_string()).collect(), found.end)
    }

    #[test]
    fn the_search_ends_at_the_repository_and_below_what_belongs_to_another() {
        let another = |path: &str| End::OfAnother(path.into());
        for (here, foreign, roots, folders, end) in [
            ("/h/r/a", &[][..], &["/h/r"][..], &["/h/r/a", "/h/r"][..], End::Repository("/h/r".into())),
            ("/h/r", &[], &["/h/r", "/h"], &["/h/r"], End::Repository("/h/r".into())),
            ("/h/p", &["/h", "/"], &[], &["/h/p"], another("/h")),
            ("/h/p", &["/h/p"], &["/h/p"], &[], another("/h/p")),
            ("/t/p", &["/t/.claude"], &[], &["/t/p"], another("/t/.claude")),
            (
                "/t/p",
                &["/t/.claude/ralph-state.json"],
                &[],
                &["/t/p"],
                another("/t/.claude/ralph-state.json"),
            ),
            ("/h/p", &[], &[], &["/h/p", "/h", "/"], End::Root),
        ] {
            let (found, ended) = search(here, foreign, roots);
            assert_eq!(
                (found.as_slice(), ended),
                (folders.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>().as_slice(), end),
                "{here}"
            );
        }
    }

    #[test]
    fn a_safe_directory_is_the_one_that_git_takes_for_safe() {
        let listed = |text: &str| {
            let mut listed = vec!["/before".to_owned()];
            listed_in(text, &mut listed);
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
            assert_eq!(names_safe(&[line.to_owned()], Path::new(place), home), is_safe, "{line} {place}");
        }
    }
}
