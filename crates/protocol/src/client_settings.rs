//! The keys in the client's settings files that Plimsoll reads: compaction, permissions and sandbox.

use crate::client_environment::MIN_COMPACTION_WINDOW_TOKENS;
use crate::lenient;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of one settings file that change the auto-compact threshold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactionSettings {
    /// False disables automatic compaction.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub auto_compact_enabled: Option<bool>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    auto_compact_window: WindowSetting,
    #[serde(deserialize_with = "lenient::readable_entries")]
    model_settings: BTreeMap<String, ModelCompactionSettings>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModelCompactionSettings {
    #[serde(deserialize_with = "lenient::field_or_default")]
    auto_compact_window: WindowSetting,
}

/// A window in a settings file. The client ignores any other value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(untagged)]
enum WindowSetting {
    Tokens(u64),
    /// A whole number as JavaScript may write it: `1.5e5`.
    Number(f64),
    Keyword(WindowKeyword),
    #[default]
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WindowKeyword {
    Auto,
}

/// A window at which the client compacts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionWindow {
    /// The model it applies to; `None` for every model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its size; `None` for the client's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// The keys of one settings file that control which commands a session may run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PermissionSettings {
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub permissions: Permissions,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub sandbox: Sandbox,
}

/// Permission rules and the permission mode.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Permissions {
    /// Rules such as `Bash` and `Bash(git:*)`.
    #[serde(deserialize_with = "lenient::text_elements")]
    pub allow: Vec<String>,
    /// `default`, `acceptEdits`, `bypassPermissions`, …
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub default_mode: Option<String>,
}

/// The sandbox for a session's commands.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sandbox {
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub enabled: Option<bool>,
    /// False if the client asks for permission even for commands that run in the sandbox.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
}

/// Returns `sandbox.enabled` of a settings file, or `None` if the file does not set it or does not parse.
pub fn is_sandbox_enabled(text: &str) -> Option<bool> {
    PermissionSettings::parse(text.as_bytes()).sandbox.enabled
}

impl PermissionSettings {
    /// Parses the keys. Returns the defaults if the file does not parse.
    pub fn parse(bytes: &[u8]) -> PermissionSettings {
        crate::parse_json_object(bytes).unwrap_or_default()
    }
}

impl CompactionSettings {
    /// Parses the keys. Returns the defaults if the file does not parse.
    pub fn parse(bytes: &[u8]) -> CompactionSettings {
        crate::parse_json_object(bytes).unwrap_or_default()
    }

    /// Returns the windows at which the client compacts, in its lookup order (2.1.329): windows of single models
    /// before the default for all. Of two names for one model the shorter comes first, because the canonical name has
    /// no date, region or suffix.
    pub fn model_windows_then_default_window(&self) -> Vec<CompactionWindow> {
        let to_model_window = |(model, settings): (&String, &ModelCompactionSettings)| {
            Some(CompactionWindow {
                model: Some(model.clone()),
                tokens: settings.auto_compact_window.accepted_tokens_or_auto()?,
            })
        };
        let mut windows: Vec<CompactionWindow> =
            self.model_settings.iter().filter_map(to_model_window).collect();
        windows.sort_by_key(|window| window.model.as_ref().map(String::len));
        // `auto` is allowed only for a single model.
        let default_window_tokens =
            self.auto_compact_window.accepted_tokens_or_auto().filter(Option::is_some);
        windows.extend(default_window_tokens.map(|tokens| CompactionWindow { model: None, tokens }));
        windows
    }
}

impl WindowSetting {
    /// Returns the number of tokens, `Some(None)` for `auto`, or `None` for a value that the client ignores.
    fn accepted_tokens_or_auto(self) -> Option<Option<u64>> {
        let tokens = match self {
            WindowSetting::Keyword(WindowKeyword::Auto) => return Some(None),
            WindowSetting::Tokens(tokens) => tokens,
            WindowSetting::Number(number) if number.fract() == 0.0 && number < 9e15 => number as u64,
            WindowSetting::Number(_) | WindowSetting::Missing => return None,
        };
        (tokens >= MIN_COMPACTION_WINDOW_TOKENS).then_some(Some(tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_single_models_precede_the_default_window() {
        let windows = |text: &str| {
            let windows =
                CompactionSettings::parse(text.as_bytes()).model_windows_then_default_window().into_iter();
            windows.map(|window| (window.model.unwrap_or_default(), window.tokens)).collect::<Vec<_>>()
        };
        let window = |model: &str, tokens| (model.to_owned(), tokens);
        for (text, expected) in [
            (r#"{"autoCompactWindow": 150000}"#, vec![window("", Some(150_000))]),
            (r#"{"autoCompactWindow": 1.5e5}"#, vec![window("", Some(150_000))]),
            (
                r#"{"autoCompactWindow": 300000, "modelSettings": {"claude-opus-5-5": {"autoCompactWindow": 150000}}}"#,
                vec![window("claude-opus-5-5", Some(150_000)), window("", Some(300_000))],
            ),
            (
                r#"{"modelSettings": {"claude-opus-4-6[1m]": {"autoCompactWindow": 200000},
                    "claude-opus-4-6": {"autoCompactWindow": "auto"}, "claude-opus-5": {"effortLevel": "low"}}}"#,
                vec![window("claude-opus-4-6", None), window("claude-opus-4-6[1m]", Some(200_000))],
            ),
            // Values that the client ignores.
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
    fn the_sandbox_is_enabled_only_if_a_file_enables_it() {
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
