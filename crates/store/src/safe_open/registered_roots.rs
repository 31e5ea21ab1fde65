//! Registers the folders below which paths are resolved safely: projects, and the git folders of their
//! repositories.

use super::path_walk::SymlinkPolicy;
use super::{OpenError, path_walk::WalkError};
use crate::environment;
use plimsoll_system::files::{Folder, relative_path_below, strip_folder};
use std::fs::File;
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
    folder: OnceLock<Folder>,
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
        && environment::home_folder().is_some_and(|home| relative_path_below(&root.path, home).is_some())
    {
        root.kind = RootKind::ProjectContainingHome;
    }
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    // Removes a git folder that was registered before its project: its separate handle would become stale when an
    // agent recreates the folder.
    roots.retain(|registered_root| {
        registered_root.kind != RootKind::Git
            || relative_path_below(&root.path, &registered_root.path).is_none()
    });
    roots.push(Arc::new(root));
}

/// Drops the open handles of the roots at or below a folder that was removed or recreated.
pub(crate) fn forget_open_folders(path: &Path) {
    let mut roots = ROOTS.write().unwrap_or_else(PoisonError::into_inner);
    for root in roots.iter_mut().filter(|root| strip_folder(path, &root.path).is_some()) {
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
        if is_deeper && let Some(path) = relative_path_below(&root.path, path) {
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
    let mut components = relative_path.components();
    let mut next_name = || components.next().and_then(|component| component.as_os_str().to_str());
    match next_name() {
        Some(".git" | ".git.lock") => true,
        Some(".claude") => next_name().is_some_and(|name| {
            let name = name.strip_suffix(".lock").unwrap_or(name);
            matches!(name, "plimsoll" | "handoffs" | "ralph-state.json")
        }),
        _ => false,
    }
}

impl Root {
    /// Returns the handle of the root's folder. Opens the folder on first use.
    pub(crate) fn cached_folder(&self) -> Result<&Folder, OpenError> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let folder = Folder::open(&self.path).map_err(WalkError::System)?;
        Ok(self.folder.get_or_init(|| folder))
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

/// Opens a folder without using the cached handle. A lock on the cached handle would be shared by the whole process.
pub(crate) fn reopen_folder(folder: &Path) -> std::io::Result<File> {
    Folder::open_listable(folder).map(Folder::into_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_innermost_root_and_not_to_a_similar_name() {
        let path_of = |path: &str| std::env::temp_dir().join("roots").join(path);
        register_root_merging_covered_git_roots(&path_of("project"), RootKind::Project);
        register_root_merging_covered_git_roots(&path_of("project/inner/"), RootKind::Project);
        register_root_merging_covered_git_roots(&path_of("project/.git"), RootKind::Git);
        // In whatever order they are known, a git folder is walked to from the project.
        register_root_merging_covered_git_roots(&path_of("late/.git"), RootKind::Git);
        register_root_merging_covered_git_roots(&path_of("late"), RootKind::Project);
        for (path, expected) in [
            ("project/a/b", Some("a/b")),
            ("project", Some(".")),
            ("project/inner/a", Some("a")),
            ("project/.git/a", Some(".git/a")),
            ("late/.git/a", Some(".git/a")),
            ("projects/a", None),
            ("project/../a", None),
        ] {
            let path = path_of(path);
            let path_below_root = find_innermost_root_restricting_path(&path);
            let path_below_root = path_below_root.as_ref().map(|path_below_root| path_below_root.path);
            assert_eq!(path_below_root, expected.map(Path::new), "{}", path.display());
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test removes what is held open")]
    fn a_recreated_folder_is_found_after_its_handles_are_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tree");
        std::fs::create_dir(&folder).unwrap();
        register_root_merging_covered_git_roots(&folder, RootKind::Project);
        assert!(super::super::exists_after_checking_parents(&folder));
        // Windows does not remove a folder that is open.
        if cfg!(unix) {
            std::fs::remove_dir(&folder).unwrap();
        }
        forget_open_folders(&folder);
        if cfg!(windows) {
            std::fs::remove_dir(&folder).unwrap();
        }
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
