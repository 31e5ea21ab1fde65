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

/// What a settings file of the client says of the sandbox for the commands of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SandboxKeys {
    #[serde(deserialize_with = "lenient::field")]
    sandbox: Sandbox,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sandbox {
    #[serde(deserialize_with = "lenient::field")]
    enabled: Option<bool>,
}

/// Returns `sandbox.enabled` of a settings file; `None` if the file does not set it or does not parse.
pub fn is_sandbox_enabled(text: &str) -> Option<bool> {
    crate::parse::<SandboxKeys>(text.as_bytes()).ok()?.sandbox.enabled
}

impl CompactionKeys {
    /// Reads the keys; a file that does not parse has none.
    pub fn parse(bytes: &[u8]) -> CompactionKeys {
        crate::parse(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_on_only_if_a_file_says_so() {
        for (text, expected) in [
            (r#"{"sandbox": {"enabled": true, "network": {}}}"#, Some(true)),
            (r#"{"sandbox": {"enabled": false}}"#, Some(false)),
            (r#"{"sandbox": {"enabled": "yes"}}"#, None),
            (r#"{"sandbox": {}}"#, None),
            (r#"{"sandbox": [true]}"#, None),
            (r#"{"sandbox": true}"#, None),
            ("{}", None),
            ("", None),
            ("not JSON", None),
        ] {
            assert_eq!(is_sandbox_enabled(text), expected, "{text}");
        }
    }
}
