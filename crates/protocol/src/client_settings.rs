//! The keys of the client's own settings files that move the auto-compact threshold.

use crate::lenient;
use serde::Deserialize;

/// The keys of one settings file that move the auto-compact threshold.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactionKeys {
    /// False switches automatic compaction off.
    #[serde(deserialize_with = "lenient::field")]
    pub auto_compact_enabled: Option<bool>,
    /// The window used for compaction, in tokens.
    #[serde(deserialize_with = "lenient::count")]
    pub auto_compact_window: Option<u64>,
}

impl CompactionKeys {
    /// Reads the keys; a file that does not parse has none.
    pub fn parse(bytes: &[u8]) -> CompactionKeys {
        crate::parse(bytes).unwrap_or_default()
    }
}
