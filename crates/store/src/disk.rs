//! Reading, replacing and appending. What is in a project is reached by [`crate::door`] alone.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the one door to the disk")]

use crate::door::{self, Last, Opened, Spot};
use crate::limited::{self, LimitedFile};
pub use crate::plain::{DRAFT, Durability, canonical, link_target, resolve_link};
use crate::{StoreError, environment, hidden, io};
use chrono::{DateTime, Utc};
use plimsoll_system::files::{sync_all, sync_data};
use rustix::buffer::spare_capacity;
use rustix::fs::{Dir, DirEntry, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A whole file; none if it is missing. One that is no plain file, leads out of its project, or is larger than any
/// honest one of its kind is an error by name.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(opened) = open_if_there(path)? else { return Ok(None) };
    let most = door::largest(path, opened.is_below_a_root);
    match door::read_all(opened, most).map_err(io("read", path))? {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(StoreError::TooLarge { path: path.to_owned(), most }),
    }
}

fn open_if_there(path: &Path) -> Result<Option<Opened>, StoreError> {
    match door::open(path, OFlags::RDONLY) {
        Ok(opened) => Ok(Some(opened)),
        Err(refused) if refused.is_missing() => Ok(None),
        Err(refused) => Err(refused.of("read", path)),
    }
}

/// A whole text file; none if it is missing. Bytes that are not UTF-8 are replaced.
pub fn read_text(path: &Path) -> Result<Option<String>, StoreError> {
    Ok(read(path)?.map(|bytes| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }))
}

/// Removes the drafts that killed programs left in a folder.
pub fn sweep_drafts(folder: &Path, is_gone: impl Fn(u32) -> bool) {
    sweep_drafts_if(folder, |_, writer| is_gone(writer));
}

/// Removes the drafts of one file that killed programs left beside it. For folders of the user and of the client, in which only
/// what belongs to a file that we write is ours.
pub fn sweep_drafts_of(path: &Path) {
    // A file behind a link is replaced where it is.
    let path = resolve_link(path);
    let Some(file) = path.file_name().and_then(std::ffi::OsStr::to_str) else { return };
    sweep_drafts_if(parent(&path), |name, writer| name == file && plimsoll_system::life_of(writer).is_gone());
}

fn sweep_drafts_if(folder: &Path, is_due: impl Fn(&str, u32) -> bool) {
    for name in names(folder) {
        let path = folder.join(&name);
        // A draft is a plain file of its own, and one of a living writer is still on its way.
        let is_ours = file_and_writer(&name).is_some_and(|(file, writer)| is_due(file, writer));
        if is_ours && !is_link(&path) && is_file(&path) {
            let _ = remove(&path);
        }
    }
}

/// The file that a draft is of, and the process that wrote it, as `Spot::draft_name` has them.
fn file_and_writer(draft: &str) -> Option<(&str, u32)> {
    let mut parts = draft.strip_prefix('.')?.strip_suffix(DRAFT)?.rsplitn(3, '.');
    let (_number, writer, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some((file, writer.parse().ok()?))
}

/// A name for a draft of a file, beside it.
pub(crate) fn draft_beside(path: &Path) -> PathBuf {
    let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number:016x}{DRAFT}", std::process::id()))
}

/// Puts a file in place in one step: readers see the old bytes or the new ones. Follows a link to its
/// target where that lies inside the project, keeps the mode of a file that was there, makes the folders it needs.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    let replaced = Spot::of(path, Last::Followed, true).and_then(|spot| {
        // Only a new file can be the first one in a folder of ours, which must be hidden before it holds anything.
        if spot.is_free() {
            hidden::before_new(parent(path))?;
        }
        spot.replace(bytes, durability)
    });
    replaced.map_err(|refused| refused.of("write", path))
}

/// Makes a folder and those above it, for the owner alone.
pub fn create_folder(folder: &Path) -> Result<(), StoreError> {
    hidden::before_new(folder).map_err(|refused| refused.of("make the folder", folder))?;
    door::make_folder(folder).map_err(|refused| refused.of("make the folder", folder))
}

/// Writes a new file in one step, whole or not at all; false if the name is taken.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let created = hidden::before_new(parent(path))
        .and_then(|()| Spot::of(path, Last::Itself, true))
        .and_then(|spot| spot.create(bytes));
    created.map_err(|refused| refused.of("write", path))
}

/// Writes a new file where it will stay: half the work of a draft, for files whose bytes are checked when they are read, since a
/// kill leaves a part of one. False if the name is taken.
pub(crate) fn create_in_place(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    match open_or_make(path, OFlags::WRONLY | OFlags::EXCL) {
        Ok(Opened { file, .. }) => {
            let written = limited::write_all(&file, bytes).map_err(io("write", path));
            // On a full disk nobody wants the part.
            written.inspect_err(|_| drop(remove(path))).map(|()| true)
        }
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Adds whole bytes to the end of a file in one write, so that lines of several writers never mix.
pub fn append(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = open_to_append(path)?;
    limited::write_all(&file, bytes).map_err(io("append to", path))
}

/// Adds a line. A disk that was full may have taken half of the previous line: that one is ended first.
pub fn append_line(path: &Path, line: &str) -> Result<(), StoreError> {
    let opened = open_or_make(path, OFlags::RDWR | OFlags::APPEND)?;
    let start = if ends_in_a_line(&opened) { "" } else { "\n" };
    limited::write_all(&opened.file, format!("{start}{line}\n").as_bytes()).map_err(io("append to", path))
}

fn ends_in_a_line(opened: &Opened) -> bool {
    let mut last = [0];
    opened.size() == 0 || opened.file.read_exact_at(&mut last, opened.size() - 1).is_err() || last == *b"\n"
}

/// A file that can only be added to.
pub fn open_to_append(path: &Path) -> Result<File, StoreError> {
    open_or_make(path, OFlags::WRONLY | OFlags::APPEND).map(|opened| opened.file)
}

/// A plain file, made with the folders it needs where it is missing.
pub(crate) fn open_or_make(path: &Path, how: OFlags) -> Result<Opened, StoreError> {
    let open = || door::open(path, how | OFlags::CREATE);
    match open() {
        Err(refused) if refused.is_folder_missing() => {
            create_folder(parent(path))?;
            open().map_err(|refused| refused.of("open", path))
        }
        opened => opened.map_err(|refused| refused.of("open", path)),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// The last bytes of a file, from the start of a line on; none if it is missing.
pub fn read_end(path: &Path, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
    use std::io::{Read, Seek, SeekFrom};
    let Some((mut file, size)) = open_sized(path)? else { return Ok(None) };
    let start = size.saturating_sub(most);
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.take(most).read_to_end(&mut bytes));
    read.map_err(io("read", path))?;
    if start > 0 {
        let first_break = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |place| place + 1);
        bytes.drain(..first_break);
    }
    Ok(Some(bytes))
}

/// What a log has from a place on, at most so many bytes of it, and where the next look begins. One that is shorter now was
/// replaced: what it had is known, and the next look begins at its end.
pub fn read_from(path: &Path, from: u64, most: usize) -> Result<(Vec<u8>, u64), StoreError> {
    let Some((file, size)) = open_sized(path)? else { return Ok((Vec::new(), 0)) };
    if size <= from {
        return Ok((Vec::new(), size));
    }
    let mut bytes = vec![0; usize::try_from(size - from).unwrap_or(most).min(most)];
    let count = file.read_at(&mut bytes, from).map_err(io("read", path))?;
    bytes.truncate(count);
    Ok((bytes, from + count as u64))
}

/// The length of an older copy of a file, if the file begins with all of it; what is missing is empty. Compared a piece
/// at a time: logs grow.
pub fn goes_on_from(path: &Path, copy: &Path) -> Result<Option<u64>, StoreError> {
    let Some((old, length)) = open_sized(copy)? else { return Ok(Some(0)) };
    let Some((now, size)) = open_sized(path)? else { return Ok((length == 0).then_some(0)) };
    if size < length {
        return Ok(None);
    }
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = 0;
    while at < length {
        let step = usize::try_from(length - at).map_or(PIECE, |rest| rest.min(PIECE));
        let (ours, theirs) = (&mut ours[..step], &mut theirs[..step]);
        old.read_exact_at(theirs, at).map_err(io("read", copy))?;
        now.read_exact_at(ours, at).map_err(io("read", path))?;
        if ours != theirs {
            return Ok(None);
        }
        at += step as u64;
    }
    Ok(Some(length))
}

/// Adds to a copy what its file has beyond a length, a piece at a time.
pub fn append_rest(path: &Path, from: u64, copy: &Path) -> Result<(), StoreError> {
    let Some((file, size)) = open_sized(path)? else { return Ok(()) };
    if size <= from {
        return Ok(());
    }
    let out = open_to_append(copy)?;
    let (mut piece, mut at) = (vec![0; PIECE], from);
    while at < size {
        let step = usize::try_from(size - at).map_or(PIECE, |rest| rest.min(PIECE));
        file.read_exact_at(&mut piece[..step], at).map_err(io("read", path))?;
        limited::write_all(&out, &piece[..step]).map_err(io("append to", copy))?;
        at += step as u64;
    }
    Ok(())
}

const PIECE: usize = 64 * 1024;

/// Copies a program in one step: who starts it meanwhile gets the old one or the new one, and one that runs keeps its file. One
/// that has the same bytes stays.
pub fn copy_program(from: &Path, to: &Path) -> Result<(), StoreError> {
    if size(from) == size(to) && goes_on_from(from, to)?.is_some() {
        return Ok(());
    }
    sweep_drafts_of(to);
    let draft = draft_beside(to);
    let copied = copy_into(from, &draft).and_then(|()| rename(&draft, to));
    copied.inspect_err(|_| drop(remove(&draft)))
}

fn copy_into(from: &Path, draft: &Path) -> Result<(), StoreError> {
    let mut source = open(from)?;
    let mut made = LimitedFile(open_or_make(draft, OFlags::WRONLY | OFlags::EXCL)?.file);
    std::io::copy(&mut source, &mut made).map_err(io("write", draft))?;
    let LimitedFile(made) = made;
    rustix::fs::fchmod(&made, Mode::from_raw_mode(0o755))
        .map_err(|error| io("write", draft)(error.into()))?;
    sync_all(made.as_fd()).map_err(|error| io("write", draft)(error.into()))
}

/// A file from its start.
pub fn open(path: &Path) -> Result<File, StoreError> {
    door::open(path, OFlags::RDONLY).map(|opened| opened.file).map_err(|refused| refused.of("open", path))
}

/// A file from its start, with its size; none if it is missing.
pub(crate) fn open_sized(path: &Path) -> Result<Option<(File, u64)>, StoreError> {
    let sized = |opened: Opened| {
        let size = opened.size();
        (opened.file, size)
    };
    Ok(open_if_there(path)?.map(sized))
}

/// A plain file that is no link, from its start: for those who have found it by looking through folders.
pub fn open_itself(path: &Path) -> std::io::Result<File> {
    let opened = door::open(path, OFlags::RDONLY | OFlags::NOFOLLOW);
    opened.map(|opened| opened.file).map_err(|refused| match refused.of("open", path) {
        StoreError::Io { source, .. } => source,
        other => std::io::Error::other(other.to_string()),
    })
}

/// Reads so many bytes of a file from a place on, into memory that need not be cleared first; fewer at its end.
pub(crate) fn read_part(file: &File, from: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = from + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// A file that is read as it grows; what was opened is read on even if its name is taken away.
#[derive(Debug)]
pub struct Growing(File);

impl Growing {
    /// Opens a file; none if it cannot be.
    pub fn open(path: &Path) -> Option<Growing> {
        open(path).ok().map(Growing)
    }

    /// When anything was added last.
    pub fn grew_at(&self) -> Option<DateTime<Utc>> {
        self.0.metadata().and_then(|found| found.modified()).ok().map(DateTime::from)
    }

    /// What has been added since the last time. Nobody says more than a piece of it between two looks.
    pub fn read_on(&mut self) -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        const MOST: u64 = 64 * 1024 * 1024;
        let mut bytes = Vec::new();
        (&mut self.0).take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A file without a name, for what is too large for memory: it is gone when it is closed.
pub(crate) fn scratch() -> Result<File, StoreError> {
    let folder = environment::variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let path = folder.join(format!(".plimsoll-{}-{number:016x}", std::process::id()));
    // New, so through no link, and nobody else's.
    let opened = open_or_make(&path, OFlags::RDWR | OFlags::EXCL)?;
    remove(&path)?;
    Ok(opened.file)
}

/// Cuts a file to a length.
pub fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    let opened = door::open(path, OFlags::WRONLY).map_err(|refused| refused.of("open", path))?;
    opened.file.set_len(length).and_then(|()| Ok(sync_data(opened.file.as_fd())?)).map_err(io("cut", path))
}

/// Removes a file, or a link; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match Spot::of(path, Last::Itself, false).and_then(|spot| spot.remove()) {
        Err(refused) if !refused.is_folder_missing() => Err(refused.of("remove", path)),
        _ => Ok(()),
    }
}

/// Removes a file: true if it was there, and this process removed it. Of several at once one does.
pub fn take(path: &Path) -> bool {
    Spot::of(path, Last::Itself, false).and_then(|spot| spot.remove()).is_ok()
}

/// Removes a folder that is empty; anything else stays.
pub fn remove_empty_folder(path: &Path) {
    let _ = Spot::of(path, Last::Itself, false).and_then(|spot| spot.remove_folder());
}

/// Removes a folder of ours outside of every project, with everything in it; a link itself. Nothing is there afterwards, or was
/// before.
pub fn remove_folder(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(|source| StoreError::Io { doing: "remove", path: path.to_owned(), source })
        }
    }
}

/// Moves what is at a path, a link itself.
pub fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    let spot = |path| Spot::of(path, Last::Itself, false);
    let moved = spot(from).and_then(|from| from.rename(&spot(to)?));
    moved.map_err(|refused| refused.of("move", from))
}

/// Makes a link with this text; where something is already, that stays.
pub fn link(text: &str, path: &Path) -> Result<(), StoreError> {
    let linked = Spot::of(path, Last::Itself, false).and_then(|spot| spot.link(text));
    linked.map_err(|refused| refused.of("make the link", path))
}

/// Makes a link, or replaces what is at the path in one step. The caller has seen that nothing of the user's is there.
pub fn replace_link(target: &Path, path: &Path) -> Result<(), StoreError> {
    let linked = Spot::of(path, Last::Itself, true).and_then(|spot| spot.replace_link(target));
    linked.map_err(|refused| refused.of("make the link", path))
}

/// Puts the names in a folder on the disk, where its file system can.
pub fn sync_folder(folder: &Path) {
    if let Ok(folder) = door::folder(folder) {
        let _ = sync_all(folder.as_fd());
    }
}

/// Puts all that was written to the volume of a folder on the disk: many files cost one wait.
pub fn sync_volume(folder: &Path) -> Result<(), StoreError> {
    let opened = door::folder(folder).map_err(|refused| refused.of("sync", folder))?;
    plimsoll_system::files::sync_volume(opened.as_fd()).map_err(|error| io("sync", folder)(error.into()))
}

/// True when something is at the path; in a project, something in it.
pub fn exists(path: &Path) -> bool {
    door::is_there(path)
}

/// To be said after a folder was removed or made anew by another program: what we hold open of it is gone.
pub fn look_anew(folder: &Path) {
    door::look_anew(folder);
}

/// True when a folder is at the path.
pub fn is_folder(path: &Path) -> bool {
    door::reach(path).is_some_and(|stat| kind(&stat).is_dir())
}

/// True when there is a file of bytes, also behind a link: no folder, pipe or device.
pub fn is_file(path: &Path) -> bool {
    door::reach(path).is_some_and(|stat| kind(&stat).is_file())
}

/// True when others than its owner may do anything with what is at the path: no place for a secret.
pub fn is_open_to_others(path: &Path) -> bool {
    door::reach(path).is_some_and(|stat| plimsoll_system::files::mode_bits(stat.st_mode) & 0o077 != 0)
}

/// True when a link is at the path, wherever it leads.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink())
}

/// True when a folder is at the path itself, behind no link.
pub fn is_folder_itself(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The size of a plain file.
pub fn size(path: &Path) -> Option<u64> {
    let stat = door::stat(path).filter(|stat| kind(stat).is_file())?;
    u64::try_from(stat.st_size).ok()
}

/// What the file system knows the present content of a file by: whoever writes it or puts another in its place changes this.
pub fn version(path: &Path) -> Option<String> {
    let stat = door::reach(path).filter(|stat| kind(stat).is_file())?;
    let Stat { st_ino, st_size, st_mtime, st_mtime_nsec, st_ctime, st_ctime_nsec, .. } = stat;
    Some(format!("{st_ino} {st_size} {st_mtime}.{st_mtime_nsec} {st_ctime}.{st_ctime_nsec}"))
}

/// What the file system knows the names in a folder by: whoever adds or takes one changes this.
pub(crate) fn folder_version(path: &Path) -> Option<String> {
    let Stat { st_mtime, st_mtime_nsec, .. } = door::stat(path).filter(|stat| kind(stat).is_dir())?;
    Some(format!("{st_mtime}.{st_mtime_nsec:09}"))
}

/// When a file was written last.
pub fn modified(path: &Path) -> Option<SystemTime> {
    let stat = door::stat(path)?;
    moment(stat.st_mtime, stat.st_mtime_nsec)
}

fn moment(seconds: impl TryInto<u64>, fine: impl TryInto<u32>) -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::new(seconds.try_into().ok()?, fine.try_into().ok()?))
}

/// How long ago a file was written last; none if unknown.
pub fn age(path: &Path) -> Option<Duration> {
    modified(path)?.elapsed().ok()
}

/// The names in a folder, sorted; none if there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    let names = entries(folder).map(name).filter(|name| name != "." && name != "..");
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Which of these names are in a folder.
pub fn present<'n>(folder: &Path, names: &[&'n str]) -> Vec<&'n str> {
    let asked =
        |entry: DirEntry| names.iter().copied().find(|name| entry.file_name().to_bytes() == name.as_bytes());
    entries(folder).filter_map(asked).collect()
}

/// What is in a folder, also `.` and `..`; nothing if it cannot be listed.
fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let folder = door::folder(folder).and_then(|folder| Ok(Dir::new(folder)?));
    folder.into_iter().flatten().flatten()
}

/// When a file was changed or renamed last. Nothing but a change sets this time, unlike the modification time.
pub fn touched(path: &Path) -> Option<SystemTime> {
    let metadata = path.symlink_metadata().ok()?;
    moment(metadata.ctime(), metadata.ctime_nsec())
}

/// Folders with nothing of a session's work in them: caches and version control.
pub const PASSED_OVER: [&str; 6] = [".git", ".claude", "node_modules", "target", ".venv", "__pycache__"];

/// Files below a folder that were written since a moment, newest last; caches and version control apart.
pub fn changed_since(folder: &Path, since: SystemTime, most: usize) -> Vec<PathBuf> {
    /// A checkpoint must not walk a whole disk.
    const MOST_ENTRIES: usize = 50_000;
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut entries_seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            entries_seen += 1;
            // Links are not followed: one may lead out of the project, or in a circle.
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            let name = entry.file_name();
            if metadata.is_dir() && !PASSED_OVER.iter().any(|passed| name == *passed) {
                folders.push(entry.path());
            } else if metadata.is_file() && metadata.modified().is_ok_and(|modified| modified >= since) {
                found.push((metadata.modified().ok(), entry.path()));
            }
        }
        if entries_seen > MOST_ENTRIES {
            break;
        }
    }
    found.sort();
    let skipped = found.len().saturating_sub(most);
    found.into_iter().skip(skipped).map(|(_, path)| path).collect()
}

/// Writes to standard output at once: who writes once needs no buffer, which is made and emptied again.
pub fn write_stdout(mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// All of standard input, up to a limit.
pub fn read_stdin(limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 * 1024);
    // Not by the standard library's buffer: what is read here once would be copied from there.
    while (bytes.len() as u64) < limit {
        bytes.reserve(1);
        match rustix::io::read(rustix::stdio::stdin(), spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn replacing_keeps_mode_and_link_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("deep/target.json");
        replace(&target, b"one", Durability::Durable).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace(&link, b"two", Durability::Lazy).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(names(&folder.path().join("deep")), ["target.json"]);
    }

    #[test]
    fn a_link_is_replaced_in_one_step_and_what_it_led_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("new folder/link");
        for target in ["one", "two"] {
            fs::create_dir_all(folder.path().join("new folder").join(target)).unwrap();
            replace_link(Path::new(target), &link).unwrap();
            assert_eq!(link_target(&link).as_deref(), Some(Path::new(target)));
        }
        assert_eq!(names(&folder.path().join("new folder")), ["link", "one", "two"]);
        assert_eq!(link_target(&folder.path().join("new folder/one")), None);
    }

    #[test]
    fn new_files_are_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.json");
        replace(&path, b"x", Durability::Lazy).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_new_file_takes_no_name_that_is_taken_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.md");
        assert!(create_new(&path, b"one").unwrap());
        assert!(!create_new(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(&folder.path().join("new")), ["a.md"]);
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        append_line(&path, "one").unwrap();
        append(&path, b"tw").unwrap();
        append_line(&path, "three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntw\nthree\n");
    }

    #[test]
    fn drafts_of_the_dead_are_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            [".a.json.77.0.plimsoll-draft", ".a.json.78.0.plimsoll-draft", "a.77.0", ".x.plimsoll-draft"];
        for name in files {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        sweep_drafts(folder.path(), |pid| pid != 78);
        assert_eq!(names(folder.path()), [".a.json.78.0.plimsoll-draft", ".x.plimsoll-draft", "a.77.0"]);
    }

    #[test]
    fn only_dead_plain_drafts_of_the_file_itself_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: it is beyond what a system gives.
        let dead = u32::MAX;
        let at = |name: String| folder.path().join(name);
        let due = at(format!(".settings.json.{dead}.0a.plimsoll-draft"));
        let kept = [
            at(format!(".settings.json.{}.0a.plimsoll-draft", std::process::id())),
            at(format!(".other.json.{dead}.0a.plimsoll-draft")),
            at(format!("settings.json.{dead}.0a.plimsoll-draft")),
            at(format!(".my.settings.json.{dead}.0a.plimsoll-draft")),
            at(".settings.json.plimsoll-draft".to_owned()),
            at("settings.json".to_owned()),
        ];
        kept.iter().chain([&due]).for_each(|path| fs::write(path, "x").unwrap());
        let link = at(format!(".settings.json.{dead}.0b.plimsoll-draft"));
        std::os::unix::fs::symlink("settings.json", &link).unwrap();
        fs::create_dir(at(format!(".settings.json.{dead}.0c.plimsoll-draft"))).unwrap();
        sweep_drafts_of(&at("settings.json".to_owned()));
        assert!(!due.exists() && kept.iter().all(|path| path.exists()) && is_link(&link));
        assert_eq!(names(folder.path()).len(), kept.len() + 2);
        // Also where the file itself is behind a link.
        fs::write(&due, "x").unwrap();
        let other = tempfile::tempdir().unwrap();
        let linked = other.path().join("linked.json");
        std::os::unix::fs::symlink(folder.path().join("settings.json"), &linked).unwrap();
        sweep_drafts_of(&linked);
        assert!(!due.exists());
    }

    #[test]
    fn a_growing_file_is_read_on_after_its_name_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream");
        let mut writer = open_to_append(&path).unwrap();
        let mut reader = Growing::open(&path).unwrap();
        writer.write_all(b"one").unwrap();
        assert_eq!(reader.read_on().unwrap(), b"one");
        fs::remove_file(&path).unwrap();
        writer.write_all(b"two").unwrap();
        assert_eq!(reader.read_on().unwrap(), b"two");
        let then = crate::clock::at(1_767_733_200).unwrap();
        writer.set_modified(then.into()).unwrap();
        assert_eq!(reader.grew_at(), Some(then));
    }

    #[test]
    fn a_failed_replace_leaves_the_old_file_and_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = replace(&path, b"x", Durability::Lazy).unwrap_err().to_string();
        assert!(error.contains("taken"), "{error}");
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
