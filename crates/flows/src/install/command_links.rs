//! Links in `~/.local/bin`, by which a terminal finds the programs that were copied out of npm's or a plugin's folder. All lead through
//! the link to the current version, so an upgrade changes none of them, and no other installer writes such a text: a link with it is ours.

use super::program_home::{NAMED_PROGRAMS, command_folders, is_copied, is_free_for_link, stable_link};
use super::{LinkChange, OwnFile};
use plimsoll_store::{disk, environment};
use std::path::{Path, PathBuf};

/// Links to our programs in one folder.
#[derive(Debug)]
pub struct CommandLinks {
    /// The folder.
    pub folder: PathBuf,
    /// True if the user's shell looks there.
    pub is_on_path: bool,
    /// Each link with the program to which it leads.
    pub links: Vec<CommandLink>,
}

/// One of them.
#[derive(Debug)]
pub struct CommandLink {
    /// The link.
    pub path: PathBuf,
    /// The program.
    pub target: PathBuf,
    /// Whether it is written, is there already, or is kept because it is not ours.
    pub outcome: OwnFile,
}

/// Plans the links, if the programs are copied and no `plimsoll` that stays is on the PATH yet.
pub(super) fn plan_links(changes: &mut Vec<LinkChange>) -> Option<CommandLinks> {
    let (folder, stable) = (folder()?, stable_link()?);
    let own = environment::own_directory()?;
    if !is_copied() || !is_free_for_link(&stable) || is_installed_elsewhere(&stable) {
        return None;
    }
    let names = NAMED_PROGRAMS.iter().filter(|name| disk::exists(&own.join(name)));
    let links: Vec<CommandLink> =
        names.map(|name| plan_link(folder.join(name), stable.join(name), &stable)).collect();
    changes.extend(links.iter().filter(|link| link.outcome == OwnFile::Written).map(|link| LinkChange {
        path: link.path.clone(),
        before: disk::link_target(&link.path),
        after: Some(link.target.clone()),
    }));
    let is_it = |one: &PathBuf| disk::canonical(one) == disk::canonical(&folder);
    Some(CommandLinks { is_on_path: environment::search_folders().iter().any(is_it), folder, links })
}

fn plan_link(path: PathBuf, target: PathBuf, stable: &Path) -> CommandLink {
    let outcome = match disk::link_target(&path) {
        Some(text) if text == target => OwnFile::Already,
        Some(text) if is_our_text(&text, stable) => OwnFile::Written,
        None if !disk::exists(&path) => OwnFile::Written,
        _ => OwnFile::Kept,
    };
    CommandLink { path, target, outcome }
}

/// Plans the removal of the links that are ours.
pub(super) fn plan_link_removal(changes: &mut Vec<LinkChange>) -> Vec<PathBuf> {
    let Some((folder, stable)) = folder().zip(stable_link()) else { return Vec::new() };
    let ours = NAMED_PROGRAMS.iter().filter_map(|name| {
        let path = folder.join(name);
        let text = disk::link_target(&path).filter(|text| is_our_text(text, &stable))?;
        Some(LinkChange { path, before: Some(text), after: None })
    });
    let before = changes.len();
    changes.extend(ours);
    changes[before..].iter().map(|change| change.path.clone()).collect()
}

/// The folder of our links, if there is one to `plimsoll`.
pub(crate) fn linked_folder() -> Option<PathBuf> {
    let (folder, stable) = (folder()?, stable_link()?);
    disk::link_target(&folder.join(NAMED_PROGRAMS[0]))
        .filter(|text| is_our_text(text, &stable))
        .map(|_| folder)
}

fn folder() -> Option<PathBuf> {
    Some(environment::home()?.join(".local/bin"))
}

fn is_our_text(text: &Path, stable: &Path) -> bool {
    text.parent() == Some(stable)
}

/// True if a terminal finds a `plimsoll` that is not one of our links, such as that of `npm install -g`. The PATH that npx gives its
/// program has folders in `node_modules`, which do not count.
fn is_installed_elsewhere(stable: &Path) -> bool {
    let paths = command_folders().into_iter().map(|folder| folder.join(NAMED_PROGRAMS[0]));
    let mut programs = paths.filter(|path| environment::is_executable(path));
    programs.any(|path| !disk::link_target(&path).is_some_and(|text| is_our_text(&text, stable)))
}
