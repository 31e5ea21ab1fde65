//! The memory at earlier moments: a turn records what the memory held when the turn ended.

use super::snapshot::{self, Place, Replay, Snapshot};
use super::{Change, MOST_FOLDED, Standing, as_of, exists, log, newest, steps};
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
    stretch: Option<Stretch>,
}

/// The changes from a snapshot on.
#[derive(Debug)]
struct Stretch {
    /// The snapshot's line; before the log's first one for the whole history.
    begin: Snapshot,
    /// Each with its line.
    changes: Vec<(Change, Place)>,
    /// How many changes the memory beside it comes from.
    folded: (usize, Memory),
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
    pub fn at(&mut self, moment: &Timestamp) -> Option<Memory> {
        let now = self.now()?;
        let asked = clock::moment(moment)?;
        let is_by_then = |at: &Timestamp| is_by(at, asked);
        if is_by_then(&self.newest_at) {
            return Some(now.clone());
        }
        let project = self.project.as_ref()?;
        let is_known = |stretch: &Stretch| stretch.is_whole() || is_by_then(&stretch.begin.place.at);
        if !self.stretch.as_ref().is_some_and(is_known) {
            self.stretch = Stretch::before(project, is_by_then).ok();
        }
        self.stretch.as_mut()?.at(project, is_by_then)
    }
}

/// True for a time that is not after a moment.
fn is_by(at: &Timestamp, moment: DateTime<Utc>) -> bool {
    clock::moment(at).is_some_and(|at| at <= moment)
}

impl Stretch {
    /// From the latest snapshot that was made by a moment; the log goes on from it, or all of the log is read.
    fn before(project: &Project, is_by_then: impl Fn(&Timestamp) -> bool) -> Result<Stretch, StoreError> {
        let log = log(project);
        let replay = match Replay::after(&log, snapshot::by(project, is_by_then), MOST_OF_PAST)? {
            Some(replay) => replay,
            None => Replay::from_start(&log, MOST_OF_PAST)?,
        };
        let begin = replay.reached.clone();
        let changes = changes(replay)?;
        Ok(Stretch { folded: (0, begin.memory.clone()), begin, changes })
    }

    fn is_whole(&self) -> bool {
        self.begin.place.seq == 0
    }

    fn at(&mut self, project: &Project, is_by_then: impl Fn(&Timestamp) -> bool) -> Option<Memory> {
        let count = self.changes.iter().take_while(|(change, _)| is_by_then(&change.at)).count();
        let is_first = self.folded.0 == 0;
        if count < self.folded.0 {
            self.folded = (0, self.begin.memory.clone());
        }
        let memory = &mut self.folded.1;
        for (change, _) in &self.changes[self.folded.0..count] {
            memory.step = memory.step.max(change.step);
            // A change in the log was accepted once, so it is accepted again.
            let _ = memory.apply(&change.change);
        }
        self.folded.0 = count;
        let last = count.checked_sub(1).and_then(|last| self.changes.get(last));
        if let (true, true, Some((_, place))) = (self.is_whole(), is_first, last) {
            // There was none that a later turn could begin from.
            snapshot::keep(
                project,
                &Snapshot { place: place.clone(), memory: self.folded.1.clone(), steps: 0 },
            );
        }
        (count > 0 || !self.is_whole()).then(|| self.folded.1.clone())
    }
}

fn changes(mut replay: Replay<'_>) -> Result<Vec<(Change, Place)>, StoreError> {
    let mut changes = Vec::new();
    while let Some(change) = replay.step()? {
        changes.push((change, replay.reached.place.clone()));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut past = Past::of(Standing::of(&project));
        let mut at = |moment: &Timestamp| {
            past.at(moment).map(|memory| memory.register(Register::Next).to_owned()).unwrap_or_default()
        };
        let found: Vec<String> = moments.iter().map(&mut at).collect();
        assert_eq!(found, ["", "one", "two", "three"]);
        let backwards: Vec<String> = moments.iter().rev().map(&mut at).collect();
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
