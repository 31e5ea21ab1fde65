//! Links in `~/.local/bin` to the programs that were copied out of npm's or a plugin's folder, so that a
//! terminal finds them. They all lead through the link to the current version, so an upgrade changes none of
//! them. No other installer writes such a target, so a link with this target is ours.

use super::program_home::{
    COMMAND_PROGRAMS, current_version_link, is_missing_or_link, needs_permanent_copy,
    permanent_path_folders_outside_project,
};
use super::{InstalledFileOutcome, LinkChange};
use plimsoll_store::{disk, environment};
use plimsoll_system::paths::program_path;
use std::path::{Path, PathBuf};

/// Links to our programs in one folder.
#[derive(Debug)]
pub struct CommandLinks {
    pub folder: PathBuf,
    /// True if the folder is on the user's PATH.
    pub is_on_path: bool,
    /// One link for each program that is installed.
    pub links: Vec<CommandLink>,
}

#[derive(Debug)]
pub struct CommandLink {
    pub path: PathBuf,
    pub target: PathBuf,
    /// Says whether the link is written, already correct, or kept because it is not ours.
    pub outcome: InstalledFileOutcome,
}

/// Plans the links to the copied programs. Returns `None` if the programs need no copy, the version link cannot
/// be created, or another permanent `plimsoll` is on the PATH.
pub(super) fn plan_links_if_copied_and_no_other_plimsoll(
    changes: &mut Vec<LinkChange>,
) -> Option<CommandLinks> {
    let (folder, version_link) = (user_bin_folder()?, current_version_link()?);
    let executable_folder = environment::executable_folder()?;
    if !needs_permanent_copy()
        || !is_missing_or_link(&version_link)
        || is_other_plimsoll_on_path(&version_link)
    {
        return None;
    }
    let names = COMMAND_PROGRAMS.iter().filter(|name| disk::exists(&program_path(&executable_folder, name)));
    let links: Vec<CommandLink> = names
        .map(|name| {
            decide_link_outcome(program_path(&folder, name), program_path(&version_link, name), &version_link)
        })
        .collect();
    changes.extend(links.iter().filter(|link| link.outcome == InstalledFileOutcome::Written).map(|link| {
        LinkChange {
            path: link.path.clone(),
            before: disk::read_link_target(&link.path),
            after: Some(link.target.clone()),
        }
    }));
    let is_link_folder = |search_folder: &PathBuf| {
        disk::canonicalize_or_keep(search_folder) == disk::canonicalize_or_keep(&folder)
    };
    Some(CommandLinks {
        is_on_path: environment::absolute_search_folders().iter().any(is_link_folder),
        folder,
        links,
    })
}

fn decide_link_outcome(path: PathBuf, target: PathBuf, version_link: &Path) -> CommandLink {
    let outcome = match disk::read_link_target(&path) {
        Some(current_target) if current_target == target => InstalledFileOutcome::UpToDate,
        Some(current_target) if leads_through_version_link(&current_target, version_link) => {
            InstalledFileOutcome::Written
        }
        None if !disk::exists(&path) => InstalledFileOutcome::Written,
        _ => InstalledFileOutcome::Kept,
    };
    CommandLink { path, target, outcome }
}

/// Plans the removal of our links and returns their paths.
pub(super) fn plan_removal_of_our_links(changes: &mut Vec<LinkChange>) -> Vec<PathBuf> {
    let Some((folder, version_link)) = user_bin_folder().zip(current_version_link()) else {
        return Vec::new();
    };
    let removals = COMMAND_PROGRAMS.iter().filter_map(|name| {
        let path = program_path(&folder, name);
        let target = disk::read_link_target(&path)
            .filter(|target| leads_through_version_link(target, &version_link))?;
        Some(LinkChange { path, before: Some(target), after: None })
    });
    let previous_count = changes.len();
    changes.extend(removals);
    changes[previous_count..].iter().map(|change| change.path.clone()).collect()
}

/// Returns the folder of our links, or `None` if it has no link of ours to `plimsoll`.
pub(crate) fn command_link_folder() -> Option<PathBuf> {
    let (folder, version_link) = (user_bin_folder()?, current_version_link()?);
    disk::read_link_target(&program_path(&folder, COMMAND_PROGRAMS[0]))
        .filter(|target| leads_through_version_link(target, &version_link))
        .map(|_| folder)
}

fn user_bin_folder() -> Option<PathBuf> {
    Some(environment::home_folder()?.join(".local/bin"))
}

fn leads_through_version_link(target: &Path, version_link: &Path) -> bool {
    target.parent() == Some(version_link)
}

/// Returns true if the PATH has a `plimsoll` that is not one of our links, such as that of
/// `npm install -g`. Folders in `node_modules`, which npx adds to the PATH, are ignored.
fn is_other_plimsoll_on_path(version_link: &Path) -> bool {
    let paths = permanent_path_folders_outside_project()
        .into_iter()
        .map(|folder| program_path(&folder, COMMAND_PROGRAMS[0]));
    let mut programs = paths.filter(|path| environment::is_executable(path));
    programs.any(|path| {
        !disk::read_link_target(&path).is_some_and(|target| leads_through_version_link(&target, version_link))
    })
}
