//! Facts about the parts of the working memory other than its hooks.

use super::{SettingsFiles, shorten_path};
use plimsoll_policy::doctor::{McpServerStatus, MemoryFacts, SettingsFile, SettingsScope};
use plimsoll_protocol::settings::servers::{self, McpEntry};
use plimsoll_protocol::settings::{HookSupport, agent, memory_variable, program_names};
use plimsoll_store::{Project, disk, environment};

/// Returns `None` if the working memory is not installed.
pub(super) fn gather_memory_facts(project: &Project, settings_files: &SettingsFiles) -> Option<MemoryFacts> {
    let programs_without_memory = program_names(HookSupport::Modern);
    let has_memory = |file: &&SettingsFile| {
        let our_entries =
            file.readable_survey().map(|survey| survey.our_hooks.as_slice()).unwrap_or_default();
        our_entries.iter().any(|entry| !programs_without_memory.contains(&entry.program))
    };
    let memory_scopes: Vec<SettingsScope> =
        settings_files.iter().filter(has_memory).map(|file| file.scope).collect();
    let in_project =
        memory_scopes.iter().any(|scope| matches!(scope, SettingsScope::Project | SettingsScope::Local));
    let is_user_scope = !in_project;
    memory_scopes.first()?;
    let folder =
        if is_user_scope { environment::client_config_folder()? } else { project.root().join(".claude") };
    let agent_path = folder.join("agents").join(format!("{}.md", agent::FRAME_AGENT_NAME));
    let list_path = project.root().join(".mcp.json");
    Some(MemoryFacts {
        server_status: mcp_server_status(
            &disk::read_text(&list_path).ok().flatten().unwrap_or_default(),
            is_user_scope,
        ),
        server_list_file: shorten_path(project, &list_path),
        refusing_file: settings_files
            .iter()
            .find(|file| refuses_our_server(file))
            .map(|file| file.path.clone()),
        has_agent: disk::exists(&agent_path),
        agent_file: shorten_path(project, &agent_path),
        nesting_limit: configured_nesting_limit(settings_files),
        is_user_scope,
    })
}

/// Returns how deep agents may nest; `None` if nothing sets it.
pub(super) fn configured_nesting_limit(settings_files: &SettingsFiles) -> Option<u64> {
    let (variable, _) = memory_variable();
    let settings_value =
        settings_files.iter().find_map(|file| file.readable_survey()?.env.get(&variable).cloned());
    settings_value.or_else(|| environment::variable(&variable)).and_then(|text| text.parse().ok())
}

fn mcp_server_status(list_text: &str, is_user_scope: bool) -> McpServerStatus {
    match servers::find_server_entry(list_text) {
        Err(_) => McpServerStatus::UnreadableFile,
        Ok(Some(McpEntry::Ours | McpEntry::UserConfigured(_))) => McpServerStatus::Ours,
        Ok(Some(McpEntry::Foreign(_))) => McpServerStatus::OtherProgram,
        Ok(None) if is_user_scope => McpServerStatus::InUserList,
        Ok(None) => McpServerStatus::Missing,
    }
}

fn refuses_our_server(file: &SettingsFile) -> bool {
    file.readable_survey()
        .is_some_and(|survey| survey.disabled_servers.iter().any(|name| name == servers::SERVER_NAME))
}
