//! The working memory of a project: a chained log of accepted changes, and a snapshot that saves folding them.
//! Every way to write goes through [`change`], under one lock, so that two servers and a person at the command
//! line lose nothing of each other.

use crate::turn_log::Entry;
use crate::{Durability, Project, StoreError, TurnLog, disk};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use session::log_line::{Kind, LogLine};
use session::memory::{Memory, Op, Refusal, Report};
use session::turn::record::decode_fields;
use std::path::PathBuf;
use std::time::Duration;

/// Two servers and a command at once take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The memory's own rules.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One accepted change, as the log has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The revision it made.
    pub rev: u64,
    /// When, RFC 3339 UTC.
    #[serde(default)]
    pub at: String,
    /// The step in which it was made.
    pub step: u64,
    /// Who made it: `command`, `mcp`, a subagent's id, …
    pub by: String,
    /// The model's call that made it, as the client names it: hooks know which subagent made that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What.
    pub change: Op,
}

/// Who makes a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct By<'a> {
    /// `command`, `mcp`, …
    pub who: &'a str,
    /// The model's call, where one is behind it.
    pub call: Option<&'a str>,
}

impl<'a> From<&'a str> for By<'a> {
    fn from(who: &'a str) -> By<'a> {
        By { who, call: None }
    }
}

/// What saves folding the log: only believed where it is as new as the log.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Snapshot {
    seq: u64,
    memory: Memory,
}

fn log(project: &Project) -> TurnLog {
    TurnLog::at(project.memory(), "log")
}

fn snapshot_path(project: &Project) -> PathBuf {
    project.memory().join("state.json")
}

/// True once something has been written.
pub fn exists(project: &Project) -> bool {
    log(project).exists()
}

/// The memory as it stands now; an empty one where nothing has been written.
pub fn load(project: &Project) -> Result<Memory, StoreError> {
    let log = log(project);
    if !log.exists() {
        return Ok(Memory::default());
    }
    as_of(project, log.head().map(|head| head.seq))
}

/// The memory after that record of the log: by the snapshot where it is of the same, else folded.
fn as_of(project: &Project, seq: Option<u64>) -> Result<Memory, StoreError> {
    match snapshot(project).filter(|snapshot| Some(snapshot.seq) == seq) {
        Some(snapshot) => Ok(snapshot.memory),
        None => fold(project),
    }
}

fn snapshot(project: &Project) -> Option<Snapshot> {
    serde_json::from_slice(&disk::read(&snapshot_path(project)).ok()??).ok()
}

fn fold(project: &Project) -> Result<Memory, StoreError> {
    let mut memory = Memory::default();
    for change in history(project)? {
        memory.step = memory.step.max(change.step);
        // What was accepted once is accepted again.
        let _ = memory.apply(&change.change);
    }
    Ok(memory)
}

/// Every accepted change, oldest first.
pub fn history(project: &Project) -> Result<Vec<Change>, StoreError> {
    let log = log(project);
    let mut changes = Vec::new();
    for line in log.forwards()? {
        let line = line?;
        let Some(parsed) = LogLine::parse(&line.bytes).filter(|parsed| parsed.header.kind == Kind::Memory)
        else {
            continue;
        };
        let fields = decode_fields(parsed.content, &|hash| log.blob(hash)).unwrap_or_default();
        let change = serde_json::from_value::<Change>(Value::Object(fields)).ok();
        changes.extend(change.map(|change| Change { at: parsed.header.at, ..change }));
    }
    Ok(changes)
}

/// Makes changes, all or none.
pub fn change<'a>(project: &Project, by: impl Into<By<'a>>, ops: &[Op]) -> Result<Report, MemoryError> {
    let by = by.into();
    let log = log(project);
    let mut writer = log.write(PATIENCE)?;
    let mut memory = as_of(project, Some(writer.head().seq))?;
    let mut reports = Report::default();
    let mut entries = Vec::new();
    for op in ops {
        let report = memory.apply(op)?;
        entries.push(entry(&memory, by, op));
        reports = reports.and(report);
    }
    writer.append(&entries)?;
    let seq = writer.head().seq;
    writer.close()?;
    // The log has it, and without a snapshot it is folded: a disk that is full by now takes nothing back.
    let _ = save(project, seq, memory);
    Ok(reports)
}

/// The model has answered. Only counted: no record of its own, and nothing where there is no memory.
pub fn step(project: &Project) -> Result<(), StoreError> {
    let log = log(project);
    if !log.exists() {
        return Ok(());
    }
    let writer = log.write(PATIENCE)?;
    let seq = writer.head().seq;
    let mut memory = as_of(project, Some(seq))?;
    memory.step += 1;
    save(project, seq, memory)
}

fn save(project: &Project, seq: u64, memory: Memory) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(&Snapshot { seq, memory }).unwrap_or_default();
    disk::replace(&snapshot_path(project), &bytes, Durability::Lazy)
}

fn entry(memory: &Memory, by: By<'_>, op: &Op) -> Entry {
    let mut fields = json!({"rev": memory.rev, "step": memory.step, "by": by.who, "change": op});
    if let Some(call) = by.call {
        fields["call"] = Value::from(call);
    }
    Entry::event(Kind::Memory, &fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::memory::Register;

    fn alloc(name: &str) -> Op {
        Op::HeapAlloc { name: name.into(), content: "x".repeat(5_000), description: String::new() }
    }

    #[test]
    fn the_log_alone_comes_to_the_same_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(!exists(&project) && load(&project).unwrap().is_empty());
        step(&project).unwrap();
        assert!(!exists(&project), "counting begins with the first word");
        let values = [(Register::Goal, "g".to_owned())].into();
        change(&project, "command", &[Op::UpdateRegisters { values, strict: false }]).unwrap();
        step(&project).unwrap();
        let by = By { who: "mcp", call: Some("toolu_1") };
        change(&project, by, &[alloc("a"), alloc("b"), Op::HeapFree { name: "a".into() }]).unwrap();
        let live = load(&project).unwrap();
        assert_eq!((live.rev, live.step, live.heap.len()), (4, 1, 1));
        disk::remove(&snapshot_path(&project)).unwrap();
        assert_eq!(load(&project).unwrap(), live);
        let history = history(&project).unwrap();
        assert_eq!(history.iter().map(|change| change.rev).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!((history[1].by.as_str(), history[1].step), ("mcp", 1));
        assert_eq!((history[0].call.as_deref(), history[1].call.as_deref()), (None, Some("toolu_1")));
        assert!(log(&project).verify().unwrap().is_whole());
    }

    #[test]
    fn of_several_changes_all_are_made_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        change(&project, "x", &[alloc("a")]).unwrap();
        let refused = change(&project, "x", &[alloc("b"), alloc("a")]).unwrap_err();
        assert!(matches!(refused, MemoryError::Refused(_)), "{refused}");
        assert_eq!(load(&project).unwrap().heap.len(), 1);
        assert_eq!(history(&project).unwrap().len(), 1);
    }
}
