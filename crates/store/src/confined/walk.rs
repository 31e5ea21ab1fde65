//! From the project's folder to a place in it, one part of the path at a time.

use super::{Confined, ConfinedError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the system itself follows.
const MOST_LINKS: usize = 40;

/// Where a path leads.
pub(super) struct Place {
    /// The folders on the way; the last one is where it lies, and is held open.
    folders: Vec<OwnedFd>,
    /// Its name there; none if it is the folder itself.
    pub(super) name: Option<OsString>,
    /// What it is; none if nothing is there.
    pub(super) kind: Option<FileType>,
}

impl Place {
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folders[self.folders.len() - 1].as_fd()
    }
}

impl Confined {
    /// Walks a path; with `makes` the folders that are missing are made.
    pub(super) fn walk(&self, path: &str, makes: bool) -> Result<Place, ConfinedError> {
        let outside = || ConfinedError::Outside(path.to_owned(), self.root.clone());
        let system = |error| ConfinedError::System(path.to_owned(), error);
        let mut ahead = self.parts(Path::new(path)).ok_or_else(outside)?;
        if ahead.iter().any(|part| part == "..") {
            return Err(outside());
        }
        let mut place = Place {
            folders: vec![self.folder.try_clone().map_err(|_| system(Errno::MFILE))?],
            name: None,
            kind: None,
        };
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            if part == ".." {
                // Only a link's target has one; above the project's folder there is nothing for us.
                place.folders.pop();
                if place.folders.is_empty() {
                    return Err(outside());
                }
                continue;
            }
            match kind_of(&place, &part).map_err(system)? {
                None if !ahead.is_empty() && makes => {
                    let made = rustix::fs::mkdirat(place.folder(), &part, Mode::from_raw_mode(0o777));
                    // Somebody else may have made it meanwhile.
                    made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })
                        .map_err(system)?;
                    ahead.push_front(part);
                }
                None if !ahead.is_empty() => return Err(ConfinedError::Missing(path.to_owned())),
                Some(FileType::Symlink) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(system(Errno::LOOP));
                    }
                    let target = rustix::fs::readlinkat(place.folder(), &part, Vec::new()).map_err(system)?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    let parts = self.parts(&target).ok_or_else(outside)?;
                    if target.is_absolute() {
                        place.folders.truncate(1);
                    }
                    parts.into_iter().rev().for_each(|part| ahead.push_front(part));
                }
                Some(FileType::Directory) => {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let folder = rustix::fs::openat(place.folder(), &part, flags, Mode::empty());
                    place.folders.push(folder.map_err(system)?);
                }
                Some(_) if !ahead.is_empty() => return Err(ConfinedError::NotAFolder(path.to_owned())),
                kind => {
                    place.name = Some(part);
                    place.kind = kind;
                }
            }
        }
        Ok(place)
    }

    /// The parts of a path below the project's folder; none if it is an absolute one to somewhere else.
    fn parts(&self, path: &Path) -> Option<VecDeque<OsString>> {
        let below = if path.is_absolute() { path.strip_prefix(&self.root).ok()? } else { path };
        let part = |part: Component<'_>| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        };
        Some(below.components().filter_map(part).collect())
    }
}

/// What a name in the place's folder is; none if nothing has it.
fn kind_of(place: &Place, name: &OsStr) -> Result<Option<FileType>, Errno> {
    match rustix::fs::statat(place.folder(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
