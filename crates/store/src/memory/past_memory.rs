//! The memory at earlier times. The record of a turn contains the memory as it was when the turn ended.

use super::snapshot::{self, Replay};
use super::{
    MAX_REPLAYED_LOG_BYTES, MemoryHead, load_from_snapshot_and_later_records, memory_exists, memory_log,
    newest_change, response_counter,
};
use crate::turn_log::{LogHead, RecordedMemory};
use crate::{Project, StoreError, clock};
use chrono::{DateTime, Utc};
use plimsoll_domain::Timestamp;
use plimsoll_domain::memory::Memory;
use plimsoll_domain::turn::record::EncodedMemory;
use std::cell::OnceCell;

/// The maximum number of bytes of the log that are replayed for an earlier time. Such a replay happens once and
/// saves a snapshot from which later turns start. A turn that would need more is recorded without the memory.
const MAX_PAST_REPLAYED_LOG_BYTES: u64 = 4 * MAX_REPLAYED_LOG_BYTES;

/// The memory at any time, loaded on demand.
#[derive(Debug, Default)]
pub struct PastMemory {
    project: Option<Project>,
    head: Option<LogHead>,
    newest_change_at: Timestamp,
    /// The number of model responses that have been counted.
    response_count: u64,
    current: OnceCell<Option<Memory>>,
}

impl PastMemory {
    /// Prepares access to earlier states of a project's memory. Returns an empty value if there is no memory.
    pub fn from_head_or_log_else_empty(MemoryHead { project, head }: MemoryHead) -> PastMemory {
        // A head is valid only with its log.
        if head.is_none() && !memory_exists(&project) {
            return PastMemory::default();
        }
        // The head has the time of the newest change; without a head it is read from the end of the log.
        let newest_change_at = head
            .as_ref()
            .map(|head| head.recorded_at.clone())
            .or_else(|| Some(newest_change(&project).ok()??.at));
        let newest_change_at = newest_change_at.unwrap_or_default();
        PastMemory {
            response_count: response_counter::total_response_count(&project),
            project: Some(project),
            head,
            newest_change_at,
            ..PastMemory::default()
        }
    }

    fn load_current_memory_once(&self) -> Option<&Memory> {
        let load = || {
            load_from_snapshot_and_later_records(
                self.project.as_ref()?,
                self.head.as_ref(),
                self.response_count,
                MAX_REPLAYED_LOG_BYTES,
            )
            .ok()
        };
        self.current.get_or_init(load).as_ref()
    }

    /// Returns the encoded memory (JSON) of the previous turn with the current step number, if the memory
    /// has not changed since and `timestamp` is not before its last change. Does not load the memory.
    pub fn unchanged_previous_memory_json_with_new_step(
        &self,
        timestamp: &Timestamp,
        previous: &RecordedMemory,
    ) -> Option<String> {
        let has_same_log_chain_hash =
            self.head.as_ref().is_some_and(|head| head.link == previous.log_chain_hash);
        let is_unchanged = has_same_log_chain_hash
            && is_not_after(&self.newest_change_at, clock::parse_timestamp(timestamp)?);
        let new_response_count = self.response_count.checked_sub(previous.response_count)?;
        is_unchanged.then(|| previous.packed.to_json_with_step(previous.packed.step + new_response_count))
    }

    /// Returns a record from which the next turn can reuse this turn's memory. Returns `None` if
    /// `encoded_memory` is not the current memory.
    pub fn to_recorded_memory_if_current(&self, encoded_memory: EncodedMemory) -> Option<RecordedMemory> {
        let log_chain_hash = self.head.as_ref()?.link.clone();
        let is_current = self.load_current_memory_once().is_some_and(|current| {
            (current.revision, current.step_number) == (encoded_memory.rev, encoded_memory.step)
        });
        is_current.then_some(RecordedMemory {
            log_chain_hash,
            response_count: self.response_count,
            packed: encoded_memory,
            blob_folder_stamp: None,
        })
    }

    /// Returns the memory at a time (RFC 3339); `None` if there was no memory at that time.
    pub fn memory_at(&self, timestamp: &Timestamp) -> Option<Memory> {
        let current = self.load_current_memory_once()?;
        let requested_time = clock::parse_timestamp(timestamp)?;
        if is_not_after(&self.newest_change_at, requested_time) {
            return Some(current.clone());
        }
        replay_log_to_cutoff_saving_first_snapshot(self.project.as_ref()?, |timestamp| {
            is_not_after(timestamp, requested_time)
        })
        .ok()?
    }
}

/// Returns true if a timestamp is at or before the cutoff; false if it does not parse.
fn is_not_after(timestamp: &Timestamp, cutoff: DateTime<Utc>) -> bool {
    clock::parse_timestamp(timestamp).is_some_and(|time| time <= cutoff)
}

/// Replays the log up to the last change that is not after the cutoff, from the latest suitable snapshot or from
/// the beginning. A replay from the beginning saves a snapshot. Returns `None` if every change is after the
/// cutoff.
fn replay_log_to_cutoff_saving_first_snapshot(
    project: &Project,
    is_at_or_before_cutoff: impl Fn(&Timestamp) -> bool,
) -> Result<Option<Memory>, StoreError> {
    let log = memory_log(project);
    let mut replay = match Replay::from_snapshot_if_log_continues_it(
        &log,
        snapshot::latest_earlier_snapshot(project, &is_at_or_before_cutoff),
        MAX_PAST_REPLAYED_LOG_BYTES,
    )? {
        Some(replay) => replay,
        None => Replay::from_start(&log, MAX_PAST_REPLAYED_LOG_BYTES)?,
    };
    let starts_at_beginning = replay.snapshot.position.seq == 0;
    let mut has_changed = false;
    while replay.apply_next_change_up_to_cutoff(&is_at_or_before_cutoff)?.is_some() {
        has_changed = true;
    }
    if starts_at_beginning && has_changed {
        // No snapshot was available, so this one saves later turns the replay from the beginning.
        snapshot::save_as_earlier_after_first_interval(project, &replay.snapshot);
    }
    Ok((has_changed || !starts_at_beginning).then_some(replay.snapshot.memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::snapshot::{LogPosition, Snapshot};
    use crate::memory::{apply_changes_atomically, load_memory};
    use crate::{Durability, disk};
    use plimsoll_domain::memory::{MemoryOp, Register};
    use std::time::Duration;

    #[test]
    fn each_time_has_its_own_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        assert!(
            PastMemory::from_head_or_log_else_empty(MemoryHead::load(&project))
                .memory_at(&"2026-01-01T00:00:00Z".into())
                .is_none()
        );
        let mut moments = vec![clock::to_millis_timestamp(clock::now())];
        for text in ["one", "two", "three"] {
            std::thread::sleep(Duration::from_millis(5));
            let values = [(Register::Next, text.to_owned())].into();
            apply_changes_atomically(
                &project,
                "mcp",
                &[MemoryOp::UpdateRegisters { values, strict: false, in_all_frames: false }],
            )
            .unwrap();
            std::thread::sleep(Duration::from_millis(5));
            moments.push(clock::to_millis_timestamp(clock::now()));
        }
        let past = PastMemory::from_head_or_log_else_empty(MemoryHead::load(&project));
        let next_register_at = |moment: &Timestamp| {
            past.memory_at(moment)
                .map(|memory| memory.register_text(Register::Next).to_owned())
                .unwrap_or_default()
        };
        let forwards: Vec<String> = moments.iter().map(next_register_at).collect();
        assert_eq!(forwards, ["", "one", "two", "three"]);
        let backwards: Vec<String> = moments.iter().rev().map(next_register_at).collect();
        assert_eq!(backwards, ["three", "two", "one", ""]);
    }

    fn set_next(project: &Project, text: &str) {
        let values = [(Register::Next, text.to_owned())].into();
        let op = MemoryOp::UpdateRegisters { values, strict: false, in_all_frames: false };
        apply_changes_atomically(project, "mcp", &[op]).unwrap();
    }

    /// Returns the time of each revision.
    fn moments(project: &Project) -> Vec<Timestamp> {
        super::super::read_changes(project).unwrap().into_iter().map(|change| change.at).collect()
    }

    #[test]
    fn the_past_is_the_same_with_and_without_snapshots() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        for number in 1..=200 {
            set_next(&project, &number.to_string());
            std::thread::sleep(Duration::from_millis(2));
        }
        let moments = moments(&project);
        let memory_at_revision = |project: &Project, revision: usize| {
            let memory = PastMemory::from_head_or_log_else_empty(MemoryHead::load(project))
                .memory_at(&moments[revision - 1])
                .unwrap();
            (memory.revision, memory.register_text(Register::Next).to_owned())
        };
        let expected = |revision: usize| (revision as u64, revision.to_string());
        let snapshots = ["past-0.json", "past-1.json"].map(|name| project.memory_folder().join(name));
        let read_snapshot = |path: &std::path::PathBuf| {
            serde_json::from_slice::<Snapshot>(&disk::read(path).unwrap().unwrap())
        };
        assert_eq!(snapshots.each_ref().map(|path| read_snapshot(path).unwrap().position.seq), [128, 192]);
        for revision in [1, 127, 128, 129, 150, 191, 192, 193, 199] {
            assert_eq!(memory_at_revision(&project, revision), expected(revision), "from snapshots");
        }
        // A snapshot of another log is not used for this one.
        let mut foreign = read_snapshot(&snapshots[1]).unwrap();
        foreign.position.link = "0".repeat(64);
        foreign.memory.revision = 7;
        disk::replace(&snapshots[1], &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
        assert_eq!(memory_at_revision(&project, 195), expected(195), "its line is not in the chain");
        for path in &snapshots {
            disk::remove_if_exists(path).unwrap();
        }
        assert_eq!(memory_at_revision(&project, 150), expected(150), "without snapshots");
        assert_eq!(read_snapshot(&snapshots[0]).unwrap().position.seq, 150, "and one was made");
        assert_eq!(memory_at_revision(&project, 160), expected(160));
    }

    #[test]
    fn an_outdated_snapshot_is_continued_and_a_foreign_one_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let path = project.memory_folder().join("state.json");
        set_next(&project, "one");
        let behind = disk::read(&path).unwrap().unwrap();
        set_next(&project, "two");
        let expected = load_memory(&project).unwrap();
        disk::replace(&path, &behind, Durability::Lazy).unwrap();
        assert_eq!(load_memory(&project).unwrap(), expected, "folded on");
        let text = String::from_utf8(behind).unwrap();
        let mut foreign: Snapshot = serde_json::from_str(&text).unwrap();
        for link in ["", "another"] {
            foreign.position.link = link.to_owned();
            foreign.memory.revision = 40;
            disk::replace(&path, &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
            assert_eq!(load_memory(&project).unwrap(), expected, "{link:?}");
        }
        foreign.position = LogPosition { seq: 2, link: "another".to_owned(), ..foreign.position };
        disk::replace(&path, &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
        assert_eq!(load_memory(&project).unwrap(), expected, "the number of a line is not enough");
    }
}
