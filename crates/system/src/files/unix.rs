//! Files and folders on Unix.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "`store` opens files by this module"
)]

use super::platform::{self, INSPECT_FLAGS, SEARCH_FOLDER_FLAGS};
use super::{AccessRights, FileIdentity, FileType, OpenOptions, Timestamp};
use rustix::buffer::spare_capacity;
use rustix::fs::{Access, AtFlags, CWD, Dir, DirEntry, Mode, OFlags, RawMode, Stat, access};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Opening must not block on a pipe or a terminal.
const OPEN_FILE_FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const LIST_FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const OWNER_ONLY_FILE_MODE: RawMode = 0o600;

/// An open folder.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder to use entries in it. Where the system supports it, this needs no permission to list the folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::openat(CWD, path, SEARCH_FOLDER_FLAGS, Mode::empty())?))
    }

    /// Opens a folder to list, lock or sync it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn open_listable(path: &Path) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::openat(CWD, path, LIST_FOLDER_FLAGS, Mode::empty())?))
    }

    /// Opens this folder again, to list or sync it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn reopen_listable(&self) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::openat(&self.0, ".", LIST_FOLDER_FLAGS, Mode::empty())?))
    }

    /// Opens a subfolder to use entries in it.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_subfolder(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = SEARCH_FOLDER_FLAGS | OFlags::NOFOLLOW;
        Ok(Folder(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens a subfolder to list it.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_listable_subfolder(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = LIST_FOLDER_FLAGS | OFlags::NOFOLLOW;
        Ok(Folder(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Returns a second handle of the same open folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn try_clone(&self) -> io::Result<Folder> {
        Ok(Folder(rustix::io::fcntl_dupfd_cloexec(&self.0, 0)?))
    }

    /// Returns the handle as a file, to lock the folder.
    pub fn into_file(self) -> File {
        File::from(self.0)
    }

    /// Opens a path below the folder in one system call that follows no links and never leaves the folder. Returns
    /// `None` if the system has no such call, or if the path may contain a link or the call was blocked. The caller then
    /// walks the path component by component.
    pub fn open_file_beneath(&self, path: &Path, options: OpenOptions) -> Option<io::Result<File>> {
        let (flags, mode) = flags_and_mode(options);
        Some(self.open_beneath(path, flags, mode)?.map(File::from))
    }

    /// Opens a folder below this one to use entries in it; see [`Folder::open_file_beneath`].
    pub fn open_subfolder_beneath(&self, path: &Path) -> Option<io::Result<Folder>> {
        Some(self.open_beneath(path, SEARCH_FOLDER_FLAGS, Mode::empty())?.map(Folder))
    }

    /// Opens a folder below this one to list or sync it; see [`Folder::open_file_beneath`].
    pub fn open_listable_beneath(&self, path: &Path) -> Option<io::Result<Folder>> {
        Some(self.open_beneath(path, LIST_FOLDER_FLAGS, Mode::empty())?.map(Folder))
    }

    /// Returns the metadata of a path below the folder; see [`Folder::open_file_beneath`].
    pub fn metadata_beneath(&self, path: &Path) -> Option<io::Result<Metadata>> {
        let opened = self.open_beneath(path, INSPECT_FLAGS, Mode::empty())?;
        Some(opened.and_then(|handle| Ok(Metadata(rustix::fs::fstat(handle)?))))
    }

    /// Returns whether a path below the folder exists; see [`Folder::open_file_beneath`].
    pub fn exists_beneath(&self, path: &Path) -> Option<bool> {
        Some(self.open_beneath(path, INSPECT_FLAGS, Mode::empty())?.is_ok())
    }

    fn open_beneath(&self, path: &Path, flags: OFlags, mode: Mode) -> Option<io::Result<OwnedFd>> {
        let result = platform::open_beneath_without_links(self.0.as_fd(), path, flags, mode)?;
        Some(result.map_err(io::Error::from))
    }

    /// Returns the metadata of the folder itself.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata(rustix::fs::fstat(&self.0)?))
    }

    /// Returns the metadata of what is at a path in or below the folder. Only the last part is not followed if it is a
    /// link.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn link_metadata_of(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(Metadata(rustix::fs::statat(&self.0, path.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns the metadata of an entry, or of the target of a link.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn metadata_of(&self, name: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(Metadata(rustix::fs::statat(&self.0, name.as_ref(), AtFlags::empty())?))
    }

    /// Opens an entry that is a file. Opening never blocks, and a link is refused.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_file(&self, name: &OsStr, options: OpenOptions) -> io::Result<File> {
        let (flags, mode) = flags_and_mode(options);
        Ok(File::from(rustix::fs::openat(&self.0, name, flags | OFlags::NOFOLLOW, mode)?))
    }

    /// Creates a file for writing with a mode, from which the umask removes bits.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, to_mode(mode))?))
    }

    /// Creates a subfolder with a mode, from which the umask removes bits.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_subfolder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, to_mode(mode))?)
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Returns the target of a link as it is stored.
    ///
    /// # Errors
    /// The error of the system call, also if the entry is no link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Gives a file a second name in this folder.
    ///
    /// # Errors
    /// The error of the system call, also if the new name is taken.
    pub fn hard_link(&self, name: &OsStr, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.0, name, &self.0, new_name, AtFlags::empty())?)
    }

    /// Renames an entry, possibly into another folder. Replaces a file that has the new name.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn rename(&self, name: &OsStr, new_folder: &Folder, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &new_folder.0, new_name)?)
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty subfolder.
    ///
    /// # Errors
    /// The error of the system call, also if the folder is not empty.
    pub fn remove_subfolder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Lists a folder that was opened for that.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn into_entries(self) -> io::Result<FolderEntries> {
        Ok(FolderEntries(Dir::new(self.0)?))
    }

    /// Syncs a folder that was opened for that: a rename in it survives a power cut only after this.
    ///
    /// # Errors
    /// The error of the system call. Some file systems refuse to sync a folder.
    pub fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| platform::sync_all(self.0.as_fd()))?)
    }

    /// Syncs all data written to the volume of the folder to the disk.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn sync_volume(&self) -> io::Result<()> {
        Ok(platform::sync_volume(self.0.as_fd())?)
    }
}

/// The entries of a folder, without `.` and `..`.
#[derive(Debug)]
pub struct FolderEntries(Dir);

impl Iterator for FolderEntries {
    type Item = io::Result<FolderEntry>;

    fn next(&mut self) -> Option<io::Result<FolderEntry>> {
        loop {
            match self.0.next()? {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                result => return Some(result.map(FolderEntry).map_err(io::Error::from)),
            }
        }
    }
}

/// An entry of a folder.
#[derive(Debug)]
pub struct FolderEntry(DirEntry);

impl FolderEntry {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.0.file_name().to_bytes())
    }

    /// Returns the type, or [`FileType::Unknown`] if the file system does not list it.
    pub fn file_type(&self) -> FileType {
        to_file_type(self.0.file_type())
    }
}

/// The metadata of a file or folder.
#[derive(Debug, Clone, Copy)]
pub struct Metadata(Stat);

impl Metadata {
    /// Returns the type.
    pub fn file_type(&self) -> FileType {
        to_file_type(rustix::fs::FileType::from_raw_mode(self.0.st_mode))
    }

    /// Returns true for a regular file.
    pub fn is_file(&self) -> bool {
        self.file_type() == FileType::Regular
    }

    /// Returns true for a folder.
    pub fn is_folder(&self) -> bool {
        self.file_type() == FileType::Folder
    }

    /// Returns true for a link.
    pub fn is_link(&self) -> bool {
        self.file_type() == FileType::Link
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }

    /// Returns the permission bits.
    pub fn mode(&self) -> u32 {
        platform::to_std_mode(self.0.st_mode) & 0o7777
    }

    /// Returns how many names the file has.
    pub fn hard_link_count(&self) -> u64 {
        platform::hard_link_count(&self.0)
    }

    /// Returns the device and inode.
    pub fn identity(&self) -> FileIdentity {
        FileIdentity { device: platform::device_number(&self.0), inode: self.0.st_ino }
    }

    /// Returns the id of the user who owns the file, or `None` if the system does not report it.
    pub fn owner_id(&self) -> Option<u32> {
        Some(self.0.st_uid)
    }

    /// Returns when the contents were last written.
    pub fn modified_at(&self) -> Timestamp {
        Timestamp { seconds: self.0.st_mtime, nanoseconds: to_nanoseconds(self.0.st_mtime_nsec) }
    }

    /// Returns when the contents, the name or the permissions were last changed (ctime), or `None` if the system does not
    /// report it. Unlike the other time, programs cannot set it.
    pub fn changed_at(&self) -> Option<Timestamp> {
        Some(Timestamp { seconds: self.0.st_ctime, nanoseconds: to_nanoseconds(self.0.st_ctime_nsec) })
    }
}

fn to_nanoseconds(nanoseconds: impl TryInto<u32>) -> u32 {
    nanoseconds.try_into().unwrap_or(0)
}

fn to_file_type(file_type: rustix::fs::FileType) -> FileType {
    match file_type {
        rustix::fs::FileType::RegularFile => FileType::Regular,
        rustix::fs::FileType::Directory => FileType::Folder,
        rustix::fs::FileType::Symlink => FileType::Link,
        rustix::fs::FileType::Fifo => FileType::Pipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice | rustix::fs::FileType::BlockDevice => FileType::Device,
        _ => FileType::Unknown,
    }
}

fn flags_and_mode(options: OpenOptions) -> (OFlags, Mode) {
    let mut flags = OPEN_FILE_FLAGS;
    flags |= match (options.read, options.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    flags.set(OFlags::APPEND, options.append);
    flags.set(OFlags::CREATE, options.create);
    flags.set(OFlags::EXCL, options.create_new);
    flags.set(OFlags::NOFOLLOW, !options.follow_link);
    // `openat2` returns an error for a mode if no file is to be created; `openat` ignores it.
    let mode = if options.create { Mode::from_raw_mode(OWNER_ONLY_FILE_MODE) } else { Mode::empty() };
    (flags, mode)
}

fn to_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(platform::to_raw_mode(mode))
}

/// Opens a file. Opening never blocks. Links are followed, except by [`OpenOptions::no_follow`].
///
/// # Errors
/// The error of the system call.
pub fn open_file(path: &Path, options: OpenOptions) -> io::Result<File> {
    let (flags, mode) = flags_and_mode(options);
    Ok(File::from(rustix::fs::openat(CWD, path, flags, mode)?))
}

/// Returns true if a file was not opened because it is a pipe without a reader, a socket or a folder.
pub fn is_folder_or_special_file_error(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NXIO | Errno::ISDIR))
}

/// Returns the error that the system reports for a missing file.
pub fn missing_file_error() -> io::Error {
    Errno::NOENT.into()
}

/// Returns the error that the system reports if a file is where a folder should be.
pub fn not_a_folder_error() -> io::Error {
    Errno::NOTDIR.into()
}

/// Returns the error that the system reports for a file that would exceed the limit of the process.
pub fn file_too_large_error() -> io::Error {
    Errno::FBIG.into()
}

/// Returns the error that the system reports for links that lead in a circle.
pub fn too_many_links_error() -> io::Error {
    Errno::LOOP.into()
}

/// Returns the metadata of an open file.
///
/// # Errors
/// The error of the system call.
pub fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(Metadata(rustix::fs::fstat(file)?))
}

/// Returns the metadata of the file that a path leads to.
///
/// # Errors
/// The error of the system call.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    Ok(Metadata(rustix::fs::stat(path)?))
}

/// Returns the metadata of what is at a path, without following a link in its last part.
///
/// # Errors
/// The error of the system call.
pub fn link_metadata(path: &Path) -> io::Result<Metadata> {
    Ok(Metadata(rustix::fs::lstat(path)?))
}

/// Sets the permission bits of a file, whatever the umask is.
///
/// # Errors
/// The error of the system call. Some file systems have no permission bits.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, to_mode(mode))?)
}

/// Returns the path with every link resolved.
///
/// # Errors
/// The error of the system call, also if nothing is at the path.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Creates a folder and its missing parents with a mode, from which the umask removes bits. Links are followed.
///
/// # Errors
/// The error of the system call.
pub fn create_folder_and_parents(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Splits a path that does not begin at a root into its names, with `..` and without `.`; `None` if it begins at a root.
/// Splits bytes: [`Path::components`] takes 7,000 instructions more for the paths of one hook.
pub fn split_relative_path(path: &Path) -> Option<impl Iterator<Item = &OsStr>> {
    let bytes = path.as_os_str().as_bytes();
    let names = bytes.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    (!bytes.starts_with(b"/")).then(|| names.map(OsStr::from_bytes))
}

/// Returns true for an absolute path without empty, `.` or `..` components. Looks at bytes, for the same reason as
/// [`split_relative_path`].
pub fn is_absolute_and_normalized(path: &Path) -> bool {
    let is_normal_component = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let relative_bytes = path.as_os_str().as_bytes().strip_prefix(b"/");
    relative_bytes
        .is_some_and(|relative_bytes| relative_bytes.split(|byte| *byte == b'/').all(is_normal_component))
}

/// Returns what follows a folder in a path, or `None` if the path does not begin with the folder.
pub fn strip_folder<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    path.strip_prefix(folder).ok()
}

/// Returns the path below a folder; `.` for the folder itself. Returns `None` if the path is not below it or contains `..`,
/// which may lead to another folder because the part before it may be a link. Compares bytes, so another spelling of the
/// folder is not recognized.
pub fn relative_path_below<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    let folder_bytes = folder.as_os_str().as_bytes();
    let folder_bytes = folder_bytes.strip_suffix(b"/").unwrap_or(folder_bytes);
    let path_bytes = path.as_os_str().as_bytes();
    let suffix = starts_with_bytes(path_bytes, folder_bytes).then(|| &path_bytes[folder_bytes.len()..])?;
    let relative_bytes = match suffix {
        [] => b".",
        [b'/', relative_bytes @ ..] => relative_bytes,
        _ => return None,
    };
    // The quick check for two dots skips the split for most paths.
    let has_two_dots = relative_bytes.windows(2).any(|pair| pair == b"..");
    let has_parent_component =
        has_two_dots && relative_bytes.split(|byte| *byte == b'/').any(|part| part == b"..");
    (!has_parent_component)
        .then(|| Path::new(OsStr::from_bytes(if relative_bytes.is_empty() { b"." } else { relative_bytes })))
}

/// Returns true if the bytes start with a prefix. Compares eight bytes at a time, because this runs for every path
/// and musl's `memcmp` compares single bytes.
fn starts_with_bytes(bytes: &[u8], prefix: &[u8]) -> bool {
    let Some(bytes) = bytes.get(..prefix.len()) else { return false };
    let ((byte_chunks, remaining_bytes), (prefix_chunks, remaining_prefix)) =
        (bytes.as_chunks::<8>(), prefix.as_chunks::<8>());
    let is_same =
        |(left, right): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*left) == u64::from_ne_bytes(*right);
    byte_chunks.iter().zip(prefix_chunks).all(is_same)
        && remaining_bytes.iter().zip(remaining_prefix).all(|(left, right)| left == right)
}

/// Returns the rights of this process to what a path leads to, or `None` if nothing is there.
pub fn access_rights(path: &Path) -> Option<AccessRights> {
    let metadata = path.metadata().ok()?;
    let required_access = if metadata.is_dir() {
        Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK
    } else {
        Access::READ_OK | Access::WRITE_OK
    };
    Some(AccessRights {
        is_writable: access(path, required_access).is_ok(),
        mode: metadata.permissions().mode() & 0o777,
        is_owned_by_current_user: Some(metadata.uid()) == current_user_id(),
    })
}

/// Returns true if the system refuses to let us write the file or folder: the mount is read-only, or the permissions do
/// not allow it.
pub fn is_write_refused(path: &Path) -> bool {
    matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

/// Returns true if a path leads to a regular file with at least one execute bit, whether or not this user may execute it.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Returns the id of the effective user, or `None` if the system has no such ids.
pub fn current_user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Returns the largest size in bytes to which this process may write a file (`ulimit -f`), or `None` if there is no limit.
/// The system kills a process that exceeds it with SIGXFSZ.
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Reads at most as many bytes as the buffer holds from an offset of a file; returns how many were read.
///
/// # Errors
/// The error of the system call.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

/// Reads up to `max_length` bytes of a file at an offset, without clearing the buffer first; fewer at the end of the file.
///
/// # Errors
/// The error of the system call.
pub fn read_range(file: &File, offset: u64, max_length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(max_length);
    while bytes.len() < max_length {
        let position = offset + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), position) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(max_length);
    Ok(bytes)
}

/// Reads once from standard input and appends the bytes; returns false at its end. Bypasses the buffer of the standard
/// library, which would cost another copy.
///
/// # Errors
/// The error of the system call.
pub fn read_stdin(bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.reserve(1);
    let count = retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), spare_capacity(bytes)))?;
    Ok(count > 0)
}

/// Writes to standard output once, without a buffer; returns how many bytes were written.
///
/// # Errors
/// The error of the system call.
pub fn write_to_stdout(bytes: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), bytes))?)
}

/// Syncs the contents of a file to the disk.
///
/// On macOS this is `F_FULLFSYNC`, as in the standard library (`os_fsync` and `os_datasync` of
/// `library/std/src/sys/fs/unix.rs`), because `fsync` alone leaves the contents in the disk's cache. Falls back to `fsync`
/// where `F_FULLFSYNC` is not supported, such as on an SMB share.
///
/// # Errors
/// The error of the system call.
pub fn sync_data(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| platform::sync_data(file.as_fd()))?)
}

/// Syncs a file to the disk with its metadata, such as its times.
///
/// # Errors
/// The error of the system call.
pub fn sync_all(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| platform::sync_all(file.as_fd()))?)
}
