//! Snapshots of the memory: the newest, and two earlier ones, so that neither the current memory nor that of a
//! recent turn is replayed from the beginning of the log. The log is authoritative: a snapshot is used only if its
//! line is in the log's chain, and the records after that line are replayed.

use super::{MemoryChange, ReadBudget};
use crate::sessions;
use crate::turn_log::{ForwardLines, LineStart, LogHead, RawLine};
use crate::{Durability, Project, StoreError, TurnLog, disk};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{LogLine, RecordHeader, RecordKind};
use plimsoll_domain::memory::{Frame, Memory};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The number of log records between two earlier snapshots. Turns are recorded soon after they end, and no
/// turn makes this many changes.
const EARLIER_SNAPSHOT_INTERVAL: u64 = 64;

/// A position in the log, after one of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    /// The number of the line.
    pub seq: u64,
    /// The chain hash of the line.
    pub link: String,
    /// The offset in bytes at which the line ends.
    pub bytes: u64,
    /// When the line was written.
    pub at: Timestamp,
}

impl LogPosition {
    /// Returns true if this is the last line of a log with this head.
    pub(super) fn is_last_line_of(&self, head: &LogHead) -> bool {
        head.sequence_number == self.seq && head.link == self.link
    }
}

impl From<&LogHead> for LogPosition {
    fn from(head: &LogHead) -> LogPosition {
        LogPosition {
            seq: head.sequence_number,
            link: head.link.clone(),
            bytes: head.log_bytes,
            at: head.recorded_at.clone(),
        }
    }
}

/// The memory after a line of the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Snapshot {
    #[serde(flatten)]
    pub position: LogPosition,
    pub memory: Memory,
    /// The number of model responses that had been counted.
    #[serde(rename = "steps")]
    pub response_count: u64,
}

fn read_snapshot(path: &std::path::Path) -> Option<Snapshot> {
    let snapshot: Snapshot = sessions::read_json_if_valid(path)?;
    // Code relies on the root frame, so a snapshot without one is invalid.
    (!snapshot.memory.frames.is_empty()).then_some(snapshot)
}

fn newest_snapshot_path(project: &Project) -> PathBuf {
    project.memory_folder().join("state.json")
}

fn earlier_snapshot_path(project: &Project, seq: u64) -> PathBuf {
    project.memory_folder().join(format!("past-{}.json", seq / EARLIER_SNAPSHOT_INTERVAL % 2))
}

pub(super) fn load_newest(project: &Project) -> Option<Snapshot> {
    read_snapshot(&newest_snapshot_path(project))
}

/// Returns the latest earlier snapshot that is not after the cutoff. Returns an empty memory at the beginning of
/// the log if there is none.
pub(super) fn latest_earlier_snapshot(
    project: &Project,
    is_at_or_before_cutoff: impl Fn(&Timestamp) -> bool,
) -> Snapshot {
    let earlier_snapshots = [0, EARLIER_SNAPSHOT_INTERVAL]
        .into_iter()
        .filter_map(|seq| read_snapshot(&earlier_snapshot_path(project, seq)));
    let snapshots_before_cutoff =
        earlier_snapshots.filter(|snapshot| is_at_or_before_cutoff(&snapshot.position.at));
    snapshots_before_cutoff.max_by_key(|snapshot| snapshot.position.seq).unwrap_or_default()
}

/// Writes the snapshot as the newest, and once every [`EARLIER_SNAPSHOT_INTERVAL`] records also as an earlier one.
/// Each file is complete by itself, so the order of the writes does not matter.
pub(super) fn save_as_newest_and_periodically_as_earlier(
    project: &Project,
    previous_seq: u64,
    snapshot: &Snapshot,
) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
    let seq = snapshot.position.seq;
    if previous_seq / EARLIER_SNAPSHOT_INTERVAL != seq / EARLIER_SNAPSHOT_INTERVAL {
        disk::replace(&earlier_snapshot_path(project, seq), &bytes, Durability::Lazy)?;
    }
    disk::replace(&newest_snapshot_path(project), &bytes, Durability::Lazy)
}

/// Saves a snapshot that was replayed from the beginning of the log as an earlier one, so that the next turn can
/// start from it. Does nothing in the first [`EARLIER_SNAPSHOT_INTERVAL`] records.
pub(super) fn save_as_earlier_after_first_interval(project: &Project, snapshot: &Snapshot) {
    if snapshot.position.seq >= EARLIER_SNAPSHOT_INTERVAL {
        // An error is ignored: the next turn replays the log again.
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        let _ =
            disk::replace(&earlier_snapshot_path(project, snapshot.position.seq), &bytes, Durability::Lazy);
    }
}

/// Applies the log's lines after a snapshot one by one.
pub(super) struct Replay<'a> {
    log: &'a TurnLog,
    lines: ForwardLines,
    budget: ReadBudget,
    /// The memory after the lines that have been applied.
    pub snapshot: Snapshot,
}

impl Replay<'_> {
    /// Starts a replay after a snapshot, limited to `max_bytes` bytes. Returns `None` if the next line of the log is
    /// missing or not chained to the snapshot's line.
    pub(super) fn from_snapshot_if_log_continues_it(
        log: &TurnLog,
        snapshot: Snapshot,
        max_bytes: u64,
    ) -> Result<Option<Replay<'_>>, StoreError> {
        let open_lines_at = |offset| ForwardLines::open_at(&log.path(), LineStart { line_number: 0, offset });
        if snapshot.position.seq > 0 {
            let Some(next_line) = open_lines_at(snapshot.position.bytes)?.next() else { return Ok(None) };
            let next_line_bytes = next_line?.bytes;
            if !LogLine::parse(&next_line_bytes)
                .is_some_and(|line| line.is_chained_to(&snapshot.position.link))
            {
                return Ok(None);
            }
        }
        let lines = open_lines_at(snapshot.position.bytes)?;
        Replay::new_if_within_read_limit(log, lines, snapshot, max_bytes).map(Some)
    }

    /// Starts a replay from the log's beginning, limited to `max_bytes` bytes.
    pub(super) fn from_start(log: &TurnLog, max_bytes: u64) -> Result<Replay<'_>, StoreError> {
        let lines = ForwardLines::open_at(&log.path(), LineStart::default())?;
        Replay::new_if_within_read_limit(log, lines, Snapshot::default(), max_bytes)
    }

    /// Creates a replay. Returns an error if the remaining log is larger than `max_bytes`.
    fn new_if_within_read_limit(
        log: &TurnLog,
        lines: ForwardLines,
        snapshot: Snapshot,
        max_bytes: u64,
    ) -> Result<Replay<'_>, StoreError> {
        let size = disk::file_size(&log.path()).unwrap_or(0);
        if size.saturating_sub(lines.next_offset()) > max_bytes {
            return Err(StoreError::MemoryLogTooLong { path: log.path() });
        }
        Ok(Replay { log, lines, budget: ReadBudget::new(max_bytes), snapshot })
    }

    /// Applies the next change and returns it with its frame. Returns `None` at the end of the log.
    pub(super) fn apply_next_change(&mut self) -> Result<Option<MemoryChange>, StoreError> {
        self.apply_next_change_up_to_cutoff(|_| true)
    }

    /// Applies the next change if it is not after the cutoff. Returns `None` at the end of the log and at the first
    /// change after the cutoff.
    pub(super) fn apply_next_change_up_to_cutoff(
        &mut self,
        is_at_or_before_cutoff: impl Fn(&Timestamp) -> bool,
    ) -> Result<Option<MemoryChange>, StoreError> {
        while let Some(line) = self.lines.next() {
            let line = line?;
            let parsed_line = LogLine::parse(&line.bytes);
            self.log.refuse_line_of_newer_format(&line.bytes, parsed_line.as_ref())?;
            let is_after_cutoff = |header: &RecordHeader| {
                header.kind == RecordKind::Memory && !is_at_or_before_cutoff(&header.recorded_at)
            };
            if parsed_line.as_ref().is_some_and(|parsed| is_after_cutoff(&parsed.header)) {
                return Ok(None);
            }
            let change = self.advance_and_apply_line(&line, parsed_line);
            // Separately stored content may be many times the size of the log.
            if self.budget.is_exhausted() {
                return Err(StoreError::MemoryLogTooLong { path: self.log.path() });
            }
            if change.is_some() {
                return Ok(change);
            }
        }
        Ok(None)
    }

    fn advance_and_apply_line(
        &mut self,
        line: &RawLine,
        parsed_line: Option<LogLine<'_>>,
    ) -> Option<MemoryChange> {
        let Snapshot { position, memory, .. } = &mut self.snapshot;
        if let Some(LogLine { header, chain_hash: link, .. }) = parsed_line {
            *position = LogPosition {
                seq: header.sequence_number,
                link: link.to_owned(),
                bytes: self.lines.next_offset(),
                at: header.recorded_at,
            };
        }
        let change = super::parse_if_memory_change(self.log, line, &self.budget)?;
        let Frame { name: frame_name, agent_id: agent, .. } = memory.current_frame().clone();
        memory.step_number = memory.step_number.max(change.step);
        // The change was accepted when it was written, so no error is expected.
        let _ = memory.apply(&change.op);
        // A damaged record changes nothing, but its revision is not used again.
        memory.revision = memory.revision.max(change.rev);
        Some(MemoryChange { frame: frame_name, agent, ..change })
    }
}
