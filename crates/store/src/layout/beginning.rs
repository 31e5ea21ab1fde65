//! Where a project begins for a command that creates something: a run in a subfolder belongs to the project above it.
//!
//! Rule: the nearest folder from here upwards that has files of ours, a plan or `PROMPT.md`; else the root of the repository;
//! else here. A parent is only taken inside the repository, or, outside of any, below the home: never the home itself or what
//! is above it, none of another owner, and none that everybody may write into. Here is always allowed: the user stands there.

use super::Project;
use super::outside::is_installed_in;
use super::upwards::{End, Upwards};
use crate::{disk, environment, volume};
use plimsoll_domain::todo::DEFAULT_PLAN;
use std::path::{Path, PathBuf};

/// Why a project begins where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginsAt {
    /// The folder has files of ours.
    OurFiles,
    /// It has the plan.
    Plan,
    /// It has a task for a run, `PROMPT.md`.
    Task,
    /// It is the root of the repository.
    Repository,
    /// Nothing is further up.
    Here,
}

/// Where a project begins, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The folder.
    pub folder: PathBuf,
    /// Why this one.
    pub why: BeginsAt,
}

impl Beginning {
    /// The beginning for the current folder; `plan` names the plan if it is not the usual one.
    pub fn find(plan: Option<&str>) -> Beginning {
        let here = environment::current_dir();
        let upwards = Upwards::from(&here);
        let home = environment::home().map(disk::canonical);
        let is_open = |folder: &Path| volume::rights(folder).is_none_or(|rights| rights.mode & 0o002 != 0);
        let folders = may_be_taken(&upwards, &here, home.as_deref(), &is_open);
        let why = |folder: &Path| why(folder, plan.unwrap_or(DEFAULT_PLAN));
        let nearest = folders.iter().find_map(|folder| Some(((*folder).to_owned(), why(folder)?)));
        let root = || match &upwards.end {
            End::Repository(root) if folders.contains(&root.as_path()) => {
                Some((root.clone(), BeginsAt::Repository))
            }
            End::Repository(_) | End::OfAnother(_) | End::Root => None,
        };
        let (folder, why) = nearest.or_else(root).unwrap_or((here, BeginsAt::Here));
        Beginning { folder, why }
    }

    /// The project there, with our files in it.
    pub fn project(&self) -> Project {
        Project::at(&self.folder)
    }

    /// The project there, with its files where its sessions have them.
    pub fn known(&self) -> Project {
        Project::of_person(&self.folder)
    }

    /// For the user, where it is not the current folder: which folder, and why.
    pub fn words(&self) -> Option<String> {
        let why = match self.why {
            BeginsAt::OurFiles => "the nearest folder upwards with files of Plimsoll",
            BeginsAt::Plan => "the nearest folder upwards with the plan",
            BeginsAt::Task => "the nearest folder upwards with PROMPT.md",
            BeginsAt::Repository => "the root of the repository",
            BeginsAt::Here => return None,
        };
        let is_here = disk::canonical(&environment::current_dir()) == disk::canonical(&self.folder);
        (!is_here).then(|| format!("the project is {}: {why}", self.folder.display()))
    }
}

fn why(folder: &Path, plan: &str) -> Option<BeginsAt> {
    let has = |name: &str| disk::exists(&folder.join(name));
    match () {
        () if has(".claude/ralph-state.json") || has(".claude/plimsoll") || has(".claude/plimsoll.json") => {
            Some(BeginsAt::OurFiles)
        }
        () if has(plan) => Some(BeginsAt::Plan),
        () if has("PROMPT.md") => Some(BeginsAt::Task),
        () => is_installed_in(folder).then_some(BeginsAt::OurFiles),
    }
}

/// The folders of the search that may be taken, the nearest first.
fn may_be_taken<'a>(
    upwards: &Upwards<'a>,
    here: &'a Path,
    home: Option<&Path>,
    is_open: &dyn Fn(&Path) -> bool,
) -> Vec<&'a Path> {
    let is_in_repository = matches!(upwards.end, End::Repository(_));
    let is_below_home = |folder: &Path| home.is_some_and(|home| folder.starts_with(home) && folder != home);
    let is_beyond_home = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    let parents = upwards.folders.iter().copied().filter(|folder| *folder != here);
    let parents = parents.take_while(|folder| {
        !is_beyond_home(folder) && !is_open(folder) && (is_in_repository || is_below_home(folder))
    });
    std::iter::once(here).chain(parents).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parent_is_taken_by_accident() {
        let repository = |root: &str| End::Repository(root.into());
        for (here, end, open, expected) in [
            (
                "/home/u/r/a/b",
                repository("/home/u/r"),
                &[][..],
                &["/home/u/r/a/b", "/home/u/r/a", "/home/u/r"][..],
            ),
            ("/srv/r/a", repository("/srv/r"), &[], &["/srv/r/a", "/srv/r"]),
            // A repository of dotfiles: the home is no project.
            ("/home/u/notes", repository("/home/u"), &[], &["/home/u/notes"]),
            ("/home/u", repository("/home/u"), &[], &["/home/u"]),
            ("/home/u/w/p/a", End::Root, &[], &["/home/u/w/p/a", "/home/u/w/p", "/home/u/w"]),
            // Outside of a repository and of the home only the folder itself.
            ("/srv/p/a", End::Root, &[], &["/srv/p/a"]),
            ("/tmp/p/a", End::Root, &["/tmp"], &["/tmp/p/a"]),
            ("/srv/r/open/a", repository("/srv/r"), &["/srv/r/open"], &["/srv/r/open/a"]),
            ("/home/u/p/a", End::OfAnother("/home/u/p".into()), &[], &["/home/u/p/a"]),
        ] {
            let end_at = match &end {
                End::Repository(root) => root.clone(),
                End::OfAnother(_) => PathBuf::from(here),
                End::Root => PathBuf::from("/"),
            };
            let folders =
                Path::new(here).ancestors().take_while(|folder| folder.starts_with(&end_at)).collect();
            let upwards = Upwards { folders, end };
            let is_open = |folder: &Path| open.iter().any(|open| Path::new(open) == folder);
            let found = may_be_taken(&upwards, Path::new(here), Some(Path::new("/home/u")), &is_open);
            assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>(), "{here}");
        }
    }
}
