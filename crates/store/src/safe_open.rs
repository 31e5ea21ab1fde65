//! Opens files safely: everything in a project is opened through this module.
//!
//! Guarantees: below a registered root ([`register_root`]) no link leads outside, not even one that is created
//! during the access. Only plain files are opened, no device, pipe or socket, and opening never blocks on
//! one. Writes go through a draft that nobody else could have created, or into a file that has no second name
//! (hard link), because that name may be outside. A path that is below no root is the user's own: its links
//! are followed, but there, too, only plain files are opened. Not guaranteed: a hard link of a file outside
//! is read like any other file. It is also replaced like one, which leaves the file outside unchanged.
//!
//! On Linux a single call (`openat2`) resolves the path if no link is on the way. If there is a link, or the
//! call does not exist, the path is resolved here, one part at a time ([`path_walk`]).
#![expect(clippy::disallowed_types, reason = "what the system has opened is read and written as a file")]

mod folder_entry;
pub(crate) mod path_walk;
mod registered_roots;

pub(crate) use folder_entry::{FinalLink, FolderEntry};
pub(crate) use registered_roots::{RootKind, forget_open_folders, register_root};

use crate::{StoreError, io_error};
use path_walk::{Destination, PathWalk, WalkError};
use plimsoll_system::files::{INSPECT_FLAGS, open_beneath};
use registered_roots::PathBelowRoot;
pub(crate) use registered_roots::reopen_folder;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum size in bytes of files that are read in one piece: states, records, settings, prompts, plans.
/// The largest legitimate one is a fraction of this.
pub(crate) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum size in bytes of logs and their separate pieces. Only commands read a whole log.
pub(crate) const MAX_LOG_BYTES: u64 = 512 * 1024 * 1024;

/// Returns the maximum size of a file that is read in one piece, by its name and by whether it is below a
/// root.
pub(crate) fn max_read_bytes(path: &Path, is_below_root: bool) -> u64 {
    let is_log = |name: &str| {
        let is_blob_name = || name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        name.ends_with(".jsonl") || name.ends_with(".log") || is_blob_name()
    };
    let name = path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next();
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let name = name.map(|name| name.strip_suffix(".zst").unwrap_or(name));
    if !is_below_root || name.is_some_and(is_log) { MAX_LOG_BYTES } else { MAX_FILE_BYTES }
}

/// Returns true if a path is below a registered root: a project's or a git folder.
pub(crate) fn is_below_root(path: &Path) -> bool {
    registered_roots::find_innermost_root(path).is_some()
}

/// Returns the maximum length of a line in bytes. Our own logs store large content in separate files; a
/// transcript has images in its lines.
pub(crate) fn max_line_bytes(path: &Path) -> u64 {
    if is_below_root(path) { MAX_FILE_BYTES } else { 8 * MAX_FILE_BYTES }
}

/// Why a path was not opened, without the path, which the caller adds.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The path could not be resolved.
    WalkFailed(WalkError),
    /// Something other than a plain file is at the path.
    NotAFile,
    /// The file has other names, possibly outside, and was to be written in place.
    HardLinked,
}

impl From<WalkError> for OpenError {
    fn from(error: WalkError) -> OpenError {
        OpenError::WalkFailed(error)
    }
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> OpenError {
        OpenError::WalkFailed(WalkError::System(error))
    }
}

impl OpenError {
    /// Returns true if nothing is at the path.
    pub(crate) fn is_missing(&self) -> bool {
        let is_missing_errno = |error: &Errno| matches!(*error, Errno::NOENT | Errno::NOTDIR);
        match self {
            OpenError::WalkFailed(WalkError::Missing | WalkError::NotAFolder) => true,
            OpenError::WalkFailed(WalkError::System(error)) => is_missing_errno(error),
            _ => false,
        }
    }

    /// Returns true if the path is missing and its folders can be created. Unlike [`OpenError::is_missing`], a
    /// file where a folder should be does not count.
    pub(crate) fn is_folder_missing(&self) -> bool {
        matches!(self, OpenError::WalkFailed(WalkError::Missing | WalkError::System(Errno::NOENT)))
    }

    /// Adds the failed action and the path to the error.
    pub(crate) fn into_store_error(self, action: &'static str, path: &Path) -> StoreError {
        let system_error = |error: Errno| io_error(action, path)(error.into());
        match self {
            OpenError::NotAFile => StoreError::NotAFile { path: path.to_owned() },
            OpenError::HardLinked => StoreError::HardLinked { path: path.to_owned() },
            OpenError::WalkFailed(WalkError::System(error)) => system_error(error),
            OpenError::WalkFailed(WalkError::Missing) => system_error(Errno::NOENT),
            OpenError::WalkFailed(WalkError::NotAFolder) => system_error(Errno::NOTDIR),
            OpenError::WalkFailed(WalkError::OutsideRoot) => StoreError::LinkLeadsOutside {
                path: path.to_owned(),
                link: String::new(),
                target: PathBuf::new(),
            },
            OpenError::WalkFailed(WalkError::LinkNotFollowed { link, target, leads_out }) => {
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

/// An opened plain file, with its metadata when it was opened.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    /// `None` for a file that was just created, which is empty.
    pub(crate) stat: Option<Stat>,
    /// True if the path is below a registered root.
    pub(crate) is_below_root: bool,
}

impl OpenedFile {
    /// Returns the size in bytes when the file was opened.
    pub(crate) fn size(&self) -> u64 {
        self.stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }
}

/// Opens a plain file. With [`OFlags::CREATE`] a missing file is created, accessible to the owner only; its
/// folder must exist.
pub(crate) fn open_plain_file(path: &Path, access_flags: OFlags) -> Result<OpenedFile, OpenError> {
    // Opening must not block: neither for the other end of a pipe nor for a terminal.
    let flags = access_flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // `openat2` returns an error for a mode if no file is to be created; `openat` ignores it.
    let mode = if access_flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o600) } else { Mode::empty() };
    let below_root = registered_roots::find_innermost_root(path);
    let handle = match &below_root {
        Some(below_root) => open_below_root(below_root, flags, mode)?,
        None => rustix::fs::openat(CWD, path, flags, mode).map_err(open_error_from_errno)?,
    };
    let is_new = access_flags.contains(OFlags::CREATE | OFlags::EXCL);
    let stat = if is_new { None } else { Some(stat_if_plain_file(&handle)?) };
    // Lock files, too: a lock on a file outside would block its owner.
    if below_root.is_some() && opens_for_writing(access_flags) && stat.is_some_and(|stat| stat.st_nlink > 1) {
        return Err(OpenError::HardLinked);
    }
    Ok(OpenedFile { file: File::from(handle), stat, is_below_root: below_root.is_some() })
}

/// Returns the metadata of an open file if it is a plain file. It uses the handle, because the name may
/// belong to another file by now.
fn stat_if_plain_file(handle: &OwnedFd) -> Result<Stat, OpenError> {
    let stat = rustix::fs::fstat(handle)?;
    if FileType::from_raw_mode(stat.st_mode).is_file() { Ok(stat) } else { Err(OpenError::NotAFile) }
}

/// Converts the error codes for a pipe without a reader, a socket, and a folder opened for writing.
fn open_error_from_errno(error: Errno) -> OpenError {
    match error {
        Errno::NXIO => OpenError::NotAFile,
        Errno::ISDIR => OpenError::NotAFile,
        error => error.into(),
    }
}

fn open_below_root(below_root: &PathBelowRoot<'_>, flags: OFlags, mode: Mode) -> Result<OwnedFd, OpenError> {
    if let Some(result) = open_with_openat2(below_root, flags, mode) {
        return result.map_err(open_error_from_errno);
    }
    let destination = below_root.walk_path(opens_for_writing(flags), None, true)?;
    let Some(name) = &destination.name else { return Err(OpenError::NotAFile) };
    match destination.file_type() {
        None | Some(FileType::RegularFile) => {}
        Some(_) => return Err(OpenError::NotAFile),
    }
    // `NOFOLLOW`: a link that was put there after the walk is refused.
    rustix::fs::openat(destination.containing_folder(), &**name, flags | OFlags::NOFOLLOW, mode)
        .map_err(open_error_from_errno)
}

fn opens_for_writing(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// Opens a path with a single `openat2` call. Returns `None` if a link is on the way, or if the call does not
/// exist or a sandbox blocks it.
fn open_with_openat2(
    below_root: &PathBelowRoot<'_>,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, Errno>> {
    open_beneath(below_root.root.cached_folder().ok()?, below_root.path, flags, mode)
}

impl PathBelowRoot<'_> {
    /// Resolves the path one part at a time, where `openat2` cannot.
    fn walk_path(
        &self,
        for_writing: bool,
        create_mode: Option<RawMode>,
        follow_last_link: bool,
    ) -> Result<Destination<'_>, OpenError> {
        let folder = self.root.cached_folder()?;
        let links = self.root.symlink_policy(self.path, for_writing);
        let registered_path = self.root.path();
        let walk_with_roots = |roots: &[&Path]| {
            PathWalk {
                root_folder: folder,
                root_paths: roots,
                symlink_policy: links,
                create_mode,
                follow_last_link,
            }
            .resolve(self.path)
        };
        match walk_with_roots(&[registered_path]) {
            // An absolute link may refer to the root by its path without links.
            Err(WalkError::LinkNotFollowed { leads_out: true, target, .. }) if target.is_absolute() => {
                Ok(walk_with_roots(&[
                    registered_path,
                    &crate::plain_path::canonicalize_or_keep(registered_path),
                ])?)
            }
            result => Ok(result?),
        }
    }
}

/// Returns the metadata of a path, with links followed; `None` if nothing is there or a link leads outside.
/// If the last part is no link, this is a single call that does not check the folders on the way for links;
/// this is safe because nothing is opened.
pub(crate) fn stat_without_walk(path: &Path) -> Option<Stat> {
    let Some(below_root) = registered_roots::find_innermost_root(path) else {
        return rustix::fs::stat(path).ok();
    };
    let stat =
        rustix::fs::statat(below_root.root.cached_folder().ok()?, below_root.path, AtFlags::SYMLINK_NOFOLLOW)
            .ok()?;
    if !FileType::from_raw_mode(stat.st_mode).is_symlink() {
        return Some(stat);
    }
    let destination = below_root.walk_path(false, None, true).ok()?;
    let is_root_folder = destination.stat.is_none() && destination.name.is_none();
    if is_root_folder { rustix::fs::fstat(destination.containing_folder()).ok() } else { destination.stat }
}

/// Returns the metadata of a path, with every folder on the way checked: `None` if one leads outside.
pub(crate) fn stat_by_walk(path: &Path) -> Option<Stat> {
    let Some(below_root) = registered_roots::find_innermost_root(path) else {
        return rustix::fs::stat(path).ok();
    };
    match open_with_openat2(&below_root, INSPECT_FLAGS, Mode::empty()) {
        Some(opened) => rustix::fs::fstat(opened.ok()?).ok(),
        None if below_root.walk_path(false, None, true).is_ok() => stat_without_walk(path),
        None => None,
    }
}

/// Returns true if something is at a path, with every folder on the way checked.
pub(crate) fn exists_by_walk(path: &Path) -> bool {
    let Some(below_root) = registered_roots::find_innermost_root(path) else {
        return rustix::fs::stat(path).is_ok();
    };
    let result = open_with_openat2(&below_root, INSPECT_FLAGS, Mode::empty());
    result.map_or_else(|| stat_by_walk(path).is_some(), |opened| opened.is_ok())
}

/// Opens a folder for listing or syncing.
pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(below_root) = registered_roots::find_innermost_root(path) else {
        return Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    };
    if let Some(result) = open_with_openat2(&below_root, flags, Mode::empty()) {
        return Ok(result?);
    }
    let folder = below_root.walk_path(false, None, true)?.into_folder()?;
    Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?)
}

/// Creates a folder and its missing parents, accessible to the owner only.
pub(crate) fn create_folder(path: &Path) -> Result<(), OpenError> {
    const OWNER_ONLY_MODE: RawMode = 0o700;
    let Some(below_root) = registered_roots::find_innermost_root(path) else {
        return crate::plain_path::create_folder_with_mode(path, OWNER_ONLY_MODE)
            .map_err(|error| errno_from_io_error(&error).into());
    };
    match below_root.walk_to_new_folder(OWNER_ONLY_MODE)? {
        None => Ok(()),
        // The walk has created the folders above the last part.
        Some((destination, name)) => match rustix::fs::mkdirat(
            destination.containing_folder(),
            &name,
            Mode::from_raw_mode(OWNER_ONLY_MODE),
        ) {
            Ok(()) => Ok(()),
            // Another program has created it in the meantime: fine, unless it is a link that leads outside.
            Err(Errno::EXIST) => below_root.walk_path(true, None, true).map(drop),
            Err(error) => Err(error.into()),
        },
    }
}

impl PathBelowRoot<'_> {
    /// Resolves the place of a new folder; `None` if the folder exists.
    fn walk_to_new_folder(&self, mode: RawMode) -> Result<Option<(Destination<'_>, OsString)>, OpenError> {
        let mut destination = match self.walk_path(true, Some(mode), true) {
            // The project's folder itself is missing: the caller named it, so it may be created.
            Err(error)
                if error.is_folder_missing()
                    && crate::plain_path::create_folder_with_mode(self.root.path(), mode).is_ok() =>
            {
                self.walk_path(true, Some(mode), true)?
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

/// Reads a whole file; `None` if it is larger than the limit.
pub(crate) fn read_all_within_limit(opened: OpenedFile, max_bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    let size = opened.size();
    if size > max_bytes {
        return Ok(None);
    }
    // Asks for one byte more than expected: a short read shows the end of the file and saves another call.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
    let mut file = opened.file;
    let read_count = match file.read(&mut bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
        result => result?,
    };
    bytes.truncate(read_count);
    if read_count as u64 != size {
        // One byte too many shows that the file has grown beyond the limit since it was opened.
        file.take((max_bytes + 1).saturating_sub(read_count as u64)).read_to_end(&mut bytes)?;
    }
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

pub(crate) fn errno_from_io_error(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
