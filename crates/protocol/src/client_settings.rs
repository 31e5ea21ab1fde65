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

/// What one settings file says of the commands that a session may run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PermissionKeys {
    /// Rules and the mode.
    #[serde(deserialize_with = "lenient::field")]
    pub permissions: Permissions,
    /// The sandbox for the commands of a session.
    #[serde(deserialize_with = "lenient::field")]
    pub sandbox: Sandbox,
}

/// Which tools are allowed without asking.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Permissions {
    /// Rules such as `Bash` and `Bash(git:*)`.
    #[serde(deserialize_with = "lenient::texts")]
    pub allow: Vec<String>,
    /// `default`, `acceptEdits`, `bypassPermissions`, …
    #[serde(deserialize_with = "lenient::text")]
    pub default_mode: Option<String>,
}

/// The sandbox for the commands of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sandbox {
    /// True if it is on.
    #[serde(deserialize_with = "lenient::field")]
    pub enabled: Option<bool>,
    /// False if commands are asked about although they run in it.
    #[serde(deserialize_with = "lenient::field")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
}

/// Returns `sandbox.enabled` of a settings file; `None` if the file does not set it or does not parse.
pub fn is_sandbox_enabled(text: &str) -> Option<bool> {
    PermissionKeys::parse(text.as_bytes()).sandbox.enabled
}

impl PermissionKeys {
    /// Reads the keys; a file that does not parse has none.
    pub fn parse(bytes: &[u8]) -> PermissionKeys {
        crate::parse(bytes).unwrap_or_default()
    }
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
