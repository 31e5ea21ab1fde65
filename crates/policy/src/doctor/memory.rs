//! What the working memory needs beside its hooks: its server, its agent, and room for frames in frames.

use super::{Finding, Section};

/// Our server in the project's `.mcp.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Ours, or the user's own way to start our program.
    Ours,
    /// Not there.
    Missing,
    /// Another program has its name.
    Foreign,
    /// The file does not parse.
    Unreadable,
    /// The user's own list holds it, which the client keeps for itself.
    LeftToUser,
}

/// What the working memory needs.
#[derive(Debug, Clone)]
pub struct MemoryFacts {
    /// The list of servers.
    pub list: String,
    /// Our server in it.
    pub server: Server,
    /// The file that refuses our server, if one does.
    pub refused_by: Option<String>,
    /// The agent of a frame.
    pub agent: String,
    /// True when it is there.
    pub has_agent: bool,
    /// How deep agents may nest; none if not stated.
    pub depth: Option<u64>,
    /// The hooks are in the user's own settings.
    pub by_user: bool,
}

/// How deep frames can nest.
pub(super) const DEPTH: u64 = 5;

pub(super) fn section(facts: &MemoryFacts) -> Section {
    let again = if facts.by_user {
        "run `plimsoll init --user --memory` again"
    } else {
        "run `plimsoll init --local --memory` again"
    };
    let server = match facts.server {
        Server::Ours | Server::LeftToUser => None,
        Server::Missing => Some((
            "memory.no_server",
            "our server is not in the list of MCP servers: the agent has no tools to write with",
            again,
        )),
        Server::Foreign => Some((
            "memory.other_server",
            "another server is named plimsoll: our tools are not there",
            "give it another name, then run `plimsoll init --local --memory`",
        )),
        Server::Unreadable => Some((
            "memory.unreadable",
            "the list of MCP servers does not parse: the client starts none",
            "fix the file",
        )),
    };
    let mut findings: Vec<Finding> = server
        .into_iter()
        .map(|(code, what, todo)| Finding::warning(code, what, todo).at(facts.list.clone()))
        .collect();
    findings.extend(facts.refused_by.iter().map(|file| {
        let what = "our server was refused when the client asked whether to use it";
        Finding::warning("memory.server_refused", what, "take plimsoll out of \"disabledMcpjsonServers\"")
            .at(file.clone())
    }));
    if !facts.has_agent {
        let what = "the agent for frames is missing";
        findings.push(Finding::warning("memory.no_agent", what, again).at(facts.agent.clone()));
    }
    if let Some(depth) = facts.depth.filter(|depth| *depth < DEPTH) {
        let what = format!("agents nest only {depth} deep here, and so do frames");
        let todo = "set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH to 5 in the settings' env to allow more";
        findings.push(Finding::note("memory.depth", what, todo));
    }
    Section::new("Memory", "the working memory is installed", findings)
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    /// What is changed, and the codes that follow.
    type Case = (fn(&mut MemoryFacts), &'static [&'static str]);

    #[test]
    fn what_the_memory_lacks_is_named() {
        let look = |change: fn(&mut MemoryFacts)| {
            let mut facts = MemoryFacts {
                list: ".mcp.json".to_owned(),
                server: Server::Ours,
                refused_by: None,
                agent: "frame.md".to_owned(),
                has_agent: true,
                depth: Some(5),
                by_user: false,
            };
            change(&mut facts);
            section(&facts)
        };
        let cases: [Case; 8] = [
            (|_| (), &[]),
            (|facts| facts.server = Server::Missing, &["memory.no_server"]),
            (|facts| facts.server = Server::Foreign, &["memory.other_server"]),
            (|facts| facts.server = Server::Unreadable, &["memory.unreadable"]),
            (|facts| facts.server = Server::LeftToUser, &[]),
            (|facts| facts.refused_by = Some("local.json".to_owned()), &["memory.server_refused"]),
            (|facts| facts.has_agent = false, &["memory.no_agent"]),
            (|facts| facts.depth = Some(3), &["memory.depth"]),
        ];
        for (change, expected) in cases {
            let section = look(change);
            assert_eq!(codes(&section), expected, "{section:?}");
        }
    }
}
