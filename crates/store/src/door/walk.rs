//! From a root to a place below it, one part of the path at a time.
//!
//! Each part is opened by its name in the folder before it, and links are followed by us, never by the system: no
//! link leads out, also none that is made while we look.

use plimsoll_system::files::SEARCH;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// As many links as the system itself follows.
const MOST_LINKS: usize = 40;

/// Which links are followed; none that leads out of the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// Every one that stays inside.
    Inside,
    /// Those, but to none of the places in which a text becomes a command of somebody: git's folder, and what the
    /// client runs.
    Guarded,
    /// Only the first part of the path may be one (a linked `.claude`).
    First,
    /// None.
    None,
}

/// A walk from a root.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    /// The root's folder.
    pub(crate) folder: BorrowedFd<'a>,
    /// Its path, in every form that the target of an absolute link may have.
    pub(crate) roots: &'a [&'a Path],
    /// Which links are followed.
    pub(crate) links: Links,
    /// The mode of folders that are made on the way; none if a missing one ends the walk.
    pub(crate) makes: Option<RawMode>,
    /// False if a link at the path's end is the place itself.
    pub(crate) follows_last: bool,
}

/// Why a walk ended before its place.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The path itself is none below the root.
    Outside,
    /// A link that is not followed.
    Link {
        /// The name of the link.
        link: OsString,
        /// Where it leads.
        target: PathBuf,
        /// False if it stays inside.
        leads_out: bool,
    },
    /// Nothing is there.
    Missing,
    /// A file where a folder should be.
    NotAFolder,
    /// The system refused.
    System(Errno),
}

impl From<Errno> for Lost {
    fn from(error: Errno) -> Lost {
        Lost::System(error)
    }
}

/// A name on the way: the path's own, or one of a link's target.
pub(crate) type Part<'p> = Cow<'p, OsStr>;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Destination<'p> {
    /// The folders on the way; the last one is where it lies, and is held open.
    folders: Vec<OwnedFd>,
    /// Their names, without the root's.
    names: Vec<Part<'p>>,
    /// Its name there; none if it is the folder itself.
    pub(crate) name: Option<Part<'p>>,
    /// What it is; none if nothing is there.
    pub(crate) found: Option<Stat>,
}

impl<'p> Destination<'p> {
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folders[self.folders.len() - 1].as_fd()
    }

    /// The folder, held open; an error where the walk ended at a name in it.
    pub(crate) fn into_folder(mut self) -> Result<OwnedFd, Lost> {
        match self.name {
            None => self.folders.pop().ok_or(Lost::Missing),
            Some(_) if self.found.is_some() => Err(Lost::NotAFolder),
            Some(_) => Err(Lost::Missing),
        }
    }

    /// Goes into a folder that lies there.
    fn enter(&mut self, name: Part<'p>) -> Result<(), Lost> {
        // `NOFOLLOW`: what was a folder a moment ago may be a link by now.
        let flags = SEARCH | OFlags::NOFOLLOW;
        self.folders.push(rustix::fs::openat(self.folder(), &*name, flags, Mode::empty())?);
        self.names.push(name);
        Ok(())
    }

    /// What it is; none if nothing is there.
    pub(crate) fn kind(&self) -> Option<FileType> {
        self.found.map(|stat| FileType::from_raw_mode(stat.st_mode))
    }
}

impl Walk<'_> {
    /// Walks a path.
    pub(crate) fn to<'p>(&self, path: &'p Path) -> Result<Destination<'p>, Lost> {
        let mut ahead: VecDeque<Part<'p>> = self.parts(path).ok_or(Lost::Outside)?;
        if ahead.iter().any(|part| **part == *"..") {
            return Err(Lost::Outside);
        }
        let root = rustix::io::fcntl_dupfd_cloexec(self.folder, 0)?;
        let mut place = Destination { folders: vec![root], names: Vec::new(), name: None, found: None };
        let mut followed: Option<(OsString, PathBuf)> = None;
        let mut links = 0;
        let mut steps = 0;
        while let Some(part) = ahead.pop_front() {
            steps += 1;
            if *part == *".." {
                // Only a link's target has one; above the root there is nothing for us.
                place.folders.pop();
                if place.names.pop().is_none() {
                    return Err(leads_out(followed));
                }
                continue;
            }
            let is_last = ahead.is_empty();
            let found = stat_of(&place, &part)?;
            match found.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                None if !is_last => {
                    self.make(&place, &part, followed.as_ref())?;
                    ahead.push_front(part);
                }
                Some(FileType::Symlink) if !is_last || self.follows_last => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Lost::System(Errno::LOOP));
                    }
                    let target = target_of(&place, &part)?;
                    let (is_absolute, inside) = (target.is_absolute(), self.parts(&target).map(owned));
                    followed = Some((part.into_owned(), target));
                    let inside = inside.ok_or_else(|| leads_out(followed.clone()))?;
                    if !self.follows(steps == 1 && !is_last) {
                        return Err(stays_a_link(followed));
                    }
                    if is_absolute {
                        place.folders.truncate(1);
                        place.names.clear();
                    }
                    inside.into_iter().rev().for_each(|part| ahead.push_front(part));
                }
                Some(FileType::Directory) => {
                    self.guard(&place, &part, followed.as_ref())?;
                    place.enter(part)?;
                }
                Some(_) if !is_last => return Err(Lost::NotAFolder),
                _ => {
                    self.guard(&place, &part, followed.as_ref())?;
                    place.name = Some(part);
                    place.found = found;
                }
            }
        }
        Ok(place)
    }

    /// Makes a folder on the way, if this walk may.
    fn make(
        &self,
        place: &Destination<'_>,
        part: &OsStr,
        followed: Option<&(OsString, PathBuf)>,
    ) -> Result<(), Lost> {
        let mode = Mode::from_raw_mode(self.makes.ok_or(Lost::Missing)?);
        self.guard(place, part, followed)?;
        match rustix::fs::mkdirat(place.folder(), part, mode) {
            // Another program may have made it meanwhile.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// True where this walk follows a link: the path's first part, or another.
    fn follows(&self, is_first: bool) -> bool {
        match self.links {
            Links::Inside | Links::Guarded => true,
            Links::First => is_first,
            Links::None => false,
        }
    }

    /// The parts of a path below the root; none if it is an absolute one to somewhere else.
    fn parts<'p>(&self, path: &'p Path) -> Option<VecDeque<Part<'p>>> {
        let below = if path.is_absolute() {
            self.roots.iter().find_map(|root| path.strip_prefix(root).ok())?
        } else {
            path
        };
        // Cut by hand: what a path's own parts cost is a good part of the walk.
        let is_part = |part: &&[u8]| !matches!(*part, b"" | b".");
        let parts = below.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(is_part);
        let mut ahead = VecDeque::with_capacity(8);
        ahead.extend(parts.map(|part| Cow::Borrowed(OsStr::from_bytes(part))));
        Some(ahead)
    }

    /// What is reached through a link only is no place where a text of ours would be run.
    fn guard(
        &self,
        place: &Destination<'_>,
        part: &OsStr,
        followed: Option<&(OsString, PathBuf)>,
    ) -> Result<(), Lost> {
        let is_guarded = matches!(self.links, Links::Guarded | Links::First) && followed.is_some();
        if is_guarded && is_run(&place.names, part) { Err(stays_a_link(followed.cloned())) } else { Ok(()) }
    }
}

/// True for places whose text somebody runs: all of git's, and of the client's folder what is neither a text for the
/// model nor a folder of one's own.
fn is_run(folders: &[Part<'_>], name: &OsStr) -> bool {
    const OF_THE_CLIENT: [&str; 7] =
        ["settings.json", "settings.local.json", "plimsoll.json", "hooks", "commands", "agents", "skills"];
    let is_clients = folders.last().is_some_and(|folder| **folder == *".claude");
    name == ".git" || is_clients && OF_THE_CLIENT.iter().any(|run| name == *run)
}

/// Where a link leads, as it says.
fn target_of(place: &Destination<'_>, link: &OsStr) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(place.folder(), link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn owned(parts: VecDeque<Part<'_>>) -> VecDeque<Part<'static>> {
    parts.into_iter().map(|part| Cow::Owned(part.into_owned())).collect()
}

fn leads_out(followed: Option<(OsString, PathBuf)>) -> Lost {
    followed.map_or(Lost::Outside, |(link, target)| Lost::Link { link, target, leads_out: true })
}

fn stays_a_link(followed: Option<(OsString, PathBuf)>) -> Lost {
    followed.map_or(Lost::Outside, |(link, target)| Lost::Link { link, target, leads_out: false })
}

/// What a name in the place's folder is; none if nothing has it.
fn stat_of(place: &Destination<'_>, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(place.folder(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
