//! The folders below which every path is walked: projects, and the git folders of their repositories.

use super::walk::Links;
use super::{Refused, walk::Lost};
use crate::environment;
use plimsoll_system::files::SEARCH;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// A project's: the user's own files are in it, and links of theirs.
    Project,
    /// A project that has the user's home in it: what is not ours there is the user's, wherever it is.
    Home,
    /// Git's: no link in it is followed.
    Git,
}

/// A folder that no path below it leads out of.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    kind: RootKind,
    folder: OnceLock<OwnedFd>,
}

static ROOTS: RwLock<Vec<Arc<Root>>> = RwLock::new(Vec::new());

/// From now on every path below this folder is walked.
pub(crate) fn register(path: &Path, kind: RootKind) {
    let is_it = |root: &Arc<Root>| root.path.as_os_str() == path.as_os_str();
    if !path.is_absolute() || ROOTS.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_it) {
        return;
    }
    // A repository's own folder in its project is walked to from there.
    if kind == RootKind::Git && find(path).is_some() {
        return;
    }
    let mut root = Root { path: path.to_owned(), kind, folder: OnceLock::new() };
    if kind == RootKind::Project && environment::home().is_some_and(|home| root.below(home).is_some()) {
        root.kind = RootKind::Home;
    }
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    // One that was known before its project: held open by itself, it would not be found once an agent has made it again.
    roots.retain(|known| known.kind != RootKind::Git || root.below(&known.path).is_none());
    roots.push(Arc::new(root));
}

/// Somebody has removed this folder, or made it anew: what is below it from now on is not what is still held open.
pub(crate) fn look_anew(path: &Path) {
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    for root in roots.iter_mut().filter(|root| root.path.starts_with(path)) {
        *root = Arc::new(Root { path: root.path.clone(), kind: root.kind, folder: OnceLock::new() });
    }
}

/// A path below a root.
#[derive(Debug)]
pub(crate) struct Below<'p> {
    /// The root.
    pub(crate) root: Arc<Root>,
    /// The path from it on.
    pub(crate) path: &'p Path,
}

/// The innermost root that a path is below; none for what is elsewhere.
pub(crate) fn find(path: &Path) -> Option<Below<'_>> {
    let roots = ROOTS.read().unwrap_or_else(PoisonError::into_inner);
    let mut found: Option<Below<'_>> = None;
    for root in roots.iter() {
        let is_inner = found
            .as_ref()
            .is_none_or(|found| found.root.path.as_os_str().len() < root.path.as_os_str().len());
        if is_inner && let Some(path) = root.below(path) {
            found = Some(Below { root: root.clone(), path });
        }
    }
    // Beside our own files a run writes its task.
    let is_runs = |path: &Path| path.as_os_str() == "PROMPT.md";
    found.filter(|below| below.root.kind != RootKind::Home || is_ours(below.path) || is_runs(below.path))
}

/// Files that we alone write, and git's: nobody has a reason to make links of them.
fn is_ours(path: &Path) -> bool {
    const OURS: [&[u8]; 4] = [b".claude/plimsoll", b".claude/handoffs", b".claude/ralph-state.json", b".git"];
    let bytes = path.as_os_str().as_bytes();
    let goes_on = |rest: &[u8]| matches!(rest, [] | [b'/', ..]) || rest == b".lock";
    OURS.iter().any(|ours| bytes.strip_prefix(*ours).is_some_and(goes_on))
}

impl Root {
    /// A path from this root on. Compared byte by byte: what is spelled in another way is found by the system.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let own = self.path.as_os_str().as_bytes();
        let own = own.strip_suffix(b"/").unwrap_or(own);
        let rest = path.as_os_str().as_bytes();
        let rest = begins(rest, own).then(|| &rest[own.len()..])?;
        let rest = match rest {
            [] => b".",
            [b'/', rest @ ..] => rest,
            _ => return None,
        };
        // `..` may lead to another folder: the part before it may be a link. Most paths have no two dots at all.
        let has_two_dots = rest.windows(2).any(|pair| pair == b"..");
        let has_parent = has_two_dots && rest.split(|byte| *byte == b'/').any(|part| part == b"..");
        (!has_parent).then(|| Path::new(OsStr::from_bytes(if rest.is_empty() { b"." } else { rest })))
    }

    /// Its folder, which is kept open.
    pub(crate) fn folder(&self) -> Result<BorrowedFd<'_>, Refused> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.as_fd());
        }
        let opened = rustix::fs::open(&self.path, SEARCH, Mode::empty()).map_err(Lost::System)?;
        Ok(self.folder.get_or_init(|| opened).as_fd())
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Which links are followed on the way to a path.
    pub(crate) fn links(&self, path: &Path, writes: bool) -> Links {
        let is_gits = self.kind == RootKind::Git || path.starts_with(".git");
        match self.kind {
            // An old git makes a link of HEAD.
            _ if is_gits && !writes => Links::Inside,
            _ if is_gits => Links::None,
            _ if is_ours(path) => Links::First,
            _ => Links::Guarded,
        }
    }
}

/// True if these bytes begin so. Eight at a time: musl's comparison looks at each by itself, and it is asked of every path.
fn begins(bytes: &[u8], start: &[u8]) -> bool {
    let Some(bytes) = bytes.get(..start.len()) else { return false };
    let ((bytes, last_bytes), (start, last)) = (bytes.as_chunks::<8>(), start.as_chunks::<8>());
    let is_same = |(one, other): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other);
    bytes.iter().zip(start).all(is_same) && last_bytes.iter().zip(last).all(|(one, other)| one == other)
}

/// A project's folder itself, opened again: a lock on the one that is kept open would be this whole process's.
pub(crate) fn open_anew(root: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(root, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_innermost_root_and_a_name_that_only_begins_alike_to_none() {
        register(Path::new("/tmp/roots/project"), RootKind::Project);
        register(Path::new("/tmp/roots/project/inner/"), RootKind::Project);
        register(Path::new("/tmp/roots/project/.git"), RootKind::Git);
        let below = |path: &str| find(Path::new(path)).map(|below| below.path.display().to_string());
        assert_eq!(below("/tmp/roots/project/a/b").as_deref(), Some("a/b"));
        assert_eq!(below("/tmp/roots/project").as_deref(), Some("."));
        assert_eq!(below("/tmp/roots/project/inner/a").as_deref(), Some("a"));
        assert_eq!(
            below("/tmp/roots/project/.git/a").as_deref(),
            Some(".git/a"),
            "walked to from the project"
        );
        register(Path::new("/tmp/roots/late/.git"), RootKind::Git);
        register(Path::new("/tmp/roots/late"), RootKind::Project);
        assert_eq!(
            below("/tmp/roots/late/.git/a").as_deref(),
            Some(".git/a"),
            "in whatever order they are known"
        );
        assert_eq!(below("/tmp/roots/projects/a"), None);
        assert_eq!(below("/tmp/roots/project/../a"), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test removes what is held open")]
    fn a_folder_that_another_program_removed_is_gone_and_one_made_anew_is_found() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("tree");
        std::fs::create_dir(&folder).unwrap();
        register(&folder, RootKind::Project);
        assert!(super::super::is_there(&folder));
        std::fs::remove_dir(&folder).unwrap();
        look_anew(&folder);
        assert!(!super::super::is_there(&folder));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        assert!(super::super::is_there(&folder.join("file")));
        assert!(find(&folder).is_some(), "its paths are walked as before");
    }

    #[test]
    fn our_own_files_are_known_by_their_names() {
        let ours = |path: &str| is_ours(Path::new(path));
        for path in
            [".claude/plimsoll/x", ".claude/ralph-state.json.lock", ".git/info/exclude", ".claude/handoffs"]
        {
            assert!(ours(path), "{path}");
        }
        for path in [".claude/plimsoll.json", ".claude/settings.json", ".gitignore", "PROMPT.md", ".github/x"]
        {
            assert!(!ours(path), "{path}");
        }
    }
}
