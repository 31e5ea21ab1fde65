//! What comes before the first item: where results come together, what passes there, and what an earlier process has left.

use super::followed::living;
use super::{Closing, Scheduler};
use crate::run::{Progress, baseline};
use crate::workers::WorkersError;
use crate::workers::board::show;
use crate::workers::child;
use crate::workers::merger::MergeError;
use crate::workers::shared::{BEGINNING, insist, is_leased_by};
use crate::workers::slot::{Slot, Stage};
use plimsoll_domain::workers::Workers;
use plimsoll_policy::workers::Claim;

impl<'scope> Scheduler<'scope, '_> {
    /// The worktree in which results come together, and what passes there.
    pub(super) fn begin(&mut self) -> Result<(), WorkersError> {
        // No session is at work yet: the first Ctrl-C is enough.
        let interrupts = self.interrupts.clone();
        let give_up = move || interrupts.count() > 0;
        let mut merger = self.merger(&give_up);
        let broken = |error: MergeError| WorkersError::NothingLearned(error.to_string());
        let tip = insist(BEGINNING, &give_up, MergeError::may_pass, || merger.settle()).map_err(broken)?;
        let prepared = self.trees.prepare_merger(&tip, &give_up);
        if self.interrupts.count() > 0 {
            self.closing = Some(Closing::Interrupted);
            return Ok(());
        }
        prepared.map_err(|error| WorkersError::NoMerger(error.to_string()))?;
        let verify = &self.run.options.verify;
        if !verify.is_empty() && self.table.now().passed.is_empty() {
            self.watcher.tell(&Progress::Note(baseline::words(self.run, verify)));
            match insist(BEGINNING, &give_up, MergeError::may_pass, || merger.learn()) {
                Err(MergeError::GivenUp) => self.closing = Some(Closing::Interrupted),
                learned => learned.map_err(broken)?,
            }
        }
        self.tidy()?;
        Ok(show(self.project, self.run, self.table)?)
    }

    /// What an earlier process has left: runs of items that live are followed, those that have ended are judged, and the others
    /// go on.
    pub(super) fn recover(&mut self) -> Result<(), WorkersError> {
        let now = self.table.now();
        self.slots.resize_with(self.count(), || None);
        let leased = |row: &plimsoll_domain::board::BoardItem| {
            matches!(row.stage, plimsoll_domain::board::Stage::Leased { .. })
        };
        let is_here = |item: usize| match &self.table.shared {
            None => true,
            // What is somebody else's by now, and still at work here, is ended.
            Some(_) => is_leased_by(&now, item).is_some() || now.works[item].pid.is_some(),
        };
        let found = now.board.items.iter().enumerate();
        let found: Vec<_> = found
            .filter(|(item, row)| (leased(row) || self.table.shared.is_some()) && is_here(*item))
            .collect();
        for (item, row) in found {
            let mut place = now.works[item].worker.saturating_sub(1);
            if self.slots.get(place).is_some_and(Option::is_some) {
                place = self.slots.len();
            }
            if self.slots.len() <= place {
                self.slots.resize_with(place + 1, || None);
            }
            // What was somebody else's meanwhile was ours with an earlier epoch.
            let is_ours = self.table.shared.is_none() || is_leased_by(&now, item).is_some();
            let claim = Claim { item, epoch: if is_ours { row.epoch } else { now.works[item].epoch } };
            let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: 0 };
            let kept = self.recover_one(slot, &now)?;
            self.slots[place] = kept;
        }
        Ok(())
    }

    pub(super) fn recover_one(
        &mut self,
        mut slot: Slot<'scope>,
        now: &Workers,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        let project = self.trees.project(&self.trees.of_item(slot.claim.item));
        if let Some(client) = living(&project, &now.works[slot.claim.item]) {
            if let Some(known) = client.identity() {
                self.table.change(|workers| {
                    let work = &mut workers.works[slot.claim.item];
                    (work.pid, work.process_started) = (Some(known.pid), known.started);
                })?;
            }
            slot.stage = Stage::AtWork(client);
            return Ok(Some(slot));
        }
        if !self.table.is_held(slot.claim) {
            self.table.change(|workers| workers.works[slot.claim.item].pid = None)?;
            return Ok(None);
        }
        let work = &now.works[slot.claim.item];
        if child::is_over(&project, &work.earlier_run) && work.pid.is_some() {
            return self.ended(slot, &plimsoll_domain::Exit::default());
        }
        self.table.change(|workers| workers.works[slot.claim.item].pid = None)?;
        self.prepare(slot).map(Some)
    }
}
