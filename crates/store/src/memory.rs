//! The working memory of a project: a chained log of accepted changes, and a snapshot that saves replaying
//! them. All writes go through [`lock_memory`], which takes one lock, so that two servers and the user at the
//! command line never lose each other's changes.

mod memory_copy;
mod memory_head;
mod past_memory;
mod response_counter;
mod shown_record;
mod snapshot;

pub use memory_copy::{
    remove_copy, restore_damaged_memory_and_create_copy, restore_missing_memory_from_copy,
};
pub use memory_head::MemoryHead;
pub use past_memory::PastMemory;
use plimsoll_domain::{SessionId, Timestamp};
pub use shown_record::{
    FramePush, ShownMemoryState, ShownPosition, ShownRevision, count_response_if_memory_unchanged,
    find_owner_of_last_push_by_call_id, load_shown_memory_state, remove_expired_shown_records_once_a_day,
};

use crate::turn_log::{LogHead, LogWriter, NewRecord, RawLine};
use crate::{Project, StoreError, TurnLog, disk, lock};
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::memory::{ApplyError, ChangeReport, Memory, MemoryOp};
use plimsoll_domain::turn::record::decode_fields;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use snapshot::{Replay, Snapshot};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// The maximum size in bytes of the log, with its separately stored content, that is replayed into a memory
/// while a hook, a server or a command waits: about a quarter of a second. Every process that changes the
/// memory saves a snapshot, so usually nothing is replayed, and after a kill a few lines. A longer part without
/// a snapshot comes from elsewhere, such as a clone; [`replay_log_and_save_snapshot_if_too_long`] replays it once.
pub const MAX_REPLAYED_LOG_BYTES: u64 = 2 * 1024 * 1024;

/// How long to wait for the lock. Two servers and a command that write at the same time need milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The change violates a rule of the memory.
    #[error(transparent)]
    Refused(#[from] ApplyError),
    /// The memory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One accepted change, as the log records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// The revision that this change produced.
    pub rev: u64,
    /// When it was made, RFC 3339 UTC.
    #[serde(default)]
    pub at: Timestamp,
    /// The step in which it was made.
    pub step: u64,
    /// The author of the change: `command`, `mcp`, a subagent's id, …
    #[serde(rename = "by")]
    pub author: String,
    /// The id of the model's tool call that made it: hooks know which subagent made that call.
    #[serde(rename = "call", default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The name of the frame in which it was made; empty for the root. Only the current frame can write, so
    /// the log determines it.
    #[serde(default)]
    pub frame: String,
    /// The subagent that works in that frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(rename = "change")]
    pub op: MemoryOp,
}

/// The author of a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeAuthor<'a> {
    /// `command`, `mcp`, …
    pub name: &'a str,
    /// The id of the model's tool call, if a call made the change.
    pub call_id: Option<&'a str>,
}

impl<'a> From<&'a str> for ChangeAuthor<'a> {
    fn from(name: &'a str) -> ChangeAuthor<'a> {
        ChangeAuthor { name, call_id: None }
    }
}

pub(crate) fn memory_log(project: &Project) -> TurnLog {
    TurnLog::in_folder_never_compressed(project.memory_folder(), "log")
}

/// Returns true if a memory has been written.
pub fn memory_exists(project: &Project) -> bool {
    memory_log(project).is_uncompressed()
}

/// Returns the folder of an earlier memory of the project, which sessions wrote before our files were inside
/// the project. `None` if there is none, or if the current log begins with its log.
pub fn superseded_memory_folder(project: &Project) -> Option<PathBuf> {
    let earlier_project = project.earlier_external_project().filter(memory_exists)?;
    let copy_length =
        disk::copy_length_if_prefix(&memory_log(project).path(), &memory_log(&earlier_project).path());
    (!matches!(copy_length, Ok(Some(_)))).then(|| earlier_project.memory_folder())
}

/// Loads the current memory; an empty one if nothing has been written.
pub fn load_memory(project: &Project) -> Result<Memory, StoreError> {
    let log = memory_log(project);
    if !log.is_uncompressed() {
        return Ok(Memory::default());
    }
    load_from_snapshot_and_later_records(
        project,
        log.current_head().as_ref(),
        response_counter::total_response_count(project),
        MAX_REPLAYED_LOG_BYTES,
    )
}

/// Returns true if the log is too long for hooks to read. Then the memory is shown to no session until
/// [`replay_log_and_save_snapshot_if_too_long`] has been called.
pub fn is_log_too_long(project: &Project) -> bool {
    memory_log(project).has_more_bytes_after_head_than(MAX_REPLAYED_LOG_BYTES)
        || matches!(load_memory(project), Err(StoreError::MemoryLogTooLong { .. }))
}

/// Replays a log of any length and saves a snapshot, so that hooks can read the memory from then on. Does
/// nothing if they already can.
pub fn replay_log_and_save_snapshot_if_too_long(project: &Project) -> Result<(), StoreError> {
    if !is_log_too_long(project) {
        return Ok(());
    }
    let locked_memory = lock_memory_with_log_limit(project, LOCK_TIMEOUT, u64::MAX)?;
    let snapshot = Snapshot {
        position: locked_memory.writer.head().into(),
        memory: locked_memory.memory,
        response_count: response_counter::total_response_count(project),
    };
    snapshot::save_as_newest_and_periodically_as_earlier(project, 0, &snapshot)?;
    locked_memory.writer.close()
}

/// Returns the memory after the log's last record and `response_count` model responses, from the newest
/// snapshot and the records after it. Without a known head, as after a kill, the log itself is read.
fn load_from_snapshot_and_later_records(
    project: &Project,
    head: Option<&LogHead>,
    response_count: u64,
    max_bytes: u64,
) -> Result<Memory, StoreError> {
    let log = memory_log(project);
    let Some(snapshot) = snapshot::load_newest(project) else {
        return replay_to_end(Replay::from_start(&log, max_bytes)?);
    };
    let current_step = snapshot.memory.step_number + response_count.saturating_sub(snapshot.response_count);
    let memory = if head.is_some_and(|head| snapshot.position.is_last_line_of(head)) {
        snapshot.memory
    } else {
        replay_to_end(match Replay::from_snapshot_if_log_continues_it(&log, snapshot, max_bytes)? {
            Some(replay) => replay,
            None => return replay_to_end(Replay::from_start(&log, max_bytes)?),
        })?
    };
    Ok(Memory { step_number: current_step.max(memory.step_number), ..memory })
}

fn replay_to_end(mut replay: Replay<'_>) -> Result<Memory, StoreError> {
    while replay.apply_next_change()?.is_some() {}
    Ok(replay.snapshot.memory)
}

/// Reads every accepted change, oldest first.
pub fn read_changes(project: &Project) -> Result<Vec<MemoryChange>, StoreError> {
    let log = memory_log(project);
    let mut replay = Replay::from_start(&log, u64::MAX)?;
    std::iter::from_fn(|| replay.apply_next_change().transpose()).collect()
}

/// How many more bytes of a log and its separately stored content may be read.
#[derive(Debug)]
struct ReadBudget(Cell<u64>);

impl ReadBudget {
    fn new(bytes: u64) -> ReadBudget {
        ReadBudget(Cell::new(bytes))
    }

    fn spend(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes as u64));
    }

    fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}

/// Parses a line of the log; `None` if it records something other than a memory change.
fn parse_if_memory_change(log: &TurnLog, line: &RawLine, budget: &ReadBudget) -> Option<MemoryChange> {
    budget.spend(line.bytes.len());
    let log_line = LogLine::parse(&line.bytes).filter(|parsed| parsed.header.kind == RecordKind::Memory)?;
    let read_blob = |hash: &str| {
        let blob = if budget.is_exhausted() { None } else { log.read_blob(hash) };
        blob.inspect(|bytes| budget.spend(bytes.len()))
    };
    let fields = decode_fields(log_line.content, &read_blob).unwrap_or_default();
    let change: MemoryChange = serde_json::from_value(Value::Object(fields)).ok()?;
    Some(MemoryChange { at: log_line.header.recorded_at, ..change })
}

/// Applies changes under the memory's lock, either all of them or none.
pub fn apply_changes_atomically<'a>(
    project: &Project,
    author: impl Into<ChangeAuthor<'a>>,
    ops: &[MemoryOp],
) -> Result<ChangeReport, MemoryError> {
    let author = author.into();
    let mut locked_memory = lock_memory(project, LOCK_TIMEOUT)?;
    let mut report = ChangeReport::default();
    for op in ops {
        // A rejected change returns early and drops all changes before it, because nothing has been written yet.
        report = report.followed_by(locked_memory.apply_and_queue_record(author, op)?);
    }
    locked_memory.save_changes_and_unlock()?;
    Ok(report)
}

/// The locked memory: no other process can write it. [`LockedMemory::save_changes_and_unlock`] writes the changes.
#[derive(Debug)]
pub struct LockedMemory<'a> {
    project: &'a Project,
    writer: LogWriter,
    memory: Memory,
    new_records: Vec<NewRecord>,
    /// The session whose model response is counted when the memory is released.
    responding_session: Option<SessionId>,
}

/// Locks the memory; waits no longer than the timeout.
pub fn lock_memory(project: &Project, timeout: Duration) -> Result<LockedMemory<'_>, StoreError> {
    lock_memory_with_log_limit(project, timeout, MAX_REPLAYED_LOG_BYTES)
}

fn lock_memory_with_log_limit(
    project: &Project,
    timeout: Duration,
    max_bytes: u64,
) -> Result<LockedMemory<'_>, StoreError> {
    restore_missing_memory_from_copy(project)?;
    let lock =
        lock::acquire_at_current_location(project, |project| memory_log(project).acquire_lock(timeout))?;
    let log = memory_log(project);
    // The writer reads the part of the log that its head does not cover.
    if log.has_more_bytes_after_head_than(max_bytes) {
        return Err(StoreError::MemoryLogTooLong { path: log.path() });
    }
    let writer = log.open_writer_with_lock(lock)?;
    let memory = load_from_snapshot_and_later_records(
        project,
        Some(writer.head()),
        response_counter::total_response_count(project),
        max_bytes,
    )?;
    Ok(LockedMemory { project, writer, memory, new_records: Vec::new(), responding_session: None })
}

impl LockedMemory<'_> {
    /// Returns the memory with the changes made so far.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Applies a change, or rejects it and leaves the memory unchanged.
    pub fn apply_and_queue_record<'a>(
        &mut self,
        author: impl Into<ChangeAuthor<'a>>,
        op: &MemoryOp,
    ) -> Result<ChangeReport, ApplyError> {
        let report = self.memory.apply(op)?;
        self.new_records.push(new_change_record(&self.memory, author.into(), op));
        Ok(report)
    }

    /// Begins a new step. The change that follows records it.
    pub fn begin_step(&mut self) {
        self.memory.step_number += 1;
    }

    /// Counts a model response of a session. This adds no record to the log.
    pub fn count_response_on_release(&mut self, session_id: &SessionId) {
        self.memory.step_number += 1;
        self.responding_session = Some(session_id.clone());
    }

    /// Returns the number of counted model responses, including the one that is counted on release.
    fn response_count(&self) -> u64 {
        response_counter::total_response_count(self.project) + u64::from(self.responding_session.is_some())
    }

    /// Returns the current position: a conversation that has been shown all of the memory needs to be shown only
    /// what comes after it. `None` if there are unwritten changes.
    pub fn shown_position(&self) -> Option<ShownPosition> {
        let link = self.writer.head().link.clone();
        self.new_records.is_empty().then(|| ShownPosition { link, response_count: self.response_count() })
    }

    /// Writes the changes and counts the model response, if any; releases the lock.
    pub fn save_changes_and_unlock(self) -> Result<Memory, StoreError> {
        let (project, responding_session) = (self.project, self.responding_session.clone());
        let memory =
            if self.new_records.is_empty() { self.memory } else { self.write_records_snapshot_and_copy()? };
        // The response is counted last: after a kill before this, the next response is counted instead.
        if let Some(session_id) = responding_session {
            response_counter::append_response(project, &session_id);
        }
        Ok(memory)
    }

    fn write_records_snapshot_and_copy(mut self) -> Result<Memory, StoreError> {
        let previous_sequence_number = self.writer.head().sequence_number;
        self.writer.append_records_or_roll_back(&self.new_records)?;
        let response_count = self.response_count();
        let snapshot = Snapshot { position: self.writer.head().into(), memory: self.memory, response_count };
        // The snapshot is written before the head: a kill in between leaves an outdated head. Then readers replay
        // the log, and the next writer rebuilds the head and finds a snapshot of the same record.
        let snapshot_result = snapshot::save_as_newest_and_periodically_as_earlier(
            self.project,
            previous_sequence_number,
            &snapshot,
        );
        self.writer.close()?;
        // An error is ignored: the log has every change and is replayed without a snapshot. If the disk is full,
        // only the step count is lost.
        drop(snapshot_result);
        // A failed copy must not end the run.
        let _ = memory_copy::update_existing_copy(self.project);
        Ok(snapshot.memory)
    }
}

/// Returns the newest change in the log; `None` if there is none. Returns an error if the read budget is used up.
fn newest_change(project: &Project) -> Result<Option<MemoryChange>, StoreError> {
    let log = memory_log(project);
    let budget = ReadBudget::new(MAX_REPLAYED_LOG_BYTES);
    for line in log.backward_lines()? {
        if let Some(change) = parse_if_memory_change(&log, &line?, &budget) {
            return Ok(Some(change));
        }
        if budget.is_exhausted() {
            return Err(StoreError::MemoryLogTooLong { path: log.path() });
        }
    }
    Ok(None)
}

/// Returns the revisions after `after_revision` that were made by these tool calls of a model and whose content
/// is in the call itself. A call that pops a frame also writes the merged result, which is in no call.
pub fn register_or_heap_write_revisions_of_calls(
    project: &Project,
    after_revision: u64,
    call_ids: &[&str],
) -> Result<Vec<u64>, StoreError> {
    let log = memory_log(project);
    let mut revisions = Vec::new();
    let budget = ReadBudget::new(MAX_REPLAYED_LOG_BYTES);
    for line in log.backward_lines()? {
        // The search stops, so changes in older records are missing from the result: the conversation is shown its
        // own ones once more.
        if budget.is_exhausted() {
            break;
        }
        let Some(change) = parse_if_memory_change(&log, &line?, &budget) else { continue };
        if change.rev <= after_revision {
            break;
        }
        let is_by_one_of_the_calls =
            change.call_id.as_deref().is_some_and(|call_id| call_ids.contains(&call_id));
        if is_by_one_of_the_calls && change.op.is_register_or_heap_write() {
            revisions.push(change.rev);
        }
    }
    Ok(revisions)
}

fn new_change_record(memory: &Memory, author: ChangeAuthor<'_>, op: &MemoryOp) -> NewRecord {
    let mut fields =
        json!({"rev": memory.revision, "step": memory.step_number, "by": author.name, "change": op});
    if let Some(call_id) = author.call_id {
        fields["call"] = Value::from(call_id);
    }
    NewRecord::event_now(RecordKind::Memory, &fields)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out a log that nobody has written here")]
mod tests {
    use super::*;
    use plimsoll_domain::memory::Register;

    fn alloc_op(name: &str) -> MemoryOp {
        MemoryOp::HeapAlloc { name: name.into(), content: "x".repeat(5_000), description: String::new() }
    }

    #[test]
    fn the_log_without_a_snapshot_gives_the_same_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        assert!(!memory_exists(&project) && load_memory(&project).unwrap().is_empty());
        let values = [(Register::Goal, "g".to_owned())].into();
        apply_changes_atomically(
            &project,
            "command",
            &[MemoryOp::UpdateRegisters { values, strict: false, in_all_frames: false }],
        )
        .unwrap();
        let mut locked = lock_memory(&project, LOCK_TIMEOUT).unwrap();
        locked.count_response_on_release(&"s".into());
        locked.save_changes_and_unlock().unwrap();
        let author = ChangeAuthor { name: "mcp", call_id: Some("toolu_1") };
        apply_changes_atomically(
            &project,
            author,
            &[alloc_op("a"), alloc_op("b"), MemoryOp::HeapFree { name: "a".into() }],
        )
        .unwrap();
        let live = load_memory(&project).unwrap();
        assert_eq!((live.revision, live.step_number, live.heap.len()), (4, 1, 1));
        disk::remove_if_exists(&project.memory_folder().join("state.json")).unwrap();
        assert_eq!(load_memory(&project).unwrap(), live);
        let history = read_changes(&project).unwrap();
        assert_eq!(history.iter().map(|change| change.rev).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!((history[1].author.as_str(), history[1].step), ("mcp", 1));
        assert_eq!((history[0].call_id.as_deref(), history[1].call_id.as_deref()), (None, Some("toolu_1")));
        assert_eq!(register_or_heap_write_revisions_of_calls(&project, 1, &["toolu_1"]).unwrap(), [4, 3, 2]);
        assert_eq!(
            register_or_heap_write_revisions_of_calls(&project, 3, &["toolu_1", "toolu_2"]).unwrap(),
            [4]
        );
        assert!(memory_log(&project).verify().unwrap().is_intact());
    }

    #[test]
    fn a_long_log_without_a_snapshot_is_read_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        apply_changes_atomically(&project, "x", &[alloc_op("a")]).unwrap();
        // A clone has no snapshot and no head, and its log may be longer than any written here.
        let line = std::fs::read(memory_log(&project).path()).unwrap();
        let long = line.repeat(MAX_REPLAYED_LOG_BYTES as usize / line.len() + 1);
        std::fs::write(memory_log(&project).path(), long).unwrap();
        for name in ["state.json", "log.head"] {
            disk::remove_if_exists(&project.memory_folder().join(name)).unwrap();
        }
        let is_long = |error: &StoreError| matches!(error, StoreError::MemoryLogTooLong { .. });
        assert!(is_log_too_long(&project) && is_long(&load_memory(&project).unwrap_err()));
        assert!(is_long(&lock_memory(&project, LOCK_TIMEOUT).unwrap_err()));
        assert!(
            PastMemory::from_head_or_log_else_empty(MemoryHead::load(&project))
                .memory_at(&"2999-01-07T12:00:00Z".into())
                .is_none()
        );
        replay_log_and_save_snapshot_if_too_long(&project).unwrap();
        assert!(!is_log_too_long(&project));
        assert_eq!(load_memory(&project).unwrap().heap.len(), 1);
        assert_eq!(lock_memory(&project, LOCK_TIMEOUT).unwrap().memory().heap.len(), 1);
    }

    #[test]
    fn separately_stored_content_counts_toward_the_log_read_limit() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let mut locked = lock_memory(&project, LOCK_TIMEOUT).unwrap();
        for number in 0..300 {
            let content = format!("{number:03}").repeat(3_000);
            let op = MemoryOp::HeapAlloc { name: "a".into(), content, description: String::new() };
            locked.apply_and_queue_record("x", &op).unwrap();
            locked.apply_and_queue_record("x", &MemoryOp::HeapFree { name: "a".into() }).unwrap();
        }
        locked.save_changes_and_unlock().unwrap();
        disk::remove_if_exists(&project.memory_folder().join("state.json")).unwrap();
        assert!(disk::file_size(&memory_log(&project).path()).unwrap() < MAX_REPLAYED_LOG_BYTES);
        assert!(matches!(load_memory(&project).unwrap_err(), StoreError::MemoryLogTooLong { .. }));
        replay_log_and_save_snapshot_if_too_long(&project).unwrap();
        assert_eq!(load_memory(&project).unwrap().revision, 600);
    }

    #[test]
    fn the_merge_of_a_pop_is_not_attributed_to_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let push = MemoryOp::PushFrame {
            name: "f".into(),
            objective: "o".into(),
            context: String::new(),
            return_spec: String::new(),
            push_call_id: None,
        };
        let author = ChangeAuthor { name: "mcp", call_id: Some("toolu_1") };
        apply_changes_atomically(
            &project,
            author,
            &[alloc_op("a"), push, MemoryOp::PopFrame { result: "r".into() }],
        )
        .unwrap();
        assert_eq!(register_or_heap_write_revisions_of_calls(&project, 0, &["toolu_1"]).unwrap(), [1]);
    }

    #[test]
    fn several_changes_are_applied_all_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        apply_changes_atomically(&project, "x", &[alloc_op("a")]).unwrap();
        let refused = apply_changes_atomically(&project, "x", &[alloc_op("b"), alloc_op("a")]).unwrap_err();
        assert!(matches!(refused, MemoryError::Refused(_)), "{refused}");
        assert_eq!(load_memory(&project).unwrap().heap.len(), 1);
        assert_eq!(read_changes(&project).unwrap().len(), 1);
    }
}
