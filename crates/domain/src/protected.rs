//! Files of a project that no session of a run may change (`--protect`), as they were when they were recorded.

use crate::format::Format;
use crate::text::{clip, counted, one_line};
use serde::{Deserialize, Serialize};

/// The most files, links and folders below the protected paths of a run.
pub const MAX_ENTRIES: usize = 10_000;
/// The most bytes of all protected files together. They are read after each session.
pub const MAX_BYTES: u64 = 64 << 20;
/// The most folders of which one is in the other.
pub const MAX_DEPTH: usize = 64;
/// The most bytes of a path.
pub const MAX_PATH_BYTES: usize = 4096;
/// The most changes that a comparison lists.
pub const MAX_CHANGES: usize = 50;
/// The most of them that a sentence names, and the most bytes of one.
const MAX_SHOWN: usize = 5;
const MAX_SHOWN_BYTES: usize = 160;

/// Everything below the protected paths, as it was recorded. It is kept beside the run's ledger, outside the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtectedFiles {
    /// The format of the file.
    pub format: Format,
    /// The protected files and folders, relative to the project.
    pub paths: Vec<String>,
    /// The files and links below these paths, sorted by path. No folders: an empty one checks nothing.
    pub entries: Vec<ProtectedEntry>,
    /// The contents that commits may give them; none if the project was in no git repository.
    pub git: Option<ProtectedCommits>,
    /// The verify commands that have run before a session and left the protected files as they were.
    pub harmless_verify: Vec<String>,
}

/// The contents that commits may give the protected files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedCommits {
    /// The identity of the git folder.
    pub repository: String,
    /// The branch that was checked out, `refs/heads/NAME`; none if there was no commit or HEAD was detached.
    pub branch: Option<String>,
    /// The protected files as HEAD had them.
    pub committed: Vec<GitEntry>,
    /// The same files as a commit of the disk would have had them.
    pub would_be: Vec<GitEntry>,
}

/// A file in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitEntry {
    /// Its path, relative to the project.
    pub path: String,
    /// Its mode and object id, separated by a blank.
    pub object: String,
    /// The commit or tree that has it.
    pub source: String,
}

/// Why git does not say what a repository or a commit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFailure {
    /// Git did not answer in time, although it was asked twice.
    NoAnswer,
    /// There is no such repository or commit, or it is damaged.
    Unreadable,
}

/// How protected files differ from what was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedChanges {
    /// The changes, each with how it is undone, at most [`MAX_CHANGES`].
    pub descriptions: Vec<String>,
    /// True if no session can undo one of them, so that another session would only cost money.
    pub needs_user: bool,
    /// True if git did not answer, so that there may be others.
    pub is_unanswered: bool,
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
    /// A plain file.
    File {
        /// The SHA-256 of its bytes.
        sha256: String,
        /// True if its owner may execute it.
        is_executable: bool,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// Its text.
        target: String,
    },
    /// A pipe, socket, device, or something that cannot be read, and why. A run does not begin with it, so it always counts as a change.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// Returns a sentence, without its end, that names changes of protected files, each with how it is undone.
pub fn describe_changes(changes: &[String]) -> String {
    let or_more = if changes.len() >= MAX_CHANGES { "at least " } else { "" };
    let have = if changes.len() == 1 { "has" } else { "have" };
    let files = counted(changes.len(), "protected file");
    format!("{or_more}{files} {have} changed since the run began: {}", join_changes(changes))
}

/// Returns the path in the description of a change, `PATH (…)` or `PATH in REFERENCE (…)`.
pub fn changed_path(description: &str) -> &str {
    let named = description.rsplit_once(" (").map_or(description, |(named, _)| named);
    let is_reference = |name: &str| name == "HEAD" || name.starts_with("refs/");
    named.rsplit_once(" in ").filter(|(_, name)| is_reference(name)).map_or(named, |(path, _)| path)
}

/// Returns the first of these changes, and how many more there are.
pub fn join_changes(changes: &[String]) -> String {
    let shown = |change: &String| clip(&one_line(change), MAX_SHOWN_BYTES);
    let named: Vec<String> = changes.iter().take(MAX_SHOWN).map(shown).collect();
    let rest = changes.len().saturating_sub(named.len());
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
