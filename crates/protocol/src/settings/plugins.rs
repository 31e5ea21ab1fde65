//! The client's list of installed plugins, and what a plugin hooks into.

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

/// Where a plugin's manifest says that its hooks lie, and the hooks that stand in it.
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
    survey(text).map(|survey| survey.foreign_stop).unwrap_or_default()
}
