//! Files and folders on Windows. cap-std looks up names in an open folder and never follows a link out of it. While a
//! folder is open, nobody can rename or remove it or a folder above it.
//!
//! A junction and a symbolic link are both links. There are no permission bits: a new file gets the permissions of its
//! folder, which below the user's profile are the user's own. Modes are therefore ignored.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "`store` opens files by this module"
)]

use super::retry::{is_in_use, is_in_use_or_denied, retry_while_in_use};
use super::windows_paths::{check_file_name, is_same_name, is_same_prefix};
use super::{AccessRights, FileIdentity, FileSystemKind, FileType, OpenOptions, Timestamp};
use cap_fs_ext::{DirExt, FileTypeExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::Dir;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const ERROR_FILE_NOT_FOUND: i32 = 2;
const ERROR_ACCESS_DENIED: i32 = 5;
const ERROR_DIRECTORY: i32 = 267;

/// An open folder.
#[derive(Debug)]
pub struct Folder(Dir);

impl Folder {
    /// Opens a folder to use entries in it.
    ///
    /// # Errors
    /// The error of the system call, or that the folder is on a network share: for some calls cap-std (4.0) builds a path
    /// from the folder's, and makes that of a share a relative one.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        if is_on_share(&fs::canonicalize(path)?) {
            let message = "Plimsoll cannot use folders on a network share on Windows yet";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Folder(Dir::open_ambient_dir(path, cap_std::ambient_authority())?))
    }

    /// Opens a folder to list it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn open_listable(path: &Path) -> io::Result<Folder> {
        Folder::open(path)
    }

    /// Opens this folder again, to list it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn reopen_listable(&self) -> io::Result<Folder> {
        self.try_clone()
    }

    /// Opens a subfolder to use entries in it.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_subfolder(&self, name: &OsStr) -> io::Result<Folder> {
        check_file_name(name)?;
        Ok(Folder(self.0.open_dir_nofollow(name)?))
    }

    /// Opens a subfolder to list it.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_listable_subfolder(&self, name: &OsStr) -> io::Result<Folder> {
        self.open_subfolder(name)
    }

    /// Returns a second handle of the same open folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn try_clone(&self) -> io::Result<Folder> {
        Ok(Folder(self.0.try_clone()?))
    }

    /// Returns the handle as a file. Windows cannot lock a folder, which `fs2` reports.
    pub fn into_file(self) -> File {
        self.0.into_std_file()
    }

    /// Returns `None`: Windows has no call that opens a path without following links.
    pub fn open_file_beneath(&self, _path: &Path, _options: OpenOptions) -> Option<io::Result<File>> {
        None
    }

    /// Returns `None`; see [`Folder::open_file_beneath`].
    pub fn open_subfolder_beneath(&self, _path: &Path) -> Option<io::Result<Folder>> {
        None
    }

    /// Returns `None`; see [`Folder::open_file_beneath`].
    pub fn open_listable_beneath(&self, _path: &Path) -> Option<io::Result<Folder>> {
        None
    }

    /// Returns `None`; see [`Folder::open_file_beneath`].
    pub fn metadata_beneath(&self, _path: &Path) -> Option<io::Result<Metadata>> {
        None
    }

    /// Returns `None`; see [`Folder::open_file_beneath`].
    pub fn exists_beneath(&self, _path: &Path) -> Option<bool> {
        None
    }

    /// Returns the metadata of the folder itself.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.0.dir_metadata()?.into())
    }

    /// Returns the metadata of what is at a path in or below the folder. No link is followed in the last part, and none
    /// that leads out of the folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn link_metadata_of(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        check_file_names(path.as_ref())?;
        Ok(self.0.symlink_metadata(path)?.into())
    }

    /// Returns the metadata of an entry, or of the target of a link that does not lead out of the folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn metadata_of(&self, name: impl AsRef<Path>) -> io::Result<Metadata> {
        check_file_names(name.as_ref())?;
        Ok(self.0.metadata(name)?.into())
    }

    /// Opens an entry that is a file. A link is refused.
    ///
    /// # Errors
    /// The error of the system call, also for a link.
    pub fn open_file(&self, name: &OsStr, options: OpenOptions) -> io::Result<File> {
        check_file_name(name)?;
        let mut cap_options = cap_std::fs::OpenOptions::new();
        cap_options
            .read(options.read)
            .write(options.write && !options.append)
            .append(options.append)
            .create(options.create && !options.create_new)
            .create_new(options.create_new)
            .follow(FollowSymlinks::No);
        retry_while_in_use(
            || Ok(self.0.open_with(name, &cap_options)?.into_std()),
            is_in_use,
            std::thread::sleep,
        )
    }

    /// Creates a file for writing.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_file(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        self.open_file(name, OpenOptions::WRITE.create_new())
    }

    /// Creates a subfolder.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_subfolder(&self, name: &OsStr, _mode: u32) -> io::Result<()> {
        check_file_name(name)?;
        // While another process creates the same folder, access to it is denied.
        retry_while_in_use(|| self.0.create_dir(name), is_in_use_or_denied, std::thread::sleep)
    }

    /// Creates a symbolic link with a relative target, for which Windows requires a privilege or its developer mode.
    ///
    /// # Errors
    /// The error of the system call, also if the name is taken.
    pub fn create_link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        check_file_name(name)?;
        if self.0.metadata(target).is_ok_and(|metadata| metadata.is_dir()) {
            self.0.symlink_dir(target, name)
        } else {
            self.0.symlink_file(target, name)
        }
    }

    /// Returns the target of a link as it is stored.
    ///
    /// # Errors
    /// The error of the system call, also if the entry is no link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        check_file_name(name)?;
        let target = self.0.read_link_contents(name)?;
        // cap-std removes the beginning of a path in the system's own form, which makes these look relative.
        let leads_to_device = target.components().next().is_some_and(|component| {
            let name = component.as_os_str().to_string_lossy().to_ascii_uppercase();
            name == "UNC" || name == "GLOBALROOT" || name.starts_with("VOLUME{")
        });
        Ok(if leads_to_device { Path::new(r"\\?\").join(target) } else { target })
    }

    /// Gives a file a second name in this folder.
    ///
    /// # Errors
    /// The error of the system call, also if the new name is taken.
    pub fn hard_link(&self, name: &OsStr, new_name: &OsStr) -> io::Result<()> {
        check_file_name(new_name)?;
        self.0.hard_link(name, &self.0, new_name)
    }

    /// Renames an entry, possibly into another folder. Replaces a file that has the new name, also if another program
    /// reads it for a moment.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn rename(&self, name: &OsStr, new_folder: &Folder, new_name: &OsStr) -> io::Result<()> {
        check_file_name(name)?;
        check_file_name(new_name)?;
        retry_while_in_use(
            || self.0.rename(name, &new_folder.0, new_name),
            is_in_use_or_denied,
            std::thread::sleep,
        )
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        check_file_name(name)?;
        retry_while_in_use(|| self.0.remove_file_or_symlink(name), is_in_use_or_denied, std::thread::sleep)
    }

    /// Removes an empty subfolder.
    ///
    /// # Errors
    /// The error of the system call, also if the folder is not empty.
    pub fn remove_subfolder(&self, name: &OsStr) -> io::Result<()> {
        check_file_name(name)?;
        self.0.remove_dir(name)
    }

    /// Lists the folder.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn into_entries(self) -> io::Result<FolderEntries> {
        Ok(FolderEntries(self.0.entries()?))
    }

    /// Does nothing: NTFS and ReFS write changes of names to their journals.
    ///
    /// # Errors
    /// None.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Syncs the files in and below the folder that were written in the last hour. Windows lets only administrators sync
    /// a volume, and writes everything to the disk within seconds.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn sync_volume(&self) -> io::Result<()> {
        self.sync_recent_files(0)
    }

    /// Skips files that Plimsoll has not written: those with a reserved name and those that may not be written. A file that
    /// has disappeared is no error. Does not look below 16 levels of folders, which is more than Plimsoll creates.
    fn sync_recent_files(&self, depth: usize) -> io::Result<()> {
        const RECENT: Duration = Duration::from_secs(60 * 60);
        const MAX_DEPTH: usize = 16;
        for entry in self.try_clone()?.into_entries()? {
            let entry = entry?;
            let result = match entry.file_type() {
                FileType::Folder if depth < MAX_DEPTH => {
                    self.open_subfolder(entry.name()).and_then(|folder| folder.sync_recent_files(depth + 1))
                }
                FileType::Regular => self.sync_file_if_written_since(entry.name(), RECENT),
                _ => Ok(()),
            };
            match result {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::InvalidInput
                            | io::ErrorKind::PermissionDenied
                    ) => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn sync_file_if_written_since(&self, name: &OsStr, max_age: Duration) -> io::Result<()> {
        let modified_at = self.link_metadata_of(name)?.modified_at();
        let since_epoch =
            Duration::new(u64::try_from(modified_at.seconds).unwrap_or(0), modified_at.nanoseconds);
        if (UNIX_EPOCH + since_epoch).elapsed().is_ok_and(|age| age > max_age) {
            return Ok(());
        }
        sync_all(&self.open_file(name, OpenOptions::WRITE)?)
    }
}

/// Returns true for the resolved path of a folder on a network share, also if it has the letter of a drive.
fn is_on_share(canonical_path: &Path) -> bool {
    match canonical_path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)),
        _ => false,
    }
}

fn check_file_names(path: &Path) -> io::Result<()> {
    path.components().try_for_each(|component| match component {
        Component::Normal(name) => check_file_name(name),
        _ => Ok(()),
    })
}

/// The entries of a folder.
#[derive(Debug)]
pub struct FolderEntries(cap_std::fs::ReadDir);

impl Iterator for FolderEntries {
    type Item = io::Result<FolderEntry>;

    fn next(&mut self) -> Option<io::Result<FolderEntry>> {
        let to_folder_entry = |entry: cap_std::fs::DirEntry| FolderEntry {
            name: entry.file_name(),
            file_type: entry.file_type().map_or(FileType::Unknown, to_file_type),
        };
        Some(self.0.next()?.map(to_folder_entry))
    }
}

/// An entry of a folder.
#[derive(Debug)]
pub struct FolderEntry {
    name: OsString,
    file_type: FileType,
}

impl FolderEntry {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the type.
    pub fn file_type(&self) -> FileType {
        self.file_type
    }
}

/// The metadata of a file or folder.
#[derive(Debug, Clone, Copy)]
pub struct Metadata {
    file_type: FileType,
    size: u64,
    hard_link_count: u64,
    identity: FileIdentity,
    modified_at: Timestamp,
}

impl From<cap_std::fs::Metadata> for Metadata {
    fn from(metadata: cap_std::fs::Metadata) -> Metadata {
        Metadata {
            file_type: to_file_type(metadata.file_type()),
            size: metadata.len(),
            hard_link_count: metadata.nlink(),
            identity: FileIdentity { device: metadata.dev(), inode: metadata.ino() },
            modified_at: to_timestamp(
                metadata.modified().map_or(UNIX_EPOCH, cap_std::time::SystemTime::into_std),
            ),
        }
    }
}

impl Metadata {
    /// Returns the type.
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Returns true for a regular file.
    pub fn is_file(&self) -> bool {
        self.file_type == FileType::Regular
    }

    /// Returns true for a folder.
    pub fn is_folder(&self) -> bool {
        self.file_type == FileType::Folder
    }

    /// Returns true for a link.
    pub fn is_link(&self) -> bool {
        self.file_type == FileType::Link
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bits of a file or folder that only its owner uses: Windows has no permission bits.
    pub fn mode(&self) -> u32 {
        if self.is_folder() { 0o700 } else { 0o600 }
    }

    /// Returns how many names the file has.
    pub fn hard_link_count(&self) -> u64 {
        self.hard_link_count
    }

    /// Returns the serial number of the volume and the index of the file.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns `None`: the owner is not a number.
    pub fn owner_id(&self) -> Option<u32> {
        None
    }

    /// Returns when the contents were last written.
    pub fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    /// Returns `None`: the standard library does not report the time of the last change on Windows.
    pub fn changed_at(&self) -> Option<Timestamp> {
        None
    }
}

fn to_timestamp(time: SystemTime) -> Timestamp {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since_epoch.as_secs()).unwrap_or_default(),
        nanoseconds: since_epoch.subsec_nanos(),
    }
}

fn to_file_type(file_type: cap_std::fs::FileType) -> FileType {
    if file_type.is_file() {
        FileType::Regular
    } else if file_type.is_dir() {
        FileType::Folder
    } else if file_type.is_symlink() {
        FileType::Link
    } else if file_type.is_fifo() {
        FileType::Pipe
    } else if file_type.is_char_device() {
        FileType::Device
    } else {
        FileType::Unknown
    }
}

/// Opens a file. Links are followed, except by [`OpenOptions::no_follow`].
///
/// # Errors
/// The error of the system call.
pub fn open_file(path: &Path, options: OpenOptions) -> io::Result<File> {
    if let Some(name) = path.file_name() {
        check_file_name(name)?;
    }
    let mut std_options = fs::OpenOptions::new();
    std_options
        .read(options.read)
        .write(options.write && !options.append)
        .append(options.append)
        .create(options.create && !options.create_new)
        .create_new(options.create_new);
    if !options.follow_link {
        std_options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
    match retry_while_in_use(|| std_options.open(path), is_in_use, std::thread::sleep) {
        // Windows reports a folder like a file that may not be read.
        Err(error) if error.raw_os_error() == Some(ERROR_ACCESS_DENIED) && path.is_dir() => {
            Err(io::ErrorKind::IsADirectory.into())
        }
        result => result,
    }
}

/// Returns true if a file was not opened because it is a folder.
pub fn is_folder_or_special_file_error(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::IsADirectory
}

/// Returns the error that the system reports for a missing file.
pub fn missing_file_error() -> io::Error {
    io::Error::from_raw_os_error(ERROR_FILE_NOT_FOUND)
}

/// Returns the error that the system reports if a file is where a folder should be.
pub fn not_a_folder_error() -> io::Error {
    io::Error::from_raw_os_error(ERROR_DIRECTORY)
}

/// Returns the error for a file that would exceed a limit of the process.
pub fn file_too_large_error() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}

/// Returns the error for links that lead in a circle.
pub fn too_many_links_error() -> io::Error {
    io::Error::other("too many levels of links")
}

/// Returns the metadata of an open file.
///
/// # Errors
/// The error of the system call.
pub fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(cap_std::fs::Metadata::from_file(file)?.into())
}

/// Returns the metadata of the file that a path leads to.
///
/// # Errors
/// The error of the system call.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    metadata_with_flags(path, FILE_FLAG_BACKUP_SEMANTICS)
}

/// Returns the metadata of what is at a path, without following a link in its last part.
///
/// # Errors
/// The error of the system call.
pub fn link_metadata(path: &Path) -> io::Result<Metadata> {
    metadata_with_flags(path, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
}

fn metadata_with_flags(path: &Path, flags: u32) -> io::Result<Metadata> {
    // Without access to the contents, so that a file that another program has open is described, too.
    file_metadata(&fs::OpenOptions::new().access_mode(0).custom_flags(flags).open(path)?)
}

/// Does nothing: Windows has no permission bits.
///
/// # Errors
/// None.
pub fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Returns the path with every link resolved, without the prefix `\\?\` if other programs understand it without.
///
/// # Errors
/// The error of the system call, also if nothing is at the path.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    dunce::canonicalize(path)
}

/// Creates a folder and its missing parents. Links are followed.
///
/// # Errors
/// The error of the system call.
pub fn create_folder_and_parents(path: &Path, _mode: u32) -> io::Result<()> {
    retry_while_in_use(|| fs::create_dir_all(path), is_in_use_or_denied, std::thread::sleep)
}

/// Splits a path that does not begin at a root into its names, with `..` and without `.`; `None` if it begins at a root or
/// with a drive, such as `\\a` and `C:a`, which are not absolute.
pub fn split_relative_path(path: &Path) -> Option<impl Iterator<Item = &OsStr>> {
    let is_name =
        |component: &Component<'_>| matches!(component, Component::Normal(_) | Component::ParentDir);
    let is_at_root = matches!(path.components().next(), Some(Component::Prefix(_) | Component::RootDir));
    (!is_at_root).then(|| path.components().filter(is_name).map(Component::as_os_str))
}

/// Returns true for an absolute path without empty, `.` or `..` components.
pub fn is_absolute_and_normalized(path: &Path) -> bool {
    // A path with empty or `.` components is longer than its components, which leave them out.
    let mut length = 0;
    for component in path.components() {
        length += match component {
            Component::Normal(name) => name.len() + 1,
            Component::ParentDir => return false,
            component => component.as_os_str().len(),
        };
    }
    // The separator before the first name is the root.
    path.is_absolute() && length == path.as_os_str().len() + 1
}

/// Returns what follows a folder in a path, or `None` if the path does not begin with the folder. Ignores case, and
/// recognizes verbatim paths (`\\?\C:\`).
pub fn strip_folder<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    let mut remaining = path.components();
    for folder_component in folder.components() {
        let is_same = match (folder_component, remaining.next()?) {
            (Component::Prefix(left), Component::Prefix(right)) => is_same_prefix(left.kind(), right.kind()),
            (Component::Normal(left), Component::Normal(right)) => is_same_name(left, right),
            (left, right) => left == right,
        };
        if !is_same {
            return None;
        }
    }
    Some(remaining.as_path())
}

/// Returns the path below a folder; `.` for the folder itself. Returns `None` if the path is not below it or contains `..`,
/// which may lead to another folder because the part before it may be a link. Ignores case, and recognizes verbatim paths.
pub fn relative_path_below<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    let relative_path = strip_folder(folder, path)?;
    let has_parent_component = relative_path.components().any(|component| component == Component::ParentDir);
    let is_empty = relative_path == Path::new("");
    (!has_parent_component).then_some(if is_empty { Path::new(".") } else { relative_path })
}

/// Returns the rights of this process to what a path leads to, as far as the read-only attribute shows them, or `None` if
/// nothing is there.
pub fn access_rights(path: &Path) -> Option<AccessRights> {
    let metadata = path.metadata().ok()?;
    let is_writable = metadata.is_dir() || !metadata.permissions().readonly();
    Some(AccessRights { is_writable, mode: 0, is_owned_by_current_user: true })
}

/// Returns true if a file has the read-only attribute.
pub fn is_write_refused(path: &Path) -> bool {
    access_rights(path).is_some_and(|rights| !rights.is_writable)
}

/// Returns true if a path leads to a file; its name tells whether it is a program.
pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Returns `None`: Windows has no such ids.
pub fn current_user_id() -> Option<u32> {
    None
}

/// Returns `None`: Windows has no such limit.
pub fn file_size_limit() -> Option<u64> {
    None
}

/// Reads at most as many bytes as the buffer holds from an offset of a file; returns how many were read. Moves the
/// position of the file.
///
/// # Errors
/// The error of the system call.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

/// Reads up to `max_length` bytes of a file at an offset; fewer at the end of the file.
///
/// # Errors
/// The error of the system call.
pub fn read_range(file: &File, offset: u64, max_length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; max_length];
    let mut length = 0;
    while length < max_length {
        match read_at(file, &mut bytes[length..], offset + length as u64)? {
            0 => break,
            count => length += count,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads once from standard input and appends the bytes; returns false at its end.
///
/// # Errors
/// The error of the system call.
pub fn read_stdin(bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = [0; 8 * 1024];
    let count = io::stdin().lock().read(&mut chunk)?;
    bytes.extend_from_slice(&chunk[..count]);
    Ok(count > 0)
}

/// Writes to standard output; returns how many bytes were written. A console gets them as UTF-16, whatever its code page
/// is.
///
/// # Errors
/// The error of the system call.
pub fn write_to_stdout(bytes: &[u8]) -> io::Result<usize> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(bytes.len())
}

/// Syncs the contents of a file to the disk (`FlushFileBuffers`).
///
/// # Errors
/// The error of the system call.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Syncs a file to the disk with its metadata, such as its times.
///
/// # Errors
/// The error of the system call.
pub fn sync_all(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Returns false: the system has no call to check this.
pub(super) fn exists_without_links(_path: &Path) -> bool {
    false
}

pub(super) fn set_openat2_enabled(_is_enabled: bool) {}

pub(super) fn folder_identity_by_inode_and_creation_time(path: &Path) -> Option<String> {
    let identity = metadata(path).ok()?.identity();
    let created_at = to_timestamp(path.metadata().ok()?.created().ok()?);
    let created_at = (created_at.seconds, created_at.nanoseconds);
    Some(super::format_identity(&identity.device.to_string(), identity.inode, created_at))
}

pub(super) fn file_system_kind(path: &Path) -> Option<FileSystemKind> {
    let canonical_path = fs::canonicalize(path).ok()?;
    Some(if is_on_share(&canonical_path) { FileSystemKind::Network("SMB") } else { FileSystemKind::Other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_folder_in_every_spelling() {
        for (folder, path, expected) in [
            (r"C:\p", r"C:\p", Some(".")),
            (r"C:\p\", r"C:\p\a\b", Some(r"a\b")),
            (r"C:\p", r"c:/P/a/b", Some(r"a\b")),
            (r"C:\p", r"\\?\C:\p\a", Some("a")),
            (r"\\?\C:\p", r"C:\p\a", Some("a")),
            (r"C:\größe", r"C:\GRÖSSE\a", None),
            (r"C:\größe", r"C:\GRÖßE\a", Some("a")),
            (r"\\server\share\p", r"\\?\UNC\SERVER\share\p\a", Some("a")),
            (r"C:\p", r"C:\p\a\..\b", None),
            (r"C:\p", r"C:\p-2\a", None),
            (r"C:\p", r"D:\p\a", None),
            (r"C:\p", r"C:p\a", None),
            (r"C:\p", r"\p\a", None),
        ] {
            assert_eq!(
                relative_path_below(Path::new(folder), Path::new(path)),
                expected.map(Path::new),
                "{folder} {path}"
            );
        }
    }

    #[test]
    fn a_file_is_replaced_while_another_program_reads_it_for_a_moment() {
        let folder = std::env::temp_dir().join(format!("plimsoll-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "old").unwrap();
        let reader = fs::OpenOptions::new().read(true).share_mode(1).open(folder.join("file")).unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(reader);
        });
        fs::write(folder.join("draft"), "new").unwrap();
        let opened = Folder::open(&folder).unwrap();
        opened.rename(OsStr::new("draft"), &opened, OsStr::new("file")).unwrap();
        closing.join().unwrap();
        assert_eq!(fs::read(folder.join("file")).unwrap(), b"new");
        drop(opened);
        fs::remove_dir_all(&folder).unwrap();
    }
}
