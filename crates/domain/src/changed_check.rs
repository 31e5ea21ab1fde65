//! Files that check the work and that a run changed: a session that weakens a check makes it pass, too.

use serde::{Deserialize, Serialize};

/// A file that checks the work and that differs from what it was when the run began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedCheck {
    /// Its path, relative to the project.
    pub path: String,
    /// The number of lines that were added.
    pub added: u64,
    /// The number of lines that were removed.
    pub removed: u64,
    /// True if the file was deleted.
    pub is_deleted: bool,
}
