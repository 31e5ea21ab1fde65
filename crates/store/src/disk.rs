//! Reading, replacing and appending.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the one door to the disk")]

use crate::{StoreError, io};
use chrono::{DateTime, Utc};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How much a loss would hurt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut may bring the old file back.
    Lazy,
    /// On the disk before we go on: checkpoints and verdicts.
    Durable,
}

/// A whole file; none if it is missing.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(io("read", path)(error)),
    }
}

/// A whole text file; none if it is missing. Bytes that are not UTF-8 are replaced.
pub fn read_text(path: &Path) -> Result<Option<String>, StoreError> {
    Ok(read(path)?.map(|bytes| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }))
}

/// How the name of a file ends that is not in its place yet; a kill may leave one behind.
pub const DRAFT: &str = ".plimsoll-draft";

/// Removes the drafts that killed programs left in a folder.
pub fn sweep_drafts(folder: &Path, is_alive: impl Fn(u32) -> bool) {
    let writer = |name: &str| name.strip_suffix(DRAFT)?.rsplit('.').nth(1)?.parse().ok();
    for name in names(folder) {
        if writer(&name).is_some_and(|pid| !is_alive(pid)) {
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// Puts a file in place in one step: readers see the old bytes or the new ones. Follows a link to its
/// target, keeps the mode of a file that was there, makes the folders it needs.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    let target = resolve_link(path);
    let folder = target.parent().unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".{name}.{}.{number}{DRAFT}", std::process::id()));
    let mode = fs::metadata(&target).map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
    let written = write_draft(&draft, bytes, mode, durability).and_then(|()| fs::rename(&draft, &target));
    if let Err(error) = written {
        let _ = fs::remove_file(&draft);
        return Err(io("write", &target)(error));
    }
    if durability == Durability::Durable {
        sync_folder(folder);
    }
    Ok(())
}

fn write_draft(draft: &Path, bytes: &[u8], mode: u32, durability: Durability) -> std::io::Result<()> {
    let open = || OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(draft);
    let mut file = match open() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_folder(draft.parent().unwrap_or(Path::new(".")))?;
            open()?
        }
        opened => opened?,
    };
    file.write_all(bytes)?;
    if durability == Durability::Durable {
        file.sync_data()?;
    }
    Ok(())
}

/// A rename is lasting only once its folder is. Some file systems refuse to sync a folder: no harm then.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a folder and those above it, for the owner alone.
pub fn create_folder(folder: &Path) -> Result<(), StoreError> {
    make_folder(folder).map_err(io("make the folder", folder))
}

/// Writes a new file in one step, whole or not at all; false if the name is taken.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    create_folder(path.parent().unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}.0{DRAFT}", std::process::id()));
    let written = write_draft(&draft, bytes, 0o600, Durability::Durable);
    let linked = written.as_ref().ok().map(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    written.map_err(io("write", path))?;
    match linked.unwrap_or(Ok(())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // Some file systems know no second name for a file.
        Err(_) => create_in_place(path, bytes),
    }
}

fn create_in_place(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let written = file.write_all(bytes).and_then(|()| file.sync_data());
            // Whole or not at all.
            let _ = written.as_ref().inspect_err(|_| drop(fs::remove_file(path)));
            written.map(|()| true).map_err(io("write", path))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(io("write", path)(error)),
    }
}

/// Adds whole bytes to the end of a file in one write, so that lines of several writers never mix.
pub fn append(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut file = open_to_append(path)?;
    file.write_all(bytes).map_err(io("append to", path))
}

/// Adds a line. A disk that was full may have taken half of the line before it: that one is ended first.
pub fn append_line(path: &Path, line: &str) -> Result<(), StoreError> {
    let start = if ends_in_a_line(path) { "" } else { "\n" };
    append(path, format!("{start}{line}\n").as_bytes())
}

fn ends_in_a_line(path: &Path) -> bool {
    use std::io::{Read, Seek, SeekFrom};
    let last = || {
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::End(-1)).ok()?;
        let mut last = [0];
        file.read_exact(&mut last).ok()?;
        Some(last[0])
    };
    last().is_none_or(|byte| byte == b'\n')
}

/// A file that can only be added to.
pub fn open_to_append(path: &Path) -> Result<File, StoreError> {
    let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    match open() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_folder(path.parent().unwrap_or(Path::new(".")))?;
            open().map_err(io("open", path))
        }
        opened => opened.map_err(io("open", path)),
    }
}

/// A file from its start.
pub fn open(path: &Path) -> Result<File, StoreError> {
    File::open(path).map_err(io("open", path))
}

/// A file that is read as it grows; what was opened is read on even if its name is taken away.
#[derive(Debug)]
pub struct Growing(File);

impl Growing {
    /// Opens a file; none if it cannot be.
    pub fn open(path: &Path) -> Option<Growing> {
        File::open(path).ok().map(Growing)
    }

    /// When anything was added last.
    pub fn grew_at(&self) -> Option<DateTime<Utc>> {
        self.0.metadata().and_then(|found| found.modified()).ok().map(DateTime::from)
    }

    /// What has been added since the last time.
    pub fn read_on(&mut self) -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Cuts a file to a length.
pub fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    let file = OpenOptions::new().write(true).open(path).map_err(io("open", path))?;
    file.set_len(length).and_then(|()| file.sync_data()).map_err(io("cut", path))
}

/// Removes a file; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes a folder that is empty; anything else stays.
pub fn remove_empty_folder(path: &Path) {
    let _ = fs::remove_dir(path);
}

/// Moves a file.
pub fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(io("move", from))
}

/// True when something lies at the path.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// True when a folder lies at the path.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// True when there is a file of bytes, also behind a link: no folder, pipe or device.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// True when a link lies at the path, wherever it leads.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink())
}

/// The size of a plain file.
pub fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
}

/// When a file was written last.
pub fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// How long ago a file was written last; none where that cannot be told.
pub fn age(path: &Path) -> Option<std::time::Duration> {
    modified(path)?.elapsed().ok()
}

/// The names in a folder, sorted; none if there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Files below a folder that were written since a moment, newest last; caches and version control apart.
pub fn changed_since(folder: &Path, since: std::time::SystemTime, most: usize) -> Vec<PathBuf> {
    const PASSED_OVER: [&str; 6] = [".git", ".claude", "node_modules", "target", ".venv", "__pycache__"];
    /// A checkpoint must not walk a whole disk.
    const MOST_ENTRIES: usize = 50_000;
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut entries_seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            entries_seen += 1;
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

/// The files below a folder with their sizes, one a line, sorted; empty where there is none.
pub fn listing(folder: &Path) -> String {
    let mut lines: Vec<String> = changed_since(folder, std::time::SystemTime::UNIX_EPOCH, 1_000)
        .iter()
        .map(|path| format!("{} {}\n", path.display(), size(path).unwrap_or(0)))
        .collect();
    lines.sort();
    lines.concat()
}

/// Where a link leads; the path itself if it is none.
pub fn resolve_link(path: &Path) -> PathBuf {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_symlink() => {
            fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
        }
        _ => path.to_owned(),
    }
}

/// The path with every link resolved; the path itself if it leads nowhere.
pub fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// All of standard input, up to a limit.
pub fn read_stdin(limit: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::with_capacity(16 * 1024);
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        sweep_drafts(folder.path(), |pid| pid == 78);
        assert_eq!(names(folder.path()), [".a.json.78.0.plimsoll-draft", ".x.plimsoll-draft", "a.77.0"]);
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
