//! What the user orders while workers work, what they have used, and what that ends.

use super::{Closing, FILES_INTERVAL, Scheduler};
use crate::run::lifecycle::StartError;
use crate::workers::board::{show, show_used, take_answers};
use crate::workers::item_figures::read_items;
use crate::workers::{WorkersError, child};
use plimsoll_domain::text::counted;
use plimsoll_domain::{RunState, Status, Verdict};
use plimsoll_store::{clock, state_file};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl<'scope> Scheduler<'scope, '_> {
    /// Orders of the user, and what was used.
    pub(super) fn hear(&mut self) -> Result<(), WorkersError> {
        let interrupts = self.interrupts.count();
        if interrupts > 0 && self.closing.is_none() {
            self.closing = Some(Closing::Interrupted);
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= FILES_INTERVAL) {
            self.looked = Some(Instant::now());
            self.look_at_files()?;
        }
        self.hear_fleet();
        self.end_fenced();
        self.cut.fetch_or(self.ends_at_once(), Ordering::Relaxed);
        let times =
            if interrupts >= 2 || self.ends_at_once() { 2 } else { usize::from(self.closing.is_some()) };
        self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(times));
        Ok(())
    }

    pub(super) fn look_at_files(&mut self) -> Result<(), WorkersError> {
        let now = self.table.now();
        self.facts = read_items(&mut self.figures, self.project, self.run, &now);
        for slot in self.slots.iter_mut().flatten() {
            let project = self.trees.project(&self.trees.of_item(slot.claim.item));
            let used = child::used(&project, &now.works[slot.claim.item].earlier_run);
            let is_at_work = slot.process().is_some();
            self.table.touch(|workers| {
                if is_at_work {
                    let work = &mut workers.works[slot.claim.item];
                    work.now = used.beyond(work.counted);
                }
            });
        }
        if self.table.shared.is_some() {
            self.tell_heartbeat();
            // Another machine may have merged what was done here.
            self.tidy()?;
        }
        let gone = || StartError::NoRun(self.project.root().display().to_string());
        let state = state_file::load(self.project, Some(&self.run.run_id))?.ok_or_else(gone)?;
        if state.lifecycle.status() == Status::Cancelled {
            self.closing = Some(Closing::Cancelled);
        }
        if take_answers(self.project, self.table)? {
            show(self.project, self.run, self.table)?;
        }
        self.show_used(&state);
        self.look_at_limits(state);
        Ok(())
    }

    /// Whoever reads the state alone, such as the status line, finds there what sessions have used, also while items are in work.
    fn show_used(&self, state: &RunState) {
        let used = self.table.now().used();
        if used != child::used_by(state) {
            // A write that fails must not end the run: it is repeated with the next look.
            let _ = show_used(self.project, self.run, used);
        }
    }

    /// Sessions that are at work when a limit is reached come to their end.
    pub(super) fn look_at_limits(&mut self, mut state: RunState) {
        let (used, most) = (self.table.now().used(), self.run.options.max_iterations);
        (state.spent.cost_usd, state.spent.tokens) = (used.cost_usd, used.tokens);
        state.spent.add_cost_basis(used.cost_basis);
        let spent = match plimsoll_policy::bounds::spent(&state, &clock::stamp(clock::now())) {
            Some(Verdict::Stop { status, reason }) => Some(Closing::Stop(status, reason)),
            Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => None,
        };
        let sessions = || {
            let used = counted(used.sessions as usize, "session") + " used";
            Closing::Stop(Status::MaxIterations, used)
        };
        let reached = spent.or_else(|| (used.sessions >= most).then(sessions));
        self.closing = self.closing.take().or(reached);
    }
}
