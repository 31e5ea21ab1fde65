//! Files of a project that no session of a run may change (`--protect`), as recorded at the start of the run.

use crate::format::FormatVersion;
use crate::text::{count_with_noun, to_safe_single_line, truncate_end};
use serde::{Deserialize, Serialize};

/// The maximum number of files, links and folders below the protected paths of a run.
pub const MAX_PROTECTED_ENTRIES: usize = 10_000;
/// The maximum total size of the protected files, in bytes. They are read after each session.
pub const MAX_PROTECTED_BYTES: u64 = 64 << 20;
/// The maximum depth of nested folders below a protected path.
pub const MAX_FOLDER_DEPTH: usize = 64;
/// The maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// The maximum number of changes that a comparison lists.
pub const MAX_LISTED_CHANGES: usize = 50;
/// The maximum number of changes that a sentence names, and the maximum length of one in characters.
const MAX_SHOWN_CHANGES: usize = 5;
const MAX_SHOWN_CHANGE_CHARS: usize = 160;

/// The recorded content of all protected paths. It is stored beside the run's ledger, outside the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtectedFiles {
    pub format: FormatVersion,
    /// The protected files and folders, relative to the project.
    pub paths: Vec<String>,
    /// The files and links below these paths, sorted by path. Folders are not recorded, because an empty one
    /// protects nothing.
    pub entries: Vec<ProtectedEntry>,
    /// The contents that commits may give the files; `None` if the project was not in a git repository.
    #[serde(rename = "git")]
    pub commits: Option<ProtectedCommits>,
    /// The verify commands that have run before a session without changing a protected file.
    #[serde(rename = "harmless_verify")]
    pub harmless_verify_commands: Vec<String>,
}

/// The contents that commits may give the protected files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedCommits {
    /// The identity of the git folder.
    pub repository: String,
    /// The branch that was checked out, `refs/heads/NAME`; `None` if there was no commit or HEAD was
    /// detached.
    pub branch: Option<String>,
    /// The protected files as they were in HEAD.
    #[serde(rename = "committed")]
    pub head_files: Vec<GitEntry>,
    /// The protected files as a commit of the working tree at that time would have contained them.
    #[serde(rename = "would_be")]
    pub working_tree_files: Vec<GitEntry>,
}

/// A file in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitEntry {
    /// Its path, relative to the project.
    pub path: String,
    /// Its mode and object id, separated by a space.
    pub object: String,
    /// The commit or tree that contains it.
    pub source: String,
}

/// Why git could not read a repository or a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFailure {
    /// Git timed out twice.
    TimedOut,
    /// There is no such repository or commit, or it is damaged.
    Unreadable,
}

/// The differences between the protected files and their recorded content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedChanges {
    /// The changes, each with how to undo it, at most [`MAX_LISTED_CHANGES`].
    pub descriptions: Vec<String>,
    /// True if a session cannot undo one of the changes, so that another session would only cost money.
    pub needs_user: bool,
    /// True if git timed out, so that there may be more changes.
    pub git_timed_out: bool,
}

/// A file or link below a protected path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedEntry {
    /// Its path, relative to the project.
    pub path: String,
    /// The file or link at the path.
    pub content: ProtectedContent,
}

/// A file or link at a protected path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtectedContent {
    /// A regular file.
    File {
        /// The SHA-256 of its bytes.
        sha256: String,
        /// True if its owner may execute it.
        is_executable: bool,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// The target path that the link contains.
        target: String,
    },
    /// A pipe, a socket, a device, or a file that cannot be read. A run does not start with one, so it always
    /// counts as a change.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// Describes changes of protected files in a sentence without a final period, each with how to undo it.
pub fn describe_protected_changes(changes: &[String]) -> String {
    let at_least = if changes.len() >= MAX_LISTED_CHANGES { "at least " } else { "" };
    let has_or_have = if changes.len() == 1 { "has" } else { "have" };
    let files = count_with_noun(changes.len(), "protected file");
    format!("{at_least}{files} {has_or_have} changed since the run began: {}", list_first_changes(changes))
}

/// Returns the path from the description of a change, `PATH (…)` or `PATH in REFERENCE (…)`.
pub fn parse_path_of_change(description: &str) -> &str {
    let without_hint = description.rsplit_once(" (").map_or(description, |(before_hint, _)| before_hint);
    let is_reference = |name: &str| name == "HEAD" || name.starts_with("refs/");
    without_hint
        .rsplit_once(" in ")
        .filter(|(_, name)| is_reference(name))
        .map_or(without_hint, |(path, _)| path)
}

/// Lists the first few of these changes, and the number of the others.
pub fn list_first_changes(changes: &[String]) -> String {
    let shorten = |change: &String| truncate_end(&to_safe_single_line(change), MAX_SHOWN_CHANGE_CHARS);
    let shown_changes: Vec<String> = changes.iter().take(MAX_SHOWN_CHANGES).map(shorten).collect();
    let omitted_count = changes.len().saturating_sub(shown_changes.len());
    let more_note = if omitted_count > 0 { format!(" and {omitted_count} more") } else { String::new() };
    format!("{}{more_note}", shown_changes.join(", "))
}
