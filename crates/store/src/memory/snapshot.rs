//! Snapshots of the memory: the newest, and two earlier ones, so that neither the present memory nor that of a turn ago is
//! folded from the log's beginning. The log is the authority: a snapshot is used only where the line that it names is in the
//! log's chain, and what came after it is folded.

use super::{Change, Room};
use crate::sessions;
use crate::turn_log::{Forwards, Head, LineStart, RawLine};
use crate::{Durability, Project, StoreError, TurnLog, disk};
use plimsoll_domain::Timestamp;
use plimsoll_domain::log_line::{Header, LogLine, RecordKind};
use plimsoll_domain::memory::{Frame, Memory};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// So many records of the log lie between two earlier snapshots: turns are recorded soon after they end, and no turn makes
/// that many changes.
const EVERY: u64 = 64;

/// A line of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Its number.
    pub seq: u64,
    /// Its link.
    pub link: String,
    /// Where it ends, in bytes.
    pub bytes: u64,
    /// When it was written.
    pub at: Timestamp,
}

impl Place {
    /// True for the last line of a log with this head.
    pub(super) fn is_at(&self, head: &Head) -> bool {
        head.seq == self.seq && head.link == self.link
    }
}

impl From<&Head> for Place {
    fn from(head: &Head) -> Place {
        Place { seq: head.seq, link: head.link.clone(), bytes: head.bytes, at: head.at.clone() }
    }
}

/// The memory after a line of the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// The line.
    #[serde(flatten)]
    pub place: Place,
    /// The memory.
    pub memory: Memory,
    /// How many answers of models had been counted by then.
    pub steps: u64,
}

fn read(path: &std::path::Path) -> Option<Snapshot> {
    let snapshot: Snapshot = sessions::load_parsed(path)?;
    // Everybody counts on a root.
    (!snapshot.memory.frames.is_empty()).then_some(snapshot)
}

fn newest_path(project: &Project) -> PathBuf {
    project.memory().join("state.json")
}

fn earlier_path(project: &Project, seq: u64) -> PathBuf {
    project.memory().join(format!("past-{}.json", seq / EVERY % 2))
}

/// The newest snapshot.
pub(super) fn newest(project: &Project) -> Option<Snapshot> {
    read(&newest_path(project))
}

/// The latest of the earlier snapshots that was made by then; the empty memory before the log's first line if there is none.
pub(super) fn by(project: &Project, is_by_then: impl Fn(&Timestamp) -> bool) -> Snapshot {
    let earlier = [0, EVERY].into_iter().filter_map(|seq| read(&earlier_path(project, seq)));
    let fit = earlier.filter(|snapshot| is_by_then(&snapshot.place.at));
    fit.max_by_key(|snapshot| snapshot.place.seq).unwrap_or_default()
}

/// Writes the newest snapshot and, every so often, an earlier one. Each is whole by itself, so no order between them counts.
pub(super) fn save(project: &Project, before: u64, snapshot: &Snapshot) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
    let seq = snapshot.place.seq;
    if before / EVERY != seq / EVERY {
        disk::replace(&earlier_path(project, seq), &bytes, Durability::Lazy)?;
    }
    disk::replace(&newest_path(project), &bytes, Durability::Lazy)
}

/// Keeps an earlier snapshot that had to be folded from the beginning.
pub(super) fn keep(project: &Project, snapshot: &Snapshot) {
    if snapshot.place.seq >= EVERY {
        // Without it the next turn folds again.
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        let _ = disk::replace(&earlier_path(project, snapshot.place.seq), &bytes, Durability::Lazy);
    }
}

/// The lines after a snapshot, applied to it one by one.
pub(super) struct Replay<'a> {
    log: &'a TurnLog,
    lines: Forwards,
    room: Room,
    /// The memory so far.
    pub reached: Snapshot,
}

impl Replay<'_> {
    /// Replays what follows a snapshot, no more than so many bytes. None if the log does not go on from its line.
    pub(super) fn after(
        log: &TurnLog,
        snapshot: Snapshot,
        most: u64,
    ) -> Result<Option<Replay<'_>>, StoreError> {
        let lines = |offset| Forwards::open(&log.path(), LineStart { line: 0, offset });
        if snapshot.place.seq > 0 {
            let Some(first) = lines(snapshot.place.bytes)?.next() else { return Ok(None) };
            let first = first?.bytes;
            if !LogLine::parse(&first).is_some_and(|line| line.follows(&snapshot.place.link)) {
                return Ok(None);
            }
        }
        let lines = lines(snapshot.place.bytes)?;
        Replay::within(log, lines, snapshot, most).map(Some)
    }

    /// Replays everything from the log's beginning, no more than so many bytes.
    pub(super) fn from_start(log: &TurnLog, most: u64) -> Result<Replay<'_>, StoreError> {
        let lines = Forwards::open(&log.path(), LineStart::default())?;
        Replay::within(log, lines, Snapshot::default(), most)
    }

    /// Refuses a log of which more would be read: before it is, since it would be in vain.
    fn within(
        log: &TurnLog,
        lines: Forwards,
        reached: Snapshot,
        most: u64,
    ) -> Result<Replay<'_>, StoreError> {
        let size = disk::size(&log.path()).unwrap_or(0);
        if size.saturating_sub(lines.offset()) > most {
            return Err(StoreError::LongMemory { path: log.path() });
        }
        Ok(Replay { log, lines, room: Room::new(most), reached })
    }

    /// Applies the next change; none at the end. It says in which frame it was made.
    pub(super) fn step(&mut self) -> Result<Option<Change>, StoreError> {
        self.step_if(|_| true)
    }

    /// Applies the next change if it was made when it should have been; none at the end, and at a change that was not.
    pub(super) fn step_if(
        &mut self,
        is_in_time: impl Fn(&Timestamp) -> bool,
    ) -> Result<Option<Change>, StoreError> {
        while let Some(line) = self.lines.next() {
            let line = line?;
            let parsed = LogLine::parse(&line.bytes);
            self.log.refuse_newer(&line.bytes, parsed.as_ref())?;
            let is_late = |header: &Header| header.kind == RecordKind::Memory && !is_in_time(&header.at);
            if parsed.as_ref().is_some_and(|parsed| is_late(&parsed.header)) {
                return Ok(None);
            }
            let change = self.take(&line, parsed);
            // Large pieces may be many times the log.
            if self.room.is_used_up() {
                return Err(StoreError::LongMemory { path: self.log.path() });
            }
            if change.is_some() {
                return Ok(change);
            }
        }
        Ok(None)
    }

    fn take(&mut self, line: &RawLine, parsed: Option<LogLine<'_>>) -> Option<Change> {
        let Snapshot { place, memory, .. } = &mut self.reached;
        if let Some(LogLine { header, link, .. }) = parsed {
            *place =
                Place { seq: header.seq, link: link.to_owned(), bytes: self.lines.offset(), at: header.at };
        }
        let change = super::parsed(self.log, line, &self.room)?;
        let Frame { name, agent, .. } = memory.top().clone();
        memory.step = memory.step.max(change.step);
        // What was accepted once is accepted again.
        let _ = memory.apply(&change.change);
        // A record that is damaged is missing; its revision is not used again.
        memory.rev = memory.rev.max(change.rev);
        Some(Change { frame: name, agent, ..change })
    }
}
