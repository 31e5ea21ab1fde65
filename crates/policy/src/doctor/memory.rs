//! Checks the working memory's requirements apart from its hooks: MCP server, frame agent, and nesting limit.

use super::{Finding, Section};

/// Whether the project's `.mcp.json` lists Plimsoll's MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpServerStatus {
    /// Listed in `.mcp.json`, possibly with a command that the user changed.
    ListedInProject,
    Missing,
    /// Another program is listed under the server's name.
    OtherProgram,
    /// The file does not parse.
    UnreadableFile,
    /// Listed in the user's MCP servers, which the client maintains itself.
    InUserList,
}

#[derive(Debug, Clone)]
pub struct MemoryInfo {
    /// The file that lists MCP servers.
    pub server_list_file: String,
    pub server_status: McpServerStatus,
    /// The settings file that disables the server, if there is one.
    pub disabling_file: Option<String>,
    /// The file of the frame agent.
    pub agent_file: String,
    /// True if that file exists.
    pub agent_file_exists: bool,
    /// How deep subagents may nest; `None` if not configured.
    pub nesting_limit: Option<u64>,
    /// True if the hooks are in the user settings.
    pub is_user_scope: bool,
}

/// The depth to which frames can nest.
pub(super) const MAX_FRAME_DEPTH: u64 = 5;

pub(super) fn check_memory_server_agent_and_nesting(memory: &MemoryInfo) -> Section {
    let init_advice = if memory.is_user_scope {
        "run `plimsoll init --user --memory` again"
    } else {
        "run `plimsoll init --local --memory` again"
    };
    let server_problem = match memory.server_status {
        McpServerStatus::ListedInProject | McpServerStatus::InUserList => None,
        McpServerStatus::Missing => Some((
            "memory.no_server",
            "our server is not in the list of MCP servers: the agent has no tools to write with",
            init_advice,
        )),
        McpServerStatus::OtherProgram => Some((
            "memory.other_server",
            "another server is named plimsoll, so the memory tools are missing",
            "rename it, then run `plimsoll init --local --memory`",
        )),
        McpServerStatus::UnreadableFile => Some((
            "memory.unreadable",
            "the list of MCP servers does not parse: Claude Code starts none",
            "fix the file",
        )),
    };
    let mut findings: Vec<Finding> = server_problem
        .into_iter()
        .map(|(code, message, advice)| {
            Finding::warning(code, message, advice).with_path(memory.server_list_file.clone())
        })
        .collect();
    findings.extend(memory.disabling_file.iter().map(|file| {
        let message = "our server was refused when Claude Code asked whether to use it";
        Finding::warning("memory.server_refused", message, "take plimsoll out of \"disabledMcpjsonServers\"")
            .with_path(file.clone())
    }));
    if !memory.agent_file_exists {
        let message = "the agent for frames is missing";
        findings.push(
            Finding::warning("memory.no_agent", message, init_advice).with_path(memory.agent_file.clone()),
        );
    }
    if let Some(nesting_limit) = memory.nesting_limit.filter(|limit| *limit < MAX_FRAME_DEPTH) {
        let message = format!("agents nest only {nesting_limit} deep here, and so do frames");
        let advice = "set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH to 5 in the settings' env to allow more";
        findings.push(Finding::note("memory.depth", message, advice));
    }
    Section::new("Memory", "the working memory is installed", findings)
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    /// A change to the memory information, and the codes of the expected findings.
    type Case = (fn(&mut MemoryInfo), &'static [&'static str]);

    #[test]
    fn each_missing_part_of_the_working_memory_is_reported() {
        let check_changed = |change: fn(&mut MemoryInfo)| {
            let mut facts = MemoryInfo {
                server_list_file: ".mcp.json".to_owned(),
                server_status: McpServerStatus::ListedInProject,
                disabling_file: None,
                agent_file: "frame.md".to_owned(),
                agent_file_exists: true,
                nesting_limit: Some(5),
                is_user_scope: false,
            };
            change(&mut facts);
            check_memory_server_agent_and_nesting(&facts)
        };
        let cases: [Case; 8] = [
            (|_| (), &[]),
            (|facts| facts.server_status = McpServerStatus::Missing, &["memory.no_server"]),
            (|facts| facts.server_status = McpServerStatus::OtherProgram, &["memory.other_server"]),
            (|facts| facts.server_status = McpServerStatus::UnreadableFile, &["memory.unreadable"]),
            (|facts| facts.server_status = McpServerStatus::InUserList, &[]),
            (|facts| facts.disabling_file = Some("local.json".to_owned()), &["memory.server_refused"]),
            (|facts| facts.agent_file_exists = false, &["memory.no_agent"]),
            (|facts| facts.nesting_limit = Some(3), &["memory.depth"]),
        ];
        for (change, expected) in cases {
            let section = check_changed(change);
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
    }
}
