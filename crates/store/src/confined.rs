//! Files of the project for a caller who may name any path: nothing outside the project's folder is read, written
//! or listed.
//!
//! What it promises: no `..`, no absolute path and no link leads out, also no link that is made while we look: each
//! part of a path is opened by its name in the folder before it, and links are followed by us, never by the system.
//! Only plain files are opened: no device, pipe or socket. What it does not promise: a second name (hard link) of a
//! file outside looks like any other file.
#![expect(clippy::disallowed_types, reason = "what the system has opened is read and written as a file")]

use crate::door::errno;
use crate::door::walk::{Destination, Links, Lost, Walk};
use crate::limited;
use plimsoll_system::files::SEARCH;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Why a path was refused, or what the system said.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedError {
    /// It leads out.
    #[error("{0} leads out of the project: only paths below {1} are allowed, without `..`")]
    Outside(String, PathBuf),
    /// Nothing is there.
    #[error("{0} does not exist: list_files shows what does")]
    Missing(String),
    /// It is a device, a pipe, a folder, …
    #[error("{0} is {1}, and only plain files are read and written")]
    NotAFile(String, &'static str),
    /// A file where a folder should be.
    #[error("{0} is no folder")]
    NotAFolder(String),
    /// The system refused.
    #[error("{0}: {1}")]
    System(String, Errno),
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// `/` for a folder, `@` for a link, `|` for what is neither nor a file; nothing for a file.
    pub mark: &'static str,
    /// The size of a file in bytes.
    pub size: Option<u64>,
}

/// A folder that nothing leads out of.
#[derive(Debug)]
pub struct Confined {
    root: PathBuf,
    folder: OwnedFd,
}

impl Confined {
    /// The folder.
    pub fn at(root: &Path) -> Result<Confined, ConfinedError> {
        let root = crate::disk::canonical(root);
        let folder = rustix::fs::open(&root, SEARCH, Mode::empty())
            .map_err(|error| ConfinedError::System(root.display().to_string(), error))?;
        Ok(Confined { root, folder })
    }

    /// Walks a path; with `makes` the folders that are missing are made.
    fn walk<'p>(&self, path: &'p str, makes: bool) -> Result<Destination<'p>, ConfinedError> {
        let walk = Walk {
            folder: self.folder.as_fd(),
            roots: &[&self.root],
            links: Links::Inside,
            makes: makes.then_some(0o777),
            follows_last: true,
        };
        walk.to(Path::new(path)).map_err(|lost| match lost {
            Lost::Outside | Lost::Link { .. } => ConfinedError::Outside(path.to_owned(), self.root.clone()),
            Lost::Missing => ConfinedError::Missing(path.to_owned()),
            Lost::NotAFolder => ConfinedError::NotAFolder(path.to_owned()),
            Lost::System(error) => ConfinedError::System(path.to_owned(), error),
        })
    }

    /// The beginning of a file, at most this many bytes of it, and its whole size.
    pub fn read(&self, path: &str, most: u64) -> Result<(Vec<u8>, u64), ConfinedError> {
        let place = self.walk(path, false)?;
        let system = |error| ConfinedError::System(path.to_owned(), error);
        let Some(file) = open(&place, OFlags::RDONLY).map_err(|error| error.of(path))? else {
            return Err(ConfinedError::Missing(path.to_owned()));
        };
        let size = file.metadata().map_err(|error| system(errno(&error)))?.len();
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| system(errno(&error)))?;
        Ok((bytes, size))
    }

    /// Writes a file in one step, with the folders it needs; true if it is new. One that is there keeps its mode.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<bool, ConfinedError> {
        let place = self.walk(path, true)?;
        // Who may not write the file may not replace it either.
        let before = open(&place, OFlags::WRONLY).map_err(|error| error.of(path))?;
        let mode = before.as_ref().and_then(|file| rustix::fs::fstat(file).ok()).map(|stat| stat.st_mode);
        replace(&place, bytes, mode).map_err(|error| ConfinedError::System(path.to_owned(), error))?;
        Ok(before.is_none())
    }

    /// What is in a folder, sorted by name.
    pub fn list(&self, path: &str) -> Result<Vec<Listed>, ConfinedError> {
        let place = self.walk(path, false)?;
        if place.name.is_some() {
            return Err(match place.kind() {
                None => ConfinedError::Missing(path.to_owned()),
                Some(_) => ConfinedError::NotAFolder(path.to_owned()),
            });
        }
        let system = |error| ConfinedError::System(path.to_owned(), error);
        let mut found = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(place.folder(), ".", flags, Mode::empty()).map_err(system)?;
        for entry in Dir::new(folder).map_err(system)? {
            let entry = entry.map_err(system)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            let stat = rustix::fs::statat(place.folder(), entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let kind = stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
            let size = match stat {
                Ok(stat) if kind.is_file() => u64::try_from(stat.st_size).ok(),
                _ => None,
            };
            found.push(Listed { name, mark: mark(kind), size });
        }
        found.sort();
        Ok(found)
    }
}

fn mark(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "",
        FileType::Directory => "/",
        FileType::Symlink => "@",
        _ => "|",
    }
}

/// Drafts beside the file and renames: readers see old or new, and a second name of the file keeps its content.
fn replace(place: &Destination<'_>, bytes: &[u8], mode: Option<RawMode>) -> Result<(), Errno> {
    let number = RandomState::new().hash_one(0);
    let draft = format!(".{}.{number:016x}{}", std::process::id(), crate::disk::DRAFT);
    let name = place.name.as_deref().unwrap_or_default();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A file of the project, not of ours (0600): the user's umask decides, as with an editor.
    let file = rustix::fs::openat(place.folder(), &draft, flags, Mode::from_raw_mode(0o666))?;
    // `fchmod`: from a mode that is given to `openat` the umask takes bits away.
    let kept = mode.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777)));
    let written = kept
        .and_then(|()| limited::write_all(&File::from(file), bytes).map_err(|error| errno(&error)))
        .and_then(|()| rustix::fs::renameat(place.folder(), &draft, place.folder(), name));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(place.folder(), &draft, AtFlags::empty());
    }
    written
}

/// Why a file was not opened; the caller knows its path.
enum Refused {
    NotAFile(&'static str),
    System(Errno),
}

impl Refused {
    fn of(self, path: &str) -> ConfinedError {
        match self {
            Refused::NotAFile(what) => ConfinedError::NotAFile(path.to_owned(), what),
            Refused::System(error) => ConfinedError::System(path.to_owned(), error),
        }
    }
}

/// Opens the file; none if there is none. Asked before it is opened and again after, because opening a device
/// can do things, and a name can change its owner in between.
fn open(place: &Destination<'_>, how: OFlags) -> Result<Option<File>, Refused> {
    let (Some(name), Some(kind)) = (&place.name, place.kind()) else {
        return if place.name.is_none() { Err(Refused::NotAFile("a folder")) } else { Ok(None) };
    };
    is_plain(kind)?;
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(place.folder(), &**name, flags, Mode::empty()).map_err(Refused::System)?;
    let stat = rustix::fs::fstat(&file).map_err(Refused::System)?;
    is_plain(FileType::from_raw_mode(stat.st_mode))?;
    Ok(Some(File::from(file)))
}

fn is_plain(kind: FileType) -> Result<(), Refused> {
    Err(Refused::NotAFile(match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no plain file",
    }))
}

#[cfg(test)]
mod tests;
