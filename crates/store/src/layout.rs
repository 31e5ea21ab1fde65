//! Every path of Plimsoll, in one place.

mod beginning;
mod outside;
mod upwards;

pub use beginning::{Beginning, BeginsAt};
use plimsoll_domain::{RunId, SessionId};
pub use upwards::PassedOver;

use crate::{StoreError, disk, door, environment, hidden, volume};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use upwards::Upwards;

/// A project and where its files lie: in the project itself, or, where nobody has asked for that, in a folder of
/// its own among the user's state.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    state: PathBuf,
    /// Where its files were when it was looked up.
    own: PathBuf,
    is_inside: bool,
    /// Set once its files were found to have moved into the project since. `None` for a project whose files do not move.
    moved_to: Option<OnceLock<PathBuf>>,
    /// The folder of its runs' records, where it is not the user's.
    runs: Option<PathBuf>,
}

const SESSIONS: &str = "/sessions/";

impl Project {
    /// The project of a hook: the folder the client was started in, or else where the session is.
    pub fn of_hook(cwd: Option<&str>) -> Result<Project, StoreError> {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        // The payload's `cwd` moves with the session's `cd`; CLAUDE_PROJECT_DIR stays (2.1.329).
        Project::of_session(&root.or(cwd.map(PathBuf::from)).unwrap_or_else(environment::current_dir))
    }

    /// The project of a server that the client has started: the folder that the client names, else as a command's.
    pub fn of_server() -> Project {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        match root.filter(|root| disk::is_folder(root)) {
            Some(root) => Project::of_person(&root),
            None => Project::of_command(),
        }
    }

    /// The project of a command: the nearest folder upwards that has a state, then one with files of ours (in it,
    /// or among the user's state) or the client's, else the repository, else the current directory. The search ends at the
    /// root of the repository, and below a folder of another owner.
    pub fn of_command() -> Project {
        let here = environment::current_dir();
        let search = Upwards::from(&here);
        // The folders are named without links, as the system names the current one.
        let home = environment::home().map(disk::canonical);
        let is_projects = |folder: &&Path| Some(*folder) != home.as_deref();
        let has = |name: &'static str| move |folder: &&Path| disk::exists(&folder.join(name));
        let keeps = |folder: &&Path| {
            has(".claude/plimsoll")(folder) || outside::folder(folder).is_some_and(|own| disk::exists(&own))
        };
        let upwards = || search.folders.iter().copied().filter(is_projects);
        let found = upwards()
            .find(has(".claude/ralph-state.json"))
            .or_else(|| upwards().find(keeps))
            .or_else(|| upwards().find(has(".claude")))
            .or_else(|| upwards().find(has(".git")));
        Project::of_person(found.unwrap_or(&here))
    }

    /// A state above the current directory that [`Project::of_command`] does not take, and why. Where the project has a run
    /// of its own, nobody meant the other one.
    pub fn passed_over() -> Option<PassedOver> {
        let here = environment::current_dir();
        let passed_over = Upwards::from(&here).passed_over(&here)?;
        (passed_over.is_here() || !disk::exists(Project::of_command().state())).then_some(passed_over)
    }

    /// The project at a folder, with its files where its sessions have them. The user who has no home, and asks for
    /// something to be written, has it in the project.
    fn of_person(root: &Path) -> Project {
        Project::of_session(root).unwrap_or_else(|_| Project::at(root))
    }

    /// The same project, with its files where they are by now: a command in Claude Code's sandbox may have moved them into it.
    pub fn reloaded(&self) -> Project {
        Project::of_person(&self.root)
    }

    /// The project that a session works in. Only who has asked for it has our files in the project: a run, settings
    /// of ours, or our hooks in the settings of the project itself. Everybody else installed us for the user alone.
    pub fn of_session(root: &Path) -> Result<Project, StoreError> {
        let project = Project::at(root);
        // First what costs least and is true mostly.
        let is_outside = || project.earlier().is_some();
        if holds_our_files(&project.own, is_outside) || disk::exists(&project.settings()) || project.has_run()
        {
            return Ok(project);
        }
        if outside::is_installed_in(root) {
            return Ok(project);
        }
        let own = outside::folder(root).ok_or_else(|| StoreError::NoHome { project: root.to_owned() })?;
        Ok(Project { own, is_inside: false, moved_to: Some(OnceLock::new()), ..project })
    }

    /// Looks whether the files have moved into the project since it was looked up: a command in Claude Code's sandbox moves them. From
    /// then on every path of this project is the new one.
    pub(crate) fn follow_move(&self) {
        if let Some(moved_to) = self.moved_to.as_ref().filter(|moved_to| moved_to.get().is_none()) {
            let inside = own_folder_in(&self.root);
            if holds_our_files(&inside, || disk::exists(&self.own)) {
                // Another thread may have found it at the same moment, and then has set the same.
                let _ = moved_to.set(inside);
            }
        }
    }

    fn moved_to(&self) -> Option<&Path> {
        self.moved_to.as_ref().and_then(OnceLock::get).map(PathBuf::as_path)
    }

    /// The project at a folder, with our files in it: a run's, or one that is about to have a run.
    pub fn at(root: &Path) -> Project {
        door::register(root, door::RootKind::Project);
        let state = match environment::variable("RALPH_STATE_FILE") {
            Some(file) => root.join(file),
            None => below(root, &["/.claude/ralph-state.json"]),
        };
        let own = own_folder_in(root);
        Project { root: root.to_owned(), state, own, is_inside: true, moved_to: None, runs: None }
    }

    /// The same with the records of its runs in another folder.
    pub fn with_runs_in(self, folder: &Path) -> Project {
        Project { runs: Some(folder.to_owned()), ..self }
    }

    /// The same project with its files in a folder outside of it.
    #[cfg(test)]
    pub(crate) fn with_own_folder(self, own: &Path) -> Project {
        Project { own: own.to_owned(), is_inside: false, moved_to: Some(OnceLock::new()), ..self }
    }

    /// Where the user's runs have their records and ledgers; none without a home.
    pub(crate) fn runs(&self) -> Option<PathBuf> {
        let of_user = || environment::state_home().map(|home| below(&home, &["/plimsoll/runs"]));
        self.runs.clone().or_else(of_user)
    }

    /// A run in this project: its state, or the copy of one that an agent has cleaned away.
    fn has_run(&self) -> bool {
        disk::exists(&self.state) || disk::exists(&self.copies().join("ralph-state.json"))
    }

    /// Where sessions kept their files before the project had any of ours in it; none if they never did.
    pub fn earlier(&self) -> Option<Project> {
        self.outside().filter(|outside| disk::exists(outside.own()))
    }

    /// The same project with its sessions' files among the user's state; none if they are there already, or without a home.
    pub fn outside(&self) -> Option<Project> {
        let own = if self.is_inside() { outside::folder(&self.root) } else { None };
        Some(Project { own: own?, is_inside: false, moved_to: None, ..self.clone() })
    }

    /// True if our files belong into the project and the system refuses to write there.
    pub fn is_read_only(&self) -> bool {
        let places = [self.own(), &below(&self.root, &["/.claude"]), &self.root];
        let nearest = places.into_iter().find(|place| disk::exists(place));
        self.is_inside() && nearest.is_some_and(volume::is_read_only)
    }

    /// The project at a folder, if it has the record of this session, in it or among the user's state.
    pub fn of_recorded_session(root: &Path, session_id: &SessionId) -> Option<Project> {
        let project = Project::of_session(root).ok()?;
        let has_record =
            |project: &Project| project.session(session_id).is_some_and(|path| disk::exists(&path));
        if has_record(&project) { Some(project) } else { project.outside().filter(has_record) }
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `ralph-state.json`.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The state's lock.
    pub fn state_lock(&self) -> PathBuf {
        with_suffix(&self.state, ".lock")
    }

    /// Where handoffs are: `.claude/handoffs`, or beside the rest of ours.
    pub fn handoffs(&self) -> PathBuf {
        if self.is_inside() {
            below(&self.root, &["/.claude/handoffs"])
        } else {
            below(self.own(), &["/handoffs"])
        }
    }

    /// Where handoffs may be: the present folder, then the one of before the project had files of ours in it.
    pub fn handoff_folders(&self) -> Vec<PathBuf> {
        self.with_earlier().iter().map(Project::handoffs).collect()
    }

    /// The project, then the same with its files where they were before it had any of ours in it, if they are still there.
    pub fn with_earlier(&self) -> Vec<Project> {
        std::iter::once(self.clone()).chain(self.earlier()).collect()
    }

    /// True if our files are in the project itself, where an agent in Claude Code's sandbox can write them.
    pub fn is_inside(&self) -> bool {
        self.is_inside || self.moved_to().is_some()
    }

    /// Returns the path of the handoff that a record or a state names; `None` for any other file. An agent in Claude Code's sandbox can
    /// write records and state of a project, and whoever renews a handoff works outside of the sandbox.
    pub fn handoff_path(&self, file: &str) -> Option<PathBuf> {
        let path = self.root.join(file);
        let name = path.file_name()?.to_str().filter(|name| is_plain(name) && name.ends_with(".md"))?;
        let is_in = |folder: PathBuf| folder.join(name).as_os_str() == path.as_os_str();
        let is_handoff =
            is_in(self.handoffs()) || self.earlier().is_some_and(|earlier| is_in(earlier.handoffs()));
        is_handoff.then(|| path.clone())
    }

    /// The folder of our own files: `.claude/plimsoll`, or the project's among the user's state.
    pub fn own(&self) -> &Path {
        self.moved_to().unwrap_or(&self.own)
    }

    /// The settings of the project.
    pub fn settings(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll.json"])
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        below(self.own(), &["/journal.jsonl"])
    }

    /// The last faults of our own hooks.
    pub fn faults(&self) -> PathBuf {
        below(self.own(), &["/faults.jsonl"])
    }

    /// The working memory.
    pub fn memory(&self) -> PathBuf {
        below(self.own(), &["/memory"])
    }

    /// The turn logs.
    pub fn turns(&self) -> PathBuf {
        below(self.own(), &["/turns"])
    }

    /// Windows learned from the client.
    pub fn windows(&self) -> PathBuf {
        below(self.own(), &["/windows.json"])
    }

    /// The record of one session; none for an id that is no plain name.
    pub fn session(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain(session_id).then(|| below(self.own(), &[SESSIONS, session_id, ".json"]))
    }

    /// What the status line published about one session.
    pub fn status_record(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain(session_id).then(|| below(self.own(), &[SESSIONS, session_id, ".status.json"]))
    }

    /// What of the working memory one session has been shown.
    pub(crate) fn seen(&self, session_id: &SessionId) -> Option<PathBuf> {
        is_plain(session_id).then(|| below(self.own(), &["/memory/seen/", session_id, ".json"]))
    }

    /// The captured output of a run.
    pub fn run_folder(&self, run_id: &RunId) -> PathBuf {
        let name = if is_plain(run_id) { run_id } else { "unnamed" };
        self.own().join("runs").join(name)
    }

    /// The lock that the one `plimsoll run` of this project holds. It is outside the project: an agent may
    /// clean the folder, and make or remove the repository, and there is still only one.
    pub fn run_lock(&self) -> PathBuf {
        let Some(home) = environment::state_home() else { return self.copies().join("run.lock") };
        let root = disk::canonical(&self.root);
        let name = plimsoll_domain::digest::sha256(&[root.as_os_str().as_encoded_bytes()]);
        home.join("plimsoll/locks").join(format!("{}.lock", &name[..16]))
    }

    /// `PROMPT.md`.
    pub fn prompt(&self) -> PathBuf {
        self.root.join("PROMPT.md")
    }

    /// What each session did, a paragraph each: among our files, so that it does not dirty the working tree.
    pub fn progress(&self) -> PathBuf {
        below(self.own(), &["/progress.txt"])
    }

    /// Where copies of what an agent's `git clean -fdx` would take away are kept: inside the git folder, or
    /// beside our other files where there is none. Several projects of one repository have each their own.
    pub fn copies(&self) -> PathBuf {
        let repository = if self.is_inside() { repository(&self.root) } else { None };
        let Some((tree, git)) = repository else { return self.own().join("copies") };
        match self.root.strip_prefix(tree) {
            Ok(below) if below != Path::new("") => git.join("plimsoll/below").join(below),
            _ => git.join("plimsoll"),
        }
    }

    /// A path relative to the project, where it is in it.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The git folder of the repository that a folder is in, also of a worktree, found without starting git.
pub fn git_folder_of(folder: &Path) -> Option<PathBuf> {
    repository(folder).map(|(_, git)| git)
}

/// The working tree and its git folder.
pub fn repository(folder: &Path) -> Option<(&Path, PathBuf)> {
    folder.ancestors().find_map(|folder| Some((folder, git_folder_at(&folder.join(".git"))?)))
}

/// What the file system knows the git folder of a repository by, also once another one lies at its path; empty if
/// there is none.
pub fn repository_identity(folder: &Path) -> String {
    let git = git_folder_of(folder).map(|git| common_folder(&git).unwrap_or(git));
    git.and_then(|git| volume::identity(&git)).unwrap_or_default()
}

/// The folder that all worktrees of a repository share, of a git folder; none if it names one that is none.
pub fn common_folder(git: &Path) -> Option<PathBuf> {
    let Some(named) = disk::read_text(&git.join("commondir")).ok().flatten() else {
        return Some(git.to_owned());
    };
    let common = git.join(named.trim());
    is_git_folder(&common).then(|| {
        door::register(&common, door::RootKind::Git);
        common
    })
}

/// Nothing is looked for in a place that is no git folder, only because a file of the project names it.
fn git_folder_at(dot_git: &Path) -> Option<PathBuf> {
    let git = if disk::is_folder_itself(dot_git) {
        dot_git.to_owned()
    } else if disk::is_link(dot_git) {
        Some(disk::canonical(dot_git)).filter(|folder| is_git_folder(folder))?
    } else {
        let text = disk::read_text(dot_git).ok().flatten()?;
        let target = Path::new(text.trim().strip_prefix("gitdir:")?.trim()).to_owned();
        Some(dot_git.parent()?.join(target)).filter(|folder| is_git_folder(folder))?
    };
    door::register(&git, door::RootKind::Git);
    Some(git)
}

/// What git itself asks of one: HEAD, and where objects and references lie, or who knows.
fn is_git_folder(folder: &Path) -> bool {
    let has = |name: &str| disk::exists(&folder.join(name));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// True if the folder of our files in a project decides that they are there. A folder in which nothing is, as a clone may bring one,
/// does not, if the project has files of ours outside: it would hide them.
fn holds_our_files(inside: &Path, is_outside: impl FnOnce() -> bool) -> bool {
    // Mostly this is there, and nothing else need be asked.
    if disk::exists(&below(inside, &["/sessions"])) {
        return true;
    }
    disk::exists(inside) && !(is_empty(inside) && is_outside())
}

/// True if a folder of ours holds nothing but what hides it.
pub(crate) fn is_empty(folder: &Path) -> bool {
    disk::names(folder).iter().all(|name| name == hidden::FILE)
}

/// The folder of our files in a project itself.
fn own_folder_in(root: &Path) -> PathBuf {
    below(root, &["/.claude/plimsoll"])
}

/// A path made in one piece: joining part by part copies it each time, and every hook makes a dozen.
pub(crate) fn below(root: &Path, parts: &[&str]) -> PathBuf {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut path = std::ffi::OsString::with_capacity(root.as_os_str().len() + length);
    path.push(root);
    parts.iter().for_each(|part| path.push(part));
    PathBuf::from(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// An id that can be a file's name and nothing else.
pub(crate) fn is_plain(id: &str) -> bool {
    /// The bytes that it may have. In a table: each hook asks four times.
    const LETTERS: [bool; 256] = {
        let mut letters = [false; 256];
        let mut byte: u8 = 0;
        while byte < 128 {
            letters[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            byte += 1;
        }
        letters
    };
    // Endings come behind it, and a name has at most 255 bytes. `.` and `..` are folders, drafts begin with a dot.
    (1..=128).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(|byte| LETTERS[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_of_one_repository_do_not_share_their_copies() {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let copies = |below: &str| Project::at(&folder.path().join(below)).copies();
        assert_eq!(copies(""), folder.path().join(".git/plimsoll"));
        assert_eq!(copies("a"), folder.path().join(".git/plimsoll/below/a"));
        assert_ne!(copies("a"), copies("b"));
    }

    #[test]
    fn only_a_file_in_the_folder_of_handoffs_is_a_handoff() {
        let project = Project::at(Path::new("/p"));
        let name = "2026-01-07-1145.md";
        for file in [format!(".claude/handoffs/{name}"), format!("/p/.claude/handoffs/{name}")] {
            assert_eq!(project.handoff_path(&file), Some(Path::new("/p/.claude/handoffs").join(name)));
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
            assert_eq!(project.handoff_path(file), None, "{file}");
        }
    }

    #[test]
    fn a_hostile_session_id_has_no_file() {
        let project = Project::at(Path::new("/p"));
        for id in ["", ".", "..", "../x", "a/b", "a\0b", "é", ".hidden", &"x".repeat(129)] {
            assert_eq!(project.session(&SessionId::from(id)), None, "{id:?}");
        }
        assert!(project.session(&"d8e9da22-d41b-4824-a1be-f318ff23689b".into()).is_some());
    }
}
