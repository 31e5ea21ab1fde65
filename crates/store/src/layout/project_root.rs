//! Finds the project's root for a command that creates something: a command in a subfolder works on the project
//! above it.
//!
//! The root is the nearest folder upwards that has our files, a plan or `PROMPT.md`; otherwise the root of
//! the repository; otherwise the current folder. A parent is used only inside the repository, or, outside of
//! any repository, below the home folder. The home folder, a folder above it, a folder of another owner and a
//! world-writable folder are never used. The current folder is always allowed, because the user chose it.

use super::Project;
use super::ancestor_search::{AncestorSearch, SearchEnd};
use super::external_folder::has_our_hooks_in_project_settings;
use crate::{disk, environment, volume};
use plimsoll_domain::todo::DEFAULT_PLAN;
use std::path::{Path, PathBuf};

/// Why a folder is the project's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectRootReason {
    /// It contains files of ours.
    OurFiles,
    /// It contains the plan.
    Plan,
    /// It contains `PROMPT.md`, the task of a run.
    Prompt,
    /// It is the root of the repository.
    Repository,
    /// It is the current folder, and no parent qualifies.
    CurrentFolder,
}

/// The root of a project, and why it is the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRoot {
    pub folder: PathBuf,
    pub reason: ProjectRootReason,
}

impl ProjectRoot {
    /// Finds the root for the current folder. `plan_file` is the plan's file name if it is not the default.
    pub fn find_from_current_dir(plan_file: Option<&str>) -> ProjectRoot {
        let current_dir = environment::current_dir();
        let search = AncestorSearch::search_upwards_from(&current_dir);
        let home = environment::home_folder().map(disk::canonicalize_or_keep);
        let is_world_writable =
            |folder: &Path| volume::access_rights(folder).is_none_or(|rights| rights.mode & 0o002 != 0);
        let candidates =
            current_dir_and_allowed_parents(&search, &current_dir, home.as_deref(), &is_world_writable);
        let reason_for = |folder: &Path| project_root_reason(folder, plan_file.unwrap_or(DEFAULT_PLAN));
        let nearest = candidates.iter().find_map(|folder| Some(((*folder).to_owned(), reason_for(folder)?)));
        let repository_root = || match &search.end {
            SearchEnd::Repository(root) if candidates.contains(&root.as_path()) => {
                Some((root.clone(), ProjectRootReason::Repository))
            }
            SearchEnd::Repository(_) | SearchEnd::ForeignOwner(_) | SearchEnd::FileSystemRoot => None,
        };
        let (folder, reason) =
            nearest.or_else(repository_root).unwrap_or((current_dir, ProjectRootReason::CurrentFolder));
        ProjectRoot { folder, reason }
    }

    /// Returns the project at this root, with our files inside.
    pub fn project_with_local_files(&self) -> Project {
        Project::with_local_files(&self.folder)
    }

    /// Returns the project at this root, with its files where its sessions store them.
    pub fn project_with_session_files(&self) -> Project {
        Project::with_session_files_or_local(&self.folder)
    }

    /// Renders a notice of which folder is the project and why; `None` if it is the current folder.
    pub fn render_notice_unless_current_dir(&self) -> Option<String> {
        let description = match self.reason {
            ProjectRootReason::OurFiles => "the nearest folder upwards with files of Plimsoll",
            ProjectRootReason::Plan => "the nearest folder upwards with the plan",
            ProjectRootReason::Prompt => "the nearest folder upwards with PROMPT.md",
            ProjectRootReason::Repository => "the root of the repository",
            ProjectRootReason::CurrentFolder => return None,
        };
        let is_current_dir = disk::canonicalize_or_keep(&environment::current_dir())
            == disk::canonicalize_or_keep(&self.folder);
        (!is_current_dir).then(|| format!("the project is {}: {description}", self.folder.display()))
    }
}

fn project_root_reason(folder: &Path, plan_file: &str) -> Option<ProjectRootReason> {
    let has = |name: &str| disk::exists(&folder.join(name));
    match () {
        () if has(".claude/ralph-state.json") || has(".claude/plimsoll") || has(".claude/plimsoll.json") => {
            Some(ProjectRootReason::OurFiles)
        }
        () if has(plan_file) => Some(ProjectRootReason::Plan),
        () if has("PROMPT.md") => Some(ProjectRootReason::Prompt),
        () => has_our_hooks_in_project_settings(folder).then_some(ProjectRootReason::OurFiles),
    }
}

/// Returns the current folder and those of its searched parents that may be the root, nearest first.
fn current_dir_and_allowed_parents<'a>(
    search: &AncestorSearch<'a>,
    current_dir: &'a Path,
    home: Option<&Path>,
    is_world_writable: &dyn Fn(&Path) -> bool,
) -> Vec<&'a Path> {
    let is_in_repository = matches!(search.end, SearchEnd::Repository(_));
    let is_below_home = |folder: &Path| home.is_some_and(|home| folder.starts_with(home) && folder != home);
    let is_home_or_above = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    let parents = search.folders.iter().copied().filter(|folder| *folder != current_dir);
    let parents = parents.take_while(|folder| {
        !is_home_or_above(folder) && !is_world_writable(folder) && (is_in_repository || is_below_home(folder))
    });
    std::iter::once(current_dir).chain(parents).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_unsafe_parent_becomes_the_project_root() {
        let repository = |root: &str| SearchEnd::Repository(root.into());
        for (here, end, open, expected) in [
            (
                "/home/u/r/a/b",
                repository("/home/u/r"),
                &[][..],
                &["/home/u/r/a/b", "/home/u/r/a", "/home/u/r"][..],
            ),
            ("/srv/r/a", repository("/srv/r"), &[], &["/srv/r/a", "/srv/r"]),
            // A repository of dotfiles: the home folder is no project.
            ("/home/u/notes", repository("/home/u"), &[], &["/home/u/notes"]),
            ("/home/u", repository("/home/u"), &[], &["/home/u"]),
            ("/home/u/w/p/a", SearchEnd::FileSystemRoot, &[], &["/home/u/w/p/a", "/home/u/w/p", "/home/u/w"]),
            // Outside of a repository and of the home folder, only the folder itself.
            ("/srv/p/a", SearchEnd::FileSystemRoot, &[], &["/srv/p/a"]),
            ("/tmp/p/a", SearchEnd::FileSystemRoot, &["/tmp"], &["/tmp/p/a"]),
            ("/srv/r/open/a", repository("/srv/r"), &["/srv/r/open"], &["/srv/r/open/a"]),
            ("/home/u/p/a", SearchEnd::ForeignOwner("/home/u/p".into()), &[], &["/home/u/p/a"]),
        ] {
            let end_at = match &end {
                SearchEnd::Repository(root) => root.clone(),
                SearchEnd::ForeignOwner(_) => PathBuf::from(here),
                SearchEnd::FileSystemRoot => PathBuf::from("/"),
            };
            let folders =
                Path::new(here).ancestors().take_while(|folder| folder.starts_with(&end_at)).collect();
            let search = AncestorSearch { folders, end };
            let is_open = |folder: &Path| open.iter().any(|open| Path::new(open) == folder);
            let roots = current_dir_and_allowed_parents(
                &search,
                Path::new(here),
                Some(Path::new("/home/u")),
                &is_open,
            );
            assert_eq!(roots, expected.iter().map(Path::new).collect::<Vec<_>>(), "{here}");
        }
    }
}
