//! Where an installation's files are.

use super::{COMMANDS, InstallError, Scope, git_exclude};
use plimsoll_protocol::settings::{self, OurHook};
use plimsoll_store::{disk, environment};
use std::path::{Path, PathBuf};

/// A project's list of MCP servers, in the project's own folder.
pub(super) const SERVERS: &str = ".mcp.json";
/// What an installation may write into the project's own folder, which stays.
pub(super) const IN_ROOT: [&str; 2] = [SERVERS, ".gitignore"];

pub(super) struct Places {
    pub(super) settings: PathBuf,
    pub(super) backup: PathBuf,
    pub(super) commands: PathBuf,
    pub(super) agent: PathBuf,
    /// The project's list of MCP servers and its backup; none for the user, whose list the client itself rewrites
    /// all the time.
    pub(super) servers: Option<(PathBuf, PathBuf)>,
    /// The other settings file of the same project, which shares commands, exclude lines and memory.
    pub(super) sibling: Option<PathBuf>,
    /// Every other settings file that the client reads in this project.
    pub(super) others: Vec<(Scope, PathBuf)>,
    /// What a project prefers, for everybody.
    pub(super) preferences: PathBuf,
}

impl Places {
    pub(super) fn of(scope: Scope, project: &Path) -> Result<Places, InstallError> {
        let (shared, local) =
            (project.join(".claude/settings.json"), project.join(".claude/settings.local.json"));
        let user = environment::client_folder();
        let user_settings = user.as_ref().map(|directory| directory.join("settings.json"));
        let is_users = |path: &Path| user_settings.as_ref().is_some_and(|users| is_same(users, path));
        if scope == Scope::Project && is_users(&shared) {
            return Err(InstallError::HomeIsNoProject { path: shared });
        }
        let (file, sibling) = match scope {
            Scope::Project => (shared.clone(), Some(local.clone())),
            Scope::Local => (local.clone(), Some(shared.clone())),
            Scope::User => (user_settings.clone().ok_or(InstallError::NoHome)?, None),
        };
        let folder = match (scope, user) {
            (Scope::User, Some(directory)) => directory,
            _ => project.join(".claude"),
        };
        // Where git's exclude lines already cover it.
        let servers_backup = project.join(".claude/mcp.json.plimsoll-backup");
        let servers = (scope != Scope::User).then(|| (project.join(SERVERS), servers_backup));
        let mut backup = file.clone().into_os_string();
        backup.push(".plimsoll-backup");
        let others = [(Scope::Project, shared), (Scope::Local, local)].into_iter();
        let others = others.chain(user_settings.map(|users| (Scope::User, users)));
        Ok(Places {
            others: others.filter(|(_, path)| !is_same(path, &file)).collect(),
            preferences: project.join(".claude/plimsoll.json"),
            settings: file,
            backup: backup.into(),
            commands: folder.join("commands"),
            agent: folder.join("agents").join(format!("{}.md", settings::agent::NAME)),
            servers,
            sibling,
        })
    }
}

impl Places {
    /// Every file that an installation writes or removes here.
    pub(super) fn files(&self, scope: Scope, project: &Path) -> Vec<PathBuf> {
        let mut files = vec![self.settings.clone(), self.backup.clone(), self.agent.clone()];
        files.extend(COMMANDS.map(|(name, _)| self.commands.join(name)));
        if let Some((list, backup)) = &self.servers {
            files.extend([list.clone(), backup.clone()]);
        }
        if scope == Scope::Project {
            files.extend([self.preferences.clone(), git_exclude::gitignore_of(project).file]);
        }
        if scope != Scope::User {
            files.extend(git_exclude::place_of(project).map(|place| place.file));
        }
        files
    }
}

/// Every settings file that the client reads in a project; the first rules over the others.
pub(crate) fn settings_files(project: &Path) -> impl Iterator<Item = PathBuf> {
    let user = environment::client_folder().map(|directory| directory.join("settings.json"));
    let own = [".claude/settings.local.json", ".claude/settings.json"].map(|name| project.join(name));
    own.into_iter().chain(user)
}

/// Whether another settings file names us; one that cannot be read is none of our business here.
pub(super) fn holds_ours(path: &Path) -> bool {
    !hooks_in(path).is_empty()
}

/// Whether a settings file has entries of ours that also run beside others of ours.
pub(super) fn holds_unguarded(path: &Path) -> bool {
    hooks_in(path).iter().any(|hook| !hook.guarded)
}

/// In the home folder the project's settings are the user's.
fn is_same(one: &Path, other: &Path) -> bool {
    disk::canonical(one) == disk::canonical(other)
}

/// Whether another settings file still needs the working memory.
pub(super) fn holds_memory(path: &Path) -> bool {
    hooks_in(path).iter().any(OurHook::is_memorys)
}

pub(crate) fn hooks_in(path: &Path) -> Vec<OurHook> {
    let text = disk::read_text(path).ok().flatten().unwrap_or_default();
    // A plugin's hooks ask this each time: most files need no closer look.
    if !text.contains("plimsoll-") {
        return Vec::new();
    }
    settings::our_hooks(&text).unwrap_or_default()
}
