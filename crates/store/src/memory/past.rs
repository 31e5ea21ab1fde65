//! The memory at earlier moments: a turn records what the memory held when the turn ended.

use super::snapshot::{self, Replay};
use super::{MOST_FOLDED, Standing, as_of, exists, log, newest, steps};
use crate::turn_log::{Head, NotedMemory};
use crate::{Project, StoreError, clock};
use chrono::{DateTime, Utc};
use plimsoll_domain::Timestamp;
use plimsoll_domain::memory::Memory;
use plimsoll_domain::turn::record::PackedMemory;
use std::cell::OnceCell;

/// Most bytes that are folded for an earlier moment: this is done once, and leaves a snapshot that later turns begin from. Without
/// it a turn is recorded without the memory.
const MOST_OF_PAST: u64 = 4 * MOST_FOLDED;

/// The memory at any moment, looked up as it is asked for.
#[derive(Debug, Default)]
pub struct Past {
    project: Option<Project>,
    head: Option<Head>,
    newest_at: Timestamp,
    /// How many answers of models have been counted.
    steps: u64,
    now: OnceCell<Option<Memory>>,
}

impl Past {
    /// The past of a project's memory; empty without a memory.
    pub fn of(Standing { project, head }: Standing) -> Past {
        // A head is one only with its log.
        if head.is_none() && !exists(&project) {
            return Past::default();
        }
        // The head knows; without it the log's end says so.
        let newest_at =
            head.as_ref().map(|head| head.at.clone()).or_else(|| Some(newest(&project).ok()??.at));
        let newest_at = newest_at.unwrap_or_default();
        Past { steps: steps::count(&project), project: Some(project), head, newest_at, ..Past::default() }
    }

    fn now(&self) -> Option<&Memory> {
        let load = || as_of(self.project.as_ref()?, self.head.as_ref(), self.steps, MOST_FOLDED).ok();
        self.now.get_or_init(load).as_ref()
    }

    /// The memory at a moment as the turn before has it, if nothing was written since; then the memory itself need not be read.
    pub fn as_before(&self, moment: &Timestamp, noted: &NotedMemory) -> Option<String> {
        let is_same = self.head.as_ref().is_some_and(|head| head.link == noted.link);
        let is_now = is_same && is_by(&self.newest_at, clock::moment(moment)?);
        let answers = self.steps.checked_sub(noted.steps)?;
        is_now.then(|| noted.packed.at_step(noted.packed.step + answers))
    }

    /// What the next turn may keep of the memory of this one: nothing, if it is that of an earlier moment.
    pub fn to_note(&self, packed: PackedMemory) -> Option<NotedMemory> {
        let link = self.head.as_ref()?.link.clone();
        let is_now = self.now().is_some_and(|now| (now.rev, now.step) == (packed.rev, packed.step));
        is_now.then_some(NotedMemory { link, steps: self.steps, packed, pieces: None })
    }

    /// The memory at a moment (RFC 3339); none if there was no memory then.
    pub fn at(&self, moment: &Timestamp) -> Option<Memory> {
        let now = self.now()?;
        let asked = clock::moment(moment)?;
        if is_by(&self.newest_at, asked) {
            return Some(now.clone());
        }
        earlier(self.project.as_ref()?, |at| is_by(at, asked)).ok()?
    }
}

/// True for a time that is not after a moment.
fn is_by(at: &Timestamp, moment: DateTime<Utc>) -> bool {
    clock::moment(at).is_some_and(|at| at <= moment)
}

/// The memory after the last change that was made by then, from the latest snapshot of that time or from the beginning; none if
/// nothing was changed by then.
fn earlier(project: &Project, is_by_then: impl Fn(&Timestamp) -> bool) -> Result<Option<Memory>, StoreError> {
    let log = log(project);
    let mut replay = match Replay::after(&log, snapshot::by(project, &is_by_then), MOST_OF_PAST)? {
        Some(replay) => replay,
        None => Replay::from_start(&log, MOST_OF_PAST)?,
    };
    let is_whole = replay.reached.place.seq == 0;
    let mut has_changed = false;
    while replay.step_if(&is_by_then)?.is_some() {
        has_changed = true;
    }
    if is_whole && has_changed {
        // There was none that a later turn could begin from.
        snapshot::keep(project, &replay.reached);
    }
    Ok((has_changed || !is_whole).then_some(replay.reached.memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::snapshot::{Place, Snapshot};
    use crate::memory::{change, load};
    use crate::{Durability, disk};
    use plimsoll_domain::memory::{Op, Register};
    use std::time::Duration;

    #[test]
    fn each_moment_has_its_own_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(Past::of(Standing::of(&project)).at(&"2026-01-01T00:00:00Z".into()).is_none());
        let mut moments = vec![clock::fine_stamp(clock::now())];
        for text in ["one", "two", "three"] {
            std::thread::sleep(Duration::from_millis(5));
            let values = [(Register::Next, text.to_owned())].into();
            change(&project, "mcp", &[Op::UpdateRegisters { values, strict: false, everywhere: false }])
                .unwrap();
            std::thread::sleep(Duration::from_millis(5));
            moments.push(clock::fine_stamp(clock::now()));
        }
        let past = Past::of(Standing::of(&project));
        let at = |moment: &Timestamp| {
            past.at(moment).map(|memory| memory.register(Register::Next).to_owned()).unwrap_or_default()
        };
        let found: Vec<String> = moments.iter().map(at).collect();
        assert_eq!(found, ["", "one", "two", "three"]);
        let backwards: Vec<String> = moments.iter().rev().map(at).collect();
        assert_eq!(backwards, ["three", "two", "one", ""]);
    }

    fn set_next(project: &Project, text: &str) {
        let values = [(Register::Next, text.to_owned())].into();
        let op = Op::UpdateRegisters { values, strict: false, everywhere: false };
        change(project, "mcp", &[op]).unwrap();
    }

    /// When each revision was made.
    fn moments(project: &Project) -> Vec<Timestamp> {
        super::super::history(project).unwrap().into_iter().map(|change| change.at).collect()
    }

    #[test]
    fn a_long_past_is_the_same_from_its_snapshots_and_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        for number in 1..=200 {
            set_next(&project, &number.to_string());
            std::thread::sleep(Duration::from_millis(2));
        }
        let moments = moments(&project);
        let told = |project: &Project, revision: usize| {
            let memory = Past::of(Standing::of(project)).at(&moments[revision - 1]).unwrap();
            (memory.rev, memory.register(Register::Next).to_owned())
        };
        let expected = |revision: usize| (revision as u64, revision.to_string());
        let snapshots = ["past-0.json", "past-1.json"].map(|name| project.memory().join(name));
        let kept = |path: &std::path::PathBuf| {
            serde_json::from_slice::<Snapshot>(&disk::read(path).unwrap().unwrap())
        };
        assert_eq!(snapshots.each_ref().map(|path| kept(path).unwrap().place.seq), [128, 192]);
        for revision in [1, 127, 128, 129, 150, 191, 192, 193, 199] {
            assert_eq!(told(&project, revision), expected(revision), "from snapshots");
        }
        // A snapshot of another log is none of this one's.
        let mut foreign = kept(&snapshots[1]).unwrap();
        foreign.place.link = "0".repeat(64);
        foreign.memory.rev = 7;
        disk::replace(&snapshots[1], &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
        assert_eq!(told(&project, 195), expected(195), "its line is not in the chain");
        for path in &snapshots {
            disk::remove(path).unwrap();
        }
        assert_eq!(told(&project, 150), expected(150), "without snapshots");
        assert_eq!(kept(&snapshots[0]).unwrap().place.seq, 150, "and one was made");
        assert_eq!(told(&project, 160), expected(160));
    }

    #[test]
    fn a_newest_snapshot_that_is_behind_is_folded_on_and_a_foreign_one_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let path = project.memory().join("state.json");
        set_next(&project, "one");
        let behind = disk::read(&path).unwrap().unwrap();
        set_next(&project, "two");
        let whole = load(&project).unwrap();
        disk::replace(&path, &behind, Durability::Lazy).unwrap();
        assert_eq!(load(&project).unwrap(), whole, "folded on");
        let text = String::from_utf8(behind).unwrap();
        let mut foreign: Snapshot = serde_json::from_str(&text).unwrap();
        for link in ["", "another"] {
            foreign.place.link = link.to_owned();
            foreign.memory.rev = 40;
            disk::replace(&path, &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
            assert_eq!(load(&project).unwrap(), whole, "{link:?}");
        }
        foreign.place = Place { seq: 2, link: "another".to_owned(), ..foreign.place };
        disk::replace(&path, &serde_json::to_vec(&foreign).unwrap(), Durability::Lazy).unwrap();
        assert_eq!(load(&project).unwrap(), whole, "the number of a line is not enough");
    }
}
