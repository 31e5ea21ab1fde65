//! Reads, writes and lists files of a project for a caller that may name any path; nothing outside the
//! project's folder is accessible.
//!
//! Guarantees: no `..`, no absolute path and no link leads outside, not even a link that is created during
//! the access. Each part of a path is opened by its name in the folder before it, and links are followed by
//! this code, never by the system. Only plain files are opened: no device, pipe or socket. Not guaranteed: a
//! second name (hard link) of a file outside looks like any other file.
#![expect(clippy::disallowed_types, reason = "what the system has opened is read and written as a file")]

use crate::safe_open::path_walk::{Destination, PathWalk, SymlinkPolicy, WalkError};
use crate::size_limited_write;
use plimsoll_system::files::{FileType, Folder, Metadata, OpenOptions, file_metadata, set_mode};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a path was refused, or the system's error.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedError {
    /// The path leads outside the project.
    #[error("{0} leads out of the project: only paths below {1} are allowed, without `..`")]
    Outside(String, PathBuf),
    #[error("{0} does not exist: list_files shows what does")]
    Missing(String),
    /// The path is a device, a pipe, a folder or something else that is not a plain file.
    #[error("{0} is {1}, and only plain files are read and written")]
    NotAFile(String, &'static str),
    /// A file is where a folder should be.
    #[error("{0} is not a folder")]
    NotAFolder(String),
    /// The system returned an error.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// One entry of a folder listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedEntry {
    pub name: String,
    /// `/` for a folder, `@` for a link, empty for a file, `|` for anything else.
    pub type_suffix: &'static str,
    /// The size of a file in bytes.
    pub size: Option<u64>,
}

/// A folder with access limited to what is inside.
#[derive(Debug)]
pub struct ConfinedFolder {
    root: PathBuf,
    folder: Folder,
}

impl ConfinedFolder {
    /// Opens a folder. Later calls use this open folder, whatever its path becomes.
    pub fn open(root: &Path) -> Result<ConfinedFolder, ConfinedError> {
        let root = crate::disk::canonicalize_or_keep(root);
        let folder =
            Folder::open(&root).map_err(|error| ConfinedError::System(root.display().to_string(), error))?;
        Ok(ConfinedFolder { root, folder })
    }

    /// Resolves a path below the folder. If `create_folders` is true, missing folders are created.
    fn resolve_inside_root<'p>(
        &self,
        path: &'p str,
        create_folders: bool,
    ) -> Result<Destination<'p>, ConfinedError> {
        let walk = PathWalk {
            root_folder: &self.folder,
            root_paths: &[&self.root],
            symlink_policy: SymlinkPolicy::InsideRoot,
            create_mode: create_folders.then_some(0o777),
            follow_last_link: true,
        };
        walk.resolve(Path::new(path)).map_err(|error| match error {
            WalkError::OutsideRoot | WalkError::LinkNotFollowed { .. } => {
                ConfinedError::Outside(path.to_owned(), self.root.clone())
            }
            WalkError::Missing => ConfinedError::Missing(path.to_owned()),
            WalkError::NotAFolder => ConfinedError::NotAFolder(path.to_owned()),
            WalkError::System(error) => ConfinedError::System(path.to_owned(), error),
        })
    }

    /// Reads the first `max_bytes` bytes of a file; returns them and the file's full size.
    pub fn read_start_and_file_size(
        &self,
        path: &str,
        max_bytes: u64,
    ) -> Result<(Vec<u8>, u64), ConfinedError> {
        let destination = self.resolve_inside_root(path, false)?;
        let system_error = |error| ConfinedError::System(path.to_owned(), error);
        let Some(file) = open_plain_file_if_exists(&destination, OpenOptions::READ)
            .map_err(|error| error.into_confined_error(path))?
        else {
            return Err(ConfinedError::Missing(path.to_owned()));
        };
        let size = file.metadata().map_err(system_error)?.len();
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes).map_err(system_error)?;
        Ok((bytes, size))
    }

    /// Replaces or creates a file atomically, and creates missing folders. Returns true if the file is new.
    /// An existing file keeps its mode.
    pub fn create_or_replace(&self, path: &str, bytes: &[u8]) -> Result<bool, ConfinedError> {
        let destination = self.resolve_inside_root(path, true)?;
        // Permission to write the file is required: replacing it would need permission for the folder only.
        let existing_file = open_plain_file_if_exists(&destination, OpenOptions::WRITE)
            .map_err(|error| error.into_confined_error(path))?;
        let mode =
            existing_file.as_ref().and_then(|file| file_metadata(file).ok()).map(|metadata| metadata.mode());
        replace_file_atomically(&destination, bytes, mode)
            .map_err(|error| ConfinedError::System(path.to_owned(), error))?;
        Ok(existing_file.is_none())
    }

    /// Lists a folder, sorted by name.
    pub fn list_sorted_by_name(&self, path: &str) -> Result<Vec<ListedEntry>, ConfinedError> {
        let destination = self.resolve_inside_root(path, false)?;
        if destination.name.is_some() {
            return Err(match destination.file_type() {
                None => ConfinedError::Missing(path.to_owned()),
                Some(_) => ConfinedError::NotAFolder(path.to_owned()),
            });
        }
        let system_error = |error| ConfinedError::System(path.to_owned(), error);
        let mut entries = Vec::new();
        let folder = destination.containing_folder();
        let listed_entries = folder.reopen_listable().and_then(Folder::into_entries).map_err(system_error)?;
        for entry in listed_entries {
            let entry = entry.map_err(system_error)?;
            let metadata = folder.link_metadata_of(entry.name()).ok();
            let file_type = metadata.map_or(FileType::Unknown, |metadata| metadata.file_type());
            let size = metadata.filter(Metadata::is_file).map(|metadata| metadata.size());
            let name = entry.name().to_string_lossy().into_owned();
            entries.push(ListedEntry { name, type_suffix: type_suffix_of(file_type), size });
        }
        entries.sort();
        Ok(entries)
    }
}

fn type_suffix_of(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Regular => "",
        FileType::Folder => "/",
        FileType::Link => "@",
        _ => "|",
    }
}

/// Writes a temporary file next to the file and renames it, so that readers see the old or the new content.
/// A hard link of the old file keeps the old content.
fn replace_file_atomically(destination: &Destination<'_>, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let random_number = RandomState::new().hash_one(0);
    let temporary_name =
        format!(".{}.{random_number:016x}{}", std::process::id(), crate::disk::TEMPORARY_FILE_SUFFIX);
    let name = destination.name.as_deref().unwrap_or_default();
    let folder = destination.containing_folder();
    // Files of the project are not private like our own (0600): the user's umask decides, as with an editor.
    let file = folder.create_file(OsStr::new(&temporary_name), 0o666)?;
    // The umask has removed bits from the mode of the new file.
    let result = mode
        .map_or(Ok(()), |mode| set_mode(&file, mode))
        .and_then(|()| size_limited_write::write_all(&file, bytes))
        .and_then(|()| folder.rename(OsStr::new(&temporary_name), folder, name));
    if result.is_err() {
        let _ = folder.remove_file(OsStr::new(&temporary_name));
    }
    result
}

/// Why a file was not opened, without its path, which the caller adds.
enum PlainFileError {
    NotAFile(&'static str),
    System(io::Error),
}

impl PlainFileError {
    fn into_confined_error(self, path: &str) -> ConfinedError {
        match self {
            PlainFileError::NotAFile(kind) => ConfinedError::NotAFile(path.to_owned(), kind),
            PlainFileError::System(error) => ConfinedError::System(path.to_owned(), error),
        }
    }
}

/// Opens a plain file; `None` if it does not exist. The type is checked before opening, because opening a
/// device can have side effects, and again afterwards, because another file may have taken the name.
fn open_plain_file_if_exists(
    destination: &Destination<'_>,
    options: OpenOptions,
) -> Result<Option<File>, PlainFileError> {
    let (Some(name), Some(file_type)) = (&destination.name, destination.file_type()) else {
        return if destination.name.is_none() { Err(PlainFileError::NotAFile("a folder")) } else { Ok(None) };
    };
    require_plain_file(file_type)?;
    let file = destination.containing_folder().open_file(name, options).map_err(PlainFileError::System)?;
    let metadata = file_metadata(&file).map_err(PlainFileError::System)?;
    require_plain_file(metadata.file_type())?;
    Ok(Some(file))
}

fn require_plain_file(file_type: FileType) -> Result<(), PlainFileError> {
    Err(PlainFileError::NotAFile(match file_type {
        FileType::Regular => return Ok(()),
        FileType::Folder => "a folder",
        FileType::Pipe => "a pipe",
        FileType::Socket => "a socket",
        FileType::Device => "a device",
        FileType::Link | FileType::Unknown => "no plain file",
    }))
}

#[cfg(test)]
mod tests;
