//! The entries of the templates, with their commands written for this machine.

use super::command::{exec_form_path, exec_if_installed_command, quote_program_path};
use super::{EntryOptions, HookSupport, MEMORY_ARGUMENT, MEMORY_TEMPLATE, MODERN_TEMPLATE};
use serde_json::{Map, Value};

/// One entry of a template, with its command written for this machine.
pub(super) struct TemplateEntry {
    pub(super) event: String,
    pub(super) program: String,
    /// The template's arguments, even if the entry has them in its command.
    pub(super) arguments: Vec<Value>,
    pub(super) group: Value,
}

impl TemplateEntry {
    /// Returns true if this entry, with the memory argument, replaces `other`, which has the same event and program.
    fn replaces_entry_without_memory(&self, other: &TemplateEntry) -> bool {
        let is_same_program = (&self.event, &self.program) == (&other.event, &other.program);
        is_same_program
            && other.arguments.is_empty()
            && self.arguments.iter().any(|argument| argument == MEMORY_ARGUMENT)
    }

    pub(super) fn hook_value(&self) -> Value {
        self.group.pointer("/hooks/0").cloned().unwrap_or_default()
    }

    pub(super) fn matcher(&self) -> &str {
        self.group.get("matcher").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the hooks of the templates as settings for the `--settings` option, with commands for this machine.
pub fn hooks_settings(options: impl Into<EntryOptions>, command_for: &dyn Fn(&str) -> String) -> Value {
    let mut hooks = Map::new();
    for entry in template_entries_with_memory_replacements(options.into(), command_for) {
        let groups = hooks.entry(entry.event).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = groups {
            groups.push(entry.group);
        }
    }
    Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]))
}

/// Returns the programs of the templates' hooks and of the status line, sorted and without duplicates.
pub fn hook_and_status_line_programs(options: impl Into<EntryOptions>) -> Vec<String> {
    let entry_options = options.into();
    let mut programs: Vec<String> = template_entries_with_memory_replacements(entry_options, &str::to_owned)
        .into_iter()
        .map(|entry| entry.program)
        .collect();
    let template: Value =
        serde_json::from_str(entry_options.hook_support.template_text()).unwrap_or_default();
    let status_line_program = template.pointer("/statusLine/command").and_then(Value::as_str);
    programs.push(status_line_program.unwrap_or_default().to_owned());
    programs.sort();
    programs.dedup();
    programs
}

/// Returns the client's template entries, then the memory's if the options include it. If both templates have an entry
/// with the same program and event, the memory's entry replaces the other one, because it does both tasks.
pub(super) fn template_entries_with_memory_replacements(
    options: EntryOptions,
    command_for: &dyn Fn(&str) -> String,
) -> Vec<TemplateEntry> {
    let memory_template = options.includes_memory().then_some(MEMORY_TEMPLATE);
    let mut entries: Vec<TemplateEntry> = Vec::new();
    for template in [Some(options.hook_support.template_text()), memory_template].into_iter().flatten() {
        let template: Value = serde_json::from_str(template).unwrap_or_default();
        let events = template.get("hooks").and_then(Value::as_object).cloned().unwrap_or_default();
        for (event, groups) in events {
            for mut group in groups.as_array().cloned().unwrap_or_default() {
                let Some(hook) = group.pointer_mut("/hooks/0").and_then(Value::as_object_mut) else {
                    continue;
                };
                let program = hook.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = hook.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
                if options.for_team {
                    set_shared_project_command(hook, &program, &arguments);
                } else {
                    set_command_for_hook_support(hook, options.hook_support, &command_for(&program));
                }
                let entry = TemplateEntry { event: event.clone(), program, arguments, group };
                match entries.iter_mut().find(|other| entry.replaces_entry_without_memory(other)) {
                    Some(existing) => *existing = entry,
                    None => entries.push(entry),
                }
            }
        }
    }
    entries
}

/// Returns true if only the memory's entries start this program.
pub(super) fn is_memory_program(program: &str) -> bool {
    let with_memory = hook_and_status_line_programs(HookSupport::Modern.with_memory());
    let contains_program = |programs: &[String]| programs.iter().any(|name| name == program);
    contains_program(&with_memory) && !contains_program(&hook_and_status_line_programs(HookSupport::Modern))
}

/// Returns the name and value of the variable that the memory needs in the client's environment. [`hooks_settings`] omits
/// it, because `--settings` takes precedence over the user's own settings.
pub fn memory_variable() -> (String, String) {
    let template: Value = serde_json::from_str(MEMORY_TEMPLATE).unwrap_or_default();
    let variables = template.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    let first = variables.into_iter().next();
    first.map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).unwrap_or_default()
}

/// Sets the command of a hook. Some old clients accept the exec form but pass the command to a shell anyway. So for them a
/// path has slashes, and one that needs quotes is written in shell form, which every client reads in the same way.
fn set_command_for_hook_support(hook: &mut Map<String, Value>, hook_support: HookSupport, path: &str) {
    let command = match hook_support {
        HookSupport::Modern => exec_form_path(path),
        HookSupport::Classic => quote_program_path(path),
    };
    let is_quoted = hook_support == HookSupport::Classic && command.starts_with(['\'', '"']);
    if is_quoted {
        hook.shift_remove("args");
    }
    hook.insert("command".to_owned(), command.into());
}

/// Sets a command that does nothing if the program is not installed. It has the bare program name, because many machines
/// share the file.
fn set_shared_project_command(hook: &mut Map<String, Value>, program: &str, arguments: &[Value]) {
    let argument_texts: Vec<String> =
        arguments.iter().filter_map(|argument| argument.as_str().map(str::to_owned)).collect();
    hook.insert("command".to_owned(), exec_if_installed_command(program, &argument_texts).into());
    hook.shift_remove("args");
}

/// Returns the value of our `statusLine` setting, which is the same for every client version.
pub(super) fn status_line_value(command_for: &dyn Fn(&str) -> String) -> Value {
    let template: Value = serde_json::from_str(MODERN_TEMPLATE).unwrap_or_default();
    let mut status_line = template.get("statusLine").cloned().unwrap_or_default();
    let program = status_line.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(fields) = status_line.as_object_mut() {
        // The client always passes a status line's command to a shell.
        fields.insert("command".to_owned(), quote_program_path(&command_for(&program)).into());
    }
    status_line
}
