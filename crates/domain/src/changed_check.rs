//! Files that check the work and that a run changed. They are reported because a session can also pass a
//! check by weakening it.

use serde::{Deserialize, Serialize};

/// A test or other checking file that differs from its content when the run began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedCheckFile {
    /// The path, relative to the project.
    pub path: String,
    /// The number of added lines.
    #[serde(rename = "added")]
    pub added_line_count: u64,
    /// The number of removed lines.
    #[serde(rename = "removed")]
    pub removed_line_count: u64,
    pub is_deleted: bool,
}
