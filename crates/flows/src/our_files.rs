//! Recognizes the files that Plimsoll itself writes in a project.

/// Returns true for a file of Plimsoll's own, which is never work in progress.
pub(crate) fn is_plimsoll_file(path: &str) -> bool {
    let prefixes = [
        ".claude/plimsoll",
        ".claude/handoffs/",
        ".claude/ralph-state.json",
        ".claude/settings",
        ".claude/commands/ralph.md",
        ".claude/commands/handoff.md",
        ".claude/agents/frame.md",
        ".claude/mcp.json.plimsoll-backup",
    ];
    prefixes.iter().any(|start| path.starts_with(start))
        || matches!(path, "PROMPT.md" | "progress.txt" | ".mcp.json")
}
