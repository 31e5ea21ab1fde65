//! Which files of a project are ours.

/// Our own files are never work in progress.
pub(crate) fn is_ours(path: &str) -> bool {
    let ours = [
        ".claude/plimsoll",
        ".claude/handoffs/",
        ".claude/ralph-state.json",
        ".claude/settings",
        ".claude/commands/ralph.md",
        ".claude/commands/handoff.md",
        ".claude/agents/frame.md",
        ".claude/mcp.json.plimsoll-backup",
    ];
    ours.iter().any(|start| path.starts_with(start))
        || matches!(path, "PROMPT.md" | "progress.txt" | ".mcp.json")
}
