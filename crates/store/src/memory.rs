//! The working memory of a project: a chained log of accepted changes, and a snapshot that saves folding them.
//! Every way to write goes through [`hold`], under one lock, so that two servers and the user at the command
//! line lose nothing of each other.

mod copy;
mod past;
mod seen;
mod snapshot;
mod standing;
mod steps;

pub use copy::{bring_back, forget_copy, keep};
pub use past::Past;
use plimsoll_domain::{SessionId, Timestamp};
pub use seen::{Pushed, Seen, SeenRevision, Told, is_as_told, pusher, seen, sweep_seen};
pub use standing::Standing;

use crate::turn_log::{Head, NewRecord, RawLine, Writer};
use crate::{Project, StoreError, TurnLog, disk, lock};
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::memory::{Memory, Op, Refusal, Report};
use plimsoll_domain::turn::record::decode_fields;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use snapshot::{Replay, Snapshot};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// Most bytes of the log, with its large pieces, that are folded into a memory while a hook, a server or a command waits: about a
/// quarter of a second. Whoever changes the memory keeps a snapshot of it, so mostly nothing is folded, and after a kill a few lines.
/// A longer stretch without a snapshot comes from elsewhere, such as a clone; [`fold_whole`] folds it once.
pub const MOST_FOLDED: u64 = 2 * 1024 * 1024;

/// Two servers and a command at once take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

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
    pub at: Timestamp,
    /// The step in which it was made.
    pub step: u64,
    /// Who made it: `command`, `mcp`, a subagent's id, …
    pub by: String,
    /// The model's call that made it, as the client names it: hooks know which subagent made that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// In which frame, by its name; empty for the root. Only the current frame writes, so the log tells it.
    #[serde(default)]
    pub frame: String,
    /// The subagent that works in that frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
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

pub(crate) fn log(project: &Project) -> TurnLog {
    TurnLog::at(project.memory(), "log")
}

/// True once something has been written.
pub fn exists(project: &Project) -> bool {
    log(project).is_plain()
}

/// The folder of a memory of the project that is not the present one: sessions wrote it before the project had files of ours in it. None
/// if the present memory goes on from it.
pub fn hidden_memory(project: &Project) -> Option<PathBuf> {
    let earlier = project.earlier().filter(exists)?;
    let goes_on = disk::goes_on_from(&log(project).path(), &log(&earlier).path());
    (!matches!(goes_on, Ok(Some(_)))).then(|| earlier.memory())
}

/// The memory as it is now; an empty one where nothing has been written.
pub fn load(project: &Project) -> Result<Memory, StoreError> {
    let log = log(project);
    if !log.is_plain() {
        return Ok(Memory::default());
    }
    as_of(project, log.head().as_ref(), steps::count(project), MOST_FOLDED)
}

/// True if a log is so long that no hook reads it: nobody is told what is in it until [`fold_whole`] has folded it.
pub fn is_too_long(project: &Project) -> bool {
    log(project).has_more_beyond_head(MOST_FOLDED)
        || matches!(load(project), Err(StoreError::LongMemory { .. }))
}

/// Folds a log of any length, and keeps the snapshot, so that hooks read it from then on. Does nothing with a log that they read
/// already.
pub fn fold_whole(project: &Project) -> Result<(), StoreError> {
    if !is_too_long(project) {
        return Ok(());
    }
    let held = hold_within(project, TIMEOUT, u64::MAX)?;
    let snapshot =
        Snapshot { place: held.writer.head().into(), memory: held.memory, steps: steps::count(project) };
    snapshot::save(project, 0, &snapshot)?;
    held.writer.close()
}

/// The memory after the log's last record and so many answers of models: by the snapshot, with what came after it. After a kill
/// it may be unknown which record that is; then the log tells.
fn as_of(project: &Project, head: Option<&Head>, steps: u64, most: u64) -> Result<Memory, StoreError> {
    let log = log(project);
    let Some(snapshot) = snapshot::newest(project) else { return fold(Replay::from_start(&log, most)?) };
    let step = snapshot.memory.step + steps.saturating_sub(snapshot.steps);
    let memory = if head.is_some_and(|head| snapshot.place.is_at(head)) {
        snapshot.memory
    } else {
        fold(match Replay::after(&log, snapshot, most)? {
            Some(replay) => replay,
            None => return fold(Replay::from_start(&log, most)?),
        })?
    };
    Ok(Memory { step: step.max(memory.step), ..memory })
}

fn fold(mut replay: Replay<'_>) -> Result<Memory, StoreError> {
    while replay.step()?.is_some() {}
    Ok(replay.reached.memory)
}

/// Every accepted change, oldest first.
pub fn history(project: &Project) -> Result<Vec<Change>, StoreError> {
    let log = log(project);
    let mut replay = Replay::from_start(&log, u64::MAX)?;
    std::iter::from_fn(|| replay.step().transpose()).collect()
}

/// The bytes of a log and its large pieces that may still be read.
#[derive(Debug)]
struct Room(Cell<u64>);

impl Room {
    fn new(bytes: u64) -> Room {
        Room(Cell::new(bytes))
    }

    fn take(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes as u64));
    }

    fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }
}

/// The change that a line of the log records; none if it records something else.
fn parsed(log: &TurnLog, line: &RawLine, room: &Room) -> Option<Change> {
    room.take(line.bytes.len());
    let parsed = LogLine::parse(&line.bytes).filter(|parsed| parsed.header.kind == RecordKind::Memory)?;
    let piece = |hash: &str| {
        let piece = if room.is_used_up() { None } else { log.blob(hash) };
        piece.inspect(|piece| room.take(piece.len()))
    };
    let fields = decode_fields(parsed.content, &piece).unwrap_or_default();
    let change: Change = serde_json::from_value(Value::Object(fields)).ok()?;
    Some(Change { at: parsed.header.at, ..change })
}

/// Makes changes, all or none.
pub fn change<'a>(project: &Project, by: impl Into<By<'a>>, ops: &[Op]) -> Result<Report, MemoryError> {
    let by = by.into();
    let mut held = hold(project, TIMEOUT)?;
    let mut reports = Report::default();
    for op in ops {
        // A refusal drops what is held with all changes before it: nothing has been written yet.
        reports = reports.and(held.change(by, op)?);
    }
    held.close()?;
    Ok(reports)
}

/// The memory, held: no other process writes it in the meantime. What is changed is written when it is let go.
#[derive(Debug)]
pub struct Held<'a> {
    project: &'a Project,
    writer: Writer,
    memory: Memory,
    entries: Vec<NewRecord>,
    /// The session whose model has answered.
    answered: Option<SessionId>,
}

/// Takes the memory; waits for it no longer than that.
pub fn hold(project: &Project, timeout: Duration) -> Result<Held<'_>, StoreError> {
    hold_within(project, timeout, MOST_FOLDED)
}

fn hold_within(project: &Project, timeout: Duration, most: u64) -> Result<Held<'_>, StoreError> {
    bring_back(project)?;
    let lock = lock::acquire_in(project, |project| log(project).hold(timeout))?;
    let log = log(project);
    // A writer reads what its head does not cover.
    if log.has_more_beyond_head(most) {
        return Err(StoreError::LongMemory { path: log.path() });
    }
    let writer = log.write_under(lock)?;
    let memory = as_of(project, Some(writer.head()), steps::count(project), most)?;
    Ok(Held { project, writer, memory, entries: Vec::new(), answered: None })
}

impl Held<'_> {
    /// The current memory, with the changes.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Changes it, or refuses and leaves it as it is.
    pub fn change<'a>(&mut self, by: impl Into<By<'a>>, op: &Op) -> Result<Report, Refusal> {
        let report = self.memory.apply(op)?;
        self.entries.push(entry(&self.memory, by.into(), op));
        Ok(report)
    }

    /// A step begins with the change that follows, which records it.
    pub fn step(&mut self) {
        self.memory.step += 1;
    }

    /// The model of a session has answered. Only counted: it makes no record of its own.
    pub fn answered(&mut self, session_id: &SessionId) {
        self.memory.step += 1;
        self.answered = Some(session_id.clone());
    }

    /// The number of answers, with the one that is counted when this is let go.
    fn steps(&self) -> u64 {
        steps::count(self.project) + u64::from(self.answered.is_some())
    }

    /// What a conversation that is told everything now need not be told again; none if there is a change to write.
    pub fn told(&self) -> Option<Told> {
        let link = self.writer.head().link.clone();
        self.entries.is_empty().then(|| Told { link, steps: self.steps() })
    }

    /// Writes what was changed.
    pub fn close(self) -> Result<Memory, StoreError> {
        let (project, answered) = (self.project, self.answered.clone());
        let memory = if self.entries.is_empty() { self.memory } else { self.write()? };
        // Last, behind what says that this answer was seen: after a kill before it the answer that comes next is counted.
        if let Some(session_id) = answered {
            steps::add(project, &session_id);
        }
        Ok(memory)
    }

    fn write(mut self) -> Result<Memory, StoreError> {
        let before = self.writer.head().seq;
        self.writer.append(&self.entries)?;
        let steps = self.steps();
        let snapshot = Snapshot { place: self.writer.head().into(), memory: self.memory, steps };
        // The snapshot before the head: a kill in between leaves a head that is behind, and then readers fold the log;
        // the next writer makes the head anew and finds a snapshot of the same record.
        let saved = snapshot::save(self.project, before, &snapshot);
        self.writer.close()?;
        // The log has every change, and without a snapshot it is folded: a disk that is full by now takes only
        // the count of the steps with it.
        drop(saved);
        // What keeps copies must not end the run.
        let _ = copy::follow(self.project);
        Ok(snapshot.memory)
    }
}

/// The newest change.
fn newest(project: &Project) -> Result<Option<Change>, StoreError> {
    let log = log(project);
    let room = Room::new(MOST_FOLDED);
    for line in log.backwards()? {
        if let Some(change) = parsed(&log, &line?, &room) {
            return Ok(Some(change));
        }
        if room.is_used_up() {
            return Err(StoreError::LongMemory { path: log.path() });
        }
    }
    Ok(None)
}

/// The revisions after `since` in which these calls of a model wrote their own words. A call that pops a frame also
/// writes what the merge makes of it, which is in no call.
pub fn made_by(project: &Project, since: u64, calls: &[&str]) -> Result<Vec<u64>, StoreError> {
    let log = log(project);
    let mut revisions = Vec::new();
    let room = Room::new(MOST_FOLDED);
    for line in log.backwards()? {
        // Of what is further back, the conversation is told its own words once more.
        if room.is_used_up() {
            break;
        }
        let Some(change) = parsed(&log, &line?, &room) else { continue };
        if change.rev <= since {
            break;
        }
        let is_own = change.call.as_deref().is_some_and(|call| calls.contains(&call));
        if is_own && change.change.is_told_by_its_call() {
            revisions.push(change.rev);
        }
    }
    Ok(revisions)
}

fn entry(memory: &Memory, by: By<'_>, op: &Op) -> NewRecord {
    let mut fields = json!({"rev": memory.rev, "step": memory.step, "by": by.who, "change": op});
    if let Some(call) = by.call {
        fields["call"] = Value::from(call);
    }
    NewRecord::event(RecordKind::Memory, &fields)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out a log that nobody has written here")]
mod tests {
    use super::*;
    use plimsoll_domain::memory::Register;

    fn alloc(name: &str) -> Op {
        Op::HeapAlloc { name: name.into(), content: "x".repeat(5_000), description: String::new() }
    }

    #[test]
    fn the_log_alone_comes_to_the_same_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(!exists(&project) && load(&project).unwrap().is_empty());
        let values = [(Register::Goal, "g".to_owned())].into();
        change(&project, "command", &[Op::UpdateRegisters { values, strict: false, everywhere: false }])
            .unwrap();
        let mut held = hold(&project, TIMEOUT).unwrap();
        held.answered(&"s".into());
        held.close().unwrap();
        let by = By { who: "mcp", call: Some("toolu_1") };
        change(&project, by, &[alloc("a"), alloc("b"), Op::HeapFree { name: "a".into() }]).unwrap();
        let live = load(&project).unwrap();
        assert_eq!((live.rev, live.step, live.heap.len()), (4, 1, 1));
        disk::remove(&project.memory().join("state.json")).unwrap();
        assert_eq!(load(&project).unwrap(), live);
        let history = history(&project).unwrap();
        assert_eq!(history.iter().map(|change| change.rev).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!((history[1].by.as_str(), history[1].step), ("mcp", 1));
        assert_eq!((history[0].call.as_deref(), history[1].call.as_deref()), (None, Some("toolu_1")));
        assert_eq!(made_by(&project, 1, &["toolu_1"]).unwrap(), [4, 3, 2]);
        assert_eq!(made_by(&project, 3, &["toolu_1", "toolu_2"]).unwrap(), [4]);
        assert!(log(&project).verify().unwrap().is_whole());
    }

    #[test]
    fn a_log_that_no_snapshot_covers_is_read_by_nobody_who_waits_and_folded_once_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        change(&project, "x", &[alloc("a")]).unwrap();
        // A clone brings no snapshot and no head, and more than anybody has written here.
        let line = std::fs::read(log(&project).path()).unwrap();
        let long = line.repeat(MOST_FOLDED as usize / line.len() + 1);
        std::fs::write(log(&project).path(), long).unwrap();
        for name in ["state.json", "log.head"] {
            disk::remove(&project.memory().join(name)).unwrap();
        }
        let is_long = |error: &StoreError| matches!(error, StoreError::LongMemory { .. });
        assert!(is_too_long(&project) && is_long(&load(&project).unwrap_err()));
        assert!(is_long(&hold(&project, TIMEOUT).unwrap_err()));
        assert!(Past::of(Standing::of(&project)).at(&"2999-01-07T12:00:00Z".into()).is_none());
        fold_whole(&project).unwrap();
        assert!(!is_too_long(&project));
        assert_eq!(load(&project).unwrap().heap.len(), 1);
        assert_eq!(hold(&project, TIMEOUT).unwrap().memory().heap.len(), 1);
    }

    #[test]
    fn large_pieces_count_as_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let mut held = hold(&project, TIMEOUT).unwrap();
        for number in 0..300 {
            let content = format!("{number:03}").repeat(3_000);
            let op = Op::HeapAlloc { name: "a".into(), content, description: String::new() };
            held.change("x", &op).unwrap();
            held.change("x", &Op::HeapFree { name: "a".into() }).unwrap();
        }
        held.close().unwrap();
        disk::remove(&project.memory().join("state.json")).unwrap();
        assert!(disk::size(&log(&project).path()).unwrap() < MOST_FOLDED);
        assert!(matches!(load(&project).unwrap_err(), StoreError::LongMemory { .. }));
        fold_whole(&project).unwrap();
        assert_eq!(load(&project).unwrap().rev, 600);
    }

    #[test]
    fn what_a_pop_merges_stands_in_no_call() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let push = Op::PushFrame {
            name: "f".into(),
            objective: "o".into(),
            context: String::new(),
            return_spec: String::new(),
            call: None,
        };
        let by = By { who: "mcp", call: Some("toolu_1") };
        change(&project, by, &[alloc("a"), push, Op::PopFrame { result: "r".into() }]).unwrap();
        assert_eq!(made_by(&project, 0, &["toolu_1"]).unwrap(), [1]);
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
