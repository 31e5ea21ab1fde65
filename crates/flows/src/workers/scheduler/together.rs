//! What a parallel run does besides when it shares its board with other machines.

use super::begin::used_up_by_fleet;
use super::{Closing, Scheduler, WorkersError};
use crate::run::Progress;
use crate::workers::shared::{Ended, Shared, Trouble, WorkerNews};
use crate::workers::slot::Stage;
use plimsoll_domain::Status;
use plimsoll_domain::board::Stage as BoardStage;
use plimsoll_domain::text::counted;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Workers;
use plimsoll_policy::workers::{Outlook, outlook};
use plimsoll_store::state_file;
use std::time::{Duration, Instant};

/// How long a last word may take. What was not heard then is told by the next `join`.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long a machine that closes waits for the merger of another one, which merges every two seconds.
const MERGER_FAREWELL: Duration = Duration::from_secs(5);
/// What is away for less than this is not worth a word.
const NOTICED: Duration = Duration::from_secs(3);

impl Scheduler<'_, '_> {
    /// Orders of the fleet, and whether it can be heard.
    pub(super) fn hear_fleet(&mut self) {
        let Some(shared) = &self.table.shared else { return };
        self.tell_waiting(shared);
        let (ended, used_up) = {
            let known = shared.known();
            (known.ended, known.used_up)
        };
        let closing = match (ended, shared.trouble()) {
            (Some(Ended::Stopped), _) => {
                Some(Closing::Stop(Status::Cancelled, "the fleet was stopped".to_owned()))
            }
            (_, Some(Trouble::Fault(why))) => Some(Closing::Pause(PauseKind::Fault, why)),
            (_, Some(Trouble::Away(long, why))) if long >= shared.patience => {
                Some(Closing::Pause(PauseKind::Fault, format!("waited for {} s: {why}", long.as_secs())))
            }
            (Some(Ended::Done) | None, _) => None,
        };
        // Nothing is told about work that is over: only being stopped comes before what closes it anyway.
        match closing {
            Some(stop @ Closing::Stop(..)) => self.closing = Some(stop),
            Some(pause) => _ = self.closing.get_or_insert(pause),
            None => {}
        }
        // No claim would say so: the board gives none any more.
        if let (None, Some(used_up)) = (&self.closing, used_up) {
            let (status, reason) = used_up_by_fleet(used_up);
            self.closing = Some(Closing::Stop(status, reason));
        }
    }

    /// Says that the board or the remote is waited for, and when that is over.
    fn tell_waiting(&mut self, shared: &Shared) {
        let words = match (shared.trouble(), self.is_waiting) {
            (Some(Trouble::Away(long, why)), false) if long >= NOTICED => {
                let most = shared.patience.as_secs();
                format!("what is at work goes on, and nothing new begins, for up to {most} s: {why}")
            }
            (None, true) => "all is there again, and it goes on".to_owned(),
            _ => return,
        };
        self.is_waiting = !self.is_waiting;
        self.watcher.tell(&Progress::Note(words));
    }

    /// What the thread that keeps the leases says of the workers.
    pub(super) fn tell_heartbeat(&self) {
        let Some(shared) = &self.table.shared else { return };
        let now = self.table.now();
        let news = (1..=self.count().max(self.slots.len())).map(|worker| {
            let slot = self.slots.get(worker - 1).and_then(Option::as_ref);
            let is_at_work = slot.is_some_and(|slot| matches!(slot.stage, Stage::AtWork(_)));
            let project = slot.map(|slot| self.trees.project(&self.trees.of_item(slot.claim.item)));
            let state = project
                .as_ref()
                .filter(|_| is_at_work)
                .and_then(|project| state_file::load_without_history(project, None).ok().flatten());
            WorkerNews {
                worker,
                item: slot.map(|slot| slot.claim.item),
                session: state
                    .and_then(|state| state.session_id)
                    .map(|id| id.to_string())
                    .unwrap_or_default(),
                percent: slot
                    .filter(|_| is_at_work)
                    .and_then(|slot| self.facts.get(slot.claim.item)?.percent),
                cost_usd: now.cost_of_worker(worker),
            }
        });
        let news = news.collect();
        let mut known = shared.known();
        known.held = self.slots.iter().flatten().map(|slot| slot.claim).collect();
        known.news = news;
        if self.merging.is_none() {
            known.merger = None;
        }
    }

    /// Ends what works on an item that is somebody else's by now: its own group, and nothing else.
    pub(super) fn end_fenced(&mut self) {
        if self.table.shared.is_none() {
            return;
        }
        for slot in self.slots.iter_mut().flatten() {
            if !self.table.is_held(slot.claim) {
                slot.ask_to_end(2);
            }
        }
    }

    /// True while the board has still to be told something, and may hear it.
    pub(super) fn has_to_tell(&mut self) -> bool {
        let Some(shared) = &self.table.shared else { return false };
        let has_results = self.table.now().member.is_some_and(|member| !member.outbox.is_empty());
        // Whoever wants it to end now, as a system that shuts down does, waits this long for what others could go on with.
        let is_late = self.interrupts.count() >= 2
            && self.hurried.get_or_insert_with(Instant::now).elapsed() >= FAREWELL;
        // Before anything ends it, what is away is waited for, as long as the patience lasts.
        let may_be_heard = match shared.trouble() {
            None => true,
            Some(Trouble::Away(..)) => self.closing.is_none(),
            Some(Trouble::Fault(_)) => false,
        };
        has_results && may_be_heard && !is_late && self.interrupts.count() <= 2
    }

    /// True if what waits to be merged is this machine's to wait for: once it closes, another that is at it goes on alone. The
    /// other may be closing, too, and have seen nothing of the last offer: then this machine becomes the merger in a moment.
    pub(super) fn merges_on(&mut self) -> bool {
        let Some(shared) = &self.table.shared else { return true };
        let now = self.table.now();
        let name = now.member.unwrap_or_default().name;
        let is_others = now.board.merger.holds(shared.moment()) && now.board.merger.holder != name;
        let is_left_to_others = self.closing.is_some()
            && is_others
            && self.left_merging.get_or_insert_with(Instant::now).elapsed() >= MERGER_FAREWELL;
        shared.trouble().is_none() && !is_left_to_others
    }

    /// A fleet that drains: what was begun here is over.
    pub(super) fn close_drained(&mut self, now: &Workers) {
        let Some(shared) = &self.table.shared else { return };
        let is_done = outlook(&now.board, self.table.moment()) == Outlook::Done;
        if shared.known().is_draining && !is_done && self.closing.is_none() {
            let merged = now.board.items.iter().filter(|row| row.stage == BoardStage::Merged).count();
            let words =
                format!("the fleet drains: {merged} of {} merged", counted(now.board.items.len(), "item"));
            self.closing = Some(Closing::Stop(Status::Completed, words));
        }
    }

    /// Says to the fleet how this machine leaves it.
    pub(super) fn leave_fleet(&mut self) -> Result<(), WorkersError> {
        let Some(shared) = &self.table.shared else { return Ok(()) };
        self.tidy()?;
        if outlook(&self.table.now().board, self.table.moment()) == Outlook::Done {
            // Nobody else may be there to say it.
            let _ = shared.ask_again(FAREWELL, &self.give_up(), |board| board.end());
            shared.target.sweep(&self.trees.plan_files.all(), &self.give_up());
        }
        let now = self.table.now();
        let is_merger = now.member.is_some_and(|member| member.name == now.board.merger.holder);
        if is_merger && now.board.merger.holds(shared.moment()) {
            let merger = now.board.merger_epoch;
            let _ = shared.ask(|board| board.step_down(merger));
        }
        Ok(())
    }
}
