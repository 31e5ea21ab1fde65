//! The hooks that the settings name, in the client's order: the user's, the project's, the project's local ones, and
//! those of the command line; entries that are the same run once.

use super::{Recorded, not_recorded};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// One command that an event starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HookCommand {
    pub(super) command: String,
    /// None for a line that a shell takes.
    pub(super) arguments: Option<Vec<String>>,
    pub(super) limit: Option<Duration>,
    matcher: String,
}

/// What all the settings say together.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    hooks: Vec<(String, HookCommand)>,
    /// What the settings add to the environment.
    pub(super) environment: Vec<(String, String)>,
    is_off: bool,
}

/// Of the settings, what was recorded; a key that is not listed has its own recording to make.
const KNOWN: [&str; 9] = [
    "$schema",
    "hooks",
    "env",
    "statusLine",
    "permissions",
    "model",
    "disableAllHooks",
    "sandbox",
    // The real client notes so in the user's file what `bypassPermissionsModeAccepted` told it.
    "skipDangerousModePermissionPrompt",
];

impl Settings {
    pub(super) fn read(home: &Path, project: &Path, given: Option<&str>) -> Recorded<Settings> {
        let mut settings = Settings::default();
        let files = [
            home.join(".claude/settings.json"),
            project.join(".claude/settings.json"),
            project.join(".claude/settings.local.json"),
        ];
        // A file that is none, or that does not parse, is dropped whole.
        for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            settings.take(&text)?;
        }
        match given {
            Some(text) if text.trim_start().starts_with('{') => settings.take(text)?,
            Some(file) => settings.take(&fs::read_to_string(file).unwrap_or_default())?,
            None => {}
        }
        Ok(settings)
    }

    fn take(&mut self, text: &str) -> Recorded<()> {
        let Ok(Value::Object(all)) = serde_json::from_str::<Value>(text) else { return Ok(()) };
        if let Some(unknown) = all.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return not_recorded(format!("the setting {unknown}"));
        }
        if all.get("sandbox").is_some_and(|sandbox| sandbox["enabled"] == true) {
            return not_recorded("the sandbox");
        }
        self.is_off |= all.get("disableAllHooks") == Some(&Value::Bool(true));
        for (name, value) in all.get("env").and_then(Value::as_object).into_iter().flatten() {
            self.environment.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
        }
        for (event, groups) in all.get("hooks").and_then(Value::as_object).into_iter().flatten() {
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                for entry in group["hooks"].as_array().into_iter().flatten() {
                    self.add(event, HookCommand::read(entry, matcher)?);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, event: &str, entry: HookCommand) {
        let same = |known: &(String, HookCommand)| {
            known.0 == event && known.1.command == entry.command && known.1.arguments == entry.arguments
        };
        if !self.hooks.iter().any(same) {
            self.hooks.push((event.to_owned(), entry));
        }
    }

    /// What an event starts; `subject` is the tool or the source that a matcher looks at.
    pub(super) fn of(&self, event: &str, subject: &str) -> Recorded<Vec<HookCommand>> {
        let mut found = Vec::new();
        for (name, entry) in &self.hooks {
            if !self.is_off && name == event && entry.matches(subject)? {
                found.push(entry.clone());
            }
        }
        Ok(found)
    }
}

impl HookCommand {
    fn read(entry: &Value, matcher: &str) -> Recorded<HookCommand> {
        let known = ["type", "command", "args", "timeout"];
        let unknown = entry.as_object().into_iter().flat_map(|entry| entry.keys());
        if let Some(key) = unknown.into_iter().find(|key| !known.contains(&key.as_str())) {
            return not_recorded(format!("a hook's {key}"));
        }
        let words = |words: &Vec<Value>| {
            words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
        };
        Ok(HookCommand {
            command: entry["command"].as_str().unwrap_or_default().to_owned(),
            arguments: entry["args"].as_array().map(words),
            limit: entry["timeout"].as_f64().map(Duration::from_secs_f64),
            matcher: matcher.to_owned(),
        })
    }

    /// Plain words, and lists of them with `|` or `,`, are whole names; `*` and nothing are every name.
    fn matches(&self, subject: &str) -> Recorded<bool> {
        if matches!(self.matcher.as_str(), "" | "*") {
            return Ok(true);
        }
        if self.matcher.contains(['^', '$', '.', '*', '(', '[', '+', '?', '\\']) {
            return not_recorded(format!("the matcher {}", self.matcher));
        }
        Ok(self.matcher.split(['|', ',']).any(|name| name.trim() == subject))
    }
}
