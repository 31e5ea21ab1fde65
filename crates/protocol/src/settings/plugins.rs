//! The client's list of installed plugins, and the hooks of a plugin.

use super::summary::summarize_settings;
use serde_json::{Value, json};

/// Returns the folders of an installed plugin (`name@marketplace`) from the client's `installed_plugins.json`. The
/// first version of that file has one entry per plugin, the second a list.
pub fn install_paths(installed_plugins_json: &[u8], plugin: &str) -> Vec<String> {
    let list: Value = serde_json::from_slice(installed_plugins_json).unwrap_or_default();
    let Some(plugin_value) = list.get("plugins").and_then(|plugins| plugins.get(plugin)) else {
        return Vec::new();
    };
    let entries = plugin_value.as_array().map_or(std::slice::from_ref(plugin_value), Vec::as_slice);
    let install_path = |entry: &Value| Some(entry.get("installPath")?.as_str()?.to_owned());
    entries.iter().filter_map(install_path).collect()
}

/// Returns the path of the hooks file that a plugin's manifest names, or the Stop commands of other programs that the
/// manifest itself contains.
pub fn parse_hooks_path_and_foreign_stop_commands(manifest: &[u8]) -> (Option<String>, Vec<String>) {
    let manifest: Value = serde_json::from_slice(manifest).unwrap_or_default();
    match manifest.get("hooks") {
        Some(Value::String(path)) => (Some(path.clone()), Vec::new()),
        Some(Value::Object(hooks)) => {
            let hooks = hooks.get("hooks").cloned().unwrap_or_else(|| Value::Object(hooks.clone()));
            (None, foreign_stop_commands(&json!({ "hooks": hooks }).to_string()))
        }
        _ => (None, Vec::new()),
    }
}

/// Returns the Stop commands in a plugin's hooks file, without ours.
pub fn foreign_stop_commands(hooks_text: &str) -> Vec<String> {
    summarize_settings(hooks_text).map(|summary| summary.foreign_stop_commands).unwrap_or_default()
}

/// Returns true if a plugin's hooks file belongs to our plugin.
pub fn is_our_plugin(hooks_text: &str) -> bool {
    summarize_settings(hooks_text)
        .is_ok_and(|summary| summary.our_hooks.iter().any(|hook| hook.event == "Stop"))
}

/// Returns the version in a plugin's manifest.
pub fn manifest_version(manifest: &[u8]) -> Option<String> {
    let manifest: Value = serde_json::from_slice(manifest).unwrap_or_default();
    Some(manifest.get("version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_plugin_has_no_foreign_stop_commands() {
        let ours = include_str!("../../../../hooks-config/plugin/hooks/hooks.json");
        assert!(
            is_our_plugin(ours) && foreign_stop_commands(ours).is_empty(),
            "{:?}",
            foreign_stop_commands(ours)
        );
        for command in ["cd x; exec loop.sh plimsoll-stop-gate", "${CLAUDE_PLUGIN_ROOT}/bin/loop"] {
            let entry =
                json!({"type": "command", "command": command, "args": ["plimsoll-stop-gate", "--plugin"]});
            let other = json!({"hooks": {"Stop": [{"hooks": [entry]}]}}).to_string();
            assert!(!is_our_plugin(&other) && foreign_stop_commands(&other).len() == 1, "{other}");
        }
        assert_eq!(manifest_version(br#"{"version": "0.1.0"}"#).as_deref(), Some("0.1.0"));
        assert_eq!(manifest_version(b"[]"), None);
    }
}
