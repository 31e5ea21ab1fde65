//! Plans the files of the working memory other than its hooks: our MCP server in the project's list, and the
//! agent that works in frames.

use super::files::{InstalledFileOutcome, plan_file_unless_user_owned};
use super::install_paths::InstallPaths;
use super::restored_file::{RestoredFile, plan_redundant_backup_removal};
use super::{FileChange, InstallError, absolute_program_path_or_name, decode_settings, plan_backup};
use plimsoll_protocol::settings::servers::{self, McpEntryAuthor};
use plimsoll_protocol::settings::{MemoryVariable, agent, quote_program_path};
use plimsoll_store::disk;
use std::path::{Path, PathBuf};

/// The result of planning the installation of the working memory.
#[derive(Debug)]
pub struct MemoryInstallationReport {
    /// The environment variable set in the settings; `None` if the memory was already installed.
    pub memory_variable: Option<MemoryVariable>,
    /// Our server in the project's list; `None` in user scope, where the list is not changed.
    pub server_entry: Option<(PathBuf, ServerEntryOutcome)>,
    /// The command with which the user has to add our server to the user's own list; `None` if not needed.
    pub manual_command: Option<String>,
    pub agent_file: (PathBuf, InstalledFileOutcome),
}

/// The change that a plan makes to the server entry of our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEntryOutcome {
    /// Written or updated.
    Written,
    /// Already correct.
    UpToDate,
    /// There is no entry, and none was requested.
    Absent,
    /// Kept, because the user configured another command for our program.
    KeptUserCommand,
    /// Kept, because the entry starts another program.
    KeptOtherProgram,
}

/// Plans the server entry and the agent file. If the memory is not requested, only our existing entry and file
/// are updated. A server list that a team shares names the server's program without a path.
pub(super) fn plan_server_entry_and_frame_agent(
    paths: &InstallPaths,
    is_requested: bool,
    shared_with_team: bool,
    memory_variable: Option<MemoryVariable>,
    changes: &mut Vec<FileChange>,
) -> Result<MemoryInstallationReport, InstallError> {
    let program_to_command =
        if shared_with_team { |program: &str| program.to_owned() } else { absolute_program_path_or_name };
    let server_entry = match &paths.server_list {
        Some((server_list_path, backup_path)) => Some((
            server_list_path.clone(),
            plan_new_or_updated_server_entry(
                server_list_path,
                backup_path,
                is_requested,
                program_to_command,
                changes,
            )?,
        )),
        None => None,
    };
    let manual_command = (is_requested && server_entry.is_none()).then(|| {
        let program = quote_program_path(&absolute_program_path_or_name(servers::SERVER_PROGRAM));
        format!("claude mcp add --scope user {} -- {program}", servers::SERVER_NAME)
    });
    let agent_file = if is_requested || disk::exists(&paths.agent_file) {
        plan_file_unless_user_owned(&paths.agent_file, agent::FRAME_AGENT_FILE, changes)?
    } else {
        (paths.agent_file.clone(), InstalledFileOutcome::Absent)
    };
    Ok(MemoryInstallationReport { memory_variable, server_entry, manual_command, agent_file })
}

fn plan_new_or_updated_server_entry(
    server_list_path: &Path,
    backup_path: &Path,
    is_requested: bool,
    program_to_command: fn(&str) -> String,
    changes: &mut Vec<FileChange>,
) -> Result<ServerEntryOutcome, InstallError> {
    let current_bytes = disk::read(server_list_path)?;
    let bytes = current_bytes.clone().unwrap_or_default();
    let has_our_server = contains_our_server(&bytes);
    if !is_requested && !has_our_server {
        return Ok(ServerEntryOutcome::Absent);
    }
    let text = decode_settings(server_list_path, &bytes)?;
    let updated_list = servers::add_or_update_our_server(text, &program_to_command)
        .map_err(to_install_error(server_list_path))?;
    match updated_list.entry_author {
        McpEntryAuthor::UserConfigured(_) => return Ok(ServerEntryOutcome::KeptUserCommand),
        McpEntryAuthor::Foreign(_) => return Ok(ServerEntryOutcome::KeptOtherProgram),
        McpEntryAuthor::Ours if updated_list.text == text => return Ok(ServerEntryOutcome::UpToDate),
        McpEntryAuthor::Ours => {}
    }
    if !has_our_server && let Some(bytes) = &current_bytes {
        // The backup is written before the list, so a kill in between leaves at most an unneeded backup, which
        // the next removal deletes.
        changes.push(plan_backup(backup_path, bytes)?);
    }
    changes.push(FileChange {
        path: server_list_path.to_owned(),
        before: current_bytes,
        after: Some(updated_list.text.into_bytes()),
    });
    Ok(ServerEntryOutcome::Written)
}

/// Plans the removal of our server entry. Returns `None` if the list has no entry of ours.
pub(super) fn plan_server_entry_removal(
    server_list_path: &Path,
    backup_path: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<RestoredFile>, InstallError> {
    let Some(current_bytes) = disk::read(server_list_path)? else { return Ok(None) };
    // A list that cannot be parsed is an error only if it may contain our server.
    let mentions_our_server = String::from_utf8_lossy(&current_bytes).contains(servers::SERVER_PROGRAM);
    let backup_bytes = disk::read(backup_path)?;
    if !mentions_our_server {
        plan_redundant_backup_removal(backup_path, backup_bytes, &current_bytes, changes);
        return Ok(None);
    }
    let text = decode_settings(server_list_path, &current_bytes)?;
    let original_text =
        backup_bytes.as_deref().and_then(|bytes| plimsoll_protocol::settings::decode_utf8(bytes).ok());
    let removal_result = servers::remove_our_server_and_empty_containers(text, original_text)
        .map_err(to_install_error(server_list_path))?;
    if !removal_result.removed {
        return Ok(None);
    }
    let has_no_user_edits =
        original_text.is_some_and(|original| servers::is_unchanged_since_install(original, text));
    let restored_text = match original_text {
        Some(original) if has_no_user_edits => Some(original.to_owned()),
        None if removal_result.is_empty && backup_bytes.is_none() => None,
        _ => Some(removal_result.text),
    };
    Ok(Some(RestoredFile::plan_text_and_backup_removal_if_original(
        (server_list_path, &current_bytes),
        restored_text,
        (backup_path, backup_bytes),
        changes,
    )))
}

fn contains_our_server(bytes: &[u8]) -> bool {
    let text = plimsoll_protocol::settings::decode_utf8(bytes).unwrap_or_default();
    matches!(servers::find_server_entry_author(text), Ok(Some(McpEntryAuthor::Ours)))
}

fn to_install_error(
    path: &Path,
) -> impl Fn(plimsoll_protocol::settings::InvalidSettings) -> InstallError + '_ {
    |error| InstallError::InvalidSettings { path: path.to_owned(), error }
}
