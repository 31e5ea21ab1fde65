//! Reads and keeps what the protected paths of a run hold. Reading follows no link, not even one on the way to a path: a link in the
//! place of a file is another content than the file, wherever it leads.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use crate::{Durability, Project, StoreError, disk, ledger, sessions};
use plimsoll_domain::RunId;
use plimsoll_domain::digest::sha256;
use plimsoll_domain::protected::{
    MAX_BYTES, MAX_DEPTH, MAX_ENTRIES, MAX_PATH_BYTES, ProtectedContent, ProtectedEntry, ProtectedFiles,
};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FILE: &str = "protected.json";
const INDEX: &str = "protected.index";
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// Without `NONBLOCK` a pipe that takes the place of a file after the look would be waited for.
const PLAIN: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Writes what a run's protected paths hold beside its ledger, outside the project.
pub fn write_record(project: &Project, run_id: &RunId, files: &ProtectedFiles) -> Result<(), StoreError> {
    let no_home = || StoreError::NoHome { project: project.root().to_owned() };
    let folder = ledger::folder(project, run_id).ok_or_else(no_home)?;
    disk::replace(&folder.join(FILE), &serde_json::to_vec(files).unwrap_or_default(), Durability::Durable)
}

/// Reads what was kept for a run; none if it is missing or does not parse.
pub fn read_record(project: &Project, run_id: &RunId) -> Option<ProtectedFiles> {
    sessions::load_parsed(&ledger::folder(project, run_id)?.join(FILE))
}

/// Returns the path of an index of git's that is used once, outside the project. Those that killed programs left are removed.
pub fn index_draft(project: &Project) -> Result<PathBuf, StoreError> {
    let runs = project.runs().ok_or_else(|| StoreError::NoHome { project: project.root().to_owned() })?;
    let index = runs.with_file_name(INDEX);
    disk::create_folder(&runs)?;
    disk::sweep_drafts_of(&index);
    Ok(disk::draft_beside(&index))
}

/// Reads what is at and below these paths of a folder now, sorted by path, without git's own folders. A path at which nothing is
/// has no entry. What exceeds the limits is left out; then the last entry says so.
pub fn read_entries(root: &Path, paths: &[String]) -> Vec<ProtectedEntry> {
    let mut reader = Reader { entries: Vec::new(), seen: 0, bytes: 0, depth: 0, is_too_deep: false };
    match rustix::fs::openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(folder) => paths.iter().for_each(|path| reader.read_path(&folder, path)),
        Err(error) => reader.add_unreadable(String::new(), error),
    }
    reader.entries.sort_by(|one, other| one.path.cmp(&other.path));
    reader.entries.dedup();
    reader.entries
}

struct Reader {
    entries: Vec<ProtectedEntry>,
    /// Everything that was looked at, also folders.
    seen: usize,
    bytes: u64,
    /// How many folders are open below a protected path.
    depth: usize,
    is_too_deep: bool,
}

impl Reader {
    fn read_path(&mut self, root: &OwnedFd, path: &str) {
        let mut known = String::new();
        let mut parts = path.split('/').peekable();
        let mut above: Option<OwnedFd> = None;
        while let Some(part) = parts.next() {
            let folder = above.as_ref().unwrap_or(root).as_fd();
            let whole = if known.is_empty() { part.to_owned() } else { format!("{known}/{part}") };
            if parts.peek().is_none() {
                return self.read_entry(folder, OsStr::new(part), whole);
            }
            above = match rustix::fs::openat(folder, part, FOLDER, Mode::empty()) {
                Ok(below) => Some(below),
                // A link or a file in the place of a folder is recorded as what it is.
                Err(_) => return self.read_entry(folder, OsStr::new(part), whole),
            };
            known = whole;
        }
    }

    fn read_entry(&mut self, folder: BorrowedFd<'_>, name: &OsStr, path: String) {
        self.seen += 1;
        if self.seen > MAX_ENTRIES {
            // One entry says so; everything after it is left out.
            if self.seen == MAX_ENTRIES + 1 {
                self.add(
                    path,
                    unreadable(&format!("more than {MAX_ENTRIES} files and folders are protected")),
                );
            }
            return;
        }
        if name.to_str().is_none() {
            // Two such names can be one text.
            return self.add(path, unreadable("its name is not UTF-8"));
        }
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return,
            Err(error) => return self.add_unreadable(path, error),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.read_folder_within_limits(folder, name, path),
            FileType::Symlink => match rustix::fs::readlinkat(folder, name, Vec::new()) {
                Ok(target) => {
                    let target = target.to_bytes().escape_ascii().to_string();
                    self.add(path, ProtectedContent::Link { target });
                }
                Err(error) => self.add_unreadable(path, error),
            },
            FileType::RegularFile => match self.read_file(folder, name) {
                Ok(content) => self.add(path, content),
                Err(error) => self.add(path, unreadable(&error.to_string())),
            },
            // Not opened: a pipe would be waited for.
            _ => self.add(path, unreadable("it is a pipe, a socket or a device")),
        }
    }

    /// Each folder takes a frame of the stack and an open file, and its path is in the path of each file: sessions can nest without end.
    fn read_folder_within_limits(&mut self, above: BorrowedFd<'_>, name: &OsStr, path: String) {
        if self.depth < MAX_DEPTH && path.len() < MAX_PATH_BYTES {
            self.depth += 1;
            self.read_folder(above, name, &path);
            self.depth -= 1;
        } else if !self.is_too_deep {
            // One entry says so; it is enough to object.
            self.is_too_deep = true;
            let reason = format!(
                "it is more than {MAX_DEPTH} folders deep, or its path has over {MAX_PATH_BYTES} bytes"
            );
            self.add(path, unreadable(&reason));
        }
    }

    fn read_folder(&mut self, above: BorrowedFd<'_>, name: &OsStr, path: &str) {
        let folder = match rustix::fs::openat(above, name, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(error) => return self.add_unreadable(path.to_owned(), error),
        };
        let listed = Dir::read_from(&folder).and_then(|entries| {
            let name =
                |entry: rustix::fs::DirEntry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            // More than the limit is not even listed.
            let entries = entries.take(MAX_ENTRIES + 3);
            entries.map(|entry| entry.map(name)).collect::<Result<Vec<OsString>, Errno>>()
        });
        let mut names = match listed {
            Ok(names) => names,
            Err(error) => return self.add_unreadable(path.to_owned(), error),
        };
        names.sort();
        for name in names.iter().filter(|name| !matches!(name.as_bytes(), b"." | b".." | b".git")) {
            self.read_entry(folder.as_fd(), name, format!("{path}/{}", name.to_string_lossy()));
        }
    }

    fn read_file(&mut self, folder: BorrowedFd<'_>, name: &OsStr) -> std::io::Result<ProtectedContent> {
        let file = File::from(rustix::fs::openat(folder, name, PLAIN, Mode::empty())?);
        let stat = rustix::fs::fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(unreadable("it is a pipe, a socket or a device"));
        }
        let left = MAX_BYTES.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        // One byte more, to know whether there is more.
        file.take(left + 1).read_to_end(&mut bytes)?;
        self.bytes += bytes.len() as u64;
        if bytes.len() as u64 > left {
            let most = MAX_BYTES >> 20;
            return Ok(unreadable(&format!("the protected files are larger than {most} MiB together")));
        }
        let is_executable = Mode::from_raw_mode(stat.st_mode).contains(Mode::XUSR);
        Ok(ProtectedContent::File { sha256: sha256(&[&bytes]), is_executable })
    }

    fn add(&mut self, path: String, content: ProtectedContent) {
        self.entries.push(ProtectedEntry { path, content });
    }

    fn add_unreadable(&mut self, path: String, error: Errno) {
        self.add(path, unreadable(&error.to_string()));
    }
}

fn unreadable(reason: &str) -> ProtectedContent {
    ProtectedContent::Unreadable { reason: reason.to_owned() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the files")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn paths(entries: &[ProtectedEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    fn content(entries: &[ProtectedEntry], path: &str) -> ProtectedContent {
        entries.iter().find(|entry| entry.path == path).expect(path).content.clone()
    }

    #[test]
    fn files_and_links_below_a_folder_are_read_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("tests/deep/.git")).unwrap();
        fs::create_dir(root.join("tests/empty")).unwrap();
        fs::write(root.join("tests/deep/.git/config"), "git's own").unwrap();
        fs::write(root.join("tests/deep/a.sh"), "one").unwrap();
        fs::write(root.join("outside"), "one").unwrap();
        symlink("../outside", root.join("tests/link")).unwrap();
        symlink("tests", root.join("linked")).unwrap();
        let read = |path: &str| read_entries(root, &[path.to_owned()]);
        let before = read("tests");
        assert_eq!(paths(&before), ["tests/deep/a.sh", "tests/link"]);
        assert_eq!(content(&before, "tests/link"), ProtectedContent::Link { target: "../outside".into() });
        // A path below a link is what is there: the link.
        assert_eq!(paths(&read("linked/deep/a.sh")), ["linked"]);
        assert_eq!(paths(&read("tests/none")), [""; 0]);

        fs::write(root.join("tests/deep/a.sh"), "two").unwrap();
        let changed = read("tests");
        assert_ne!(content(&changed, "tests/deep/a.sh"), content(&before, "tests/deep/a.sh"));
        fs::write(root.join("tests/deep/a.sh"), "one").unwrap();
        assert_eq!(read("tests"), before);
        fs::set_permissions(root.join("tests/deep/a.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(read("tests"), before, "run-parts leaves out what nobody may execute");
    }

    #[test]
    fn what_exceeds_the_limits_is_said_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("many")).unwrap();
        for number in 0..=MAX_ENTRIES {
            fs::write(root.join(format!("many/{number}")), "").unwrap();
        }
        let entries = read_entries(root, &["many".to_owned()]);
        assert_eq!(entries.len(), MAX_ENTRIES);
        let unreadable =
            |entry: &&ProtectedEntry| matches!(entry.content, ProtectedContent::Unreadable { .. });
        assert_eq!(entries.iter().filter(unreadable).count(), 1);

        let large = File::create(root.join("large")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        let entries = read_entries(root, &["large".to_owned()]);
        assert!(unreadable(&&entries[0]), "{entries:?}");
    }

    #[test]
    fn folders_without_end_are_one_unreadable_entry() {
        let folder = tempfile::tempdir().unwrap();
        let mut here = rustix::fs::open(folder.path(), FOLDER, Mode::empty()).unwrap();
        // As a session can with `cd`: no path of the innermost folder could be opened at once.
        for name in std::iter::once("tests").chain(std::iter::repeat_n("nested-nested-nested-nested", 3_000))
        {
            rustix::fs::mkdirat(&here, name, Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, name, FOLDER, Mode::empty()).unwrap();
        }
        let entries = read_entries(folder.path(), &["tests".to_owned()]);
        assert_eq!(entries.len(), 1, "{}", entries.len());
        assert!(matches!(entries[0].content, ProtectedContent::Unreadable { .. }), "{entries:?}");
        assert!(entries[0].path.len() < 2 * MAX_PATH_BYTES);

        // Few folders with long names, and what is beside them.
        let wide = folder.path().join("wide");
        let mut here = wide.clone();
        for _ in 0..30 {
            here.push("n".repeat(120));
        }
        fs::create_dir_all(&here).unwrap();
        fs::write(wide.join("a.sh"), "one").unwrap();
        assert_eq!(paths(&read_entries(folder.path(), &["wide".to_owned()])), ["wide/a.sh"]);
    }

    #[test]
    fn a_name_that_is_no_text_counts_as_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let name = OsStr::from_bytes(b"a\xff");
        // Some file systems take no such name.
        if fs::write(folder.path().join(name), "x").is_ok() {
            let parent = folder.path().parent().unwrap();
            let below = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
            let entries = read_entries(parent, &[below]);
            assert!(matches!(entries[0].content, ProtectedContent::Unreadable { .. }), "{entries:?}");
        }
    }
}
