//! Recognizes the files that Plimsoll itself writes in a project.

/// Paths below the client's folder, or their beginnings.
const PATHS_IN_CLIENT_FOLDER: [&str; 8] = [
    ".claude/plimsoll",
    ".claude/handoffs/",
    ".claude/ralph-state.json",
    ".claude/settings",
    ".claude/commands/ralph.md",
    ".claude/commands/handoff.md",
    ".claude/agents/frame.md",
    ".claude/mcp.json.plimsoll-backup",
];

/// Returns true for a file that Plimsoll writes, which does not count as uncommitted work. The path is relative
/// to the project.
///
/// The client's folder may be listed as `.Claude`, where the volume ignores case. Names outside it are compared
/// exactly, because elsewhere a `prompt.md` is a file of the user.
pub(crate) fn is_plimsoll_file(relative_path: &str) -> bool {
    let starts_with_path = |start: &&str| {
        relative_path.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    PATHS_IN_CLIENT_FOLDER.iter().any(starts_with_path)
        || matches!(relative_path, "PROMPT.md" | "progress.txt" | ".mcp.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_plimsoll_are_recognized_in_every_spelling_of_the_clients_folder() {
        for (path, expected) in [
            (".claude/plimsoll/journal.jsonl", true),
            (".Claude/settings.json", true),
            (".CLAUDE/Settings.local.json", true),
            (".claude/handoffs/a.md", true),
            (".claude/Commands/ralph.md", true),
            ("PROMPT.md", true),
            ("progress.txt", true),
            (".claude", false),
            (".claude/handoffs", false),
            (".claude/commands/mine.md", false),
            (".claude-settings", false),
            (".cläude/settings.json", false),
            ("sub/.claude/settings.json", false),
            ("prompt.md", false),
            ("Progress.txt", false),
        ] {
            assert_eq!(is_plimsoll_file(path), expected, "{path}");
        }
    }
}
