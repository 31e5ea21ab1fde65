//! Summarizes a settings file: whether our hooks will run, and what else runs.

use super::command::{command_executable_with_spaces_if_ours, runs_our_program};
use super::hook_entries::{self, EntryDifference, find_our_entries, parse_hook_entries};
use super::json_text::{self, InvalidSettings};
use super::template::template_entries_with_memory_replacements;
use super::{EntryOptions, OurHookEntry, split_bom_and_default_to_empty_object};
use serde_json::Value;
use std::collections::BTreeMap;

/// The relevant contents of a settings file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsSummary {
    /// Our hook entries, in the file's order.
    pub our_hooks: Vec<OurHookEntry>,
    /// The Stop hooks that are not ours, each as its command line or as its type and target.
    pub foreign_stop_commands: Vec<String>,
    /// The events that have at least one entry.
    pub hook_events: Vec<String>,
    /// `disableAllHooks`, if set.
    pub disable_all_hooks: Option<bool>,
    /// `allowManagedHooksOnly`, which counts only in managed settings.
    pub managed_hooks_only: bool,
    pub status_line: Option<ConfiguredStatusLine>,
    /// True if the status line is invalid. The client then ignores the whole file (observed on 2.1.329).
    pub has_invalid_status_line: bool,
    /// `enabledPlugins`, by name.
    pub plugins: BTreeMap<String, bool>,
    /// `disabledMcpjsonServers`.
    pub disabled_mcp_servers: Vec<String>,
    /// `model`.
    pub model: Option<String>,
    /// `env`; a value that is not a string is kept as JSON text.
    pub env: BTreeMap<String, String>,
}

/// The status line of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredStatusLine {
    /// The command as written in the file.
    pub command: String,
    /// The executable: a path, or a name to look up on PATH.
    pub executable: String,
    /// True if it is one of our programs.
    pub is_ours: bool,
}

/// Summarizes a settings text. The error has the position of a syntax error; the client ignores a text that does not
/// parse.
pub fn summarize_settings(settings_text: &str) -> Result<SettingsSummary, InvalidSettings> {
    let (_, settings_json) = split_bom_and_default_to_empty_object(settings_text);
    let root = json_text::value_at_or_null(&settings_json, &json_text::root_range(&settings_json)?);
    let our_hooks = find_our_entries(&settings_json)?.into_iter().map(|our_entry| our_entry.hook).collect();
    let mut summary = SettingsSummary { our_hooks, ..summarize_fields_except_hooks(&root) };
    for entry in parse_hook_entries(&settings_json)? {
        if !summary.hook_events.contains(&entry.event) {
            summary.hook_events.push(entry.event.clone());
        }
        if entry.event == "Stop" && !runs_our_program(&entry.command, entry.is_exec_form) {
            summary.foreign_stop_commands.push(hook_command_line_or_type_and_target(
                &json_text::value_at_or_null(&settings_json, &entry.range),
            ));
        }
    }
    Ok(summary)
}

fn summarize_fields_except_hooks(root: &Value) -> SettingsSummary {
    let bool_field = |name: &str| root.get(name).and_then(Value::as_bool);
    let object_field = |name: &str| root.get(name).and_then(Value::as_object).into_iter().flatten();
    let command = root.pointer("/statusLine/command").and_then(Value::as_str);
    let disabled_mcp_servers = root.get("disabledMcpjsonServers").and_then(Value::as_array);
    SettingsSummary {
        disable_all_hooks: bool_field("disableAllHooks"),
        managed_hooks_only: bool_field("allowManagedHooksOnly") == Some(true),
        status_line: command.map(|command| ConfiguredStatusLine {
            command: command.to_owned(),
            executable: command_executable_with_spaces_if_ours(command),
            is_ours: runs_our_program(command, false),
        }),
        has_invalid_status_line: command.is_none() && root.get("statusLine").is_some(),
        // A plugin may have an object of options instead of `true`.
        plugins: object_field("enabledPlugins")
            .map(|(name, plugin_setting)| (name.clone(), plugin_setting.as_bool() != Some(false)))
            .collect(),
        disabled_mcp_servers: disabled_mcp_servers
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        model: root.get("model").and_then(Value::as_str).map(str::to_owned),
        env: object_field("env").map(|(name, value)| (name.clone(), string_or_json_text(value))).collect(),
        ..SettingsSummary::default()
    }
}

fn string_or_json_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the command line of a command hook, or the type and target of another hook, such as `(http) URL`.
fn hook_command_line_or_type_and_target(entry: &Value) -> String {
    let text_field = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text_field("type").unwrap_or("command");
    let arguments =
        entry.get("args").and_then(Value::as_array).into_iter().flatten().map(string_or_json_text);
    match text_field("command") {
        Some(command) => [command.to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" "),
        None => {
            let target = ["url", "prompt", "tool"].into_iter().find_map(text_field).unwrap_or_default();
            format!("({kind}) {target}").trim_end().to_owned()
        }
    }
}

/// Finds the differences between our entries in a settings text and the template for these options. Paths of programs are
/// not compared. Returns an empty list if the text has no entry of ours. The memory's entries are expected if one of them
/// is present.
pub fn find_template_differences_if_installed(
    settings_text: &str,
    options: impl Into<EntryOptions>,
) -> Result<Vec<EntryDifference>, InvalidSettings> {
    let (_, settings_json) = split_bom_and_default_to_empty_object(settings_text);
    let our_entries = find_our_entries(&settings_json)?;
    if our_entries.is_empty() {
        return Ok(Vec::new());
    }
    let installed_executable = |program: &str| -> String {
        let entry_of_program = our_entries.iter().find(|entry| entry.hook.program == program);
        entry_of_program.map_or_else(
            || program.to_owned(),
            |entry| command_executable_with_spaces_if_ours(&entry.hook.command),
        )
    };
    let include_memory = our_entries.iter().any(|entry| entry.hook.is_for_memory());
    let has_team_entry = our_entries.iter().any(|entry| entry.hook.is_team_entry);
    let effective_options = EntryOptions { include_memory, for_team: has_team_entry, ..options.into() };
    Ok(hook_entries::find_entry_differences(
        &settings_json,
        &our_entries,
        &template_entries_with_memory_replacements(effective_options, &installed_executable),
    ))
}
