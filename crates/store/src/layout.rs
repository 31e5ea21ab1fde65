//! The paths of all files of Plimsoll.

mod ancestor_search;
mod external_folder;
mod project_root;

pub use ancestor_search::IgnoredStateFile;
use plimsoll_domain::{RunId, SessionId};
pub use project_root::{ProjectRoot, ProjectRootReason};

use crate::{StoreError, disk, environment, gitignore, safe_open, volume};
use ancestor_search::AncestorSearch;
use plimsoll_system::files::strip_folder;
use plimsoll_system::paths::{append_to_path, bytes_with_slashes};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A project and the location of its files: inside the project, or, unless the user has chosen that, in a
/// separate folder in the user's state.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    state_path: PathBuf,
    /// The folder of our files at the time when the project was looked up.
    data_folder: PathBuf,
    has_local_files: bool,
    /// The new data folder, set once the files are found to have moved into the project. `None` for a project
    /// whose files do not move.
    moved_data_folder: Option<OnceLock<PathBuf>>,
    /// The folder of the records of its runs, if it is not the default one.
    runs_folder: Option<PathBuf>,
}

const SESSIONS_FOLDER: &str = "/sessions/";

/// Returns the folder of the records and ledgers of the user's runs in all projects; `None` without a home.
pub(crate) fn default_runs_folder() -> Option<PathBuf> {
    environment::state_home().map(|home| append_to_path(&home, &["/plimsoll/runs"]))
}

impl Project {
    /// Returns the project of a hook: the folder in which the client was started, or else the session's
    /// working directory.
    pub fn from_project_dir_variable_or_cwd(cwd: Option<&str>) -> Result<Project, StoreError> {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        // The hook payload's `cwd` changes when the session runs `cd`; CLAUDE_PROJECT_DIR does not (Claude Code
        // 2.1.329).
        Project::with_local_or_external_files(
            &root.or(cwd.map(PathBuf::from)).unwrap_or_else(environment::current_dir),
        )
    }

    /// Returns the project of a server that the client started: the folder in `CLAUDE_PROJECT_DIR`, or else the
    /// one that [`Project::find_upwards_from_current_dir`] finds.
    pub fn from_project_dir_variable_or_found_upwards() -> Project {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        match root.filter(|root| disk::is_folder(root)) {
            Some(root) => Project::with_session_files_or_local(&root),
            None => Project::find_upwards_from_current_dir(),
        }
    }

    /// Returns the project of a command: the nearest folder upwards with a run's state. If there is none, the
    /// nearest with our files (inside it, or in the user's state), then the nearest with the client's files, then
    /// the repository, and otherwise the current directory. The search ends at the root of the repository, and
    /// below a folder of another owner.
    pub fn find_upwards_from_current_dir() -> Project {
        let current_dir = environment::current_dir();
        let search = AncestorSearch::search_upwards_from(&current_dir);
        // The home is compared with all links resolved, as the system reports the current directory.
        let home = environment::home_folder().map(disk::canonicalize_or_keep);
        let is_not_home = |folder: &&Path| Some(*folder) != home.as_deref();
        let has = |name: &'static str| move |folder: &&Path| disk::exists(&folder.join(name));
        let has_our_files = |folder: &&Path| {
            has(".claude/plimsoll")(folder)
                || external_folder::external_data_folder(folder)
                    .is_some_and(|data_folder| disk::exists(&data_folder))
        };
        let candidates = || search.folders.iter().copied().filter(is_not_home);
        let nearest = candidates()
            .find(has(".claude/ralph-state.json"))
            .or_else(|| candidates().find(has_our_files))
            .or_else(|| candidates().find(has(".claude")))
            .or_else(|| candidates().find(has(".git")));
        Project::with_session_files_or_local(nearest.unwrap_or(&current_dir))
    }

    /// Returns a state file above the current directory, or in it, that
    /// [`Project::find_upwards_from_current_dir`] ignores, with the reason. `None` if a project found by that
    /// search has a state, because then the user does not mean the other one. A state in the current folder
    /// itself is always returned.
    pub fn ignored_state_file_unless_another_is_used() -> Option<IgnoredStateFile> {
        let current_dir = environment::current_dir();
        let ignored_state = AncestorSearch::search_upwards_from(&current_dir)
            .find_state_file_beyond_search_end(&current_dir)?;
        (ignored_state.is_in_current_folder()
            || !disk::exists(Project::find_upwards_from_current_dir().state_path()))
        .then_some(ignored_state)
    }

    /// Returns the project at a folder, with its files where sessions store them. Without a home the files
    /// are inside the project.
    fn with_session_files_or_local(root: &Path) -> Project {
        Project::with_local_or_external_files(root).unwrap_or_else(|_| Project::with_local_files(root))
    }

    /// Looks the project up again: a command in Claude Code's sandbox may have moved its files into the
    /// project.
    pub fn with_current_location(&self) -> Project {
        Project::with_session_files_or_local(&self.root)
    }

    /// Returns the project of a session. Our files are inside the project only if the user chose that: by a run,
    /// by our settings file, or by our hooks in the project's settings. Otherwise Plimsoll is installed for the
    /// user alone, and the files are in the user's state. Returns an error if the files belong there and there is
    /// no home.
    pub fn with_local_or_external_files(root: &Path) -> Result<Project, StoreError> {
        let project = Project::with_local_files(root);
        // The cheapest check first; it is usually true.
        let has_external_files = || project.earlier_external_project().is_some();
        if has_our_files(&project.data_folder, has_external_files)
            || disk::exists(&project.settings_path())
            || project.has_run()
        {
            return Ok(project);
        }
        if external_folder::has_our_hooks_in_project_settings(root) {
            return Ok(project);
        }
        let data_folder = external_folder::external_data_folder(root)
            .ok_or_else(|| StoreError::NoHome { project: root.to_owned() })?;
        Ok(Project {
            data_folder,
            has_local_files: false,
            moved_data_folder: Some(OnceLock::new()),
            ..project
        })
    }

    /// Checks whether the files have been moved into the project since it was looked up, as a command in Claude
    /// Code's sandbox does. If so, every path of this project is the new one from then on.
    pub(crate) fn update_location_if_moved_into_project(&self) {
        if let Some(moved_folder) =
            self.moved_data_folder.as_ref().filter(|moved_folder| moved_folder.get().is_none())
        {
            let local_folder = local_data_folder(&self.root);
            if has_our_files(&local_folder, || disk::exists(&self.data_folder)) {
                // Another thread may have detected it at the same moment, and then it has set the same path.
                let _ = moved_folder.set(local_folder);
            }
        }
    }

    fn moved_data_folder(&self) -> Option<&Path> {
        self.moved_data_folder.as_ref().and_then(OnceLock::get).map(PathBuf::as_path)
    }

    /// Returns the project at a folder with our files inside, for a project that has a run or is about to
    /// have one.
    pub fn with_local_files(root: &Path) -> Project {
        safe_open::register_root_merging_covered_git_roots(root, safe_open::RootKind::Project);
        let state_file = match environment::variable("RALPH_STATE_FILE") {
            Some(file) => root.join(file),
            None => append_to_path(root, &["/.claude/ralph-state.json"]),
        };
        let data_folder = local_data_folder(root);
        Project {
            root: root.to_owned(),
            state_path: state_file,
            data_folder,
            has_local_files: true,
            moved_data_folder: None,
            runs_folder: None,
        }
    }

    /// Returns this project with the records of its runs in another folder.
    pub fn with_runs_folder(self, folder: &Path) -> Project {
        Project { runs_folder: Some(folder.to_owned()), ..self }
    }

    /// Returns this project with its files in a folder outside.
    #[cfg(test)]
    pub(crate) fn with_external_folder(self, data_folder: &Path) -> Project {
        Project {
            data_folder: data_folder.to_owned(),
            has_local_files: false,
            moved_data_folder: Some(OnceLock::new()),
            ..self
        }
    }

    /// Returns the folder of the records and ledgers of the user's runs; `None` without a home.
    pub(crate) fn runs_folder(&self) -> Option<PathBuf> {
        self.runs_folder.clone().or_else(default_runs_folder)
    }

    /// Returns true if there is a run in this project: its state, or the copy of a state that an agent has
    /// removed.
    fn has_run(&self) -> bool {
        disk::exists(&self.state_path) || disk::exists(&self.copies_folder().join("ralph-state.json"))
    }

    /// Returns this project with the external location that sessions used before our files were inside the
    /// project; `None` if there is none.
    pub fn earlier_external_project(&self) -> Option<Project> {
        self.with_external_files().filter(|external_project| disk::exists(external_project.data_folder()))
    }

    /// Returns this project with its files in the user's state; `None` if they are already there, or without
    /// a home.
    pub fn with_external_files(&self) -> Option<Project> {
        let data_folder =
            if self.has_local_files() { external_folder::external_data_folder(&self.root) } else { None };
        Some(Project {
            data_folder: data_folder?,
            has_local_files: false,
            moved_data_folder: None,
            ..self.clone()
        })
    }

    /// Returns true if our files belong inside the project and its file system is read-only.
    pub fn is_read_only(&self) -> bool {
        let folders = [self.data_folder(), &append_to_path(&self.root, &["/.claude"]), &self.root];
        let nearest = folders.into_iter().find(|folder| disk::exists(folder));
        self.has_local_files() && nearest.is_some_and(volume::is_write_refused)
    }

    /// Returns the project at a folder if it has the record of this session, inside the project or in the
    /// user's state.
    pub fn find_with_session_record(root: &Path, session_id: &SessionId) -> Option<Project> {
        let project = Project::with_local_or_external_files(root).ok()?;
        let has_record = |project: &Project| {
            project.session_record_path(session_id).is_some_and(|path| disk::exists(&path))
        };
        if has_record(&project) { Some(project) } else { project.with_external_files().filter(has_record) }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of `ralph-state.json`.
    pub fn state_path(&self) -> &Path {
        &self.state_path
    }

    pub fn state_lock_path(&self) -> PathBuf {
        with_suffix(&self.state_path, ".lock")
    }

    /// Returns the folder of handoffs: `.claude/handoffs`, or next to our other files.
    pub fn handoffs_folder(&self) -> PathBuf {
        if self.has_local_files() {
            append_to_path(&self.root, &["/.claude/handoffs"])
        } else {
            append_to_path(self.data_folder(), &["/handoffs"])
        }
    }

    /// Returns the folders that may contain handoffs: the current one, then the one that was used before our
    /// files were inside the project.
    pub fn handoff_folders(&self) -> Vec<PathBuf> {
        self.current_and_earlier_location().iter().map(Project::handoffs_folder).collect()
    }

    /// Returns this project, followed by its earlier location outside if that still exists.
    pub fn current_and_earlier_location(&self) -> Vec<Project> {
        std::iter::once(self.clone()).chain(self.earlier_external_project()).collect()
    }

    /// Returns true if our files are inside the project, where an agent in Claude Code's sandbox can write
    /// them.
    pub fn has_local_files(&self) -> bool {
        self.has_local_files || self.moved_data_folder().is_some()
    }

    /// Returns the path of the handoff that a record or a state names; `None` for any other file. An agent in
    /// Claude Code's sandbox can write a project's records and states, and the process that updates a handoff
    /// runs outside the sandbox.
    pub fn resolve_handoff(&self, file: &str) -> Option<PathBuf> {
        let path = self.root.join(file);
        let name =
            path.file_name()?.to_str().filter(|name| is_plain_file_name(name) && name.ends_with(".md"))?;
        let is_in = |folder: PathBuf| folder.join(name) == path;
        let is_handoff = is_in(self.handoffs_folder())
            || self
                .earlier_external_project()
                .is_some_and(|earlier_project| is_in(earlier_project.handoffs_folder()));
        is_handoff.then(|| path.clone())
    }

    /// Returns the folder of our own files: `.claude/plimsoll`, or the project's folder in the user's state.
    pub fn data_folder(&self) -> &Path {
        self.moved_data_folder().unwrap_or(&self.data_folder)
    }

    pub fn settings_path(&self) -> PathBuf {
        append_to_path(&self.root, &["/.claude/plimsoll.json"])
    }

    pub fn journal_path(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/journal.jsonl"])
    }

    /// Returns the path of the file with the last errors of our own hooks.
    pub fn hook_failures_path(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/faults.jsonl"])
    }

    /// Returns the folder of the working memory.
    pub fn memory_folder(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/memory"])
    }

    pub fn turn_logs_folder(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/turns"])
    }

    /// Returns the path of the file with context window sizes learned from the client.
    pub fn windows_path(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/windows.json"])
    }

    /// Returns the path of a session's record; `None` for an id that cannot be a file name.
    pub fn session_record_path(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain_file_name(session_id)
            .then(|| append_to_path(self.data_folder(), &[SESSIONS_FOLDER, session_id, ".json"]))
    }

    /// Returns the path of the file that the status line writes about a session; `None` for an id that cannot be
    /// a file name.
    pub fn status_record_path(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain_file_name(session_id)
            .then(|| append_to_path(self.data_folder(), &[SESSIONS_FOLDER, session_id, ".status.json"]))
    }

    /// Returns the path of the record of which memory content a session has been shown.
    pub(crate) fn shown_record_path(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain_file_name(session_id)
            .then(|| append_to_path(self.data_folder(), &["/memory/seen/", session_id, ".json"]))
    }

    /// Returns the folder of a run's captured output.
    pub fn run_folder(&self, run_id: &RunId) -> PathBuf {
        let name = if is_plain_file_name(run_id) { run_id } else { "unnamed" };
        self.data_folder().join("runs").join(name)
    }

    /// Returns the path of the lock that the single `plimsoll run` of this project holds. It is outside the
    /// project, so that there is only one lock even if an agent cleans the folder, or creates or removes the
    /// repository.
    pub fn run_lock_path(&self) -> PathBuf {
        let Some(home) = environment::state_home() else { return self.copies_folder().join("run.lock") };
        let root = disk::canonicalize_or_keep(&self.root);
        let name = plimsoll_domain::digest::sha256_hex(&[root.as_os_str().as_encoded_bytes()]);
        home.join("plimsoll/locks").join(format!("{}.lock", &name[..16]))
    }

    /// Returns the path of `PROMPT.md`.
    pub fn prompt_path(&self) -> PathBuf {
        self.root.join("PROMPT.md")
    }

    /// Returns the path of the progress file, in which each session leaves a paragraph. It is in our folder,
    /// so that it does not make the working tree dirty.
    pub fn progress_path(&self) -> PathBuf {
        append_to_path(self.data_folder(), &["/progress.txt"])
    }

    /// Returns the folder for copies of files that an agent's `git clean -fdx` would remove: in the git
    /// folder, or next to our other files if there is none. Several projects in one repository have separate
    /// folders.
    pub fn copies_folder(&self) -> PathBuf {
        let repository = if self.has_local_files() { find_repository(&self.root) } else { None };
        let Some((work_tree, git_folder)) = repository else { return self.data_folder().join("copies") };
        match self.root.strip_prefix(work_tree) {
            Ok(relative_path) if relative_path != Path::new("") => {
                git_folder.join("plimsoll/below").join(relative_path)
            }
            _ => git_folder.join("plimsoll"),
        }
    }

    /// Returns a path relative to the project, with `/` between its names as in git; a path outside is returned unchanged.
    pub fn relative_to_root(&self, path: &Path) -> String {
        match strip_folder(&self.root, path) {
            Some(relative_path) => String::from_utf8_lossy(&bytes_with_slashes(relative_path)).into_owned(),
            None => path.to_string_lossy().into_owned(),
        }
    }
}

/// Returns the git folder of the repository or worktree that contains a folder. Does not start git.
pub fn find_git_folder(folder: &Path) -> Option<PathBuf> {
    find_repository(folder).map(|(_, git_folder)| git_folder)
}

/// Returns the working tree that contains a folder, and its git folder.
pub fn find_repository(folder: &Path) -> Option<(&Path, PathBuf)> {
    folder.ancestors().find_map(|folder| Some((folder, resolve_git_folder(&folder.join(".git"))?)))
}

/// Returns an identity of the repository's git folder that changes if another repository is put at its path;
/// empty if there is no repository.
pub fn repository_identity(folder: &Path) -> String {
    let git_folder =
        find_git_folder(folder).map(|git_folder| shared_git_folder(&git_folder).unwrap_or(git_folder));
    git_folder
        .and_then(|git_folder| volume::folder_identity_by_inode_and_creation_time(&git_folder))
        .unwrap_or_default()
}

/// Returns the folder that all worktrees of a repository share; `None` if `commondir` does not name a git
/// folder.
pub fn shared_git_folder(git_folder: &Path) -> Option<PathBuf> {
    let Some(shared_path_text) = disk::read_text(&git_folder.join("commondir")).ok().flatten() else {
        return Some(git_folder.to_owned());
    };
    let shared_folder = git_folder.join(shared_path_text.trim());
    is_git_folder(&shared_folder).then(|| {
        safe_open::register_root_merging_covered_git_roots(&shared_folder, safe_open::RootKind::Git);
        shared_folder
    })
}

// The target is checked: a file of the project must not be able to redirect Plimsoll to an arbitrary folder.
fn resolve_git_folder(dot_git: &Path) -> Option<PathBuf> {
    let git_folder = if disk::is_folder_and_not_link(dot_git) {
        dot_git.to_owned()
    } else if disk::is_link(dot_git) {
        Some(disk::canonicalize_or_keep(dot_git)).filter(|folder| is_git_folder(folder))?
    } else {
        let text = disk::read_text(dot_git).ok().flatten()?;
        let target_path = Path::new(text.trim().strip_prefix("gitdir:")?.trim()).to_owned();
        Some(dot_git.parent()?.join(target_path)).filter(|folder| is_git_folder(folder))?
    };
    safe_open::register_root_merging_covered_git_roots(&git_folder, safe_open::RootKind::Git);
    Some(git_folder)
}

/// Applies git's own check: `HEAD` exists, and either `objects` and `refs` or a `commondir` that names where
/// they are.
fn is_git_folder(folder: &Path) -> bool {
    let has = |name: &str| disk::exists(&folder.join(name));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns true if our folder inside a project is in use. An empty folder, which a clone may contain, does not
/// count if the project has files of ours outside, because it would hide them.
fn has_our_files(local_folder: &Path, has_external_files: impl FnOnce() -> bool) -> bool {
    // This folder usually exists, and then no other check is needed.
    if disk::exists(&append_to_path(local_folder, &["/sessions"])) {
        return true;
    }
    disk::exists(local_folder) && !(is_empty_except_gitignore(local_folder) && has_external_files())
}

/// Returns true if one of our folders contains nothing but the file that hides it from git.
pub(crate) fn is_empty_except_gitignore(folder: &Path) -> bool {
    disk::list_names(folder).iter().all(|name| name == gitignore::GITIGNORE_NAME)
}

fn local_data_folder(root: &Path) -> PathBuf {
    append_to_path(root, &["/.claude/plimsoll"])
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns true if an id is safe as a file name: letters, digits, `-`, `_` and `.`, at most 128 bytes.
pub(crate) fn is_plain_file_name(id: &str) -> bool {
    /// The allowed bytes, as a table, because each hook checks four ids.
    const ALLOWED_BYTES: [bool; 256] = {
        let mut allowed = [false; 256];
        let mut byte: u8 = 0;
        while byte < 128 {
            allowed[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            byte += 1;
        }
        allowed
    };
    // At most 128 bytes: suffixes are added, and a name may have 255. No dot at the start: `.` and `..` are
    // folders, and the names of temporary files begin with a dot.
    (1..=128).contains(&id.len())
        && !id.starts_with('.')
        && id.bytes().all(|byte| ALLOWED_BYTES[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_in_one_repository_have_separate_copies() {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let copies = |below: &str| Project::with_local_files(&folder.path().join(below)).copies_folder();
        assert_eq!(copies(""), folder.path().join(".git/plimsoll"));
        assert_eq!(copies("a"), folder.path().join(".git/plimsoll/below/a"));
        assert_ne!(copies("a"), copies("b"));
    }

    #[test]
    fn only_a_file_in_a_handoff_folder_is_a_handoff() {
        let root = std::env::temp_dir().join("p");
        let project = Project::with_local_files(&root);
        let name = "2026-01-07-1145.md";
        for file in
            [format!(".claude/handoffs/{name}"), format!("{}/.claude/handoffs/{name}", root.display())]
        {
            assert_eq!(
                project.resolve_handoff(&file),
                Some(root.join(".claude/handoffs").join(name)),
                "{file}"
            );
        }
        for file in [
            "",
            ".claude/handoffs/",
            ".claude/handoffs/../../README.md",
            ".claude/handoffs/a/b.md",
            ".claude/handoffs/.gitignore",
            ".claude/handoffs/.hidden.md",
            "README.md",
            "../x.md",
            "/home/u/.bashrc",
            "/home/u/notes.md",
        ] {
            assert_eq!(project.resolve_handoff(file), None, "{file}");
        }
    }

    #[test]
    fn a_malicious_session_id_has_no_file() {
        let project = Project::with_local_files(Path::new("/p"));
        for id in ["", ".", "..", "../x", "a/b", "a\0b", "é", ".hidden", &"x".repeat(129)] {
            assert_eq!(project.session_record_path(&SessionId::from(id)), None, "{id:?}");
        }
        assert!(project.session_record_path(&"d8e9da22-d41b-4824-a1be-f318ff23689b".into()).is_some());
    }
}
