//! The loop of a parallel run: gives items to workers, follows their runs, and has what they offer merged. Every decision is
//! `plimsoll_policy::workers`'.

mod begin;
mod cleanup;
mod ended;
mod finish;
mod followed;
mod item_work;
mod merging;
mod reporter;
mod stop;
mod turns;
mod usage;

use crate::run::lifecycle::StartError;
use crate::run::{Interrupt, Progress, RunObserver};
use crate::workers::WorkersError;
use crate::workers::board::Orders;
use crate::workers::closing::Closing;
use crate::workers::connection::WorkerNews;
use crate::workers::context::ParallelRun;
use crate::workers::slot::{Slot, Stage};
use cleanup::Cleanup;
use finish::finish;
use merging::{Merging, RoundEnd};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Work;
use plimsoll_domain::{Status, Verdict};
use plimsoll_policy::workers::{Claim, Outlook, outlook};
use plimsoll_store::state_file;
use reporter::Reporter;
use std::thread::{Scope, sleep};
use std::time::{Duration, Instant};
use stop::Stop;
use turns::Turns;
use usage::Usage;

/// How often it looks around.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How often it looks at what sessions have used, and at answers and orders in files.
const FILES_INTERVAL: Duration = Duration::from_millis(1_000);

/// A parallel run at work.
pub(super) struct Scheduler<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    run: ParallelRun<'env>,
    reporter: Reporter<'env>,
    stop: Stop,
    /// The workers, from the first.
    slots: Vec<Option<Slot<'scope>>>,
    turns: Turns,
    merging: Merging<'scope>,
    cleanup: Cleanup,
    usage: Usage,
    /// Why nothing new begins any more.
    closing: Option<Closing>,
    /// True while the state says that a pause holds all workers.
    is_paused: bool,
    /// When files were looked at last.
    looked: Option<Instant>,
    /// When all money was others' share; none once one of them has ended since.
    is_short_since: Option<Instant>,
}

impl<'scope, 'env> Scheduler<'scope, 'env> {
    /// The scheduler of a run. `tells_linear` is true where no other machine tells Linear of its items.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        run: ParallelRun<'env>,
        watcher: &'env mut dyn RunObserver,
        tells_linear: bool,
    ) -> Scheduler<'scope, 'env> {
        let stop = Stop::new(watcher.interrupts().clone());
        Scheduler {
            scope,
            run,
            reporter: Reporter::new(run, watcher, tells_linear),
            stop,
            slots: Vec::new(),
            turns: Turns::default(),
            merging: Merging::default(),
            cleanup: Cleanup::default(),
            usage: Usage::default(),
            closing: None,
            is_paused: false,
            looked: None,
            is_short_since: None,
        }
    }

    /// To the end; returns the exit code.
    pub(super) fn run(mut self) -> Result<u8, WorkersError> {
        let ended = self.work();
        if let Err(error) = &ended {
            self.reporter.tell(&Progress::Failed { error: error.to_string() });
            // What is at work ends with its session; the next `--resume` finds it.
            self.stop.cut();
            self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(Interrupt::Once));
        }
        ended
    }

    fn work(&mut self) -> Result<u8, WorkersError> {
        self.reporter.tell(&Progress::Run { state: self.run.state });
        self.write_first_status()?;
        self.prepare_merging()?;
        self.recover_items()?;
        loop {
            self.take_orders()?;
            self.close_if_paused();
            self.advance_workers()?;
            self.advance_merging()?;
            self.reporter.report_sent()?;
            if let Some(code) = self.finish_if_idle()? {
                return Ok(code);
            }
            self.claim_next_item()?;
            self.record_waiting_workers();
            self.reporter.tell(&Progress::Figures { figures: &self.usage.figures(self.run) });
            sleep(LOOK_INTERVAL);
        }
    }

    /// Orders of the user and of the board, and what was used.
    fn take_orders(&mut self) -> Result<(), WorkersError> {
        let interrupt = self.stop.interrupts.asked();
        if interrupt.is_some() && self.closing.is_none() {
            self.closing = Some(Closing::Interrupted);
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= FILES_INTERVAL) {
            self.looked = Some(Instant::now());
            self.read_files()?;
        }
        let Orders { words, closing } = self.run.board.orders(self.closing.as_ref());
        words.into_iter().for_each(|words| self.reporter.tell_note(words));
        self.closing = closing.or_else(|| self.closing.take());
        // What works on an item that is somebody else's by now is ended: its own group, and nothing else.
        for slot in self.slots.iter_mut().flatten().filter(|slot| !self.run.board.is_held(slot.claim)) {
            slot.ask_to_end(Interrupt::Twice);
        }
        if self.ends_at_once() {
            self.stop.cut();
        }
        let asked = match &self.closing {
            _ if interrupt >= Some(Interrupt::Twice) => Some(Interrupt::Twice),
            Some(closing) if closing.ends_at_once() => Some(Interrupt::Twice),
            Some(_) => Some(Interrupt::Once),
            None => None,
        };
        if let Some(asked) = asked {
            self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(asked));
        }
        Ok(())
    }

    fn read_files(&mut self) -> Result<(), WorkersError> {
        self.usage.read(self.run, &self.slots);
        self.run.board.keep_leases(self.held(), self.merging.is_running(), &|| self.worker_news());
        // Another machine may have merged what was done here.
        self.remove_merged()?;
        let gone = || StartError::NoRun(self.run.context.project.root().display().to_string());
        let state = self.run.context.load_state()?.ok_or_else(gone)?;
        if state.lifecycle.status() == Status::Cancelled {
            self.closing = Some(Closing::Cancelled);
        }
        if self.run.board.take_answers()? {
            self.run.show()?;
        }
        usage::show_used(self.run, &state);
        let reached = usage::limit_reached(self.run, state);
        self.closing = self.closing.take().or(reached);
        Ok(())
    }

    /// Takes away the worktrees of what is merged and has no worker.
    fn remove_merged(&mut self) -> Result<(), WorkersError> {
        let in_work: Vec<usize> = self.held().iter().map(|claim| claim.item).collect();
        Ok(self.cleanup.remove_merged(self.run, &in_work, &mut self.reporter)?)
    }

    /// The claims of all workers.
    fn held(&self) -> Vec<Claim> {
        self.slots.iter().flatten().map(|slot| slot.claim).collect()
    }

    /// What the board is told of the workers.
    fn worker_news(&self) -> Vec<WorkerNews> {
        let now = self.run.record();
        let news = (1..=self.run.worker_count().max(self.slots.len())).map(|worker| {
            let slot = self.slots.get(worker - 1).and_then(Option::as_ref);
            let at_work = slot.filter(|slot| matches!(slot.stage, Stage::AtWork(_)));
            let state = at_work.and_then(|slot| {
                let project = self.run.project_of(slot.claim.item);
                state_file::load_without_history(&project, None).ok().flatten()
            });
            let session = state.and_then(|state| state.session_id).map(|id| id.to_string());
            WorkerNews {
                worker,
                item: slot.map(|slot| slot.claim.item),
                session: session.unwrap_or_default(),
                percent: at_work.and_then(|slot| self.usage.percent(slot.claim.item)),
                cost_usd: now.cost_of_worker(worker),
            }
        });
        news.collect()
    }

    /// Sessions do not even come to their end.
    fn ends_at_once(&self) -> bool {
        self.closing.as_ref().is_some_and(Closing::ends_at_once)
    }

    /// With `--no-wait` a pause that was there before ends this process as it ended the one before.
    fn close_if_paused(&mut self) {
        if !self.run.board.is_paused() || self.run.options.wait || self.closing.is_some() {
            return;
        }
        if let Verdict::Pause { kind, reason, .. } = self.pause_that_lasts() {
            self.closing = Some(Closing::Pause(kind, reason));
        }
    }

    /// Goes on with each worker.
    fn advance_workers(&mut self) -> Result<(), WorkersError> {
        for place in 0..self.slots.len() {
            let Some(slot) = self.slots[place].take() else { continue };
            self.slots[place] = self.advance_worker(slot)?;
        }
        Ok(())
    }

    /// Takes up what a round of merging has left, and begins another where something waits.
    fn advance_merging(&mut self) -> Result<(), WorkersError> {
        if let Some(end) = self.merging.take_finished_round(self.closing.is_some()) {
            if let RoundEnd::Failed(why) = end {
                let closing = Closing::Pause(PauseKind::Fault, format!("nothing can be merged: {why}"));
                self.closing.get_or_insert(closing);
            }
            self.remove_merged()?;
            self.run.show()?;
        }
        if !self.merging.is_running() && self.can_merge() && self.run.board.try_begin_merging() {
            let (news, takes_all) = (self.reporter.sender(), self.merges_everything());
            self.merging.start_round(self.scope, self.run, &self.stop, news, takes_all);
        }
        Ok(())
    }

    /// True while something waits to be merged, and nothing keeps this process from it.
    fn can_merge(&self) -> bool {
        !self.merging.is_over()
            && !self.stop.interrupts.has_asked(Interrupt::Twice)
            && !self.ends_at_once()
            && !self.run.board.items_to_merge(self.merges_everything()).is_empty()
    }

    /// True if nothing waits for an item's next attempt: none begins any more.
    fn merges_everything(&self) -> bool {
        let is_idle = self.slots.iter().all(Option::is_none);
        // Nobody works and no item is free, so waiting would have no end.
        self.closing.is_some() || is_idle && self.outlook() != Outlook::Free
    }

    fn outlook(&self) -> Outlook {
        outlook(&self.run.record().board, self.run.board.moment())
    }

    /// The exit code, once nothing is at work any more.
    fn finish_if_idle(&mut self) -> Result<Option<u8>, WorkersError> {
        let now = self.run.record();
        let (interrupt, is_closing) = (self.stop.interrupts.asked(), self.closing.is_some());
        let is_busy = self.slots.iter().any(Option::is_some)
            || self.merging.is_running()
            || self.can_merge() && self.run.board.waits_for_merging(is_closing)
            || self.run.board.has_undelivered_results(interrupt, is_closing);
        if is_busy {
            return Ok(None);
        }
        self.reporter.report_sent()?;
        self.closing = self.closing.take().or_else(|| self.run.board.closing_when_drained());
        // What is done is done, whatever else was about to end it.
        let outlook = outlook(&now.board, self.run.board.moment());
        let closing = match (outlook, self.closing.clone()) {
            (Outlook::Done, closing) if closing != Some(Closing::Cancelled) => {
                finish::closing_of_merged(self.run.state, &now)
            }
            (_, Some(closing)) => closing,
            (Outlook::Free | Outlook::Busy, None) => return Ok(None),
            (Outlook::Stuck | Outlook::Done, None) => finish::closing_of_stuck(&now),
        };
        self.remove_merged()?;
        finish(self.run, &mut self.reporter, &self.stop, closing).map(Some)
    }

    /// The process before this one may have left the state as paused: it is, if a limit still holds.
    fn write_first_status(&mut self) -> Result<(), WorkersError> {
        self.is_paused = self.run.board.is_paused();
        let limit = self.is_paused.then(|| self.pause_that_lasts());
        if self.run.record().stop_reason.is_some() {
            self.run.change(|workers| workers.stop_reason = None)?;
        }
        self.run.context.update(|state| match &limit {
            Some(limit) => state.lifecycle.wait_for(limit),
            None => state.lifecycle.go_on(),
        })?;
        Ok(())
    }

    /// The pause of an earlier process that still lasts.
    fn pause_that_lasts(&self) -> Verdict {
        let until = finish::paused_until(self.run);
        match self.run.state.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind, reason, .. }) if kind.passes() => {
                Verdict::Pause { kind: *kind, until, reason: reason.clone() }
            }
            _ => Verdict::Pause { kind: PauseKind::Limit, until, reason: "a limit still holds".to_owned() },
        }
    }

    /// Writes down what `plimsoll status` cannot see by itself: which workers wait, and why no new item starts.
    fn record_waiting_workers(&self) {
        let now = self.run.record();
        let is_waiting = |slot: &&Slot<'_>| slot.is_waiting();
        let waiting: Vec<usize> =
            self.slots.iter().flatten().filter(is_waiting).map(|slot| slot.claim.item).collect();
        let stop_reason = self.closing.as_ref().map(Closing::reason);
        let is_known = |(item, work): (usize, &Work)| work.is_waiting == waiting.contains(&item);
        if now.stop_reason == stop_reason && now.works.iter().enumerate().all(is_known) {
            return;
        }
        // A write that fails must not end the run: it is repeated in the next round.
        let _ = self.run.change(|workers| {
            workers.stop_reason = stop_reason;
            for (item, work) in workers.works.iter_mut().enumerate() {
                work.is_waiting = waiting.contains(&item);
            }
        });
    }
}
