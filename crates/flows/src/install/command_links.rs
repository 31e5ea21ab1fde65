//! Links in `~/.local/bin` with which a terminal finds the programs that were copied out of npm's or a
//! plugin's folder. They all lead through the link to the current version, so an upgrade changes none of
//! them. No other installer writes such a target, so a link with it is ours.

use super::program_home::{
    COMMAND_PROGRAMS, are_programs_copied, current_version_link, is_free_for_link, lasting_path_folders,
};
use super::{LinkChange, OwnFileOutcome};
use plimsoll_store::{disk, environment};
use std::path::{Path, PathBuf};

/// Links to our programs in one folder.
#[derive(Debug)]
pub struct CommandLinks {
    pub folder: PathBuf,
    /// True if the folder is on the user's PATH.
    pub is_on_path: bool,
    /// Each link with the program to which it leads.
    pub links: Vec<CommandLink>,
}

#[derive(Debug)]
pub struct CommandLink {
    pub path: PathBuf,
    pub target: PathBuf,
    /// Whether the link is written, already correct, or kept because it is not ours.
    pub outcome: OwnFileOutcome,
}

/// Plans the links, if the programs are copied and no other permanent `plimsoll` is on the PATH.
pub(super) fn plan_command_links(changes: &mut Vec<LinkChange>) -> Option<CommandLinks> {
    let (folder, version_link) = (user_bin_folder()?, current_version_link()?);
    let own_folder = environment::executable_folder()?;
    if !are_programs_copied() || !is_free_for_link(&version_link) || is_installed_elsewhere(&version_link) {
        return None;
    }
    let names = COMMAND_PROGRAMS.iter().filter(|name| disk::exists(&own_folder.join(name)));
    let links: Vec<CommandLink> =
        names.map(|name| plan_link(folder.join(name), version_link.join(name), &version_link)).collect();
    changes.extend(links.iter().filter(|link| link.outcome == OwnFileOutcome::Written).map(|link| {
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

fn plan_link(path: PathBuf, target: PathBuf, version_link: &Path) -> CommandLink {
    let outcome = match disk::read_link_target(&path) {
        Some(current_target) if current_target == target => OwnFileOutcome::UpToDate,
        Some(current_target) if is_our_target(&current_target, version_link) => OwnFileOutcome::Written,
        None if !disk::exists(&path) => OwnFileOutcome::Written,
        _ => OwnFileOutcome::Kept,
    };
    CommandLink { path, target, outcome }
}

/// Plans the removal of the links that are ours.
pub(super) fn plan_link_removal(changes: &mut Vec<LinkChange>) -> Vec<PathBuf> {
    let Some((folder, version_link)) = user_bin_folder().zip(current_version_link()) else {
        return Vec::new();
    };
    let removals = COMMAND_PROGRAMS.iter().filter_map(|name| {
        let path = folder.join(name);
        let target = disk::read_link_target(&path).filter(|target| is_our_target(target, &version_link))?;
        Some(LinkChange { path, before: Some(target), after: None })
    });
    let previous_count = changes.len();
    changes.extend(removals);
    changes[previous_count..].iter().map(|change| change.path.clone()).collect()
}

/// Returns the folder of our links, if it has one to `plimsoll`.
pub(crate) fn command_link_folder() -> Option<PathBuf> {
    let (folder, version_link) = (user_bin_folder()?, current_version_link()?);
    disk::read_link_target(&folder.join(COMMAND_PROGRAMS[0]))
        .filter(|target| is_our_target(target, &version_link))
        .map(|_| folder)
}

fn user_bin_folder() -> Option<PathBuf> {
    Some(environment::home_folder()?.join(".local/bin"))
}

fn is_our_target(target: &Path, version_link: &Path) -> bool {
    target.parent() == Some(version_link)
}

/// Returns true if a terminal finds a `plimsoll` that is not one of our links, such as that of
/// `npm install -g`. Folders in `node_modules`, which npx adds to the PATH, do not count.
fn is_installed_elsewhere(version_link: &Path) -> bool {
    let paths = lasting_path_folders().into_iter().map(|folder| folder.join(COMMAND_PROGRAMS[0]));
    let mut programs = paths.filter(|path| environment::is_executable(path));
    programs
        .any(|path| !disk::read_link_target(&path).is_some_and(|target| is_our_target(&target, version_link)))
}
