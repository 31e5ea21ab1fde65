//! The board of a run that works on one machine: the record of that machine, which nobody else changes.

use super::{Board, Orders, Pause, UnfinishedWork, local_moment, record_landing, record_next_start};
use crate::run::Interrupt;
use crate::workers::closing::Closing;
use crate::workers::connection::{Refused, WorkerNews};
use crate::workers::error::MergeError;
use crate::workers::means::Means;
use crate::workers::shown_plan::take_answers;
use crate::workers::table::Table;
use plimsoll_domain::board::{Aside, BoardItem, Moment, Stage};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::{
    Claim, Outlook, become_merger, claim, fail, items_to_merge, offer, outlook, pause, refuse, renew,
    send_back_conflict, set_aside, settle,
};
use plimsoll_store::{Project, StoreError};
use std::path::PathBuf;

/// The one merger.
const MERGER: &str = "merger";

/// The board of one machine.
pub(in super::super) struct LocalBoard {
    table: Table,
    project: Project,
    /// The clone, whose branch is the target.
    repository: PathBuf,
    clock: fn() -> Moment,
}

impl LocalBoard {
    /// The board in this record.
    pub(in super::super) fn new(table: Table, project: &Project, repository: PathBuf) -> LocalBoard {
        LocalBoard { table, project: project.clone(), repository, clock: local_moment }
    }

    /// The same with another clock.
    #[cfg(test)]
    pub(super) fn with_clock(self, clock: fn() -> Moment) -> LocalBoard {
        LocalBoard { clock, ..self }
    }

    /// The target's end; empty if it is gone.
    fn tip(&self) -> String {
        let target = self.table.now().target_branch().ok();
        target
            .and_then(|target| worktree::end_of(&self.repository, &target))
            .map_or(String::new(), String::from)
    }
}

impl Board for LocalBoard {
    fn table(&self) -> &Table {
        &self.table
    }

    fn moment(&self) -> Moment {
        (self.clock)()
    }

    fn paused_until(&self) -> Moment {
        self.table.now().board.paused_until
    }

    fn pause(&self, Pause { until, is_of_day }: &Pause) -> Result<bool, StoreError> {
        let is_new = *until > self.paused_until();
        self.table.change(|workers| {
            pause(&mut workers.board, *until);
            if is_new {
                workers.waits_for_next_day = *is_of_day;
            }
        })?;
        Ok(is_new)
    }

    fn can_claim(&self, _: &[Claim]) -> bool {
        outlook(&self.table.now().board, self.moment()) == Outlook::Free
    }

    fn claim(
        &self,
        worker: usize,
        held: &[Claim],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Claim>, StoreError> {
        let (tip, moment) = (self.tip(), self.moment());
        self.table.change(|workers| {
            for held in held {
                // One that is fenced has landed: its run is ended when it is tidied up.
                let _ = renew(&mut workers.board, *held, moment);
            }
            let claim = claim(&mut workers.board, &format!("worker {worker}"), moment)?;
            workers.count_before(claim.item, goes_on(claim.item));
            let work = &mut workers.works[claim.item];
            work.worker = worker;
            work.pid = None;
            if work.start.is_empty() {
                (work.start, work.beyond) = (tip.clone(), tip);
            }
            Some(claim)
        })
    }

    /// Nobody else takes items.
    fn is_held(&self, _: Claim) -> bool {
        true
    }

    fn claims_to_recover(&self) -> Vec<Claim> {
        let is_leased = |row: &BoardItem| matches!(row.stage, Stage::Leased { .. });
        let now = self.table.now();
        let leased = now.board.items.iter().enumerate().filter(|(_, row)| is_leased(row));
        leased.map(|(item, row)| Claim { item, epoch: row.epoch }).collect()
    }

    /// Leases are renewed when the next item is claimed: only then do they matter.
    fn keep_leases(&self, _: Vec<Claim>, _: bool, _: &dyn Fn() -> Vec<WorkerNews>) {}

    fn reserve(&self, _: usize, _: usize, found: Means) -> Means {
        found
    }

    fn offer(&self, claim: Claim, commit: &str) -> Result<(), StoreError> {
        self.table.change(|workers| {
            workers.works[claim.item].pid = None;
            // Fenced: it has landed meanwhile.
            let _ = offer(&mut workers.board, claim, commit);
        })
    }

    fn fail(&self, claim: Claim, reason: &str, end: Option<String>) -> Result<bool, StoreError> {
        self.table.change(|workers| {
            let _ = fail(&mut workers.board, claim, reason);
            workers.works[claim.item].pid = None;
            // What it has committed is where the next attempt begins.
            if let Some(end) = end {
                workers.works[claim.item].start = end;
            }
            matches!(workers.board.items[claim.item].stage, Stage::Aside { .. })
        })
    }

    fn park(&self, claim: Claim, question: &str, work: &dyn UnfinishedWork) -> Result<(), StoreError> {
        self.table.change(|workers| {
            workers.works[claim.item].pid = None;
            let _ = set_aside(&mut workers.board, claim, Aside::Question(question.to_owned()));
        })?;
        // What it has done so far is where it goes on.
        let head = work.head().unwrap_or_default();
        self.table.change(|workers| workers.works[claim.item].start = head)
    }

    /// The item stays its worker's: the next `--resume` goes on with it.
    fn release(&self, _: Claim, _: &dyn UnfinishedWork) -> Result<(), StoreError> {
        Ok(())
    }

    fn keep_branch(&self, _: Claim, _: &dyn UnfinishedWork) -> Result<(), StoreError> {
        Ok(())
    }

    fn take_answers(&self) -> Result<bool, StoreError> {
        take_answers(&self.project, &self.table)
    }

    fn orders(&self, _: Option<&Closing>) -> Orders {
        Orders::default()
    }

    fn has_undelivered_results(&self, _: Option<Interrupt>, _: bool) -> bool {
        false
    }

    fn closing_when_drained(&self) -> Option<Closing> {
        None
    }

    fn leave(&self, _: &[RepoPath], _: &dyn Fn() -> bool) {}

    fn items_to_merge(&self, takes_all: bool) -> Vec<usize> {
        items_to_merge(&self.table.now().board, takes_all)
    }

    fn try_begin_merging(&self) -> bool {
        true
    }

    fn waits_for_merging(&self, _: bool) -> bool {
        true
    }

    fn become_merger(&self, _: &dyn Fn() -> bool) -> Result<Option<u64>, MergeError> {
        let moment = self.moment();
        Ok(self.table.change(|workers| become_merger(&mut workers.board, MERGER, moment))?)
    }

    fn settle(
        &self,
        is_in_target: &dyn Fn(&str) -> bool,
        _: &[(usize, CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        self.table.change(|workers| settle(&mut workers.board, is_in_target))?;
        Ok(())
    }

    fn note_passed(&self, commands: &[String], _: &dyn Fn() -> bool) -> Result<(), MergeError> {
        Ok(self.table.change(|workers| workers.note_passed(commands))?)
    }

    fn land(
        &self,
        merger: u64,
        landing: &[(usize, &CommitId)],
        _: &dyn Fn() -> bool,
    ) -> Result<(), MergeError> {
        Ok(record_landing(&self.table, merger, landing)?)
    }

    fn refuse(
        &self,
        refused: &Refused,
        conflicts: &[String],
        _: &dyn Fn() -> bool,
    ) -> Result<bool, MergeError> {
        let Refused { merger, item, note, .. } = refused;
        Ok(self.table.change(|workers| {
            let board = &mut workers.board;
            // One that was fenced has landed.
            let _ = if conflicts.is_empty() {
                refuse(board, *merger, *item, note)
            } else {
                send_back_conflict(board, *merger, *item, note, conflicts)
            };
            record_next_start(workers, refused)
        })?)
    }
}
