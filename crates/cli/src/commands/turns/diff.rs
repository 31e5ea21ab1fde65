//! `plimsoll turns diff`: what changed from one turn to another.

use super::{TurnsError, bring_up_to_date};
use crate::console::say;
use clap::Args;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{self, Recorded, find};
use plimsoll_store::{Project, TurnLog};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// How much of a value is shown.
const VALUE: usize = 80;

/// From which turn to which.
#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// The earlier turn: its own changes are not counted
    from: String,
    /// The last turn whose changes count; of the same session and stream
    to: String,
    /// The session of a number alone: the beginning of its id [default: the newest]
    #[arg(long)]
    session: Option<String>,
}

pub(super) fn diff(project: &Project, arguments: &DiffArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let session = arguments.session.as_deref();
    let (log, from) = find(project, &arguments.from, session)?;
    let (_, to) = find(project, &arguments.to, session)?;
    let same = from.session_id == to.session_id && from.header.stream == to.header.stream;
    let number = |turn: &Recorded| turn.header.number.unwrap_or(0);
    if !same || number(&from) == 0 || number(&to) == 0 {
        return Err(TurnsError::Typed(format!(
            "{} and {} are not two turns of the same session and stream",
            arguments.from, arguments.to
        )));
    }
    let (from, to) = if number(&from) <= number(&to) { (from, to) } else { (to, from) };
    say(words(&log, &from, &to)?);
    Ok(ExitCode::SUCCESS)
}

fn words(log: &TurnLog, from: &Recorded, to: &Recorded) -> Result<String, TurnsError> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut commands = 0;
    for record in turns::forwards(log)? {
        let record = record?;
        let is_between = (from.header.number..=to.header.number).contains(&record.header.number)
            && record.header.number != from.header.number;
        if record.header.stream != to.header.stream || !is_between {
            continue;
        }
        for call in record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default() {
            commands += usize::from(call.name == "Bash");
            if let Some((path, what)) = change(call) {
                files.entry(path).or_default().push(format!("{what} in {}", record.name()));
            }
        }
    }
    let mut lines = vec![format!("From {} to {}", from.name(), to.name()), String::new(), "Files".to_owned()];
    if files.is_empty() {
        lines.push("  none by Edit and Write".to_owned());
    }
    lines.extend(files.iter().map(|(path, changes)| format!("  {path}: {}", changes.join(", "))));
    if commands > 0 {
        let commands = counted(commands, "command");
        lines.push(format!("  (Bash may have changed others, in {commands}: see git)"));
    }
    lines.extend([String::new(), "Working memory".to_owned()]);
    let empty = Map::new();
    let memory = |turn: &'_ Recorded| turn.turn().map_or_else(|| empty.clone(), |turn| turn.memory().clone());
    let changed = memory_changes(&memory(from), &memory(to));
    lines.extend(if changed.is_empty() { vec!["  unchanged".to_owned()] } else { changed });
    Ok(lines.join("\n"))
}

/// What a call did to which file, if it went well.
fn change(call: &ToolCall) -> Option<(String, &'static str)> {
    let what = match call.name.as_str() {
        "Edit" | "MultiEdit" | "NotebookEdit" => "edited",
        "Write" => "written",
        _ => return None,
    };
    let path = ["file_path", "notebook_path"].into_iter().find_map(|key| call.args.get(key)?.as_str())?;
    call.is_ok().then(|| (path.to_owned(), what))
}

fn memory_changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let (before, after) = (&named(before), &named(after));
    let told = |value: &Value| {
        clip(&one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned)), VALUE)
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| format!("  - {key}"));
    let new = after.iter().filter_map(|(key, value)| match before.get(key) {
        None => Some(format!("  + {key}: {}", told(value))),
        Some(old) if old != value => Some(format!("  ~ {key}: {} → {}", told(old), told(value))),
        Some(_) => None,
    });
    gone.chain(new).collect()
}

/// Registers and chunks by their own names. Revision and step always change, and say nothing.
fn named(memory: &Map<String, Value>) -> Map<String, Value> {
    let fields = memory.iter().filter(|(key, _)| !matches!(key.as_str(), "rev" | "step"));
    let parts = fields.flat_map(|(key, value)| match (key.as_str(), value) {
        ("registers", Value::Object(registers)) => registers.clone().into_iter().collect(),
        ("heap", Value::Object(heap)) => {
            heap.iter().map(|(name, content)| (format!("heap:{name}"), content.clone())).collect()
        }
        _ => vec![(key.clone(), value.clone())],
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_came_went_and_changed_is_told() {
        let before = json!({"rev": 1, "depth": 0, "registers": {"R1_PLAN": "a", "R2_NEXT": "b"}, "heap": {"api": "x"}});
        let after = json!({"rev": 9, "depth": 1, "registers": {"R2_NEXT": "c\nd"}, "heap": {"api": "x", "spec": "y"}});
        let changes = memory_changes(before.as_object().unwrap(), after.as_object().unwrap());
        assert_eq!(changes, ["  - R1_PLAN", "  ~ depth: 0 → 1", "  ~ R2_NEXT: b → c d", "  + heap:spec: y"]);
    }
}
