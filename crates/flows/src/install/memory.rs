//! The parts of the working memory other than its hooks: our MCP server in the project's list, and the agent
//! of a frame.

use super::files::{OwnFileOutcome, plan_own_file};
use super::install_paths::InstallPaths;
use super::restored_file::{RestoredFile, plan_stale_backup_removal};
use super::{FileChange, InstallError, absolute_command, decode_settings, plan_backup};
use plimsoll_protocol::settings::servers::{self, McpEntry};
use plimsoll_protocol::settings::{MemoryVariable, agent, shell_quote};
use plimsoll_store::disk;
use std::path::{Path, PathBuf};

/// The result of planning the installation of the working memory.
#[derive(Debug)]
pub struct MemoryInstallation {
    /// The variable in the settings; `None` if the memory was installed before and is only updated.
    pub memory_variable: Option<MemoryVariable>,
    /// Our server in the project's list; `None` if the server list is the user's own.
    pub server_entry: Option<(PathBuf, ServerEntryOutcome)>,
    /// The command with which the user adds our server to the user's own list, if that is still to be done.
    pub manual_command: Option<String>,
    pub agent_file: (PathBuf, OwnFileOutcome),
}

/// The outcome for the server entry with our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEntryOutcome {
    /// Written or updated.
    Written,
    /// Already correct.
    UpToDate,
    /// Missing, and not requested.
    Absent,
    /// Kept: the user's own way to start our program.
    UsersCommand,
    /// Kept: another program.
    OtherProgram,
}

/// Plans the server entry and the agent. If the memory is not requested, only our existing files are updated.
/// A list that the team shares names the server's program without a path.
pub(super) fn plan_memory(
    paths: &InstallPaths,
    is_requested: bool,
    is_shared: bool,
    memory_variable: Option<MemoryVariable>,
    changes: &mut Vec<FileChange>,
) -> Result<MemoryInstallation, InstallError> {
    let to_command = if is_shared { |program: &str| program.to_owned() } else { absolute_command };
    let server_entry = match &paths.server_list {
        Some((list_path, backup)) => Some((
            list_path.clone(),
            plan_server_entry(list_path, backup, is_requested, to_command, changes)?,
        )),
        None => None,
    };
    let manual_command = (is_requested && server_entry.is_none()).then(|| {
        let program = shell_quote(&absolute_command(servers::SERVER_PROGRAM));
        format!("claude mcp add --scope user {} -- {program}", servers::SERVER_NAME)
    });
    let agent_file = if is_requested || disk::exists(&paths.agent_file) {
        plan_own_file(&paths.agent_file, agent::FRAME_AGENT_FILE, changes)?
    } else {
        (paths.agent_file.clone(), OwnFileOutcome::Absent)
    };
    Ok(MemoryInstallation { memory_variable, server_entry, manual_command, agent_file })
}

fn plan_server_entry(
    list_path: &Path,
    backup: &Path,
    is_requested: bool,
    to_command: fn(&str) -> String,
    changes: &mut Vec<FileChange>,
) -> Result<ServerEntryOutcome, InstallError> {
    let current_bytes = disk::read(list_path)?;
    let bytes = current_bytes.clone().unwrap_or_default();
    let has_our_server = contains_our_server(&bytes);
    if !is_requested && !has_our_server {
        return Ok(ServerEntryOutcome::Absent);
    }
    let text = decode_settings(list_path, &bytes)?;
    let installed = servers::install(text, &to_command).map_err(to_install_error(list_path))?;
    match installed.entry {
        McpEntry::UserConfigured(_) => return Ok(ServerEntryOutcome::UsersCommand),
        McpEntry::Foreign(_) => return Ok(ServerEntryOutcome::OtherProgram),
        McpEntry::Ours if installed.text == text => return Ok(ServerEntryOutcome::UpToDate),
        McpEntry::Ours => {}
    }
    if !has_our_server && let Some(bytes) = &current_bytes {
        // The backup before the list: a kill in between leaves at most an unneeded backup, which the next
        // removal deletes.
        changes.push(plan_backup(backup, bytes)?);
    }
    changes.push(FileChange {
        path: list_path.to_owned(),
        before: current_bytes,
        after: Some(installed.text.into_bytes()),
    });
    Ok(ServerEntryOutcome::Written)
}

/// Plans the removal of our server. Returns `None` if the list has none of ours.
pub(super) fn plan_server_removal(
    list_path: &Path,
    backup: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<RestoredFile>, InstallError> {
    let Some(current_bytes) = disk::read(list_path)? else { return Ok(None) };
    // A list that we cannot read is an error only if it may contain something of ours.
    let mentions_our_server = String::from_utf8_lossy(&current_bytes).contains(servers::SERVER_PROGRAM);
    let backup_bytes = disk::read(backup)?;
    if !mentions_our_server {
        plan_stale_backup_removal(backup, backup_bytes, &current_bytes, changes);
        return Ok(None);
    }
    let text = decode_settings(list_path, &current_bytes)?;
    let original_text =
        backup_bytes.as_deref().and_then(|bytes| plimsoll_protocol::settings::decode_utf8(bytes).ok());
    let uninstalled = servers::uninstall(text, original_text).map_err(to_install_error(list_path))?;
    if !uninstalled.removed {
        return Ok(None);
    }
    let is_untouched =
        original_text.is_some_and(|original| servers::is_unchanged_since_install(original, text));
    let after = match original_text {
        Some(original) if is_untouched => Some(original.to_owned()),
        None if uninstalled.is_empty && backup_bytes.is_none() => None,
        _ => Some(uninstalled.text),
    };
    Ok(Some(RestoredFile::plan_text_and_remove_restored_backup(
        (list_path, &current_bytes),
        after,
        (backup, backup_bytes),
        changes,
    )))
}

fn contains_our_server(bytes: &[u8]) -> bool {
    let text = plimsoll_protocol::settings::decode_utf8(bytes).unwrap_or_default();
    matches!(servers::find_server_entry(text), Ok(Some(McpEntry::Ours)))
}

fn to_install_error(
    path: &Path,
) -> impl Fn(plimsoll_protocol::settings::InvalidSettings) -> InstallError + '_ {
    |error| InstallError::InvalidSettings { path: path.to_owned(), error }
}
