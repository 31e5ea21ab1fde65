//! Reads, replaces and appends files. Paths inside a project are always opened through [`crate::safe_open`].
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the one door to the disk")]

pub use crate::path_identity::{ResolvedFolders, is_inside, is_same_path, on_disk_spelling_or_keep};
pub use crate::plain_path::{
    Durability, TEMPORARY_FILE_SUFFIX, canonicalize_if_link, canonicalize_or_keep, read_link_target,
};
use crate::safe_open::{self, FinalLink, FolderEntry, OpenedFile};
use crate::size_limited_write::{self, SizeLimitedFile};
use crate::{StoreError, environment, gitignore, io_error};
use chrono::{DateTime, Utc};
pub(crate) use plimsoll_system::files::read_range;
use plimsoll_system::files::{
    FileType, FolderEntry as ListedEntry, Metadata, OpenOptions, Timestamp, link_metadata, read_at,
    read_exact_at, read_stdin, set_mode, sync_all, sync_data, write_to_stdout,
};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a file; `None` if it is missing. Returns an error with the path if it is not a plain file, leads out
/// of its project, or is larger than any legitimate file of its kind.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(opened) = open_if_exists(path)? else { return Ok(None) };
    let max_bytes = safe_open::read_limit_larger_for_log_or_outside_root(path, opened.is_below_root);
    match safe_open::read_all_within_limit(opened, max_bytes).map_err(io_error("read", path))? {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(StoreError::TooLarge { path: path.to_owned(), max_bytes }),
    }
}

fn open_if_exists(path: &Path) -> Result<Option<OpenedFile>, StoreError> {
    match safe_open::open_regular_file_restricted_to_its_root(path, OpenOptions::READ) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_missing_or_below_non_folder() => Ok(None),
        Err(error) => Err(error.into_store_error("read", path)),
    }
}

/// Reads a text file; `None` if it is missing. Bytes that are not UTF-8 are replaced.
pub fn read_text(path: &Path) -> Result<Option<String>, StoreError> {
    Ok(read(path)?.map(|bytes| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }))
}

/// Removes temporary files in a folder that were left by processes that no longer run.
pub fn remove_leftover_temporary_files_in(folder: &Path, is_dead_process: impl Fn(u32) -> bool) {
    remove_temporary_files_where(folder, |_, writer_pid| is_dead_process(writer_pid));
}

/// Removes temporary files of one file that were left next to it by processes that no longer run. Used in
/// folders of the user and of the client, where only those of files that Plimsoll writes may be removed.
pub fn remove_leftover_temporary_files_of(path: &Path) {
    // A file behind a link is replaced at the link's target.
    let path = canonicalize_if_link(path);
    let Some(file_name) = path.file_name().and_then(OsStr::to_str) else { return };
    remove_temporary_files_where(parent_or_current(&path), |target_name, writer_pid| {
        target_name == file_name && plimsoll_system::liveness_of_pid(writer_pid).has_ended()
    });
}

fn remove_temporary_files_where(folder: &Path, should_remove: impl Fn(&str, u32) -> bool) {
    for name in list_names(folder) {
        let path = folder.join(&name);
        // A temporary file is a plain file and not a link; if its writer is alive, it is still being written.
        let is_removable = parse_temporary_name(&name)
            .is_some_and(|(target_name, writer_pid)| should_remove(target_name, writer_pid));
        if is_removable && !is_link(&path) && is_file(&path) {
            let _ = remove_if_exists(&path);
        }
    }
}

/// Returns the file that a temporary file belongs to and the process that wrote it, from a name of
/// [`new_temporary_path`] or of `FolderEntry`.
fn parse_temporary_name(temporary_name: &str) -> Option<(&str, u32)> {
    let mut parts = temporary_name.strip_prefix('.')?.strip_suffix(TEMPORARY_FILE_SUFFIX)?.rsplitn(3, '.');
    let (_number, writer_pid, target_name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((target_name, writer_pid.parse().ok()?))
}

/// Returns a new path for a temporary file next to a file. The random number makes the name hard to guess.
pub(crate) fn new_temporary_path(path: &Path) -> PathBuf {
    let random_number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{random_number:016x}{TEMPORARY_FILE_SUFFIX}", std::process::id()))
}

/// Replaces a file atomically: readers see the old bytes or the new ones. Follows a link to its target if
/// that is inside the project, keeps the mode of an existing file, and creates missing folders.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    let result = FolderEntry::for_path(path, FinalLink::Follow, true).and_then(|entry| {
        // A new file may be the first one in one of our folders, which must be hidden from git before it
        // contains anything.
        if entry.is_name_available() {
            gitignore::add_gitignore_to_plimsoll_folder_if_missing(parent_or_current(path))?;
        }
        entry.replace_file_keeping_mode(bytes, durability)
    });
    result.map_err(|error| error.into_store_error("write", path))
}

/// Creates a folder and its missing parents, accessible to the owner only.
pub fn create_folder(folder: &Path) -> Result<(), StoreError> {
    gitignore::add_gitignore_to_plimsoll_folder_if_missing(folder)
        .map_err(|error| error.into_store_error("make the folder", folder))?;
    safe_open::create_owner_only_folder_and_parents(folder)
        .map_err(|error| error.into_store_error("make the folder", folder))
}

/// Creates a new file atomically; returns false if the name is taken.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let result = gitignore::add_gitignore_to_plimsoll_folder_if_missing(parent_or_current(path))
        .and_then(|()| FolderEntry::for_path(path, FinalLink::NoFollow, true))
        .and_then(|entry| entry.create_new(bytes));
    result.map_err(|error| error.into_store_error("write", path))
}

/// Creates a new file without a temporary file and a rename, which is faster. A kill leaves a partial file,
/// so this is only for files whose bytes are verified when they are read. Returns false if the name is taken.
pub(crate) fn create_new_in_place(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    match open_or_create_with_parents(path, OpenOptions::WRITE.create_new()) {
        Ok(OpenedFile { file, .. }) => {
            let result = size_limited_write::write_all(&file, bytes).map_err(io_error("write", path));
            // The disk is probably full, and a partial file is useless, so it is removed.
            result.inspect_err(|_| drop(remove_if_exists(path))).map(|()| true)
        }
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Appends bytes to a file in a single write, so that lines of several writers never mix.
pub fn append(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = open_for_append(path)?;
    size_limited_write::write_all(&file, bytes).map_err(io_error("append to", path))
}

/// Appends a line. If a full disk has cut the previous line short, that line is ended first.
pub fn append_line(path: &Path, line: &str) -> Result<(), StoreError> {
    let opened = open_or_create_with_parents(path, OpenOptions::READ_WRITE.append().create())?;
    let prefix = if ends_with_newline(&opened) { "" } else { "\n" };
    size_limited_write::write_all(&opened.file, format!("{prefix}{line}\n").as_bytes())
        .map_err(io_error("append to", path))
}

fn ends_with_newline(opened: &OpenedFile) -> bool {
    let mut last_byte = [0];
    opened.size() == 0
        || read_exact_at(&opened.file, &mut last_byte, opened.size() - 1).is_err()
        || last_byte == *b"\n"
}

/// Opens a file for appending only, and creates it if it is missing.
pub fn open_for_append(path: &Path) -> Result<File, StoreError> {
    open_or_create_with_parents(path, OpenOptions::WRITE.append().create()).map(|opened| opened.file)
}

/// Opens a plain file, and creates it and missing folders.
pub(crate) fn open_or_create_with_parents(
    path: &Path,
    options: OpenOptions,
) -> Result<OpenedFile, StoreError> {
    let open = || safe_open::open_regular_file_restricted_to_its_root(path, options);
    match open() {
        Err(error) if error.is_folder_missing() => {
            create_folder(parent_or_current(path))?;
            open().map_err(|error| error.into_store_error("open", path))
        }
        opened => opened.map_err(|error| error.into_store_error("open", path)),
    }
}

fn parent_or_current(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Reads the last bytes of a file, starting at the beginning of a line; `None` if it is missing.
pub fn read_last_lines(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>, StoreError> {
    use std::io::{Read, Seek, SeekFrom};
    let Some((mut file, size)) = open_with_size_if_exists(path)? else { return Ok(None) };
    let start = size.saturating_sub(max_bytes);
    let mut bytes = Vec::new();
    let result = file.seek(SeekFrom::Start(start)).and_then(|_| file.take(max_bytes).read_to_end(&mut bytes));
    result.map_err(io_error("read", path))?;
    if start > 0 {
        let next_line_start = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |index| index + 1);
        bytes.drain(..next_line_start);
    }
    Ok(Some(bytes))
}

/// Reads at most `max_bytes` bytes of a log from an offset; returns them and the offset for the next call. A
/// log that is shorter than the offset was replaced: then nothing is read, and the returned offset is its end.
pub fn read_chunk_and_next_offset(
    path: &Path,
    offset: u64,
    max_bytes: usize,
) -> Result<(Vec<u8>, u64), StoreError> {
    let Some((file, size)) = open_with_size_if_exists(path)? else { return Ok((Vec::new(), 0)) };
    if size <= offset {
        return Ok((Vec::new(), size));
    }
    let mut bytes = vec![0; usize::try_from(size - offset).unwrap_or(max_bytes).min(max_bytes)];
    let count = read_at(&file, &mut bytes, offset).map_err(io_error("read", path))?;
    bytes.truncate(count);
    Ok((bytes, offset + count as u64))
}

/// Returns the length of an older copy of a file if the file begins with the whole copy, otherwise `None`. A
/// missing file or copy counts as empty. Compares in chunks, because logs grow large.
pub fn copy_length_if_prefix(original: &Path, copy: &Path) -> Result<Option<u64>, StoreError> {
    let Some((copy_file, copy_length)) = open_with_size_if_exists(copy)? else { return Ok(Some(0)) };
    let Some((file, size)) = open_with_size_if_exists(original)? else {
        return Ok((copy_length == 0).then_some(0));
    };
    if size < copy_length {
        return Ok(None);
    }
    let (mut file_chunk, mut copy_chunk) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut offset = 0;
    while offset < copy_length {
        let chunk_length =
            usize::try_from(copy_length - offset).map_or(CHUNK_BYTES, |remaining| remaining.min(CHUNK_BYTES));
        let (file_chunk, copy_chunk) = (&mut file_chunk[..chunk_length], &mut copy_chunk[..chunk_length]);
        read_exact_at(&copy_file, copy_chunk, offset).map_err(io_error("read", copy))?;
        read_exact_at(&file, file_chunk, offset).map_err(io_error("read", original))?;
        if file_chunk != copy_chunk {
            return Ok(None);
        }
        offset += chunk_length as u64;
    }
    Ok(Some(copy_length))
}

/// Appends everything after an offset of a file to its copy, in chunks.
pub fn append_tail_to_copy(original: &Path, offset: u64, copy: &Path) -> Result<(), StoreError> {
    let Some((file, size)) = open_with_size_if_exists(original)? else { return Ok(()) };
    if size <= offset {
        return Ok(());
    }
    let copy_file = open_for_append(copy)?;
    let (mut chunk, mut position) = (vec![0; CHUNK_BYTES], offset);
    while position < size {
        let chunk_length =
            usize::try_from(size - position).map_or(CHUNK_BYTES, |remaining| remaining.min(CHUNK_BYTES));
        read_exact_at(&file, &mut chunk[..chunk_length], position).map_err(io_error("read", original))?;
        size_limited_write::write_all(&copy_file, &chunk[..chunk_length])
            .map_err(io_error("append to", copy))?;
        position += chunk_length as u64;
    }
    Ok(())
}

const CHUNK_BYTES: usize = 64 * 1024;

/// Copies a program atomically: a process that starts it meanwhile gets the old or the new program, and a
/// running process keeps its file. Does nothing if the bytes are equal.
pub fn copy_program_if_changed(source: &Path, destination: &Path) -> Result<(), StoreError> {
    if file_size(source) == file_size(destination) && copy_length_if_prefix(source, destination)?.is_some() {
        return Ok(());
    }
    remove_leftover_temporary_files_of(destination);
    let temporary_path = new_temporary_path(destination);
    let result = copy_to_executable_temporary_file(source, &temporary_path)
        .and_then(|()| rename(&temporary_path, destination));
    result.inspect_err(|_| drop(remove_if_exists(&temporary_path)))
}

fn copy_to_executable_temporary_file(source_path: &Path, temporary_path: &Path) -> Result<(), StoreError> {
    let mut source = open(source_path)?;
    let mut temporary_file =
        SizeLimitedFile(open_or_create_with_parents(temporary_path, OpenOptions::WRITE.create_new())?.file);
    std::io::copy(&mut source, &mut temporary_file).map_err(io_error("write", temporary_path))?;
    let SizeLimitedFile(temporary_file) = temporary_file;
    set_mode(&temporary_file, 0o755)
        .and_then(|()| sync_all(&temporary_file))
        .map_err(io_error("write", temporary_path))
}

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<File, StoreError> {
    safe_open::open_regular_file_restricted_to_its_root(path, OpenOptions::READ)
        .map(|opened| opened.file)
        .map_err(|error| error.into_store_error("open", path))
}

/// Opens a file for reading and returns its size; `None` if it is missing.
pub(crate) fn open_with_size_if_exists(path: &Path) -> Result<Option<(File, u64)>, StoreError> {
    let with_size = |opened: OpenedFile| {
        let size = opened.size();
        (opened.file, size)
    };
    Ok(open_if_exists(path)?.map(with_size))
}

/// Opens a plain file and refuses a link, for callers that found the path by walking folders.
pub fn open_without_following_link(path: &Path) -> std::io::Result<File> {
    let opened = safe_open::open_regular_file_restricted_to_its_root(path, OpenOptions::READ.no_follow());
    opened.map(|opened| opened.file).map_err(|error| match error.into_store_error("open", path) {
        StoreError::Io { source, .. } => source,
        other => std::io::Error::other(other.to_string()),
    })
}

/// A file that is read while it grows. The open file stays readable even if its name is removed.
#[derive(Debug)]
pub struct GrowingReader(File);

impl GrowingReader {
    /// Opens a file; `None` on any error.
    pub fn open(path: &Path) -> Option<GrowingReader> {
        open(path).ok().map(GrowingReader)
    }

    /// Returns when the file was last written.
    pub fn modified_at(&self) -> Option<DateTime<Utc>> {
        self.0.metadata().and_then(|metadata| metadata.modified()).ok().map(DateTime::from)
    }

    /// Reads what was appended since the last call, at most 64 MB.
    pub fn read_appended_bytes(&mut self) -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        const MAX_READ_BYTES: u64 = 64 * 1024 * 1024;
        let mut bytes = Vec::new();
        (&mut self.0).take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Creates a temporary file without a name, for data too large for memory. It disappears when it is closed.
pub(crate) fn open_unnamed_temp_file() -> Result<File, StoreError> {
    let folder = environment::temporary_folder();
    let random_number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let path = folder.join(format!(".plimsoll-{}-{random_number:016x}", std::process::id()));
    // `EXCL`: the file is new, so it is neither a link nor another user's file.
    let opened = open_or_create_with_parents(&path, OpenOptions::READ_WRITE.create_new())?;
    remove_if_exists(&path)?;
    Ok(opened.file)
}

/// Truncates a file to a length and syncs it.
pub fn truncate_and_sync(path: &Path, length: u64) -> Result<(), StoreError> {
    let opened = safe_open::open_regular_file_restricted_to_its_root(path, OpenOptions::WRITE)
        .map_err(|error| error.into_store_error("open", path))?;
    opened.file.set_len(length).and_then(|()| sync_data(&opened.file)).map_err(io_error("cut", path))
}

/// Removes a file or a link; succeeds if it does not exist.
pub fn remove_if_exists(path: &Path) -> Result<(), StoreError> {
    match FolderEntry::for_path(path, FinalLink::NoFollow, false).and_then(|entry| entry.remove()) {
        Err(error) if !error.is_folder_missing() => Err(error.into_store_error("remove", path)),
        _ => Ok(()),
    }
}

/// Removes a file; returns true if this call removed it. Of several concurrent calls only one returns true.
pub fn remove_existing(path: &Path) -> bool {
    FolderEntry::for_path(path, FinalLink::NoFollow, false).and_then(|entry| entry.remove()).is_ok()
}

/// Removes a folder if it is empty; ignores every error.
pub fn remove_empty_folder(path: &Path) {
    let _ = FolderEntry::for_path(path, FinalLink::NoFollow, false).and_then(|entry| entry.remove_folder());
}

/// Removes one of our folders outside every project with everything in it, or the link at this path. Succeeds
/// if it does not exist.
pub fn remove_folder_and_contents(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(|source| StoreError::Io { action: "remove", path: path.to_owned(), source }),
    }
}

/// Renames a file, folder or link. A link itself is moved.
pub fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    let entry_at = |path| FolderEntry::for_path(path, FinalLink::NoFollow, false);
    let result = entry_at(from).and_then(|from| from.rename(&entry_at(to)?));
    result.map_err(|error| error.into_store_error("move", from))
}

/// Creates a link with this target; anything that is already at the path stays.
pub fn create_link_if_missing(target: &str, path: &Path) -> Result<(), StoreError> {
    let result = FolderEntry::for_path(path, FinalLink::NoFollow, false)
        .and_then(|entry| entry.create_link_if_missing(target));
    result.map_err(|error| error.into_store_error("make the link", path))
}

/// Creates a link, or atomically replaces whatever is at the path. The caller must have checked that it is
/// nothing of the user's.
pub fn replace_link(target: &Path, path: &Path) -> Result<(), StoreError> {
    let result = FolderEntry::for_path(path, FinalLink::NoFollow, true)
        .and_then(|entry| entry.create_or_replace_link(target));
    result.map_err(|error| error.into_store_error("make the link", path))
}

/// Syncs a folder, so that new names in it survive a power cut. Errors are ignored, because some file systems
/// cannot do it.
pub fn sync_folder(folder: &Path) {
    if let Ok(folder) = safe_open::open_folder(folder) {
        let _ = folder.sync();
    }
}

/// Syncs the whole volume of a folder: for many files this is one sync instead of many.
pub fn sync_volume(folder: &Path) -> Result<(), StoreError> {
    let opened = safe_open::open_folder(folder).map_err(|error| error.into_store_error("sync", folder))?;
    opened.sync_volume().map_err(io_error("sync", folder))
}

/// Returns true if something is at the path. In a project, links that lead outside count as missing.
pub fn exists(path: &Path) -> bool {
    safe_open::exists_after_checking_parents(path)
}

/// Drops our open handles below a folder. Call this after another program removed or recreated the folder.
pub fn forget_open_folders(folder: &Path) {
    safe_open::forget_open_folders(folder);
}

/// Returns true if a folder is at the path, or at the target of a link.
pub fn is_folder(path: &Path) -> bool {
    safe_open::metadata_after_checking_parents(path).is_some_and(|metadata| metadata.is_folder())
}

/// Returns true if a regular file is at the path, or at the target of a link; false for folders, pipes and
/// devices.
pub fn is_file(path: &Path) -> bool {
    safe_open::metadata_after_checking_parents(path).is_some_and(|metadata| metadata.is_file())
}

/// Returns true if the group or others have any permission on the file, which makes it unsuitable for a
/// secret.
pub fn is_accessible_to_others(path: &Path) -> bool {
    safe_open::metadata_after_checking_parents(path).is_some_and(|metadata| metadata.mode() & 0o077 != 0)
}

/// Returns true if a link is at the path, whatever its target is.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink())
}

/// Returns true if a folder is at the path, and not a link to one.
pub fn is_folder_and_not_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the size of a plain file in bytes.
pub fn file_size(path: &Path) -> Option<u64> {
    let metadata = safe_open::metadata_checking_final_link_but_not_parents(path)?;
    metadata.is_file().then(|| metadata.size())
}

/// Returns the change stamp of a file: inode, size, mtime and ctime. It changes if the file is written or
/// replaced.
pub fn file_change_stamp(path: &Path) -> Option<String> {
    let metadata = safe_open::metadata_after_checking_parents(path).filter(Metadata::is_file)?;
    let (inode, size) = (metadata.identity().inode, metadata.size());
    let modified_at = metadata.modified_at();
    let changed_at = metadata.changed_at().unwrap_or(modified_at);
    let Timestamp { seconds, nanoseconds } = modified_at;
    let Timestamp { seconds: changed_seconds, nanoseconds: changed_nanoseconds } = changed_at;
    Some(format!("{inode} {size} {seconds}.{nanoseconds} {changed_seconds}.{changed_nanoseconds}"))
}

/// Returns the change stamp of a folder, its mtime. It changes if a name is added or removed.
pub(crate) fn folder_change_stamp(path: &Path) -> Option<String> {
    let metadata =
        safe_open::metadata_checking_final_link_but_not_parents(path).filter(Metadata::is_folder)?;
    let Timestamp { seconds, nanoseconds } = metadata.modified_at();
    Some(format!("{seconds}.{nanoseconds:09}"))
}

/// Returns when a file was last written.
pub fn modified_at(path: &Path) -> Option<SystemTime> {
    to_system_time(safe_open::metadata_checking_final_link_but_not_parents(path)?.modified_at())
}

fn to_system_time(timestamp: Timestamp) -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::new(timestamp.seconds.try_into().ok()?, timestamp.nanoseconds))
}

/// Returns how long ago a file was last written; `None` if that is unknown.
pub fn time_since_modified(path: &Path) -> Option<Duration> {
    modified_at(path)?.elapsed().ok()
}

/// Lists the names in a folder, sorted; empty if there is no folder.
pub fn list_names(folder: &Path) -> Vec<String> {
    let entry_name = |entry: ListedEntry| entry.name().to_string_lossy().into_owned();
    let mut names: Vec<String> = read_entries(folder).map(entry_name).collect();
    names.sort();
    names
}

/// The kind of an entry in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    /// A link, a pipe or another kind.
    Other,
}

/// Lists the entries of a folder with their kinds, sorted by name.
pub(crate) fn list_entries(folder: &Path) -> Result<Vec<(OsString, EntryKind)>, StoreError> {
    let opened_folder =
        safe_open::open_folder(folder).map_err(|error| error.into_store_error("list", folder))?;
    let mut entries = Vec::new();
    for entry in opened_folder.into_entries().map_err(io_error("list", folder))? {
        let entry = entry.map_err(io_error("list", folder))?;
        let name = entry.name();
        let kind = match entry.file_type() {
            FileType::Regular => EntryKind::File,
            FileType::Folder => EntryKind::Folder,
            // Some file systems do not tell.
            FileType::Unknown if is_link(&folder.join(name)) => EntryKind::Other,
            FileType::Unknown if is_folder(&folder.join(name)) => EntryKind::Folder,
            FileType::Unknown if is_file(&folder.join(name)) => EntryKind::File,
            _ => EntryKind::Other,
        };
        entries.push((name.to_owned(), kind));
    }
    entries.sort_unstable_by(|(first, _), (second, _)| first.cmp(second));
    Ok(entries)
}

/// Returns those of `names` that exist in a folder.
pub fn existing_names<'n>(folder: &Path, names: &[&'n str]) -> Vec<&'n str> {
    let matching_name = |entry: ListedEntry| names.iter().copied().find(|name| entry.name() == *name);
    read_entries(folder).filter_map(matching_name).collect()
}

/// Iterates over the entries of a folder; empty if it cannot be listed.
fn read_entries(folder: &Path) -> impl Iterator<Item = ListedEntry> {
    let entries = safe_open::open_folder(folder).and_then(|folder| Ok(folder.into_entries()?));
    entries.into_iter().flatten().flatten()
}

/// Returns when a file was last changed or renamed (ctime), or `None` if the system does not report it. Unlike the
/// modification time, programs cannot set it.
pub fn changed_at(path: &Path) -> Option<SystemTime> {
    to_system_time(link_metadata(path).ok()?.changed_at()?)
}

/// Folders that do not count as a session's work: caches and version control.
pub const SKIPPED_FOLDERS: [&str; 6] = [".git", ".claude", "node_modules", "target", ".venv", "__pycache__"];

/// Returns the newest `max_files` files below a folder that were modified at or after `cutoff`, newest last.
/// Skips caches and version control.
pub fn newest_files_modified_since_oldest_first(
    folder: &Path,
    cutoff: SystemTime,
    max_files: usize,
) -> Vec<PathBuf> {
    // Limits the time of a checkpoint in a project with very many files.
    const MAX_ENTRIES: usize = 50_000;
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut entry_count = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            entry_count += 1;
            // Links are not followed: one may lead out of the project, or in a circle.
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            let name = entry.file_name();
            if metadata.is_dir() && !SKIPPED_FOLDERS.iter().any(|skipped_name| name == *skipped_name) {
                folders.push(entry.path());
            } else if metadata.is_file() && metadata.modified().is_ok_and(|modified| modified >= cutoff) {
                files.push((metadata.modified().ok(), entry.path()));
            }
        }
        if entry_count > MAX_ENTRIES {
            break;
        }
    }
    files.sort();
    let excess = files.len().saturating_sub(max_files);
    files.into_iter().skip(excess).map(|(_, path)| path).collect()
}

/// Writes to standard output without a buffer, which a single write does not need.
pub fn write_all_to_stdout(mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match write_to_stdout(bytes)? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            written_count => bytes = &bytes[written_count..],
        }
    }
    Ok(())
}

/// Reads standard input until its end or until `max_bytes`; any further bytes are dropped.
pub fn read_stdin_up_to(max_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 * 1024);
    while (bytes.len() as u64) < max_bytes && read_stdin(&mut bytes)? {}
    bytes.truncate(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_links::symlink;
    use std::io::Write;

    /// Sets the permission bits of a file, where there are any.
    fn set_permission_bits(path: &Path, bits: u32) {
        set_mode(&File::open(path).unwrap(), bits).unwrap();
    }

    /// Asserts the permission bits of a file or folder, where there are any.
    fn assert_permission_bits(path: &Path, expected: u32) {
        let bits = plimsoll_system::files::metadata(path).unwrap().mode();
        assert!(cfg!(windows) || bits == expected, "{bits:o}");
    }

    #[test]
    fn replacing_keeps_mode_and_link_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("deep/target.json");
        replace(&target, b"one", Durability::Durable).unwrap();
        set_permission_bits(&target, 0o644);
        let link = folder.path().join("link.json");
        symlink(&target, &link).unwrap();
        replace(&link, b"two", Durability::Lazy).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_permission_bits(&target, 0o644);
        assert_eq!(list_names(&folder.path().join("deep")), ["target.json"]);
    }

    #[test]
    fn a_link_is_replaced_atomically_and_its_old_target_stays() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("new folder/link");
        for target in ["one", "two"] {
            fs::create_dir_all(folder.path().join("new folder").join(target)).unwrap();
            replace_link(Path::new(target), &link).unwrap();
            assert_eq!(read_link_target(&link).as_deref(), Some(Path::new(target)));
        }
        assert_eq!(list_names(&folder.path().join("new folder")), ["link", "one", "two"]);
        assert_eq!(read_link_target(&folder.path().join("new folder/one")), None);
    }

    #[test]
    fn new_files_are_accessible_to_the_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.json");
        replace(&path, b"x", Durability::Lazy).unwrap();
        assert_permission_bits(&path, 0o600);
        assert_permission_bits(path.parent().unwrap(), 0o700);
    }

    #[test]
    fn create_new_never_overwrites_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.md");
        assert!(create_new(&path, b"one").unwrap());
        assert!(!create_new(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_permission_bits(&path, 0o600);
        assert_eq!(list_names(&folder.path().join("new")), ["a.md"]);
    }

    #[test]
    fn an_unfinished_line_does_not_corrupt_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        append_line(&path, "one").unwrap();
        append(&path, b"tw").unwrap();
        append_line(&path, "three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntw\nthree\n");
    }

    #[test]
    fn only_drafts_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            [".a.json.77.0.plimsoll-draft", ".a.json.78.0.plimsoll-draft", "a.77.0", ".x.plimsoll-draft"];
        for name in files {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        remove_leftover_temporary_files_in(folder.path(), |pid| pid != 78);
        assert_eq!(list_names(folder.path()), [".a.json.78.0.plimsoll-draft", ".x.plimsoll-draft", "a.77.0"]);
    }

    #[test]
    fn only_dead_plain_drafts_of_the_file_itself_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: it exceeds every system's maximum.
        let dead = u32::MAX;
        let path_of = |name: String| folder.path().join(name);
        let dead_draft = path_of(format!(".settings.json.{dead}.0a.plimsoll-draft"));
        let kept_files = [
            path_of(format!(".settings.json.{}.0a.plimsoll-draft", std::process::id())),
            path_of(format!(".other.json.{dead}.0a.plimsoll-draft")),
            path_of(format!("settings.json.{dead}.0a.plimsoll-draft")),
            path_of(format!(".my.settings.json.{dead}.0a.plimsoll-draft")),
            path_of(".settings.json.plimsoll-draft".to_owned()),
            path_of("settings.json".to_owned()),
        ];
        kept_files.iter().chain([&dead_draft]).for_each(|path| fs::write(path, "x").unwrap());
        let link = path_of(format!(".settings.json.{dead}.0b.plimsoll-draft"));
        symlink("settings.json", &link).unwrap();
        fs::create_dir(path_of(format!(".settings.json.{dead}.0c.plimsoll-draft"))).unwrap();
        remove_leftover_temporary_files_of(&path_of("settings.json".to_owned()));
        assert!(!dead_draft.exists() && kept_files.iter().all(|path| path.exists()) && is_link(&link));
        assert_eq!(list_names(folder.path()).len(), kept_files.len() + 2);
        // The drafts are also removed if the file itself is behind a link.
        fs::write(&dead_draft, "x").unwrap();
        let other_folder = tempfile::tempdir().unwrap();
        let linked = other_folder.path().join("linked.json");
        symlink(folder.path().join("settings.json"), &linked).unwrap();
        remove_leftover_temporary_files_of(&linked);
        assert!(!dead_draft.exists());
    }

    #[test]
    fn a_growing_file_stays_readable_after_its_name_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream");
        let mut writer = open_for_append(&path).unwrap();
        let mut reader = GrowingReader::open(&path).unwrap();
        writer.write_all(b"one").unwrap();
        assert_eq!(reader.read_appended_bytes().unwrap(), b"one");
        fs::remove_file(&path).unwrap();
        writer.write_all(b"two").unwrap();
        assert_eq!(reader.read_appended_bytes().unwrap(), b"two");
        let expected = crate::clock::from_unix_seconds(1_767_733_200).unwrap();
        writer.set_modified(expected.into()).unwrap();
        assert_eq!(reader.modified_at(), Some(expected));
    }

    #[test]
    fn a_failed_replace_leaves_the_old_file_and_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = replace(&path, b"x", Durability::Lazy).unwrap_err().to_string();
        assert!(error.contains("taken"), "{error}");
        assert_eq!(list_names(folder.path()), ["taken"]);
    }
}
