//! Every path of Plimsoll, in one place.

use crate::{disk, environment};
use std::path::{Path, PathBuf};

/// A project and where its files lie.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    state: PathBuf,
}

const SESSIONS: &str = "/.claude/plimsoll/sessions/";

impl Project {
    /// The project of a hook: the folder the client was started in, or else where the session stands.
    pub fn of_hook(cwd: Option<&str>) -> Project {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        Project::at(&root.or(cwd.map(PathBuf::from)).unwrap_or_else(environment::current_dir))
    }

    /// The project of a server that the client has started: the folder that the client names, else as a command's.
    pub fn of_server() -> Project {
        let root = environment::variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        match root.filter(|root| disk::is_folder(root)) {
            Some(root) => Project::at(&root),
            None => Project::of_command(),
        }
    }

    /// The project of a command: the nearest folder upwards that has a state or settings of ours or the
    /// client's, else the repository, else where we stand.
    pub fn of_command() -> Project {
        let here = environment::current_dir();
        let home = environment::home();
        let has = |name: &'static str| {
            let home = home.clone();
            move |folder: &&Path| disk::exists(&folder.join(name)) && Some(*folder) != home.as_deref()
        };
        let found = here
            .ancestors()
            .find(has(".claude/ralph-state.json"))
            .or_else(|| here.ancestors().find(has(".claude/plimsoll")))
            .or_else(|| here.ancestors().find(has(".claude")))
            .or_else(|| here.ancestors().find(has(".git")));
        Project::at(found.unwrap_or(&here))
    }

    /// The project at a folder.
    pub fn at(root: &Path) -> Project {
        let state = match environment::variable("RALPH_STATE_FILE") {
            Some(file) => root.join(file),
            None => below(root, &["/.claude/ralph-state.json"]),
        };
        Project { root: root.to_owned(), state }
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

    /// `.claude/handoffs`.
    pub fn handoffs(&self) -> PathBuf {
        self.root.join(".claude/handoffs")
    }

    /// `.claude/plimsoll`.
    pub fn own(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll"])
    }

    /// The settings of the project.
    pub fn settings(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll.json"])
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.own().join("journal.jsonl")
    }

    /// The last faults of our own hooks.
    pub fn faults(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll/faults.jsonl"])
    }

    /// The working memory.
    pub fn memory(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll/memory"])
    }

    /// The turn logs.
    pub fn turns(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll/turns"])
    }

    /// Windows learned from the client.
    pub fn windows(&self) -> PathBuf {
        below(&self.root, &["/.claude/plimsoll/windows.json"])
    }

    /// The record of one session; none for an id that is no plain name.
    pub fn session(&self, session_id: &str) -> Option<PathBuf> {
        is_plain(session_id).then(|| below(&self.root, &[SESSIONS, session_id, ".json"]))
    }

    /// What the status line published about one session.
    pub fn status_record(&self, session_id: &str) -> Option<PathBuf> {
        is_plain(session_id).then(|| below(&self.root, &[SESSIONS, session_id, ".status.json"]))
    }

    /// The captured output of a run.
    pub fn run_folder(&self, run_id: &str) -> PathBuf {
        let name = if is_plain(run_id) { run_id } else { "unnamed" };
        self.own().join("runs").join(name)
    }

    /// The lock that the one `plimsoll run` of this project holds. It lies outside the project: an agent may
    /// clean the folder, and make or remove the repository, and there is still only one.
    pub fn run_lock(&self) -> PathBuf {
        let Some(home) = environment::state_home() else { return self.copies().join("run.lock") };
        let root = disk::canonical(&self.root);
        let name = session::digest::sha256(&[root.as_os_str().as_encoded_bytes()]);
        home.join("plimsoll/locks").join(format!("{}.lock", &name[..16]))
    }

    /// `PROMPT.md`.
    pub fn prompt(&self) -> PathBuf {
        self.root.join("PROMPT.md")
    }

    /// `progress.txt`.
    pub fn progress(&self) -> PathBuf {
        self.root.join("progress.txt")
    }

    /// Where copies of what an agent's `git clean -fdx` would take away are kept: inside the git folder, or
    /// beside our other files where there is none. Several projects of one repository have each their own.
    pub fn copies(&self) -> PathBuf {
        let Some((tree, git)) = self.repository() else { return self.own().join("copies") };
        match self.root.strip_prefix(tree) {
            Ok(below) if below != Path::new("") => git.join("plimsoll/below").join(below),
            _ => git.join("plimsoll"),
        }
    }

    /// The repository's git folder, also of a worktree, found without starting git.
    pub fn git_folder(&self) -> Option<PathBuf> {
        self.repository().map(|(_, git)| git)
    }

    /// The working tree and its git folder.
    fn repository(&self) -> Option<(&Path, PathBuf)> {
        self.root.ancestors().find_map(|folder| Some((folder, git_folder_at(&folder.join(".git"))?)))
    }

    /// A path relative to the project, where it lies in it.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

fn git_folder_at(dot_git: &Path) -> Option<PathBuf> {
    if disk::is_folder(dot_git) {
        return Some(dot_git.to_owned());
    }
    let text = disk::read_text(dot_git).ok().flatten()?;
    let target = Path::new(text.trim().strip_prefix("gitdir:")?.trim()).to_owned();
    Some(dot_git.parent()?.join(target)).filter(|folder| disk::is_folder(folder))
}

/// A path made in one piece: joining part by part copies it each time, and every hook makes a dozen.
fn below(root: &Path, parts: &[&str]) -> PathBuf {
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
fn is_plain(id: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=128).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(letter)
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
    fn a_hostile_session_id_has_no_file() {
        let project = Project::at(Path::new("/p"));
        for id in ["", ".", "..", "../x", "a/b", "a\0b", "é", ".hidden", &"x".repeat(129)] {
            assert_eq!(project.session(id), None, "{id:?}");
        }
        assert!(project.session("d8e9da22-d41b-4824-a1be-f318ff23689b").is_some());
    }
}
