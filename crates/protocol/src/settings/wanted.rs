//! What the templates ask for: each entry, with its command spelled for this machine.

use super::command::{guarded, quoted};
use super::{HookSupport, MEMORY, MODERN, Parts, WITH_MEMORY};
use serde_json::{Map, Value};

/// One entry of a template, its command already spelled.
pub(super) struct Wanted {
    pub(super) event: String,
    pub(super) program: String,
    /// As the template has them, however the entry spells them.
    pub(super) arguments: Vec<Value>,
    pub(super) group: Value,
}

impl Wanted {
    /// True if this entry does what another does, and the memory's half of the event.
    fn stands_for(&self, other: &Wanted) -> bool {
        let is_same = (&self.event, &self.program) == (&other.event, &other.program);
        is_same && other.arguments.is_empty() && self.arguments.iter().any(|word| word == WITH_MEMORY)
    }

    pub(super) fn entry(&self) -> Value {
        self.group.pointer("/hooks/0").cloned().unwrap_or_default()
    }

    pub(super) fn matcher(&self) -> &str {
        self.group.get("matcher").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The templates as a value, each command spelled as this machine finds it, for `--settings`; hooks only.
pub fn hooks_only(parts: impl Into<Parts>, command_for: &dyn Fn(&str) -> String) -> Value {
    let mut hooks = Map::new();
    for wanted in wanted(parts.into(), command_for) {
        let groups = hooks.entry(wanted.event).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = groups {
            groups.push(wanted.group);
        }
    }
    Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]))
}

/// The programs that the templates name, each once.
pub fn programs_of(parts: impl Into<Parts>) -> Vec<String> {
    let parts = parts.into();
    let mut programs: Vec<String> =
        wanted(parts, &str::to_owned).into_iter().map(|one| one.program).collect();
    let template: Value = serde_json::from_str(parts.era.template()).unwrap_or_default();
    let of_status_line = template.pointer("/statusLine/command").and_then(Value::as_str);
    programs.push(of_status_line.unwrap_or_default().to_owned());
    programs.sort();
    programs.dedup();
    programs
}

/// The entries of the era, then those of the memory. Of one program under one event the memory's stands for both.
pub(super) fn wanted(parts: Parts, command_for: &dyn Fn(&str) -> String) -> Vec<Wanted> {
    let memory = parts.has_memory().then_some(MEMORY);
    let mut all: Vec<Wanted> = Vec::new();
    for template in [Some(parts.era.template()), memory].into_iter().flatten() {
        let template: Value = serde_json::from_str(template).unwrap_or_default();
        let events = template.get("hooks").and_then(Value::as_object).cloned().unwrap_or_default();
        for (event, groups) in events {
            for mut group in groups.as_array().cloned().unwrap_or_default() {
                let Some(entry) = group.pointer_mut("/hooks/0").and_then(Value::as_object_mut) else {
                    continue;
                };
                let program = entry.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = entry.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
                if parts.guarded {
                    spell_guarded(entry, &program, &arguments);
                } else {
                    spell(entry, parts.era, command_for(&program));
                }
                let one = Wanted { event: event.clone(), program, arguments, group };
                match all.iter_mut().find(|other| one.stands_for(other)) {
                    Some(other) => *other = one,
                    None => all.push(one),
                }
            }
        }
    }
    all
}

/// Whether a program is one of the memory's: no entry of the load line starts it.
pub(super) fn is_memorys(program: &str) -> bool {
    let with = programs_of(HookSupport::Modern.with_memory());
    let has = |programs: &[String]| programs.iter().any(|one| one == program);
    has(&with) && !has(&programs_of(HookSupport::Modern))
}

/// The one variable that the memory wants in the client's environment, and its value. `hooks_only` leaves it out:
/// what `--settings` says would go before the user's own.
pub fn memory_variable() -> (String, String) {
    let template: Value = serde_json::from_str(MEMORY).unwrap_or_default();
    let variables = template.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    let first = variables.into_iter().next();
    first.map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).unwrap_or_default()
}

/// Some old clients take the exec form and then hand the command to a shell nevertheless: where the path
/// needs quotes, they get the shell form, which every client reads alike.
fn spell(entry: &mut Map<String, Value>, era: HookSupport, command: String) {
    let no_arguments = entry.get("args").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if era == HookSupport::Classic && no_arguments && quoted(&command) != command {
        entry.insert("command".to_owned(), quoted(&command).into());
        entry.shift_remove("args");
    } else {
        entry.insert("command".to_owned(), command.into());
    }
}

/// By the program's name alone: the file is on many machines.
fn spell_guarded(entry: &mut Map<String, Value>, program: &str, arguments: &[Value]) {
    let words: Vec<String> = arguments.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
    entry.insert("command".to_owned(), guarded(program, &words).into());
    entry.shift_remove("args");
}

/// Our status line, for every client alike.
pub(super) fn status_line(command_for: &dyn Fn(&str) -> String) -> Value {
    let template: Value = serde_json::from_str(MODERN).unwrap_or_default();
    let mut line = template.get("statusLine").cloned().unwrap_or_default();
    let program = line.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(line) = line.as_object_mut() {
        // The client always hands a status line's command to a shell.
        line.insert("command".to_owned(), quoted(&command_for(&program)).into());
    }
    line
}
