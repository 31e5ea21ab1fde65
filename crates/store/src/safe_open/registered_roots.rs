//! Registers the folders below which paths are resolved safely: projects, and the git folders of their
//! repositories.

use super::path_walk::SymlinkPolicy;
use super::{OpenError, path_walk::WalkError};
use crate::environment;
use plimsoll_system::files::SEARCH_FOLDER_FLAGS;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The kind of folder that a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// A project. It contains the user's own files and links.
    Project,
    /// A project that contains the user's home folder. Only Plimsoll's files, `.git` and `PROMPT.md` in it are
    /// restricted.
    ProjectContainingHome,
    /// A git folder. No link in it is followed for writing.
    Git,
}

/// A folder that links below it must not lead out of.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    kind: RootKind,
    folder: OnceLock<OwnedFd>,
}

static ROOTS: RwLock<Vec<Arc<Root>>> = RwLock::new(Vec::new());

/// Registers a root: from now on every path below this folder is resolved safely. Does nothing for a relative path,
/// for a registered root, and for a git folder inside one.
pub(crate) fn register_root_merging_covered_git_roots(path: &Path, kind: RootKind) {
    let is_same_path = |root: &Arc<Root>| root.path.as_os_str() == path.as_os_str();
    if !path.is_absolute() || ROOTS.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_same_path) {
        return;
    }
    // A git folder inside a project is already covered by the project.
    if kind == RootKind::Git && find_innermost_root_restricting_path(path).is_some() {
        return;
    }
    let mut root = Root { path: path.to_owned(), kind, folder: OnceLock::new() };
    if kind == RootKind::Project
        && environment::home_folder()
            .is_some_and(|home| root.relative_path_below_unless_dot_dot(home).is_some())
    {
        root.kind = RootKind::ProjectContainingHome;
    }
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    // Removes a git folder that was registered before its project: its separate handle would become stale when an
    // agent recreates the folder.
    roots.retain(|registered_root| {
        registered_root.kind != RootKind::Git
            || root.relative_path_below_unless_dot_dot(&registered_root.path).is_none()
    });
    roots.push(Arc::new(root));
}

/// Drops the open handles of the roots at or below a folder that was removed or recreated.
pub(crate) fn forget_open_folders(path: &Path) {
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    for root in roots.iter_mut().filter(|root| root.path.starts_with(path)) {
        *root = Arc::new(Root { path: root.path.clone(), kind: root.kind, folder: OnceLock::new() });
    }
}

/// A path below a root.
#[derive(Debug)]
pub(crate) struct PathBelowRoot<'p> {
    pub(crate) root: Arc<Root>,
    /// The path relative to the root.
    pub(crate) path: &'p Path,
}

/// Finds the innermost root that contains a path. Returns `None` if there is none, and for the user's files in a
/// project that contains the home folder.
pub(crate) fn find_innermost_root_restricting_path(path: &Path) -> Option<PathBelowRoot<'_>> {
    let roots = ROOTS.read().unwrap_or_else(PoisonError::into_inner);
    let mut innermost: Option<PathBelowRoot<'_>> = None;
    for root in roots.iter() {
        let is_deeper = innermost
            .as_ref()
            .is_none_or(|innermost| innermost.root.path.as_os_str().len() < root.path.as_os_str().len());
        if is_deeper && let Some(path) = root.relative_path_below_unless_dot_dot(path) {
            innermost = Some(PathBelowRoot { root: root.clone(), path });
        }
    }
    // A run writes its task to `PROMPT.md`.
    let is_run_prompt = |path: &Path| path.as_os_str() == "PROMPT.md";
    innermost.filter(|path_below_root| {
        path_below_root.root.kind != RootKind::ProjectContainingHome
            || starts_with_plimsoll_or_git_path(path_below_root.path)
            || is_run_prompt(path_below_root.path)
    })
}

/// Returns true for files that only Plimsoll or git writes. There is no legitimate reason to replace them by links.
fn starts_with_plimsoll_or_git_path(relative_path: &Path) -> bool {
    const PLIMSOLL_AND_GIT_PATHS: [&[u8]; 4] =
        [b".claude/plimsoll", b".claude/handoffs", b".claude/ralph-state.json", b".git"];
    let bytes = relative_path.as_os_str().as_bytes();
    let is_path_end =
        |remaining_bytes: &[u8]| matches!(remaining_bytes, [] | [b'/', ..]) || remaining_bytes == b".lock";
    PLIMSOLL_AND_GIT_PATHS.iter().any(|path_prefix| bytes.strip_prefix(*path_prefix).is_some_and(is_path_end))
}

impl Root {
    /// Returns the path relative to this root; `.` for the root itself. Returns `None` if the path is not below it or
    /// contains `..`. Compares bytes, so it does not recognize a different spelling of the root's path.
    fn relative_path_below_unless_dot_dot<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let root_bytes = self.path.as_os_str().as_bytes();
        let root_bytes = root_bytes.strip_suffix(b"/").unwrap_or(root_bytes);
        let path_bytes = path.as_os_str().as_bytes();
        let suffix = starts_with_bytes(path_bytes, root_bytes).then(|| &path_bytes[root_bytes.len()..])?;
        let relative_bytes = match suffix {
            [] => b".",
            [b'/', relative_bytes @ ..] => relative_bytes,
            _ => return None,
        };
        // `..` may lead to another folder, because the part before it may be a link. The quick check for two
        // dots skips the split for most paths.
        let has_two_dots = relative_bytes.windows(2).any(|pair| pair == b"..");
        let has_parent_component =
            has_two_dots && relative_bytes.split(|byte| *byte == b'/').any(|part| part == b"..");
        (!has_parent_component).then(|| {
            Path::new(OsStr::from_bytes(if relative_bytes.is_empty() { b"." } else { relative_bytes }))
        })
    }

    /// Returns the handle of the root's folder. Opens the folder on first use.
    pub(crate) fn cached_folder(&self) -> Result<BorrowedFd<'_>, OpenError> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.as_fd());
        }
        let handle =
            rustix::fs::open(&self.path, SEARCH_FOLDER_FLAGS, Mode::empty()).map_err(WalkError::System)?;
        Ok(self.folder.get_or_init(|| handle).as_fd())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns which links of a path may be followed.
    pub(crate) fn symlink_policy(&self, path: &Path, for_writing: bool) -> SymlinkPolicy {
        let is_git_path = self.kind == RootKind::Git || path.starts_with(".git");
        match self.kind {
            // Old versions of git make HEAD a link.
            _ if is_git_path && !for_writing => SymlinkPolicy::InsideRoot,
            _ if is_git_path => SymlinkPolicy::None,
            _ if starts_with_plimsoll_or_git_path(path) => SymlinkPolicy::FirstPartOnly,
            _ => SymlinkPolicy::InsideExceptCommandFiles,
        }
    }
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

/// Opens a folder without using the cached handle. A lock on the cached handle would be shared by the whole process.
pub(crate) fn reopen_folder(folder: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(folder, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_innermost_root_and_not_to_a_similar_name() {
        register_root_merging_covered_git_roots(Path::new("/tmp/roots/project"), RootKind::Project);
        register_root_merging_covered_git_roots(Path::new("/tmp/roots/project/inner/"), RootKind::Project);
        register_root_merging_covered_git_roots(Path::new("/tmp/roots/project/.git"), RootKind::Git);
        let path_below_root = |path: &str| {
            find_innermost_root_restricting_path(Path::new(path))
                .map(|below| below.path.display().to_string())
        };
        assert_eq!(path_below_root("/tmp/roots/project/a/b").as_deref(), Some("a/b"));
        assert_eq!(path_below_root("/tmp/roots/project").as_deref(), Some("."));
        assert_eq!(path_below_root("/tmp/roots/project/inner/a").as_deref(), Some("a"));
        assert_eq!(
            path_below_root("/tmp/roots/project/.git/a").as_deref(),
            Some(".git/a"),
            "walked to from the project"
        );
        register_root_merging_covered_git_roots(Path::new("/tmp/roots/late/.git"), RootKind::Git);
        register_root_merging_covered_git_roots(Path::new("/tmp/roots/late"), RootKind::Project);
        assert_eq!(
            path_below_root("/tmp/roots/late/.git/a").as_deref(),
            Some(".git/a"),
            "in whatever order they are known"
        );
        assert_eq!(path_below_root("/tmp/roots/projects/a"), None);
        assert_eq!(path_below_root("/tmp/roots/project/../a"), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test removes what is held open")]
    fn a_recreated_folder_is_found_after_its_handles_are_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tree");
        std::fs::create_dir(&folder).unwrap();
        register_root_merging_covered_git_roots(&folder, RootKind::Project);
        assert!(super::super::exists_after_checking_parents(&folder));
        std::fs::remove_dir(&folder).unwrap();
        forget_open_folders(&folder);
        assert!(!super::super::exists_after_checking_parents(&folder));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        assert!(super::super::exists_after_checking_parents(&folder.join("file")));
        assert!(find_innermost_root_restricting_path(&folder).is_some(), "its paths are walked as before");
    }

    #[test]
    fn our_own_files_are_recognized_by_their_names() {
        let ours = |path: &str| starts_with_plimsoll_or_git_path(Path::new(path));
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
