//! What the working memory needs beside its hooks.

use super::{Files, shown};
use plimsoll_policy::doctor::{MemoryFacts, Scope, Server, SettingsFile};
use plimsoll_protocol::settings::servers::{self, McpEntry};
use plimsoll_protocol::settings::{HookSupport, agent, memory_variable, programs_of};
use plimsoll_store::{Project, disk, environment};

/// None if it is not installed.
pub(super) fn facts(project: &Project, found: &Files) -> Option<MemoryFacts> {
    let without = programs_of(HookSupport::Modern);
    let has_memory = |one: &&SettingsFile| {
        let ours = one.said().map(|survey| survey.ours.as_slice()).unwrap_or_default();
        ours.iter().any(|entry| !without.contains(&entry.program))
    };
    let installed: Vec<Scope> = found.iter().filter(has_memory).map(|one| one.scope).collect();
    let in_project = installed.iter().any(|scope| matches!(scope, Scope::Project | Scope::Local));
    let by_user = !in_project;
    installed.first()?;
    let folder = if by_user { environment::client_folder()? } else { project.root().join(".claude") };
    let agent = folder.join("agents").join(format!("{}.md", agent::NAME));
    let list = project.root().join(".mcp.json");
    Some(MemoryFacts {
        server: server(&disk::read_text(&list).ok().flatten().unwrap_or_default(), by_user),
        list: shown(project, &list),
        refused_by: found.iter().find(|one| refuses(one)).map(|one| one.path.clone()),
        has_agent: disk::exists(&agent),
        agent: shown(project, &agent),
        depth: depth(found),
        by_user,
    })
}

/// How deep agents may nest; none if not stated.
pub(super) fn depth(found: &Files) -> Option<u64> {
    let (variable, _) = memory_variable();
    let of_settings = found.iter().find_map(|one| one.said()?.env.get(&variable).cloned());
    of_settings.or_else(|| environment::variable(&variable)).and_then(|depth| depth.parse().ok())
}

fn server(list: &str, by_user: bool) -> Server {
    match servers::entry(list) {
        Err(_) => Server::Unreadable,
        Ok(Some(McpEntry::Ours | McpEntry::OwnWay(_))) => Server::Ours,
        Ok(Some(McpEntry::Foreign(_))) => Server::Foreign,
        Ok(None) if by_user => Server::LeftToUser,
        Ok(None) => Server::Missing,
    }
}

fn refuses(one: &SettingsFile) -> bool {
    one.said().is_some_and(|survey| survey.refused_servers.iter().any(|name| name == servers::NAME))
}
