//! The hooks that the settings name, in the client's order: user, project, local project, command line.
//! Identical entries run once.

use super::{ReplayResult, not_recorded};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A command that an event starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HookCommand {
    pub(super) command: String,
    /// `None` for a shell command line.
    pub(super) arguments: Option<Vec<String>>,
    pub(super) timeout: Option<Duration>,
    matcher: String,
}

/// The merged settings.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    hooks: Vec<(String, HookCommand)>,
    /// The environment variables that the settings add.
    pub(super) environment: Vec<(String, String)>,
    hooks_are_disabled: bool,
}

/// The setting keys that were recorded. Any other key needs a recording first.
const SUPPORTED_KEYS: [&str; 9] = [
    "$schema",
    "hooks",
    "env",
    "statusLine",
    "permissions",
    "model",
    "disableAllHooks",
    "sandbox",
    // The real client writes this into the user's file after `bypassPermissionsModeAccepted`.
    "skipDangerousModePermissionPrompt",
];

impl Settings {
    pub(super) fn load(
        home: &Path,
        project: &Path,
        command_line_settings: Option<&str>,
    ) -> ReplayResult<Settings> {
        let mut settings = Settings::default();
        let files = [
            home.join(".claude/settings.json"),
            project.join(".claude/settings.json"),
            project.join(".claude/settings.local.json"),
        ];
        // A missing file and one that does not parse are ignored.
        for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            settings.merge_json_text(&text)?;
        }
        match command_line_settings {
            Some(text) if text.trim_start().starts_with('{') => settings.merge_json_text(text)?,
            Some(file) => settings.merge_json_text(&fs::read_to_string(file).unwrap_or_default())?,
            None => {}
        }
        Ok(settings)
    }

    fn merge_json_text(&mut self, text: &str) -> ReplayResult<()> {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return Ok(()) };
        if let Some(unknown) = fields.keys().find(|key| !SUPPORTED_KEYS.contains(&key.as_str())) {
            return not_recorded(format!("the setting {unknown}"));
        }
        if fields.get("sandbox").is_some_and(|sandbox| sandbox["enabled"] == true) {
            return not_recorded("the sandbox");
        }
        self.hooks_are_disabled |= fields.get("disableAllHooks") == Some(&Value::Bool(true));
        for (name, value) in fields.get("env").and_then(Value::as_object).into_iter().flatten() {
            self.environment.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
        }
        for (event, groups) in fields.get("hooks").and_then(Value::as_object).into_iter().flatten() {
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                for entry in group["hooks"].as_array().into_iter().flatten() {
                    self.add_hook(event, HookCommand::parse(entry, matcher)?);
                }
            }
        }
        Ok(())
    }

    fn add_hook(&mut self, event: &str, hook: HookCommand) {
        let is_same_hook = |existing: &(String, HookCommand)| {
            existing.0 == event
                && existing.1.command == hook.command
                && existing.1.arguments == hook.arguments
        };
        if !self.hooks.iter().any(is_same_hook) {
            self.hooks.push((event.to_owned(), hook));
        }
    }

    /// Returns the hooks that an event starts. `subject` is the tool or source that matchers are compared
    /// with.
    pub(super) fn hooks_for(&self, event: &str, subject: &str) -> ReplayResult<Vec<HookCommand>> {
        let mut matching_hooks = Vec::new();
        for (name, hook) in &self.hooks {
            if !self.hooks_are_disabled && name == event && hook.matches_subject(subject)? {
                matching_hooks.push(hook.clone());
            }
        }
        Ok(matching_hooks)
    }
}

impl HookCommand {
    fn parse(entry: &Value, matcher: &str) -> ReplayResult<HookCommand> {
        let supported_keys = ["type", "command", "args", "timeout"];
        let keys = entry.as_object().into_iter().flat_map(|entry| entry.keys());
        if let Some(key) = keys.into_iter().find(|key| !supported_keys.contains(&key.as_str())) {
            return not_recorded(format!("a hook's {key}"));
        }
        let to_strings = |words: &Vec<Value>| {
            words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
        };
        Ok(HookCommand {
            command: entry["command"].as_str().unwrap_or_default().to_owned(),
            arguments: entry["args"].as_array().map(to_strings),
            timeout: entry["timeout"].as_f64().map(Duration::from_secs_f64),
            matcher: matcher.to_owned(),
        })
    }

    /// Returns true if the matcher accepts the subject. Names, also in lists with `|` or `,`, have to match
    /// completely; `*` and an empty matcher accept every subject.
    fn matches_subject(&self, subject: &str) -> ReplayResult<bool> {
        if matches!(self.matcher.as_str(), "" | "*") {
            return Ok(true);
        }
        if self.matcher.contains(['^', '$', '.', '*', '(', '[', '+', '?', '\\']) {
            return not_recorded(format!("the matcher {}", self.matcher));
        }
        Ok(self.matcher.split(['|', ',']).any(|name| name.trim() == subject))
    }
}
