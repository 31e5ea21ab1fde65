//! Opens files safely. All files of a project are opened through this module.
//!
//! Guarantees: below a registered root ([`register_root_merging_covered_git_roots`]) no link leads outside, not even one
//! that is created during the access. Only regular files are opened, no device, pipe or socket, and opening never blocks
//! on one. Writes go to a temporary file with an unpredictable name, or into a file without a second hard link, because
//! the other name may be outside. Links of a path that is below no root are followed, but there, too, only regular files
//! are opened. Not guaranteed: a file with a hard link outside is read like any other file. It can also be replaced,
//! which leaves the file outside unchanged.
//!
//! On Linux a single call (`openat2`) resolves the path if it contains no link. If there is a link, or the call does
//! not exist, [`path_walk`] resolves the path one part at a time.
#![expect(clippy::disallowed_types, reason = "what the system has opened is read and written as a file")]

mod folder_entry;
pub(crate) mod path_walk;
mod registered_roots;

pub(crate) use folder_entry::{FinalLink, FolderEntry};
pub(crate) use registered_roots::{RootKind, forget_open_folders, register_root_merging_covered_git_roots};

use crate::{StoreError, io_error};
use path_walk::{Destination, PathWalk, WalkError};
use plimsoll_system::files::{self, FileType, Folder, Metadata, OpenOptions};
use registered_roots::PathBelowRoot;
pub(crate) use registered_roots::reopen_folder;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The maximum size in bytes of files that are read whole: states, records, settings, prompts, plans. The largest
/// legitimate file is a fraction of this.
pub(crate) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum size in bytes of logs and blobs. Only commands read a whole log.
pub(crate) const MAX_LOG_BYTES: u64 = 512 * 1024 * 1024;

/// Returns the maximum size of a file that is read whole. Logs, blobs and files that are below no root may be
/// larger than other files.
pub(crate) fn read_limit_larger_for_log_or_outside_root(path: &Path, is_below_root: bool) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    let bytes = bytes.strip_suffix(b".zst").unwrap_or(bytes);
    let is_blob = || {
        bytes.split_last_chunk::<64>().is_some_and(|(folder, name)| {
            let is_whole_name = folder.last().is_none_or(|byte| std::path::is_separator(char::from(*byte)));
            is_whole_name && name.iter().all(u8::is_ascii_hexdigit)
        })
    };
    let is_log_or_blob = || bytes.ends_with(b".jsonl") || bytes.ends_with(b".log") || is_blob();
    if !is_below_root || is_log_or_blob() { MAX_LOG_BYTES } else { MAX_FILE_BYTES }
}

/// Returns true if a path is below a registered root: a project or a git folder.
pub(crate) fn is_below_root(path: &Path) -> bool {
    registered_roots::find_innermost_root_restricting_path(path).is_some()
}

/// Returns the maximum length of a line in bytes. Logs below a root store large content in separate files; a
/// transcript has images in its lines.
pub(crate) fn max_line_bytes(path: &Path) -> u64 {
    if is_below_root(path) { MAX_FILE_BYTES } else { 8 * MAX_FILE_BYTES }
}

/// Why a path was not opened, without the path, which the caller adds.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The path could not be resolved.
    WalkFailed(WalkError),
    /// The path is not a regular file.
    NotAFile,
    /// The file was opened for writing and has other hard links, possibly outside.
    HardLinked,
}

impl From<WalkError> for OpenError {
    fn from(error: WalkError) -> OpenError {
        OpenError::WalkFailed(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::WalkFailed(WalkError::System(error))
    }
}

impl OpenError {
    /// Returns true if nothing is at the path, or if a file is where one of its folders should be.
    pub(crate) fn is_missing_or_below_non_folder(&self) -> bool {
        match self {
            OpenError::WalkFailed(WalkError::Missing | WalkError::NotAFolder) => true,
            OpenError::WalkFailed(WalkError::System(error)) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
            _ => false,
        }
    }

    /// Returns true if the path is missing and its folders can be created. Unlike [`OpenError::is_missing_or_below_non_folder`], a
    /// file where a folder should be does not count.
    pub(crate) fn is_folder_missing(&self) -> bool {
        match self {
            OpenError::WalkFailed(WalkError::Missing) => true,
            OpenError::WalkFailed(WalkError::System(error)) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Converts the error to a [`StoreError`] with the failed action and the path.
    pub(crate) fn into_store_error(self, action: &'static str, path: &Path) -> StoreError {
        let to_store_error = io_error(action, path);
        match self {
            OpenError::NotAFile => StoreError::NotAFile { path: path.to_owned() },
            OpenError::HardLinked => StoreError::HardLinked { path: path.to_owned() },
            OpenError::WalkFailed(WalkError::System(error)) => to_store_error(error),
            OpenError::WalkFailed(WalkError::Missing) => to_store_error(files::missing_file_error()),
            OpenError::WalkFailed(WalkError::NotAFolder) => to_store_error(files::not_a_folder_error()),
            OpenError::WalkFailed(WalkError::OutsideRoot) => StoreError::LinkLeadsOutside {
                path: path.to_owned(),
                link: String::new(),
                target: PathBuf::new(),
            },
            OpenError::WalkFailed(WalkError::LinkNotFollowed {
                link,
                target,
                leads_outside_root: leads_out,
            }) => {
                let (path, link) = (path.to_owned(), link.to_string_lossy().into_owned());
                if leads_out {
                    StoreError::LinkLeadsOutside { path, link, target }
                } else {
                    StoreError::LinkNotFollowed { path, link, target }
                }
            }
        }
    }
}

/// An opened regular file, with its metadata at that time.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    /// `None` for a file that was just created, which is empty.
    pub(crate) metadata: Option<Metadata>,
    /// True if the path is below a registered root.
    pub(crate) is_below_root: bool,
}

impl OpenedFile {
    /// Returns the size in bytes when the file was opened.
    pub(crate) fn size(&self) -> u64 {
        self.metadata.map_or(0, |metadata| metadata.size())
    }
}

/// Opens a regular file. Below a root, links that lead outside are refused, and so is writing to a file with several
/// hard links. A file that is created is accessible to the owner only; its folder must exist.
pub(crate) fn open_regular_file_restricted_to_its_root(
    path: &Path,
    options: OpenOptions,
) -> Result<OpenedFile, OpenError> {
    let path_below_root = registered_roots::find_innermost_root_restricting_path(path);
    let file = match &path_below_root {
        Some(path_below_root) => open_below_root(path_below_root, options)?,
        None => files::open_file(path, options).map_err(not_a_file_or_system_error)?,
    };
    let metadata = if options.creates_new() { None } else { Some(metadata_if_plain_file(&file)?) };
    // This applies to lock files, too: a lock on a file outside would block its owner.
    if path_below_root.is_some()
        && options.writes()
        && metadata.is_some_and(|metadata| metadata.hard_link_count() > 1)
    {
        return Err(OpenError::HardLinked);
    }
    Ok(OpenedFile { file, metadata, is_below_root: path_below_root.is_some() })
}

/// Returns the metadata of an open file; an error if it is not a regular file. Uses the handle, because the name may
/// belong to another file by now.
fn metadata_if_plain_file(file: &File) -> Result<Metadata, OpenError> {
    let metadata = files::file_metadata(file)?;
    if metadata.is_file() { Ok(metadata) } else { Err(OpenError::NotAFile) }
}

/// Converts an error of the system; those for a pipe without a reader, a socket, and a folder opened for writing become
/// [`OpenError::NotAFile`].
fn not_a_file_or_system_error(error: io::Error) -> OpenError {
    if files::is_folder_or_special_file_error(&error) { OpenError::NotAFile } else { error.into() }
}

fn open_below_root(path_below_root: &PathBelowRoot<'_>, options: OpenOptions) -> Result<File, OpenError> {
    if let Some(result) = path_below_root.root_folder()?.open_file_beneath(path_below_root.path, options) {
        return result.map_err(not_a_file_or_system_error);
    }
    let destination = path_below_root.walk_path_retrying_canonical_root(options.writes(), None, true)?;
    let Some(name) = &destination.name else { return Err(OpenError::NotAFile) };
    match destination.file_type() {
        None | Some(FileType::Regular) => {}
        Some(_) => return Err(OpenError::NotAFile),
    }
    // This refuses a link that was created after the walk.
    destination.containing_folder().open_file(name, options).map_err(not_a_file_or_system_error)
}

impl PathBelowRoot<'_> {
    fn root_folder(&self) -> Result<&Folder, OpenError> {
        self.root.cached_folder()
    }

    /// Resolves the path one part at a time; used where `openat2` cannot resolve it.
    fn walk_path_retrying_canonical_root(
        &self,
        for_writing: bool,
        create_mode: Option<u32>,
        follow_last_link: bool,
    ) -> Result<Destination<'_>, OpenError> {
        let root_folder = self.root.cached_folder()?;
        let link_policy = self.root.symlink_policy(self.path, for_writing);
        let registered_path = self.root.path();
        let walk_with_root_paths = |root_paths_to_try: &[&Path]| {
            PathWalk {
                root_folder,
                root_paths: root_paths_to_try,
                symlink_policy: link_policy,
                create_mode,
                follow_last_link,
            }
            .resolve(self.path)
        };
        match walk_with_root_paths(&[registered_path]) {
            // The target of an absolute link may begin with the canonical path of the root.
            Err(WalkError::LinkNotFollowed { leads_outside_root: true, target, .. })
                if target.is_absolute() =>
            {
                Ok(walk_with_root_paths(&[
                    registered_path,
                    &crate::plain_path::canonicalize_or_keep(registered_path),
                ])?)
            }
            result => Ok(result?),
        }
    }
}

/// Returns the metadata of a path and follows links. Returns `None` if nothing is there or the last part is a link
/// that leads outside. If the last part is not a link, this is a single call that does not check the parent folders
/// for links; this is safe because nothing is opened.
pub(crate) fn metadata_checking_final_link_but_not_parents(path: &Path) -> Option<Metadata> {
    let Some(path_below_root) = registered_roots::find_innermost_root_restricting_path(path) else {
        return files::metadata(path).ok();
    };
    let metadata = path_below_root.root_folder().ok()?.link_metadata_of(path_below_root.path).ok()?;
    if !metadata.is_link() {
        return Some(metadata);
    }
    let destination = path_below_root.walk_path_retrying_canonical_root(false, None, true).ok()?;
    let is_root_folder = destination.metadata.is_none() && destination.name.is_none();
    if is_root_folder { destination.containing_folder().metadata().ok() } else { destination.metadata }
}

/// Returns the metadata of a path after checking its parent folders. Returns `None` if nothing is there or a link
/// leads outside.
pub(crate) fn metadata_after_checking_parents(path: &Path) -> Option<Metadata> {
    let Some(path_below_root) = registered_roots::find_innermost_root_restricting_path(path) else {
        return files::metadata(path).ok();
    };
    match path_below_root.root_folder().ok()?.metadata_beneath(path_below_root.path) {
        Some(metadata) => metadata.ok(),
        None if path_below_root.walk_path_retrying_canonical_root(false, None, true).is_ok() => {
            metadata_checking_final_link_but_not_parents(path)
        }
        None => None,
    }
}

/// Returns true if something is at a path and no link on it leads outside.
pub(crate) fn exists_after_checking_parents(path: &Path) -> bool {
    let Some(path_below_root) = registered_roots::find_innermost_root_restricting_path(path) else {
        return files::metadata(path).is_ok();
    };
    let Ok(root_folder) = path_below_root.root_folder() else { return false };
    root_folder
        .exists_beneath(path_below_root.path)
        .unwrap_or_else(|| metadata_after_checking_parents(path).is_some())
}

/// Opens a folder for listing or syncing.
pub(crate) fn open_folder(path: &Path) -> Result<Folder, OpenError> {
    let Some(path_below_root) = registered_roots::find_innermost_root_restricting_path(path) else {
        return Ok(Folder::open_listable(path)?);
    };
    if let Some(result) = path_below_root.root_folder()?.open_listable_beneath(path_below_root.path) {
        return Ok(result?);
    }
    let folder = path_below_root
        .walk_path_retrying_canonical_root(false, None, true)?
        .into_folder_unless_file_or_missing()?;
    Ok(folder.reopen_listable()?)
}

/// Creates a folder and its missing parents, accessible to the owner only.
pub(crate) fn create_owner_only_folder_and_parents(path: &Path) -> Result<(), OpenError> {
    const OWNER_ONLY_MODE: u32 = 0o700;
    let Some(path_below_root) = registered_roots::find_innermost_root_restricting_path(path) else {
        return Ok(files::create_folder_and_parents(path, OWNER_ONLY_MODE)?);
    };
    match path_below_root.create_parents_and_walk_to_new_folder(OWNER_ONLY_MODE)? {
        None => Ok(()),
        // The walk has created the folders above the last part.
        Some((destination, name)) => {
            match destination.containing_folder().create_subfolder(&name, OWNER_ONLY_MODE) {
                Ok(()) => Ok(()),
                // Another program has created it in the meantime. This is no error unless it is a link that leads outside.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path_below_root.walk_path_retrying_canonical_root(true, None, true).map(drop)
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}

impl PathBelowRoot<'_> {
    /// Creates the missing parents of a new folder and returns where to create it. Returns `None` if the folder
    /// exists.
    fn create_parents_and_walk_to_new_folder(
        &self,
        mode: u32,
    ) -> Result<Option<(Destination<'_>, OsString)>, OpenError> {
        let mut destination = match self.walk_path_retrying_canonical_root(true, Some(mode), true) {
            // The root folder itself is missing and is created, too.
            Err(error)
                if error.is_folder_missing()
                    && files::create_folder_and_parents(self.root.path(), mode).is_ok() =>
            {
                self.walk_path_retrying_canonical_root(true, Some(mode), true)?
            }
            result => result?,
        };
        match (destination.name.take(), destination.file_type()) {
            (None, _) => Ok(None),
            (Some(name), None) => Ok(Some((destination, name.into_owned()))),
            (Some(_), Some(_)) => Err(WalkError::NotAFolder.into()),
        }
    }
}

/// Reads a whole file. Returns `None` if it is larger than the limit.
pub(crate) fn read_all_within_limit(opened: OpenedFile, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let size = opened.size();
    if size > max_bytes {
        return Ok(None);
    }
    // Requests one byte more than expected: a short read then shows the end of the file without another call.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
    let mut file = opened.file;
    let read_count = match file.read(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        result => result?,
    };
    bytes.truncate(read_count);
    if read_count as u64 != size {
        // Reads one byte over the limit to detect a file that has grown beyond it since it was opened.
        file.take((max_bytes + 1).saturating_sub(read_count as u64)).read_to_end(&mut bytes)?;
    }
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

#[cfg(test)]
mod tests;
