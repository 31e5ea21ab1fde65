//! The client's list of installed plugins, and what a plugin hooks into.

use super::command::starts_ours;
use super::survey::survey;
use serde_json::{Value, json};

/// The folders of an installed plugin (`name@marketplace`), by the client's `installed_plugins.json`. Its first version
/// kept one entry for each plugin, its second a list.
pub fn folders(installed: &[u8], plugin: &str) -> Vec<String> {
    let list: Value = serde_json::from_slice(installed).unwrap_or_default();
    let Some(found) = list.get("plugins").and_then(|plugins| plugins.get(plugin)) else { return Vec::new() };
    let entries = found.as_array().map_or(std::slice::from_ref(found), Vec::as_slice);
    let path = |entry: &Value| Some(entry.get("installPath")?.as_str()?.to_owned());
    entries.iter().filter_map(path).collect()
}

/// Where a plugin's manifest says that its hooks are, and the hooks that are in it.
pub fn hooks_of_manifest(manifest: &[u8]) -> (Option<String>, Vec<String>) {
    let manifest: Value = serde_json::from_slice(manifest).unwrap_or_default();
    match manifest.get("hooks") {
        Some(Value::String(path)) => (Some(path.clone()), Vec::new()),
        Some(Value::Object(hooks)) => {
            let hooks = hooks.get("hooks").cloned().unwrap_or_else(|| Value::Object(hooks.clone()));
            (None, stop_hooks(&json!({ "hooks": hooks }).to_string()))
        }
        _ => (None, Vec::new()),
    }
}

/// What a plugin's hooks file runs at Stop; nothing of ours.
pub fn stop_hooks(text: &str) -> Vec<String> {
    let mut hooks = survey(text).map(|survey| survey.foreign_stop).unwrap_or_default();
    hooks.retain(|command| !is_ours(command));
    hooks
}

/// Whether a plugin's hooks file is that of our plugin.
pub fn brings_ours(text: &str) -> bool {
    survey(text).is_ok_and(|survey| survey.foreign_stop.iter().any(|command| is_ours(command)))
}

/// The entries of our plugin look for a program before they start it.
fn is_ours(command: &str) -> bool {
    command.split(';').filter_map(|part| part.trim().strip_prefix("exec ")).any(starts_ours)
}

/// The version of a plugin, by its manifest.
pub fn version(manifest: &[u8]) -> Option<String> {
    let manifest: Value = serde_json::from_slice(manifest).unwrap_or_default();
    Some(manifest.get("version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_plugin_is_no_other_loop() {
        let ours = include_str!("../../../../hooks-config/plugin/hooks/hooks.json");
        assert!(brings_ours(ours) && stop_hooks(ours).is_empty(), "{:?}", stop_hooks(ours));
        let other = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cd x; exec loop.sh plimsoll-stop-gate"}]}]}}"#;
        assert!(!brings_ours(other) && stop_hooks(other).len() == 1);
        assert_eq!(version(br#"{"version": "0.1.0"}"#).as_deref(), Some("0.1.0"));
        assert_eq!(version(b"[]"), None);
    }
}
