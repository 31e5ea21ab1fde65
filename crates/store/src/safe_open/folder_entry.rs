//! A name in an open folder. The file is created, moved or removed in that folder even if the path to the folder
//! changes in the meantime.

use super::{OpenError, registered_roots};
use crate::Durability;
use crate::plain_path::{TEMPORARY_FILE_SUFFIX, canonicalize_if_link};
use crate::size_limited_write;
use plimsoll_system::files::{Folder, Metadata, set_mode, sync_data};
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// The mode of a new file: accessible to the owner only.
const OWNER_ONLY_MODE: u32 = 0o600;

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    folder: Folder,
    name: OsString,
    /// The result of an earlier lookup: `None` if there was no lookup, `Some(None)` if nothing had this name.
    cached_metadata: Option<Option<Metadata>>,
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
                let root_folder = parent_below_root.root_folder()?;
                let folder = match root_folder.open_subfolder_beneath(parent_below_root.path) {
                    Some(folder) => folder?,
                    None => parent_below_root
                        .walk_path_retrying_canonical_root(true, None, true)?
                        .into_folder_unless_file_or_missing()?,
                };
                let mut entry = FolderEntry { folder, name: name.to_owned(), cached_metadata: None };
                if final_link == FinalLink::NoFollow {
                    return Ok(entry);
                }
                let metadata = entry.metadata();
                if !metadata.is_some_and(|metadata| metadata.is_link()) {
                    entry.cached_metadata = Some(metadata);
                    return Ok(entry);
                }
                let mut destination = path_below_root.walk_path_retrying_canonical_root(true, None, true)?;
                let name = destination.name.take().ok_or(OpenError::NotAFile)?.into_owned();
                FolderEntry {
                    folder: destination.into_folder_unless_file_or_missing()?,
                    name,
                    cached_metadata: None,
                }
            }
            _ => {
                let target: PathBuf = match final_link {
                    FinalLink::Follow => canonicalize_if_link(path),
                    FinalLink::NoFollow => path.to_owned(),
                };
                let name = target.file_name().unwrap_or(name).to_owned();
                FolderEntry { folder: Folder::open(parent_or_current(&target))?, name, cached_metadata: None }
            }
        };
        Ok(entry)
    }

    /// Returns the metadata of the entry without following a link. Returns `None` if nothing has this name.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        self.folder.link_metadata_of(&self.name).ok()
    }

    /// Returns true if nothing has this name. Uses the earlier lookup if there was one.
    pub(crate) fn is_name_available(&self) -> bool {
        self.cached_metadata.unwrap_or_else(|| self.metadata()).is_none()
    }

    /// Replaces the file atomically. Keeps the mode of an existing file; returns an error if the entry is not
    /// a regular file.
    pub(crate) fn replace_file_keeping_mode(
        &self,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), OpenError> {
        let mode = match self.cached_metadata.unwrap_or_else(|| self.metadata()) {
            None => OWNER_ONLY_MODE,
            Some(metadata) if metadata.is_file() => metadata.mode() & 0o777,
            Some(_) => return Err(OpenError::NotAFile),
        };
        // A kill between here and the rename leaves the old file and an unused temporary file.
        let temporary_name = self.write_temporary_file(bytes, mode, durability)?;
        if let Err(error) = self.folder.rename(&temporary_name, &self.folder, &self.name) {
            let _ = self.folder.remove_file(&temporary_name);
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
        let result = self.folder.hard_link(&temporary_name, &self.name);
        let _ = self.folder.remove_file(&temporary_name);
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // Some file systems do not support hard links.
            Err(_) => self.create_new_in_place(bytes),
        }
    }

    /// Creates a link with this target. An existing entry is left unchanged.
    pub(crate) fn create_link_if_missing(&self, target: &str) -> Result<(), OpenError> {
        match self.folder.create_link(&self.name, Path::new(target)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Creates a link, or atomically replaces the entry by one. A kill in between leaves an unused temporary
    /// link.
    pub(crate) fn create_or_replace_link(&self, target: &Path) -> Result<(), OpenError> {
        let temporary_name = self.new_temporary_name();
        self.folder.create_link(&temporary_name, target)?;
        if let Err(error) = self.folder.rename(&temporary_name, &self.folder, &self.name) {
            let _ = self.folder.remove_file(&temporary_name);
            return Err(error.into());
        }
        Ok(())
    }

    fn create_new_in_place(&self, bytes: &[u8]) -> Result<bool, OpenError> {
        // Not atomic: a kill here may leave a partial file.
        match self.folder.create_file(&self.name, OWNER_ONLY_MODE) {
            Ok(file) => {
                let result = size_limited_write::write_all(&file, bytes).and_then(|()| sync_data(&file));
                // On an error the partial file is removed, so that the name is available again.
                let _ = result.as_ref().inspect_err(|_| drop(self.remove()));
                Ok(result.map(|()| true)?)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes these bytes to a temporary file in the same folder, under an unpredictable name. Returns the
    /// name.
    fn write_temporary_file(
        &self,
        bytes: &[u8],
        mode: u32,
        durability: Durability,
    ) -> Result<OsString, OpenError> {
        let (name, file) = loop {
            let name = self.new_temporary_name();
            match self.folder.create_file(&name, mode) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                create_result => break (name, create_result?),
            }
        };
        if mode != OWNER_ONLY_MODE {
            // The umask has removed bits from the mode of the new file. A file system without modes
            // returns an error here, which must not make the write fail.
            let _ = set_mode(&file, mode);
        }
        let result = size_limited_write::write_all(&file, bytes).and_then(|()| match durability {
            Durability::Durable => sync_data(&file),
            Durability::Lazy => Ok(()),
        });
        if let Err(error) = result {
            let _ = self.folder.remove_file(&name);
            return Err(error.into());
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

    /// Removes the file or link.
    pub(crate) fn remove(&self) -> Result<(), OpenError> {
        Ok(self.folder.remove_file(&self.name)?)
    }

    /// Removes the folder if it is empty.
    pub(crate) fn remove_folder(&self) -> Result<(), OpenError> {
        Ok(self.folder.remove_subfolder(&self.name)?)
    }

    /// Moves the entry to another name or folder; replaces an existing file there.
    pub(crate) fn rename(&self, destination: &FolderEntry) -> Result<(), OpenError> {
        Ok(self.folder.rename(&self.name, &destination.folder, &destination.name)?)
    }

    /// Syncs the folder: a rename survives a power cut only after this. Errors are ignored, because some file
    /// systems refuse to sync a folder.
    pub(crate) fn sync_folder(&self) {
        let _ = self.folder.reopen_listable().and_then(|folder| folder.sync());
    }
}

/// Returns the folder of a path; the current folder if the path has none.
fn parent_or_current(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
