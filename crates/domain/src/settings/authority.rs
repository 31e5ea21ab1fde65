//! Permissions of a project's own settings file, by key.
//!
//! The files in a project's folder may have been written by the author of a clone or by an agent. Therefore
//! its `.claude/plimsoll.json` may only state preferences. Only the command line and the user's own settings
//! may start a program, send something out or loosen a limit.

use super::Settings;
use serde_json::{Map, Value};

/// Which values a project's file may set for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectFilePermission {
    /// A preference: every value is accepted.
    AnyValue,
    /// A limit: only a value lower than the user's is accepted.
    OnlyLower,
    /// A limit that 0 switches off: only a value lower than the user's, and not 0, is accepted.
    OnlyLowerNonZero,
    /// A limit that a larger value makes stricter: only a value higher than the user's is accepted.
    OnlyHigher,
    /// A key that starts a program, sends something out, deletes records or costs money: every value is
    /// ignored.
    Never,
}

/// All keys with their permissions. `NAME` stands for any name. A key that is not in this table is ignored.
pub const PERMISSIONS_BY_KEY: &[(&str, ProjectFilePermission)] = &[
    ("$schema", ProjectFilePermission::AnyValue),
    ("levels.l1", ProjectFilePermission::AnyValue),
    ("levels.l2", ProjectFilePermission::AnyValue),
    ("levels.l3", ProjectFilePermission::AnyValue),
    // A larger margin keeps a session further below the auto-compact threshold.
    ("margins.l2", ProjectFilePermission::OnlyHigher),
    ("margins.l3", ProjectFilePermission::OnlyHigher),
    ("grace_batches", ProjectFilePermission::AnyValue),
    ("windows", ProjectFilePermission::AnyValue),
    // A model costs the user's money.
    ("models.trivial", ProjectFilePermission::Never),
    ("models.simple", ProjectFilePermission::Never),
    ("models.medium", ProjectFilePermission::Never),
    ("models.complex", ProjectFilePermission::Never),
    ("models.very_complex", ProjectFilePermission::Never),
    ("models.allowed", ProjectFilePermission::Never),
    // Every hook may wait this long.
    ("freshness_wait_ms", ProjectFilePermission::OnlyLower),
    // The next session reads all of it.
    ("handoff_bytes", ProjectFilePermission::OnlyLower),
    // These change what the user sees of a conversation.
    ("compaction", ProjectFilePermission::Never),
    ("handoff_at", ProjectFilePermission::Never),
    ("end_wait_seconds", ProjectFilePermission::OnlyLower),
    ("background_wait_seconds", ProjectFilePermission::OnlyLower),
    ("verify_timeout_seconds", ProjectFilePermission::OnlyLower),
    // A project that could name paths could keep its own run from ever being completed.
    ("protect", ProjectFilePermission::Never),
    ("idle_timeout_seconds", ProjectFilePermission::OnlyLowerNonZero),
    ("tool_timeout_seconds", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.no_progress", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.same_error", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.refused", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.permission_denied", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.empty_reply", ProjectFilePermission::OnlyLowerNonZero),
    ("breaker.quick_failure", ProjectFilePermission::OnlyLowerNonZero),
    ("thrash.checkpoints", ProjectFilePermission::OnlyLowerNonZero),
    // A longer period makes it more likely that the number of checkpoints is reached.
    ("thrash.minutes", ProjectFilePermission::OnlyHigher),
    // Texts of the session are sent there.
    ("linear.issue", ProjectFilePermission::Never),
    // A shell runs it.
    ("linear.key_command", ProjectFilePermission::Never),
    // Records are deleted permanently.
    ("keep.days", ProjectFilePermission::Never),
    ("keep.megabytes", ProjectFilePermission::Never),
    ("keep.compress", ProjectFilePermission::Never),
    ("statusline.theme", ProjectFilePermission::AnyValue),
    ("statusline.background", ProjectFilePermission::AnyValue),
    ("statusline.separator", ProjectFilePermission::AnyValue),
    ("statusline.lines", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.format", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.colour", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.min_columns", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.warn", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.alarm", ProjectFilePermission::AnyValue),
    ("statusline.segments.NAME.pointer", ProjectFilePermission::AnyValue),
    // The status line runs this command.
    ("statusline.segments.NAME.command", ProjectFilePermission::Never),
    // Limited to five seconds, whatever the file says.
    ("statusline.segments.NAME.timeout_ms", ProjectFilePermission::AnyValue),
    // These are the user's own settings for each project.
    ("projects", ProjectFilePermission::Never),
];

/// The object whose keys are names chosen by the user.
const OBJECT_WITH_USER_DEFINED_KEYS: &str = "statusline.segments";

/// A key of a project's file that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredKey {
    /// The key, such as `linear.key_command`.
    pub key: String,
    pub reason: IgnoredReason,
}

/// Why a key is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredReason {
    /// It would start a program, send something out, delete records or cost money.
    NeverAllowed,
    /// It would loosen a limit. This value applies instead.
    LoosensLimit(String),
}

impl IgnoredKey {
    /// Describes which key is ignored, and why.
    pub fn describe(&self) -> String {
        let key = &self.key;
        match &self.reason {
            IgnoredReason::NeverAllowed => format!(
                "{key} is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model, protect files or replace a conversation"
            ),
            IgnoredReason::LoosensLimit(applied_value) => {
                format!(
                    "{key} is ignored: a project's file may only make it stricter; {applied_value} applies"
                )
            }
        }
    }
}

/// Returns the permission for a key, written as in the table; `None` if the table does not have it.
pub fn permission_for_key(key: &str) -> Option<ProjectFilePermission> {
    PERMISSIONS_BY_KEY.iter().find(|(table_key, _)| *table_key == key).map(|(_, permission)| *permission)
}

/// Removes the keys from a project's settings that the project may not set, and returns them. `user_settings`
/// are the settings that apply without the project's file.
pub fn remove_forbidden_keys(project_settings: &mut Value, user_settings: &Value) -> Vec<IgnoredKey> {
    let mut filter = ProjectSettingsFilter { user_settings, defaults: None, ignored: Vec::new() };
    if let Value::Object(settings_object) = project_settings {
        filter.retain_permitted_keys(settings_object, &KeyPath::default());
    }
    filter.ignored
}

/// The path of a key, as written in the file and as the pattern in the table.
#[derive(Default)]
struct KeyPath {
    keys_in_file: Vec<String>,
    table_pattern: String,
}

impl KeyPath {
    fn child_path(&self, key: &str) -> KeyPath {
        let name = if self.table_pattern == OBJECT_WITH_USER_DEFINED_KEYS { "NAME" } else { key };
        let dot = if self.table_pattern.is_empty() { "" } else { "." };
        let keys_in_file = self.keys_in_file.iter().cloned().chain([key.to_owned()]).collect();
        KeyPath { keys_in_file, table_pattern: format!("{}{dot}{name}", self.table_pattern) }
    }
}

struct ProjectSettingsFilter<'a> {
    user_settings: &'a Value,
    /// Computed only when a limit is compared.
    defaults: Option<Value>,
    ignored: Vec<IgnoredKey>,
}

impl ProjectSettingsFilter<'_> {
    fn retain_permitted_keys(&mut self, settings_object: &mut Map<String, Value>, path: &KeyPath) {
        settings_object.retain(|key, value| {
            let child_path = path.child_path(key);
            match (permission_for_key(&child_path.table_pattern), value) {
                (Some(permission), value) => self.allow_or_record_ignored(permission, value, &child_path),
                (None, Value::Object(nested_object)) => {
                    self.retain_permitted_keys(nested_object, &child_path);
                    true
                }
                (None, value) => {
                    self.allow_or_record_ignored(ProjectFilePermission::Never, value, &child_path)
                }
            }
        });
    }

    fn allow_or_record_ignored(
        &mut self,
        permission: ProjectFilePermission,
        value: &Value,
        path: &KeyPath,
    ) -> bool {
        let reason = match permission {
            ProjectFilePermission::AnyValue => return true,
            ProjectFilePermission::Never => Some(IgnoredReason::NeverAllowed),
            ProjectFilePermission::OnlyLower
            | ProjectFilePermission::OnlyLowerNonZero
            | ProjectFilePermission::OnlyHigher => self.reason_if_limit_loosened(permission, value, path),
        };
        let Some(reason) = reason else { return true };
        // `null` sets no limit, so it is dropped without a report.
        if !value.is_null() {
            self.ignored.push(IgnoredKey { key: path.keys_in_file.join("."), reason });
        }
        false
    }

    /// Returns the reason to ignore the value if it would loosen the limit that applies.
    fn reason_if_limit_loosened(
        &mut self,
        permission: ProjectFilePermission,
        value: &Value,
        path: &KeyPath,
    ) -> Option<IgnoredReason> {
        let limit = self.user_or_default_limit(path);
        // 0 switches the limit off, so it counts as higher than every number.
        let comparable_number = |value: &Value| match (permission, value.as_f64()) {
            (ProjectFilePermission::OnlyLowerNonZero, Some(0.0)) => Some(f64::INFINITY),
            (_, number) => number,
        };
        let (project_number, limit_number) = (comparable_number(value)?, comparable_number(&limit)?);
        let loosens_limit = if permission == ProjectFilePermission::OnlyHigher {
            project_number < limit_number
        } else {
            project_number > limit_number
        };
        loosens_limit.then(|| IgnoredReason::LoosensLimit(limit.to_string()))
    }

    fn user_or_default_limit(&mut self, path: &KeyPath) -> Value {
        let pointer: String = path.keys_in_file.iter().map(|key| format!("/{key}")).collect();
        if let Some(value) = self.user_settings.pointer(&pointer) {
            return value.clone();
        }
        let defaults = self
            .defaults
            .get_or_insert_with(|| serde_json::to_value(Settings::default()).unwrap_or_default());
        defaults.pointer(&pointer).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
