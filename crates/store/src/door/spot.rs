//! A name in a folder that is held open: where a file is put, moved or removed, whatever the path to it becomes.

use super::{Refused, errno, in_one_call, roots};
use crate::Durability;
use crate::limited;
use crate::plain::{DRAFT, resolve_link};
use plimsoll_system::files::{SEARCH, sync_all, sync_data};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The mode of a new file: for the owner alone.
const PRIVATE: RawMode = 0o600;

/// A name in a folder that is held open.
#[derive(Debug)]
pub(crate) struct Spot {
    folder: OwnedFd,
    name: OsString,
    /// What was found there, if it has been looked up.
    seen: Option<Option<Stat>>,
}

/// What to do with a link of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// Go where it leads, if we may.
    Followed,
    /// It is what is meant.
    Itself,
}

impl Spot {
    /// Where a path leads; with `makes` the folders on the way are made.
    pub(crate) fn of(path: &Path, last: Last, makes: bool) -> Result<Spot, Refused> {
        match Spot::find(path, last) {
            Err(refused) if makes && refused.is_folder_missing() => {
                super::make_folder(parent(path))?;
                Spot::find(path, last)
            }
            found => found,
        }
    }

    fn find(path: &Path, last: Last) -> Result<Spot, Refused> {
        let Some(name) = path.file_name() else { return Err(Refused::NotAFile) };
        let spot = match roots::find(path) {
            // A root is a name in a folder outside.
            Some(below) if below.path != Path::new(".") => {
                let over = roots::Below { path: parent(below.path), root: below.root.clone() };
                let folder = match in_one_call(&over, SEARCH, Mode::empty()) {
                    Some(folder) => folder?,
                    None => over.walk(true, None, true)?.into_folder()?,
                };
                let mut spot = Spot { folder, name: name.to_owned(), seen: None };
                if last == Last::Itself {
                    return Ok(spot);
                }
                let found = spot.found();
                if !found.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink()) {
                    spot.seen = Some(found);
                    return Ok(spot);
                }
                let mut place = below.walk(true, None, true)?;
                let name = place.name.take().ok_or(Refused::NotAFile)?.into_owned();
                Spot { folder: place.into_folder()?, name, seen: None }
            }
            _ => {
                let target: PathBuf = match last {
                    Last::Followed => resolve_link(path),
                    Last::Itself => path.to_owned(),
                };
                let name = target.file_name().unwrap_or(name).to_owned();
                Spot {
                    folder: rustix::fs::openat(CWD, parent(&target), SEARCH, Mode::empty())?,
                    name,
                    seen: None,
                }
            }
        };
        Ok(spot)
    }

    /// What is there; a link is one.
    pub(crate) fn found(&self) -> Option<Stat> {
        rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// True if nothing is there, as far as it has been looked up.
    pub(crate) fn is_free(&self) -> bool {
        self.seen.unwrap_or_else(|| self.found()).is_none()
    }

    /// Puts bytes in place in one step. Keeps the mode of a file that was there; what is none is left alone.
    pub(crate) fn replace(&self, bytes: &[u8], durability: Durability) -> Result<(), Refused> {
        let mode = match self.seen.unwrap_or_else(|| self.found()) {
            None => PRIVATE,
            Some(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => stat.st_mode & 0o777,
                _ => return Err(Refused::NotAFile),
            },
        };
        // A kill from here to the rename leaves the old file, and beside it a draft that nobody reads.
        let draft = self.draft(bytes, mode, durability)?;
        if let Err(error) = rustix::fs::renameat(&self.folder, &draft, &self.folder, &self.name) {
            let _ = rustix::fs::unlinkat(&self.folder, &draft, AtFlags::empty());
            return Err(error.into());
        }
        if durability == Durability::Durable {
            self.sync_folder();
        }
        Ok(())
    }

    /// Puts a new file in place, whole or not at all; false if the name is taken.
    pub(crate) fn create(&self, bytes: &[u8]) -> Result<bool, Refused> {
        let draft = self.draft(bytes, PRIVATE, Durability::Durable)?;
        // Linked, not renamed: a rename would replace a file that has taken the name meanwhile. A kill before the draft
        // is gone leaves a second name, which nobody reads.
        let linked = rustix::fs::linkat(&self.folder, &draft, &self.folder, &self.name, AtFlags::empty());
        let _ = rustix::fs::unlinkat(&self.folder, &draft, AtFlags::empty());
        match linked {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // Some file systems know no second name for a file.
            Err(_) => self.create_in_place(bytes),
        }
    }

    /// Puts a link with this text in place; what is there already stays.
    pub(crate) fn link(&self, text: &str) -> Result<(), Refused> {
        match rustix::fs::symlinkat(text, &self.folder, &self.name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a link, or replaces what is there in one step. A kill between the two leaves a draft, which does no harm.
    pub(crate) fn replace_link(&self, target: &Path) -> Result<(), Refused> {
        let draft = self.draft_name();
        rustix::fs::symlinkat(target, &self.folder, &draft)?;
        if let Err(error) = rustix::fs::renameat(&self.folder, &draft, &self.folder, &self.name) {
            let _ = rustix::fs::unlinkat(&self.folder, &draft, AtFlags::empty());
            return Err(error.into());
        }
        Ok(())
    }

    fn create_in_place(&self, bytes: &[u8]) -> Result<bool, Refused> {
        // Not in one step: here a kill may leave half a file.
        match self.new_file(&self.name, PRIVATE) {
            Ok(file) => {
                let written = limited::write_all(&file, bytes).and_then(|()| Ok(sync_data(file.as_fd())?));
                // Whole or not at all.
                let _ = written.as_ref().inspect_err(|_| drop(self.remove()));
                written.map(|()| true).map_err(|error| errno(&error).into())
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A file with these bytes under a name that cannot be guessed, in the same folder.
    fn draft(&self, bytes: &[u8], mode: RawMode, durability: Durability) -> Result<OsString, Refused> {
        let (name, file) = loop {
            let name = self.draft_name();
            match self.new_file(&name, mode) {
                Err(Errno::EXIST) => {}
                made => break (name, made?),
            }
        };
        if mode != PRIVATE {
            // From a mode that is given to `openat` the umask takes bits away. A file system without modes refuses this, and
            // that must not cost the write.
            let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode));
        }
        let written = limited::write_all(&file, bytes).and_then(|()| match durability {
            Durability::Durable => Ok(sync_data(file.as_fd())?),
            Durability::Lazy => Ok(()),
        });
        if let Err(error) = written {
            let _ = rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty());
            return Err(errno(&error).into());
        }
        Ok(name)
    }

    /// The owner's process is in the name, so that drafts of dead processes can be removed.
    pub(super) fn draft_name(&self) -> OsString {
        let number = RandomState::new().hash_one(0);
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(format!(".{}.{number:016x}{DRAFT}", std::process::id()));
        name
    }

    fn new_file(&self, name: &OsStr, mode: RawMode) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::from_raw_mode(mode)).map(File::from)
    }

    /// Removes the file or link.
    pub(crate) fn remove(&self) -> Result<(), Refused> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self) -> Result<(), Refused> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Moves what is there.
    pub(crate) fn rename(&self, to: &Spot) -> Result<(), Refused> {
        let moved =
            rustix::fs::renameat_with(&self.folder, &self.name, &to.folder, &to.name, RenameFlags::empty());
        Ok(moved?)
    }

    /// A rename is lasting only once its folder is. Some file systems refuse to sync a folder: no harm then.
    pub(crate) fn sync_folder(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            let _ = sync_all(folder.as_fd());
        }
    }
}

/// The folder of a path; where none is named, the one we are in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
