//! What comes before the first item, and how an item begins: it is taken, its worktree prepared and its run started; or it could
//! not be done.

use super::followed::{self, living};
use super::{Closing, FILES_INTERVAL, Scheduler};
use crate::run::{Progress, baseline, day};
use crate::workers::child::{self, Start};
use crate::workers::error::MergeError;
use crate::workers::means::{Means, means};
use crate::workers::merger::Merger;
use crate::workers::retry::{BEGINNING, retry};
use crate::workers::returned;
use crate::workers::shown_plan::item_plan;
use crate::workers::slot::{Slot, Stage};
use crate::workers::tree::{TreeError, Wanted};
use crate::workers::{WorkersError, task_path};
use plimsoll_domain::item_brief::{ItemBrief, ReturnReason, ReturnedWork};
use plimsoll_domain::journal::{JournalEvent, SentBack, WorkerBegan};
use plimsoll_domain::workers::Workers;
use plimsoll_launcher::process::Identity;
use plimsoll_policy::workers::Claim;
use std::time::Instant;

impl<'scope> Scheduler<'scope, '_> {
    /// Prepares the worktree in which results come together, and learns what passes there.
    pub(super) fn prepare_merging(&mut self) -> Result<(), WorkersError> {
        let give_up = self.stop.give_up_at_once();
        let mut merger = Merger::new(self.run, &give_up, self.reporter.sender(), self.merges_everything());
        let broken = |error: MergeError| WorkersError::NothingLearned(error.to_string());
        let tip = retry(BEGINNING, &give_up, MergeError::may_pass, || merger.settle()).map_err(broken)?;
        let prepared = self.run.trees.prepare_merger(&tip, &give_up);
        if give_up() {
            self.closing = Some(Closing::Interrupted);
            return Ok(());
        }
        prepared.map_err(|error| WorkersError::NoMerger(error.to_string()))?;
        let verify = &self.run.state.options.verify;
        if !verify.is_empty() && self.run.record().passed.is_empty() {
            self.reporter.tell(&Progress::Note(baseline::words(self.run.state, verify)));
            match retry(BEGINNING, &give_up, MergeError::may_pass, || merger.learn()) {
                Err(MergeError::GivenUp) => self.closing = Some(Closing::Interrupted),
                learned => learned.map_err(broken)?,
            }
        }
        self.remove_merged()?;
        Ok(self.run.show()?)
    }

    /// What an earlier process has left: runs of items that live are followed, those that have ended are judged, and the others
    /// go on.
    pub(super) fn recover_items(&mut self) -> Result<(), WorkersError> {
        let now = self.run.record();
        self.slots.resize_with(self.run.worker_count(), || None);
        for claim in self.run.board.claims_to_recover() {
            let mut place = now.works[claim.item].worker.saturating_sub(1);
            if self.slots.get(place).is_some_and(Option::is_some) {
                place = self.slots.len();
            }
            if self.slots.len() <= place {
                self.slots.resize_with(place + 1, || None);
            }
            let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: None };
            let kept = self.recover_item(slot, &now)?;
            self.slots[place] = kept;
        }
        Ok(())
    }

    fn recover_item(
        &mut self,
        mut slot: Slot<'scope>,
        now: &Workers,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        let item = slot.claim.item;
        let project = self.run.project_of(item);
        if let Some(client) = living(&project, &now.works[item]) {
            if let Some(known) = client.identity() {
                self.run.change(|workers| {
                    let work = &mut workers.works[item];
                    (work.pid, work.process_started) = (Some(known.pid), known.started);
                })?;
            }
            slot.stage = Stage::AtWork(client);
            return Ok(Some(slot));
        }
        if !self.run.board.is_held(slot.claim) {
            self.run.change(|workers| workers.works[item].pid = None)?;
            return Ok(None);
        }
        let work = &now.works[item];
        if child::is_over(&project, &work.earlier_run) && work.pid.is_some() {
            return self.handle_end_of_run(slot, &plimsoll_domain::Exit::default());
        }
        self.run.change(|workers| workers.works[item].pid = None)?;
        self.prepare_worktree(slot).map(Some)
    }

    /// Takes the next item, if a worker is free.
    pub(super) fn claim_next_item(&mut self) -> Result<(), WorkersError> {
        let free = (0..self.run.worker_count()).find(|place| self.slots[*place].is_none());
        let (Some(place), None) = (free, &self.closing) else { return Ok(()) };
        let (board, worker, held) = (self.run.board, place + 1, self.held());
        if board.is_paused() || !board.can_claim(&held) || !self.turns.try_begin(worker) {
            return Ok(());
        }
        let goes_on = |item| child::goes_on_there(&self.run.project_of(item));
        let Some(claim) = board.claim(worker, &held, &goes_on)? else { return Ok(()) };
        let slot = Slot { worker, claim, stage: Stage::Waiting, asked: None };
        self.slots[place] = Some(self.prepare_worktree(slot)?);
        Ok(())
    }

    /// Begins to prepare the worktree of an item.
    fn prepare_worktree(&mut self, mut slot: Slot<'scope>) -> Result<Slot<'scope>, WorkersError> {
        let Claim { item, epoch } = slot.claim;
        let (now, run) = (self.run.record(), self.run);
        run.target.carry_notes(item)?;
        let wanted = Wanted {
            item,
            worker: slot.worker,
            branch: now.attempt_branch(item, epoch).map_err(|error| WorkersError::NoTarget(error.0))?,
            begins_at: now.works[item].start_commit().and_then(Result::ok),
            plan: item_plan(run.context.project, &now, item)?,
            keeps_plan: child::keeps_plan(&run.project_of(item)),
            returned: run.target.returned_work(item),
        };
        let give_up = self.stop.give_up_at_once();
        let handle = self
            .scope
            .spawn(move || run.trees.prepare(&run.target.fetch_earlier_work(wanted, &give_up)?, &give_up));
        slot.stage = Stage::Preparing(handle);
        Ok(slot)
    }

    /// Goes on with a worker.
    pub(super) fn advance_worker(
        &mut self,
        mut slot: Slot<'scope>,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        if let Some(exit) = slot.ended() {
            return self.handle_end_of_run(slot, &exit);
        }
        let (board, claim) = (self.run.board, slot.claim);
        let is_held = || board.is_held(claim);
        match slot.stage {
            Stage::AtWork(_) => Ok(Some(slot)),
            Stage::Preparing(handle) if !handle.is_finished() => {
                Ok(Some(Slot { stage: Stage::Preparing(handle), ..slot }))
            }
            // The item stays its worker's: the next `--resume` goes on with it.
            Stage::Preparing(handle) if self.closing.is_some() => {
                drop(handle.join());
                self.release(&Slot { stage: Stage::Waiting, ..slot }).map(|()| None)
            }
            Stage::Preparing(handle) => {
                let slot = Slot { stage: Stage::Waiting, ..slot };
                match handle.join() {
                    _ if !is_held() => Ok(None),
                    Ok(Ok(())) => self.start_item_run(slot),
                    // That costs no try: it goes back, and is taken again once the remote is there.
                    Ok(Err(TreeError::Remote(error))) => {
                        self.run.target.note_away(&error);
                        self.release(&slot).map(|()| None)
                    }
                    Ok(Err(error)) => self.record_failure(&slot, &error.to_string()).map(|()| None),
                    Err(_) => self.record_failure(&slot, "its worktree could not be prepared").map(|()| None),
                }
            }
            Stage::Waiting if !is_held() => self.keep_branch(&slot).map(|()| None),
            Stage::Waiting if self.closing.is_some() => self.release(&slot).map(|()| None),
            Stage::Waiting if self.run.board.is_paused() => Ok(Some(slot)),
            // What is left of a day is in the ledgers of all runs.
            Stage::Waiting if self.is_short_since.is_some_and(|since| since.elapsed() < FILES_INTERVAL) => {
                Ok(Some(slot))
            }
            Stage::Waiting if !self.turns.try_begin(slot.worker) => Ok(Some(slot)),
            Stage::Waiting => self.start_item_run(slot),
        }
    }

    /// The state says that the pause is over, as soon as a worker begins.
    fn record_end_of_pause(&mut self) -> Result<(), WorkersError> {
        if std::mem::take(&mut self.is_paused) {
            self.run.context.update(|state| state.lifecycle.go_on())?;
        }
        Ok(())
    }

    /// What the run of an item may use now.
    fn means_of_item(&self, slot: &Slot<'_>, now: &Workers) -> Means {
        // Whoever waits for money, too, holds none: two that left each other theirs would wait for ever.
        let at_work = self.slots.iter().flatten().filter(|slot| matches!(slot.stage, Stage::AtWork(_)));
        let others: Vec<usize> = at_work.map(|slot| slot.claim.item).collect();
        let today = day::left(self.run.context.project, self.run.state);
        let item = slot.claim.item;
        let found = means(self.run.state, now, item, &others, self.run.worker_count(), today);
        self.run.board.reserve(slot.worker, item, found)
    }

    /// Starts the item's run, if there is money for it; one that waits for money comes again.
    fn start_item_run(&mut self, slot: Slot<'scope>) -> Result<Option<Slot<'scope>>, WorkersError> {
        let now = self.run.record();
        let Claim { item, epoch } = slot.claim;
        let (cost_usd, tokens, sessions) = match self.means_of_item(&slot, &now) {
            Means::Enough { cost_usd, tokens, sessions } => (cost_usd, tokens, sessions),
            Means::Later => {
                self.is_short_since = Some(Instant::now());
                return Ok(Some(slot));
            }
            Means::Tomorrow(reason) => return self.wait_for_next_day(slot, &reason).map(Some),
            Means::None(status, reason) => {
                self.closing.get_or_insert(Closing::Stop(status, reason));
                return Ok(Some(slot));
            }
        };
        self.record_end_of_pause()?;
        let project = self.run.project_of(item);
        let files = child::files(self.run.context.project, self.run.state, item, epoch);
        let task = task_path(self.run.context.project, self.run.state).unwrap_or_default();
        let start = Start {
            run: self.run.state,
            client: &self.run.options.client,
            project: &project,
            merge_repository: self.run.trees.merge.own().git_folder(),
            worker: slot.worker,
            item: &now.board.items[item].text,
            number: item + 1,
            attempt: epoch,
            has_spans: self.run.options.has_spans,
            verify: &now.passed,
            brief: &self.item_brief(&now, item),
            brief_file: &files.brief,
            task: &task,
            // Of its present run all counts, also what that had used in an earlier attempt.
            sessions: sessions.saturating_add(now.works[item].counted.sessions),
            cost_usd: cost_usd.map(|most| most + now.works[item].counted.cost_usd),
            tokens: tokens.map(|most| most.saturating_add(now.works[item].counted.tokens)),
            output: &files.output,
            errors: &files.errors,
        };
        // Before the process: a kill of both would leave a state that another attempt has brought to its end.
        let earlier_run = child::earlier_run(&project)?;
        self.run.change(|workers| workers.works[item].earlier_run = earlier_run)?;
        // A kill before the process is written down leaves one that holds the lock of its worktree: it is found by that.
        let (client, goes_on) = match start.start() {
            Ok(started) => started,
            Err(error) => return self.record_failure(&slot, &error.to_string()).map(|()| None),
        };
        self.record_process(&slot, client.identity(), cost_usd, goes_on)?;
        Ok(Some(Slot { stage: Stage::AtWork(client), asked: None, ..slot }))
    }

    /// What an item's run is told of the whole plan.
    fn item_brief(&self, now: &Workers, item: usize) -> ItemBrief {
        let verify = &self.run.state.options.verify;
        let failing = verify.iter().filter(|command| !now.passed.contains(command));
        ItemBrief {
            plan: now.plan.clone(),
            worker_count: self.run.worker_count(),
            verify: verify.clone(),
            failing: failing.cloned().collect(),
            returned: self.run.target.returned_work(item).map(|work| work.clipped()),
        }
    }

    /// The process of an item's run, by which a later one finds it.
    fn record_process(
        &mut self,
        slot: &Slot<'_>,
        known: Option<Identity>,
        allowance_usd: Option<f64>,
        goes_on: bool,
    ) -> Result<(), WorkersError> {
        let Claim { item, epoch } = slot.claim;
        let text = self.run.change(|workers| {
            let work = &mut workers.works[item];
            work.pid = known.map(|known| known.pid);
            work.process_started = known.map_or(0, |known| known.started);
            work.allowance_usd = allowance_usd;
            workers.board.items[item].text.clone()
        })?;
        self.reporter.note(JournalEvent::WorkerBegan(WorkerBegan {
            worker: slot.worker,
            item: text,
            number: item + 1,
            attempt: epoch,
            folder: self.run.trees.of_item(item).display().to_string(),
            goes_on,
        }))
    }

    /// The item's run could not do it: it is tried again, or set aside.
    pub(super) fn record_failure(&mut self, slot: &Slot<'_>, reason: &str) -> Result<(), WorkersError> {
        let item = slot.claim.item;
        let tree = self.run.trees.of_item(item);
        let now = self.run.record();
        let is_ours = self.run.trees.is_ours(&tree);
        let keep_work = || followed::keep_work(&self.run.trees.project(&tree), &now.works[item].earlier_run);
        let end = is_ours.then(keep_work).flatten();
        let work = ReturnedWork {
            reason: ReturnReason::Unfinished,
            base: now.works[item].beyond.clone(),
            end: end.clone().unwrap_or_default(),
            output: reason.to_owned(),
            ..ReturnedWork::default()
        };
        // Before the record: whoever takes the item up next looks here.
        returned::keep(self.run.context.project, self.run.state, item, &work)?;
        let is_set_aside = self.run.board.fail(slot.claim, reason, end)?;
        let (item, reason) = (now.board.items[item].text.clone(), reason.to_owned());
        self.reporter.note(JournalEvent::SentBack(SentBack { item, reason, is_set_aside }))
    }
}
