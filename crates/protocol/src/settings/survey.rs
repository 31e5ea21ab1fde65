//! What a settings file says: whether our hooks will run, and what runs beside them.

use super::command::{first_word_or_whole, is_ours};
use super::entries::{self, Difference, entries, find};
use super::text::{self, Unreadable};
use super::wanted::wanted;
use super::{OurHook, Parts, start};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a settings file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// Our hook entries, in the file's order.
    pub ours: Vec<OurHook>,
    /// What others run at Stop.
    pub foreign_stop: Vec<String>,
    /// The events that have any entry.
    pub events: Vec<String>,
    /// `disableAllHooks`, where it is said.
    pub disable_all_hooks: Option<bool>,
    /// `allowManagedHooksOnly`, which counts in managed settings alone.
    pub managed_hooks_only: bool,
    /// The status line.
    pub status_line: Option<StatusLine>,
    /// There is one, and the client takes it for none: then it takes nothing of the file (observed on 2.1.329).
    pub bad_status_line: bool,
    /// `enabledPlugins`, by name.
    pub plugins: BTreeMap<String, bool>,
    /// `disabledMcpjsonServers`.
    pub refused_servers: Vec<String>,
    /// `model`.
    pub model: Option<String>,
    /// `env`, numbers as they are written.
    pub env: BTreeMap<String, String>,
}

/// A status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLine {
    /// As the file spells it.
    pub command: String,
    /// What is started.
    pub starts: String,
    /// One of our programs.
    pub ours: bool,
}

/// Reads a settings text; the error says where it breaks. The client takes nothing of a text that breaks.
pub fn survey(existing: &str) -> Result<Survey, Unreadable> {
    let (_, body) = start(existing);
    let root = text::value(&body, &text::whole(&body)?);
    let ours = find(&body)?.into_iter().map(|found| found.hook).collect();
    let mut survey = Survey { ours, ..of_keys(&root) };
    for entry in entries(&body)? {
        if !survey.events.contains(&entry.event) {
            survey.events.push(entry.event.clone());
        }
        if entry.event == "Stop" && !is_ours(&entry.command, entry.exec_form) {
            survey.foreign_stop.push(words_of(&text::value(&body, &entry.place)));
        }
    }
    Ok(survey)
}

fn of_keys(root: &Value) -> Survey {
    let truth = |name: &str| root.get(name).and_then(Value::as_bool);
    let members = |name: &str| root.get(name).and_then(Value::as_object).into_iter().flatten();
    let command = root.pointer("/statusLine/command").and_then(Value::as_str);
    let refused = root.get("disabledMcpjsonServers").and_then(Value::as_array);
    Survey {
        disable_all_hooks: truth("disableAllHooks"),
        managed_hooks_only: truth("allowManagedHooksOnly") == Some(true),
        status_line: command.map(|command| StatusLine {
            command: command.to_owned(),
            starts: first_word_or_whole(command),
            ours: is_ours(command, false),
        }),
        bad_status_line: command.is_none() && root.get("statusLine").is_some(),
        // A plugin may have an object of options in the place of `true`.
        plugins: members("enabledPlugins")
            .map(|(name, on)| (name.clone(), on.as_bool() != Some(false)))
            .collect(),
        refused_servers: refused.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        model: root.get("model").and_then(Value::as_str).map(str::to_owned),
        env: members("env").map(|(name, value)| (name.clone(), plain(value))).collect(),
        ..Survey::default()
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A hook in words: what it runs, asks or calls.
fn words_of(entry: &Value) -> String {
    let field = |name: &str| entry.get(name).and_then(Value::as_str).filter(|words| !words.is_empty());
    let kind = field("type").unwrap_or("command");
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten().map(plain);
    match field("command") {
        Some(command) => [command.to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" "),
        None => {
            let what = ["url", "prompt", "tool"].into_iter().find_map(field).unwrap_or_default();
            format!("({kind}) {what}").trim_end().to_owned()
        }
    }
}

/// Where our entries of a text are not as we write them for such a client, however their paths are spelled; nothing
/// where there is none of ours. The memory's are asked for where one of them is there.
pub fn differences(existing: &str, parts: impl Into<Parts>) -> Result<Vec<Difference>, Unreadable> {
    let (_, body) = start(existing);
    let found = find(&body)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let spelled = |program: &str| -> String {
        let same = found.iter().find(|one| one.hook.program == program);
        same.map_or_else(|| program.to_owned(), |one| first_word_or_whole(&one.hook.command))
    };
    let memory = found.iter().any(|one| one.hook.is_memorys());
    let guarded = found.iter().any(|one| one.hook.guarded);
    let parts = Parts { memory, guarded, ..parts.into() };
    Ok(entries::differences(&body, &found, &wanted(parts, &spelled)))
}
