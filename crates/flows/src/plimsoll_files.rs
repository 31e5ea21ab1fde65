//! Recognizes the files that Plimsoll itself writes in a project.

/// Returns true for a file that Plimsoll writes, which does not count as uncommitted work. The path is relative
/// to the project.
pub(crate) fn is_plimsoll_file(relative_path: &str) -> bool {
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
    prefixes.iter().any(|start| relative_path.starts_with(start))
        || matches!(relative_path, "PROMPT.md" | "progress.txt" | ".mcp.json")
}
