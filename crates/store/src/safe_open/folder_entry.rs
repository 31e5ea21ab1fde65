//! A name in an open folder. The file is created, moved or removed in that folder even if the path to the folder
//! changes in the meantime.

use super::{OpenError, errno_from_io_error, open_with_openat2_if_no_link, registered_roots};
use crate::Durability;
use crate::plain_path::{TEMPORARY_FILE_SUFFIX, canonicalize_if_link};
use crate::size_limited_write;
use plimsoll_system::files::{SEARCH_FOLDER_FLAGS, sync_all, sync_data};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The mode of a new file: accessible to the owner only.
const OWNER_ONLY_MODE: RawMode = 0o600;

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    folder: OwnedFd,
    name: OsString,
    /// The result of an earlier lookup: `None` if there was no lookup, `Some(None)` if nothing had this name.
    cached_stat: Option<Option<Stat>>,
}

/// How to treat a path whose last part is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    /// Use its target, if that is allowed.
    Follow,
    /// Use the link itself.
    NoFollow,
}

impl FolderEntry {
    /// Resolves a path to a name in an open folder. If `create_folders` is true, missing folders are created.
    pub(crate) fn for_path(
        path: &Path,
        final_link: FinalLink,
        create_folders: bool,
    ) -> Result<FolderEntry, OpenError> {
        match FolderEntry::resolve(path, final_link) {
            Err(error) if create_folders && error.is_folder_missing() => {
                super::create_owner_only_folder_and_parents(parent_or_current(path))?;
                FolderEntry::resolve(path, final_link)
            }
            result => result,
        }
    }

    fn resolve(path: &Path, final_link: FinalLink) -> Result<FolderEntry, OpenError> {
        let Some(name) = path.file_name() else { return Err(OpenError::NotAFile) };
        let entry = match registered_roots::find_innermost_root_restricting_path(path) {
            // The root itself is an entry of a folder outside, so it is handled below.
            Some(path_below_root) if path_below_root.path != Path::new(".") => {
                let parent_below_root = registered_roots::PathBelowRoot {
                    path: parent_or_current(path_below_root.path),
                    root: path_below_root.root.clone(),
                };
                let folder = match open_with_openat2_if_no_link(
                    &parent_below_root,
                    SEARCH_FOLDER_FLAGS,
                    Mode::empty(),
                ) {
                    Some(folder) => folder?,
                    None => parent_below_root
                        .walk_path_retrying_canonical_root(true, None, true)?
                        .into_folder_unless_file_or_missing()?,
                };
                let mut entry = FolderEntry { folder, name: name.to_owned(), cached_stat: None };
                if final_link == FinalLink::NoFollow {
                    return Ok(entry);
                }
                let stat = entry.stat();
                if !stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink()) {
                    entry.cached_stat = Some(stat);
                    return Ok(entry);
                }
                let mut destination = path_below_root.walk_path_retrying_canonical_root(true, None, true)?;
                let name = destination.name.take().ok_or(OpenError::NotAFile)?.into_owned();
                FolderEntry {
                    folder: destination.into_folder_unless_file_or_missing()?,
                    name,
                    cached_stat: None,
                }
            }
            _ => {
                let target: PathBuf = match final_link {
                    FinalLink::Follow => canonicalize_if_link(path),
                    FinalLink::NoFollow => path.to_owned(),
                };
                let name = target.file_name().unwrap_or(name).to_owned();
                FolderEntry {
                    folder: rustix::fs::openat(
                        CWD,
                        parent_or_current(&target),
                        SEARCH_FOLDER_FLAGS,
                        Mode::empty(),
                    )?,
                    name,
                    cached_stat: None,
                }
            }
        };
        Ok(entry)
    }

    /// Returns the metadata of the entry without following a link. Returns `None` if nothing has this name.
    pub(crate) fn stat(&self) -> Option<Stat> {
        rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns true if nothing has this name. Uses the earlier lookup if there was one.
    pub(crate) fn is_name_available(&self) -> bool {
        self.cached_stat.unwrap_or_else(|| self.stat()).is_none()
    }

    /// Replaces the file atomically. Keeps the mode of an existing file; returns an error if the entry is not
    /// a regular file.
    pub(crate) fn replace_file_keeping_mode(
        &self,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), OpenError> {
        let mode = match self.cached_stat.unwrap_or_else(|| self.stat()) {
            None => OWNER_ONLY_MODE,
            Some(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => stat.st_mode & 0o777,
                _ => return Err(OpenError::NotAFile),
            },
        };
        // A kill between here and the rename leaves the old file and an unused temporary file.
        let temporary_name = self.write_temporary_file(bytes, mode, durability)?;
        if let Err(error) = rustix::fs::renameat(&self.folder, &temporary_name, &self.folder, &self.name) {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary_name, AtFlags::empty());
            return Err(error.into());
        }
        if durability == Durability::Durable {
            self.sync_folder();
        }
        Ok(())
    }

    /// Creates a new file atomically and durably. Returns false if the name is taken.
    pub(crate) fn create_new(&self, bytes: &[u8]) -> Result<bool, OpenError> {
        let temporary_name = self.write_temporary_file(bytes, OWNER_ONLY_MODE, Durability::Durable)?;
        // A hard link and not a rename: a rename would replace a file that has taken the name in the
        // meantime. A kill before the temporary name is removed leaves a second, unused name.
        let result =
            rustix::fs::linkat(&self.folder, &temporary_name, &self.folder, &self.name, AtFlags::empty());
        let _ = rustix::fs::unlinkat(&self.folder, &temporary_name, AtFlags::empty());
        match result {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // Some file systems do not support hard links.
            Err(_) => self.create_new_in_place(bytes),
        }
    }

    /// Creates a link with this target. An existing entry is left unchanged.
    pub(crate) fn create_link_if_missing(&self, target: &str) -> Result<(), OpenError> {
        match rustix::fs::symlinkat(target, &self.folder, &self.name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a link, or atomically replaces the entry by one. A kill in between leaves an unused temporary
    /// link.
    pub(crate) fn create_or_replace_link(&self, target: &Path) -> Result<(), OpenError> {
        let temporary_name = self.new_temporary_name();
        rustix::fs::symlinkat(target, &self.folder, &temporary_name)?;
        if let Err(error) = rustix::fs::renameat(&self.folder, &temporary_name, &self.folder, &self.name) {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary_name, AtFlags::empty());
            return Err(error.into());
        }
        Ok(())
    }

    fn create_new_in_place(&self, bytes: &[u8]) -> Result<bool, OpenError> {
        // Not atomic: a kill here may leave a partial file.
        match self.create_file(&self.name, OWNER_ONLY_MODE) {
            Ok(file) => {
                let result =
                    size_limited_write::write_all(&file, bytes).and_then(|()| Ok(sync_data(file.as_fd())?));
                // On an error the partial file is removed, so that the name is available again.
                let _ = result.as_ref().inspect_err(|_| drop(self.remove()));
                result.map(|()| true).map_err(|error| errno_from_io_error(&error).into())
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes these bytes to a temporary file in the same folder, under an unpredictable name. Returns the
    /// name.
    fn write_temporary_file(
        &self,
        bytes: &[u8],
        mode: RawMode,
        durability: Durability,
    ) -> Result<OsString, OpenError> {
        let (name, file) = loop {
            let name = self.new_temporary_name();
            match self.create_file(&name, mode) {
                Err(Errno::EXIST) => {}
                create_result => break (name, create_result?),
            }
        };
        if mode != OWNER_ONLY_MODE {
            // The umask removes bits from a mode that is passed to `openat`. A file system without modes
            // returns an error here, which must not make the write fail.
            let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode));
        }
        let result = size_limited_write::write_all(&file, bytes).and_then(|()| match durability {
            Durability::Durable => Ok(sync_data(file.as_fd())?),
            Durability::Lazy => Ok(()),
        });
        if let Err(error) = result {
            let _ = rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty());
            return Err(errno_from_io_error(&error).into());
        }
        Ok(name)
    }

    /// Returns a new name for a temporary file. It contains the process id, so that temporary files of ended
    /// processes can be removed.
    pub(super) fn new_temporary_name(&self) -> OsString {
        let random_number = RandomState::new().hash_one(0);
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(format!(".{}.{random_number:016x}{TEMPORARY_FILE_SUFFIX}", std::process::id()));
        name
    }

    fn create_file(&self, name: &OsStr, mode: RawMode) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::from_raw_mode(mode)).map(File::from)
    }

    /// Removes the file or link.
    pub(crate) fn remove(&self) -> Result<(), OpenError> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    /// Removes the folder if it is empty.
    pub(crate) fn remove_folder(&self) -> Result<(), OpenError> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Moves the entry to another name or folder; replaces an existing file there.
    pub(crate) fn rename(&self, destination: &FolderEntry) -> Result<(), OpenError> {
        let result = rustix::fs::renameat_with(
            &self.folder,
            &self.name,
            &destination.folder,
            &destination.name,
            RenameFlags::empty(),
        );
        Ok(result?)
    }

    /// Syncs the folder: a rename survives a power cut only after this. Errors are ignored, because some file
    /// systems refuse to sync a folder.
    pub(crate) fn sync_folder(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            let _ = sync_all(folder.as_fd());
        }
    }
}

/// Returns the folder of a path; the current folder if the path has none.
fn parent_or_current(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
