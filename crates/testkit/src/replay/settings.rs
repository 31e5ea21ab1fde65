//! The hooks of all settings files, in the client's order: user, project, local project, command line.
//! Duplicate entries run once.

use super::{ReplayResult, not_replayable_error};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A hook command of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HookCommand {
    pub(super) command: String,
    /// `None` for a shell command line.
    pub(super) arguments: Option<Vec<String>>,
    pub(super) timeout: Option<Duration>,
    matcher: String,
}

/// The hooks and environment variables of all settings files.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    hooks: Vec<(String, HookCommand)>,
    /// The environment variables from `env`.
    pub(super) environment: Vec<(String, String)>,
    hooks_are_disabled: bool,
}

/// The settings that the recordings cover. Any other key needs a new recording first.
const SUPPORTED_KEYS: [&str; 9] = [
    "$schema",
    "hooks",
    "env",
    "statusLine",
    "permissions",
    "model",
    "disableAllHooks",
    "sandbox",
    // The real client adds this to the user's file after `bypassPermissionsModeAccepted`.
    "skipDangerousModePermissionPrompt",
];

impl Settings {
    pub(super) fn load_merged(
        home: &Path,
        project: &Path,
        command_line_settings: Option<&str>,
    ) -> ReplayResult<Settings> {
        let mut settings = Settings::default();
        let paths = [
            home.join(".claude/settings.json"),
            project.join(".claude/settings.json"),
            project.join(".claude/settings.local.json"),
        ];
        // Like the client, ignore a missing file and invalid JSON.
        for text in paths.iter().filter_map(|path| fs::read_to_string(path).ok()) {
            settings.merge_json_rejecting_unsupported_settings(&text)?;
        }
        match command_line_settings {
            Some(text) if text.trim_start().starts_with('{') => {
                settings.merge_json_rejecting_unsupported_settings(text)?;
            }
            Some(path) => {
                settings.merge_json_rejecting_unsupported_settings(
                    &fs::read_to_string(path).unwrap_or_default(),
                )?;
            }
            None => {}
        }
        Ok(settings)
    }

    fn merge_json_rejecting_unsupported_settings(&mut self, text: &str) -> ReplayResult<()> {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return Ok(()) };
        if let Some(unknown_key) = fields.keys().find(|key| !SUPPORTED_KEYS.contains(&key.as_str())) {
            return not_replayable_error(format!("the setting {unknown_key}"));
        }
        if fields.get("sandbox").is_some_and(|sandbox| sandbox["enabled"] == true) {
            return not_replayable_error("the sandbox");
        }
        self.hooks_are_disabled |= fields.get("disableAllHooks") == Some(&Value::Bool(true));
        for (name, value) in fields.get("env").and_then(Value::as_object).into_iter().flatten() {
            self.environment.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
        }
        for (event, groups) in fields.get("hooks").and_then(Value::as_object).into_iter().flatten() {
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                for entry in group["hooks"].as_array().into_iter().flatten() {
                    self.add_hook_unless_duplicate(
                        event,
                        HookCommand::parse_rejecting_unsupported_keys(entry, matcher)?,
                    );
                }
            }
        }
        Ok(())
    }

    fn add_hook_unless_duplicate(&mut self, event: &str, hook: HookCommand) {
        let is_same_hook = |existing: &(String, HookCommand)| {
            existing.0 == event
                && existing.1.command == hook.command
                && existing.1.arguments == hook.arguments
        };
        if !self.hooks.iter().any(is_same_hook) {
            self.hooks.push((event.to_owned(), hook));
        }
    }

    /// Returns the hooks that run at an event; none if hooks are disabled. `subject` is the tool name or source
    /// that matchers are compared with.
    pub(super) fn enabled_hooks_for(&self, event: &str, subject: &str) -> ReplayResult<Vec<HookCommand>> {
        let mut matching_hooks = Vec::new();
        for (hook_event, hook) in &self.hooks {
            if !self.hooks_are_disabled
                && hook_event == event
                && hook.matches_subject_by_exact_name(subject)?
            {
                matching_hooks.push(hook.clone());
            }
        }
        Ok(matching_hooks)
    }
}

impl HookCommand {
    fn parse_rejecting_unsupported_keys(entry: &Value, matcher: &str) -> ReplayResult<HookCommand> {
        let supported_keys = ["type", "command", "args", "timeout"];
        let keys = entry.as_object().into_iter().flat_map(|entry| entry.keys());
        if let Some(key) = keys.into_iter().find(|key| !supported_keys.contains(&key.as_str())) {
            return not_replayable_error(format!("a hook's {key}"));
        }
        let to_strings = |values: &Vec<Value>| {
            values.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect()
        };
        Ok(HookCommand {
            command: entry["command"].as_str().unwrap_or_default().to_owned(),
            arguments: entry["args"].as_array().map(to_strings),
            timeout: entry["timeout"].as_f64().map(Duration::from_secs_f64),
            matcher: matcher.to_owned(),
        })
    }

    /// Returns true if the matcher contains the exact name, alone or in a list with `|` or `,`. `*` and an empty
    /// matcher accept every subject. A regular expression is an error, because none was recorded.
    fn matches_subject_by_exact_name(&self, subject: &str) -> ReplayResult<bool> {
        if matches!(self.matcher.as_str(), "" | "*") {
            return Ok(true);
        }
        if self.matcher.contains(['^', '$', '.', '*', '(', '[', '+', '?', '\\']) {
            return not_replayable_error(format!("the matcher {}", self.matcher));
        }
        Ok(self.matcher.split(['|', ',']).any(|name| name.trim() == subject))
    }
}
