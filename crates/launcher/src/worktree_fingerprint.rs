//! What the project stands on: HEAD, and one digest over the content of its working tree.
//!
//! The digest is over what a commit of everything would hold, so that neither staging nor committing changes it:
//! the blobs of HEAD, and over them the working tree wherever it differs. Nothing is written anywhere.

mod coarse;

use crate::changes::{self, Change, FolderInTree, quoted};
use crate::git;
use crate::git::question;
use crate::git_output::names;
use crate::time_limit::TimeLimit;
use plimsoll_domain::digest::hex;
use plimsoll_domain::git_names::CommitId;
use plimsoll_store::disk;
use plimsoll_store::disk::PASSED_OVER;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// A footing is taken between sessions, where nobody minds a moment, but nobody wants to wait for a minute.
const DEADLINE: Duration = Duration::from_secs(10);
/// In a project with more files than this we do not look into them.
const MOST_FILES: usize = 50_000;
/// A larger file counts by size and modification time: reading it would take too long.
const LARGEST_READ: u64 = 16 * 1024 * 1024;

/// What the project stands on; two that are equal: nothing has been changed in between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeFingerprint {
    /// The commit; none outside git and before the first.
    pub head: Option<String>,
    /// The working tree, apart from ours and from ignored files, as a digest: of its content, or of sizes and times
    /// where that would take too long; none if neither could be found out in time.
    pub tree: Option<String>,
}

/// What the project in this folder stands on. Only what is below the folder counts; `is_ours` is asked with
/// paths from the folder on.
///
/// A file over 16 MB that differs from HEAD counts by size and modification time, so committing it does change
/// the digest.
pub fn footing(folder: &Path, is_ours: &dyn Fn(&str) -> bool) -> WorktreeFingerprint {
    footing_within(folder, is_ours, MOST_FILES)
}

fn footing_within(folder: &Path, is_ours: &dyn Fn(&str) -> bool, most: usize) -> WorktreeFingerprint {
    let found = by_content(folder, is_ours, most);
    WorktreeFingerprint { tree: found.tree.or_else(|| coarse::tree(folder, is_ours)), ..found }
}

fn by_content(folder: &Path, is_ours: &dyn Fn(&str) -> bool, most: usize) -> WorktreeFingerprint {
    let limit = TimeLimit::within(DEADLINE);
    let mut content = Content { is_ours, limit, most, reads: true, files: BTreeMap::new() };
    match FolderInTree::of(folder, limit) {
        Ok(Some(place)) => {
            let head = git::head(folder);
            let is_known = content.add_repository(folder, &place, head.as_ref()).is_some();
            WorktreeFingerprint { head: head.map(String::from), tree: is_known.then(|| content.digest()) }
        }
        Ok(None) => WorktreeFingerprint {
            head: None,
            tree: content.add_folder(folder, b"").map(|()| content.digest()),
        },
        Err(_) => WorktreeFingerprint::default(),
    }
}

/// Each path with its kind and a name for its content. `None` as an answer: it could not be found out in time.
struct Content<'a> {
    is_ours: &'a dyn Fn(&str) -> bool,
    limit: TimeLimit,
    /// So many files at most.
    most: usize,
    /// False if files count by size and modification time alone.
    reads: bool,
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A file that git has yet to name by its content.
struct Unnamed {
    key: Vec<u8>,
    path_from_root: Vec<u8>,
    mode: String,
}

impl Content<'_> {
    fn add_repository(&mut self, folder: &Path, place: &FolderInTree, head: Option<&CommitId>) -> Option<()> {
        if let Some(head) = head {
            self.add_commit(folder, head)?;
        }
        self.add_changes(folder, place, head)?;
        self.name_filtered_by_disk(folder)?;
        if self.files.is_empty() && self.is_ignored(folder, place) {
            self.add_folder(folder, b"")
        } else {
            Some(())
        }
    }

    /// A project in an ignored folder of somebody's larger repository: git has nothing to say about it.
    fn is_ignored(&self, folder: &Path, place: &FolderInTree) -> bool {
        let question = ["check-ignore", "-q", "--", "."];
        !place.prefix.is_empty() && question::answer(folder, &question, None, self.limit).is_ok()
    }

    fn add_commit(&mut self, folder: &Path, head: &CommitId) -> Option<()> {
        let list =
            question::answer(folder, &["ls-tree", "-r", "-z", head.as_str()], None, self.limit).ok()?;
        for entry in names(&list) {
            // `100644 blob <id>`, a tabulator, the path.
            let tabulator = entry.iter().position(|byte| *byte == b'\t')?;
            let (what, path) = (&entry[..tabulator], &entry[tabulator + 1..]);
            let mode = what.get(..6)?;
            let id = what.rsplit(|byte| *byte == b' ').next()?;
            if mode == b"160000" {
                self.add_inner(&folder.join(OsStr::from_bytes(path)), path)?;
                continue;
            }
            let is_link = mode == b"120000";
            let link = if is_link { link_at(&folder.join(OsStr::from_bytes(path))) } else { None };
            self.note(path.to_owned(), link.unwrap_or_else(|| [mode, b" ", id].concat()))?;
        }
        Some(())
    }

    /// What differs from HEAD.
    fn add_changes(&mut self, folder: &Path, place: &FolderInTree, head: Option<&CommitId>) -> Option<()> {
        let mut unnamed = Vec::new();
        for change in changes::since_head(folder, head, None, self.limit).ok()? {
            let key = change.path.clone();
            let path = folder.join(OsStr::from_bytes(&change.path));
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => self.note(key, link_at(&path)?)?,
                Ok(found) if found.is_dir() && is_repository(&change) => self.add_inner(&path, &key)?,
                Ok(found) if found.is_file() => {
                    let mode = mode_of(&change, &found);
                    if is_read(&path, &found) {
                        let path_from_root = [place.prefix.as_slice(), &change.path].concat();
                        unnamed.push(Unnamed { key, path_from_root, mode });
                    } else {
                        self.note(key, by_time(&mode, &found))?;
                    }
                }
                // Gone, or no file any more.
                _ => {
                    self.files.remove(&key);
                }
            }
        }
        self.name_by_content(place, unnamed)
    }

    /// A repository inside this one counts by every file in it. No git is started there: that would do as its settings say, and
    /// the agent may have written them.
    fn add_inner(&mut self, folder: &Path, key: &[u8]) -> Option<()> {
        let key = key.strip_suffix(b"/").unwrap_or(key);
        self.note(key.to_owned(), b"160000".to_vec())?;
        if folder.is_symlink() { Some(()) } else { self.add_folder(folder, &[key, b"/"].concat()) }
    }

    /// No filter is run to see what git would commit: a file under one counts as it is on the disk, always, so that it
    /// is the same before and after git has looked at it.
    fn name_filtered_by_disk(&mut self, folder: &Path) -> Option<()> {
        if !git::has_filters(folder, self.limit).ok()? {
            return Some(());
        }
        let paths = &mut self.files.keys().map(Vec::as_slice);
        for (key, _) in question::filters_of(folder, paths, self.limit).ok()? {
            self.note_disk(&folder.join(OsStr::from_bytes(&key)), key)?;
        }
        Some(())
    }

    /// Git itself names them, since what it would commit may differ from what is on the disk (line endings).
    fn name_by_content(&mut self, place: &FolderInTree, unnamed: Vec<Unnamed>) -> Option<()> {
        if unnamed.is_empty() {
            return Some(());
        }
        let paths: Vec<u8> = unnamed.iter().flat_map(|file| quoted(&file.path_from_root)).collect();
        let hash = |how: &[&str]| {
            let question = [&["hash-object", "--stdin-paths"], how].concat();
            question::answer(&place.root, &question, Some(paths.clone()), self.limit)
        };
        // A filter that is configured may not be installed.
        let ids = hash(&[]).or_else(|_| hash(&["--no-filters"])).ok()?;
        let ids: Vec<&[u8]> = ids.split(|byte| *byte == b'\n').filter(|id| !id.is_empty()).collect();
        if ids.len() != unnamed.len() {
            return None;
        }
        for (file, id) in unnamed.into_iter().zip(ids) {
            self.note(file.key, [file.mode.as_bytes(), b" ", id].concat())?;
        }
        Some(())
    }

    /// Without git: every file below a folder, named from `above` on. Nobody says there what is ignored: caches and version
    /// control are.
    fn add_folder(&mut self, root: &Path, above: &[u8]) -> Option<()> {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
                if !is_folder {
                    let below = path.strip_prefix(root).ok()?.as_os_str().as_bytes();
                    // In a submodule it is a file.
                    if below != b".git" {
                        self.note_disk(&path, [above, below].concat())?;
                    }
                } else if !PASSED_OVER.iter().any(|passed| entry.file_name() == *passed) {
                    folders.push(path);
                }
                self.may_go_on()?;
            }
        }
        Some(())
    }

    /// A file as it is on the disk; what is neither a file nor a link does not count.
    fn note_disk(&mut self, path: &Path, key: Vec<u8>) -> Option<()> {
        let Ok(found) = path.symlink_metadata() else { return Some(()) };
        if found.is_symlink() {
            return self.note(key, link_at(path)?);
        }
        if !found.is_file() {
            return Some(());
        }
        let mode = mode_on_disk(&found);
        if self.reads
            && is_read(path, &found)
            && let Some(digest) = digest_of(path)
        {
            return self.note(key, format!("{mode} {digest}").into_bytes());
        }
        self.note(key, by_time(mode, &found))
    }

    fn note(&mut self, key: Vec<u8>, content: Vec<u8>) -> Option<()> {
        if !(self.is_ours)(&String::from_utf8_lossy(&key)) {
            self.files.insert(key, content);
        }
        self.may_go_on()
    }

    fn may_go_on(&self) -> Option<()> {
        (self.files.len() <= self.most && !self.limit.is_over()).then_some(())
    }

    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for part in self.files.iter().flat_map(|(path, content)| [path, content]) {
            // With its length: a byte that moves from a path to its content must change the digest.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        hex(&digest.finalize())
    }
}

/// A repository inside this one, whether git follows it already or not.
fn is_repository(change: &Change) -> bool {
    change.path.ends_with(b"/") || change.mode.as_deref() == Some("160000")
}

fn mode_of(change: &Change, found: &Metadata) -> String {
    let known = change.mode.as_deref().filter(|mode| *mode != "160000");
    known.unwrap_or_else(|| mode_on_disk(found)).to_owned()
}

fn mode_on_disk(found: &Metadata) -> &'static str {
    // Git keeps one bit of a mode: whether the owner may run the file.
    if found.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" }
}

/// Small enough to be read, and ours to read.
fn is_read(path: &Path, found: &Metadata) -> bool {
    found.len() <= LARGEST_READ && disk::open_itself(path).is_ok()
}

fn by_time(mode: &str, found: &Metadata) -> Vec<u8> {
    format!("{mode} {} bytes at {}.{}", found.len(), found.mtime(), found.mtime_nsec()).into_bytes()
}

/// A link counts by where it leads, never by what is there; none if it is no link.
fn link_at(path: &Path) -> Option<Vec<u8>> {
    let target = std::fs::read_link(path).ok()?;
    Some([b"120000 leads to ", target.as_os_str().as_bytes()].concat())
}

fn digest_of(path: &Path) -> Option<String> {
    let mut digest = Sha256::new();
    let mut file = disk::open_itself(path).ok()?.take(LARGEST_READ);
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(hex(&digest.finalize())),
            count => digest.update(&piece[..count]),
        }
    }
}

#[cfg(test)]
mod tests;
