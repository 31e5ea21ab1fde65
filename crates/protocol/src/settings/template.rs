//! The entries of the templates, with their commands written for this machine.

use super::command::{guarded_command, shell_quote};
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
    /// Returns true if this entry does what `other` does, and the memory's part of the event.
    fn includes_memory_half_of(&self, other: &TemplateEntry) -> bool {
        let is_same_program = (&self.event, &self.program) == (&other.event, &other.program);
        is_same_program
            && other.arguments.is_empty()
            && self.arguments.iter().any(|word| word == MEMORY_ARGUMENT)
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
    for entry in template_entries(options.into(), command_for) {
        let groups = hooks.entry(entry.event).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = groups {
            groups.push(entry.group);
        }
    }
    Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]))
}

/// Returns the programs that the templates name, without duplicates.
pub fn program_names(options: impl Into<EntryOptions>) -> Vec<String> {
    let entry_options = options.into();
    let mut programs: Vec<String> =
        template_entries(entry_options, &str::to_owned).into_iter().map(|entry| entry.program).collect();
    let template: Value =
        serde_json::from_str(entry_options.hook_support.template_text()).unwrap_or_default();
    let status_line_program = template.pointer("/statusLine/command").and_then(Value::as_str);
    programs.push(status_line_program.unwrap_or_default().to_owned());
    programs.sort();
    programs.dedup();
    programs
}

/// Returns the template's entries, then those of the memory. If both have an entry of one program for one event, only
/// the memory's is returned, because it does both.
pub(super) fn template_entries(
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
                if options.guarded {
                    write_guarded_command(hook, &program, &arguments);
                } else {
                    write_command(hook, options.hook_support, command_for(&program));
                }
                let entry = TemplateEntry { event: event.clone(), program, arguments, group };
                match entries.iter_mut().find(|other| entry.includes_memory_half_of(other)) {
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
    let with_memory = program_names(HookSupport::Modern.with_memory());
    let contains_program = |programs: &[String]| programs.iter().any(|name| name == program);
    contains_program(&with_memory) && !contains_program(&program_names(HookSupport::Modern))
}

/// Returns the name and value of the variable that the memory needs in the client's environment. [`hooks_settings`] omits
/// it, because `--settings` takes precedence over the user's own settings.
pub fn memory_variable() -> (String, String) {
    let template: Value = serde_json::from_str(MEMORY_TEMPLATE).unwrap_or_default();
    let variables = template.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    let first = variables.into_iter().next();
    first.map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).unwrap_or_default()
}

/// Sets the command for this machine. Some old clients accept the exec form but pass the command to a shell anyway:
/// if the path needs quotes, they get the shell form, which every client reads alike.
fn write_command(hook: &mut Map<String, Value>, hook_support: HookSupport, command: String) {
    let has_no_arguments = hook.get("args").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if hook_support == HookSupport::Classic && has_no_arguments && shell_quote(&command) != command {
        hook.insert("command".to_owned(), shell_quote(&command).into());
        hook.shift_remove("args");
    } else {
        hook.insert("command".to_owned(), command.into());
    }
}

/// Sets a guarded command with the bare program name, because many machines share the file.
fn write_guarded_command(hook: &mut Map<String, Value>, program: &str, arguments: &[Value]) {
    let argument_texts: Vec<String> =
        arguments.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
    hook.insert("command".to_owned(), guarded_command(program, &argument_texts).into());
    hook.shift_remove("args");
}

/// Returns our status line, which is the same for every client.
pub(super) fn status_line_value(command_for: &dyn Fn(&str) -> String) -> Value {
    let template: Value = serde_json::from_str(MODERN_TEMPLATE).unwrap_or_default();
    let mut line = template.get("statusLine").cloned().unwrap_or_default();
    let program = line.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(line) = line.as_object_mut() {
        // The client always passes a status line's command to a shell.
        line.insert("command".to_owned(), shell_quote(&command_for(&program)).into());
    }
    line
}
