//! The keys of the client's own settings files that move the auto-compact threshold.

use crate::client_environment::LEAST_COMPACTION_WINDOW;
use crate::lenient;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of one settings file that move the auto-compact threshold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactionKeys {
    /// False switches automatic compaction off.
    #[serde(deserialize_with = "lenient::field")]
    pub auto_compact_enabled: Option<bool>,
    #[serde(deserialize_with = "lenient::field")]
    auto_compact_window: WindowValue,
    #[serde(deserialize_with = "lenient::map")]
    model_settings: BTreeMap<String, ModelKeys>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModelKeys {
    #[serde(deserialize_with = "lenient::field")]
    auto_compact_window: WindowValue,
}

/// A window of a settings file. The client ignores any other value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(untagged)]
enum WindowValue {
    Tokens(u64),
    /// Whole, as JavaScript may write it: `1.5e5`.
    Number(f64),
    Word(Word),
    #[default]
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Auto,
}

/// A window in which the client compacts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionWindow {
    /// The model for which it holds; none for every model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its size; none for the client's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
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

    /// Returns the windows in which the client compacts, in the order in which it looks for one (2.1.329): those of models
    /// before the one for all. Of two names of one model the shorter goes first: the canonical name has no date, no region
    /// and no suffix.
    pub fn windows(&self) -> Vec<CompactionWindow> {
        let of_model = |(model, keys): (&String, &ModelKeys)| {
            Some(CompactionWindow { model: Some(model.clone()), tokens: keys.auto_compact_window.tokens()? })
        };
        let mut windows: Vec<CompactionWindow> = self.model_settings.iter().filter_map(of_model).collect();
        windows.sort_by_key(|window| window.model.as_ref().map(String::len));
        // Only for a model may it be `auto`.
        let for_all = self.auto_compact_window.tokens().filter(Option::is_some);
        windows.extend(for_all.map(|tokens| CompactionWindow { model: None, tokens }));
        windows
    }
}

impl WindowValue {
    /// The size, `Some(None)` for `auto`; none for a value that the client ignores.
    fn tokens(self) -> Option<Option<u64>> {
        let tokens = match self {
            WindowValue::Word(Word::Auto) => return Some(None),
            WindowValue::Tokens(tokens) => tokens,
            WindowValue::Number(number) if number.fract() == 0.0 && number < 9e15 => number as u64,
            WindowValue::Number(_) | WindowValue::Missing => return None,
        };
        (tokens >= LEAST_COMPACTION_WINDOW).then_some(Some(tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_of_models_go_before_the_one_for_all() {
        let windows = |text: &str| {
            let windows = CompactionKeys::parse(text.as_bytes()).windows().into_iter();
            windows.map(|window| (window.model.unwrap_or_default(), window.tokens)).collect::<Vec<_>>()
        };
        let own = |model: &str, tokens| (model.to_owned(), tokens);
        for (text, expected) in [
            (r#"{"autoCompactWindow": 150000}"#, vec![own("", Some(150_000))]),
            (r#"{"autoCompactWindow": 1.5e5}"#, vec![own("", Some(150_000))]),
            (
                r#"{"autoCompactWindow": 300000, "modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#,
                vec![own("claude-opus-5-5", Some(150_000)), own("", Some(300_000))],
            ),
            (
                r#"{"modelSettings": {"claude-opus-4-6[1m]": {"autoCompactWindow": 200000},
                    "claude-opus-4-6": {"autoCompactWindow": "auto"}, "claude-opus-5": {"effortLevel": "low"}}}"#,
                vec![own("claude-opus-4-6", None), own("claude-opus-4-6[1m]", Some(200_000))],
            ),
            // What the client ignores.
            (r#"{"autoCompactWindow": "auto"}"#, vec![]),
            (r#"{"autoCompactWindow": 50000}"#, vec![]),
            (r#"{"autoCompactWindow": "150000"}"#, vec![]),
            (r#"{"autoCompactWindow": 150000.5}"#, vec![]),
            (r#"{"autoCompactWindow": [150000]}"#, vec![]),
            (r#"{"autoCompactWindow": null}"#, vec![]),
            (r#"{"modelSettings": {"opus": {"autoCompactWindow": "Auto"}, "x": 3, "y": null}}"#, vec![]),
            (r#"{"modelSettings": [1]}"#, vec![]),
            ("not JSON", vec![]),
        ] {
            assert_eq!(windows(text), expected, "{text}");
        }
    }

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
