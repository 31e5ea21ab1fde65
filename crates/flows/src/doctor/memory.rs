//! Facts about the parts of the working memory other than its hooks.

use super::{SettingsFiles, path_relative_to_project_or_home};
use plimsoll_policy::doctor::{McpServerStatus, MemoryInfo, SettingsFile, SettingsScope};
use plimsoll_protocol::settings::servers::{self, McpEntryAuthor};
use plimsoll_protocol::settings::{HookSupport, agent, hook_and_status_line_programs, memory_variable};
use plimsoll_store::{Project, disk, environment};

/// Returns `None` if the working memory is not installed.
pub(super) fn collect_memory_status_if_installed(
    project: &Project,
    settings_files: &SettingsFiles,
) -> Option<MemoryInfo> {
    let programs_without_memory = hook_and_status_line_programs(HookSupport::Modern);
    let has_memory = |file: &&SettingsFile| {
        let our_entries =
            file.summary_if_parsed().map(|summary| summary.our_hooks.as_slice()).unwrap_or_default();
        our_entries.iter().any(|entry| !programs_without_memory.contains(&entry.program))
    };
    let memory_scopes: Vec<SettingsScope> =
        settings_files.iter().filter(has_memory).map(|file| file.scope).collect();
    let is_in_project_scope =
        memory_scopes.iter().any(|scope| matches!(scope, SettingsScope::Project | SettingsScope::Local));
    let is_user_scope = !is_in_project_scope;
    memory_scopes.first()?;
    let folder =
        if is_user_scope { environment::client_config_folder()? } else { project.root().join(".claude") };
    let agent_path = folder.join("agents").join(format!("{}.md", agent::FRAME_AGENT_NAME));
    let mcp_json_path = project.root().join(".mcp.json");
    Some(MemoryInfo {
        server_status: memory_server_status(
            &disk::read_text(&mcp_json_path).ok().flatten().unwrap_or_default(),
            is_user_scope,
        ),
        server_list_file: path_relative_to_project_or_home(project, &mcp_json_path),
        disabling_file: settings_files
            .iter()
            .find(|file| disables_our_server(file))
            .map(|file| file.path.clone()),
        agent_file_exists: disk::exists(&agent_path),
        agent_file: path_relative_to_project_or_home(project, &agent_path),
        nesting_limit: configured_nesting_limit(settings_files),
        is_user_scope,
    })
}

/// Returns how deep agents may nest; `None` if neither the settings nor the environment sets a limit.
pub(super) fn configured_nesting_limit(settings_files: &SettingsFiles) -> Option<u64> {
    let (variable, _) = memory_variable();
    let settings_value =
        settings_files.iter().find_map(|file| file.summary_if_parsed()?.env.get(&variable).cloned());
    settings_value.or_else(|| environment::variable(&variable)).and_then(|text| text.parse().ok())
}

fn memory_server_status(mcp_json_text: &str, is_user_scope: bool) -> McpServerStatus {
    match servers::find_server_entry_author(mcp_json_text) {
        Err(_) => McpServerStatus::UnreadableFile,
        Ok(Some(McpEntryAuthor::Ours | McpEntryAuthor::UserConfigured(_))) => {
            McpServerStatus::ListedInProject
        }
        Ok(Some(McpEntryAuthor::Foreign(_))) => McpServerStatus::OtherProgram,
        Ok(None) if is_user_scope => McpServerStatus::InUserList,
        Ok(None) => McpServerStatus::Missing,
    }
}

fn disables_our_server(file: &SettingsFile) -> bool {
    file.summary_if_parsed()
        .is_some_and(|summary| summary.disabled_mcp_servers.iter().any(|name| name == servers::SERVER_NAME))
}
