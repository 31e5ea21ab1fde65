//! The paths of the files that an installation reads, writes or removes.

use super::{InstallError, InstallScope, SLASH_COMMAND_FILES, client_module, git_exclude};
use plimsoll_protocol::settings::{self, OurHookEntry};
use plimsoll_store::{disk, environment};
use std::path::{Path, PathBuf};

/// The project's list of MCP servers, in the project's root folder.
pub(super) const SERVER_LIST_FILE: &str = ".mcp.json";
/// Files that an installation may write into the project's root folder, which is never removed.
pub(super) const FILES_IN_PROJECT_ROOT: [&str; 2] = [SERVER_LIST_FILE, ".gitignore"];

pub(super) struct InstallPaths {
    pub(super) settings_file: PathBuf,
    pub(super) backup_file: PathBuf,
    pub(super) command_folder: PathBuf,
    pub(super) agent_file: PathBuf,
    /// The project's list of MCP servers and its backup. `None` in user scope, because the client itself
    /// rewrites the user's list all the time.
    pub(super) server_list: Option<(PathBuf, PathBuf)>,
    /// The other settings file of the same project, which shares commands, exclude lines and memory.
    pub(super) sibling_settings: Option<PathBuf>,
    /// Every other settings file that the client reads in this project.
    pub(super) other_settings: Vec<(InstallScope, PathBuf)>,
    /// The project's preferences, which are shared with the team.
    pub(super) preferences_file: PathBuf,
}

impl InstallPaths {
    pub(super) fn for_scope(scope: InstallScope, project: &Path) -> Result<InstallPaths, InstallError> {
        let (shared_settings, local_settings) =
            (project.join(".claude/settings.json"), project.join(".claude/settings.local.json"));
        let user_config_folder = environment::client_config_folder();
        let user_settings = user_config_folder.as_ref().map(|directory| directory.join("settings.json"));
        let is_user_settings = |path: &Path| {
            user_settings.as_ref().is_some_and(|user_settings| is_same_file(user_settings, path))
        };
        if scope == InstallScope::Project && is_user_settings(&shared_settings) {
            return Err(InstallError::ProjectIsHomeFolder { path: shared_settings });
        }
        let (settings_file, sibling_settings) = match scope {
            InstallScope::Project => (shared_settings.clone(), Some(local_settings.clone())),
            InstallScope::Local => (local_settings.clone(), Some(shared_settings.clone())),
            InstallScope::User => (user_settings.clone().ok_or(InstallError::NoHome)?, None),
        };
        let claude_folder = match (scope, user_config_folder) {
            (InstallScope::User, Some(directory)) => directory,
            _ => project.join(".claude"),
        };
        // git's exclude lines already cover this path.
        let server_list_backup = project.join(".claude/mcp.json.plimsoll-backup");
        let server_list =
            (scope != InstallScope::User).then(|| (project.join(SERVER_LIST_FILE), server_list_backup));
        let mut backup_file = settings_file.clone().into_os_string();
        backup_file.push(".plimsoll-backup");
        let other_settings =
            [(InstallScope::Project, shared_settings), (InstallScope::Local, local_settings)].into_iter();
        let other_settings =
            other_settings.chain(user_settings.map(|user_settings| (InstallScope::User, user_settings)));
        Ok(InstallPaths {
            other_settings: other_settings.filter(|(_, path)| !is_same_file(path, &settings_file)).collect(),
            preferences_file: project.join(".claude/plimsoll.json"),
            settings_file,
            backup_file: backup_file.into(),
            command_folder: claude_folder.join("commands"),
            agent_file: claude_folder
                .join("agents")
                .join(format!("{}.md", settings::agent::FRAME_AGENT_NAME)),
            server_list,
            sibling_settings,
        })
    }
}

impl InstallPaths {
    /// Returns every file that an installation writes or removes.
    pub(super) fn written_or_removed_files(&self, scope: InstallScope, project: &Path) -> Vec<PathBuf> {
        let mut files = vec![self.settings_file.clone(), self.backup_file.clone(), self.agent_file.clone()];
        files.extend(SLASH_COMMAND_FILES.map(|(name, _)| self.command_folder.join(name)));
        if let Some((server_list_path, backup_path)) = &self.server_list {
            files.extend([server_list_path.clone(), backup_path.clone()]);
        }
        if scope == InstallScope::Project {
            files.extend([self.preferences_file.clone(), git_exclude::gitignore_file(project).path]);
        }
        if scope == InstallScope::User {
            files.extend(client_module::written_files());
        } else {
            files.extend(git_exclude::find_exclude_file(project).map(|exclude_file| exclude_file.path));
        }
        files
    }
}

/// Returns every settings file that the client reads in a project, the one with the highest precedence first.
pub(crate) fn settings_files(project: &Path) -> impl Iterator<Item = PathBuf> {
    let user_settings = environment::client_config_folder().map(|directory| directory.join("settings.json"));
    let project_settings =
        [".claude/settings.local.json", ".claude/settings.json"].map(|name| project.join(name));
    project_settings.into_iter().chain(user_settings)
}

/// Returns true if a settings file has Plimsoll hooks. An unreadable file counts as having none.
pub(super) fn has_our_hooks(path: &Path) -> bool {
    !our_hooks_in_file(path).is_empty()
}

/// Returns true if a settings file has Plimsoll hooks without `--guarded`, which do not yield to other hooks.
pub(super) fn has_hooks_that_never_yield(path: &Path) -> bool {
    our_hooks_in_file(path).iter().any(|hook| !hook.is_team_entry)
}

/// Compares canonical paths: in the home folder, the project's settings are the user's settings.
fn is_same_file(left: &Path, right: &Path) -> bool {
    disk::canonicalize_or_keep(left) == disk::canonicalize_or_keep(right)
}

/// Returns true if a settings file has hooks of the working memory.
pub(super) fn has_memory_hooks(path: &Path) -> bool {
    our_hooks_in_file(path).iter().any(OurHookEntry::is_for_memory)
}

pub(crate) fn our_hooks_in_file(path: &Path) -> Vec<OurHookEntry> {
    let text = disk::read_text(path).ok().flatten().unwrap_or_default();
    // A plugin's hooks call this at every event, and most files can be skipped without parsing.
    if !text.contains("plimsoll-") {
        return Vec::new();
    }
    settings::find_our_hooks(&text).unwrap_or_default()
}
