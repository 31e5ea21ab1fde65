//! The loop of a parallel run: gives items to workers, follows their runs, and has what they offer merged. Every decision is
//! `plimsoll_policy::workers`'.

mod ending;
mod followed;
mod means;
mod offers;

use crate::run::lifecycle::StartError;
use crate::run::{Interrupts, Options, Progress, RunObserver, baseline};
use crate::workers::board::{item_plan, show, take_answers};
use crate::workers::child::{self, Start};
use crate::workers::merger::{MergeError, Merger};
use crate::workers::slot::{Slot, Stage};
use crate::workers::standing::live;
use crate::workers::table::{Table, moment};
use crate::workers::tree::{Trees, Wanted};
use crate::workers::{WorkersError, task_path};
use means::{Means, means};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, SentBack, WorkerBegan};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Settings, Status, Verdict};
use plimsoll_launcher::worktree;
use plimsoll_policy::workers::{Claim, Outlook, claim, fail, offered, outlook, renew};
use plimsoll_store::{Project, clock, journal, state_file};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

/// How often it looks around.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How often it looks at what sessions have used, and at answers and orders in files.
const FILES_INTERVAL: Duration = Duration::from_millis(1_000);
/// Workers begin one after the other, so that a limit is met by one and not by all; one that has begun since the last pause need
/// not wait again.
const STAGGER: Duration = Duration::from_secs(2);

/// Why nothing new is begun any more.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Closing {
    /// Ctrl-C.
    Interrupted,
    /// `plimsoll stop`.
    Cancelled,
    /// The run is over.
    Stop(Status, String),
    /// It goes on when the user says so.
    Pause(PauseKind, String),
}

/// A parallel run at work.
pub(super) struct Scheduler<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    pub(super) project: &'env Project,
    settings: &'env Settings,
    options: &'env Options,
    pub(super) run: &'env RunState,
    pub(super) table: &'env Table,
    pub(super) trees: &'env Trees,
    pub(super) watcher: &'env mut dyn RunObserver,
    interrupts: Interrupts,
    /// The workers, from the first.
    slots: Vec<Option<Slot<'scope>>>,
    merging: Option<ScopedJoinHandle<'scope, Result<(), MergeError>>>,
    /// True once nothing can be merged in this process any more.
    is_merging_over: bool,
    news: (Sender<JournalEvent>, Receiver<JournalEvent>),
    /// When the last worker began that had to wait for its turn.
    begun: Option<Instant>,
    /// Workers that have begun since the last pause.
    proven: BTreeSet<usize>,
    /// When files were looked at last.
    looked: Option<Instant>,
    closing: Option<Closing>,
    /// True when threads give up.
    cut: Arc<AtomicBool>,
}

impl<'scope, 'env> Scheduler<'scope, 'env> {
    #[expect(clippy::too_many_arguments, reason = "it is what a run is made of")]
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        project: &'env Project,
        settings: &'env Settings,
        options: &'env Options,
        run: &'env RunState,
        table: &'env Table,
        trees: &'env Trees,
        watcher: &'env mut dyn RunObserver,
    ) -> Scheduler<'scope, 'env> {
        let interrupts = watcher.interrupts().clone();
        Scheduler {
            scope,
            project,
            settings,
            options,
            run,
            table,
            trees,
            watcher,
            interrupts,
            slots: Vec::new(),
            merging: None,
            is_merging_over: false,
            news: channel(),
            begun: None,
            proven: BTreeSet::new(),
            looked: None,
            closing: None,
            cut: Arc::default(),
        }
    }

    /// To the end; answers with the exit code.
    pub(super) fn run(mut self) -> Result<u8, WorkersError> {
        let ended = self.work();
        if ended.is_err() {
            // What is at work ends with its session; the next `--resume` finds it.
            self.cut.store(true, Ordering::Relaxed);
            self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(1));
        }
        ended
    }

    fn work(&mut self) -> Result<u8, WorkersError> {
        self.watcher.tell(&Progress::Run { state: self.run });
        self.begin()?;
        self.recover()?;
        loop {
            self.hear()?;
            self.follow()?;
            self.look_at_merging()?;
            self.tell_news()?;
            if let Some(code) = self.end()? {
                return Ok(code);
            }
            self.take_up()?;
            self.tell_standing();
            sleep(LOOK_INTERVAL);
        }
    }

    /// The worktree in which results come together, and what passes there.
    fn begin(&mut self) -> Result<(), WorkersError> {
        let give_up = self.give_up();
        let mut merger = self.merger(&give_up);
        let broken = |error: MergeError| WorkersError::NothingLearned(error.to_string());
        let tip = merger.settle().map_err(broken)?;
        let prepared = self.trees.prepare_merger(&tip, &give_up);
        prepared.map_err(|error| WorkersError::NoMerger(error.to_string()))?;
        let verify = &self.run.options.verify;
        if !verify.is_empty() && self.table.now().passed.is_empty() {
            self.watcher.tell(&Progress::Note(baseline::words(verify)));
            match merger.learn() {
                Err(MergeError::GivenUp) => self.closing = Some(Closing::Interrupted),
                learned => learned.map_err(broken)?,
            }
        }
        self.tidy()?;
        Ok(show(self.project, self.run, self.table)?)
    }

    fn merger<'m>(&self, give_up: &'m (dyn Fn() -> bool + Sync)) -> Merger<'m>
    where
        'env: 'm,
    {
        Merger::new(self.table, self.trees, self.run, self.settings, give_up, self.news.0.clone())
    }

    /// Asked by threads and commands whether anybody still waits for them.
    fn give_up(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (interrupts, cut) = (self.interrupts.clone(), Arc::clone(&self.cut));
        move || interrupts.count() >= 2 || cut.load(Ordering::Relaxed)
    }

    /// What an earlier process has left: runs of items that live are followed, those that have ended are judged, and the others
    /// go on.
    fn recover(&mut self) -> Result<(), WorkersError> {
        let now = self.table.now();
        self.slots.resize_with(self.count(), || None);
        let leased = |row: &plimsoll_domain::board::BoardItem| {
            matches!(row.stage, plimsoll_domain::board::Stage::Leased { .. })
        };
        for (item, row) in now.board.items.iter().enumerate().filter(|(_, row)| leased(row)) {
            let place = now.works[item].worker.saturating_sub(1);
            if self.slots.len() <= place {
                self.slots.resize_with(place + 1, || None);
            }
            let claim = Claim { item, epoch: row.epoch };
            let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: 0, percent: None };
            let kept = self.recover_one(slot, &now)?;
            self.slots[place] = kept;
        }
        Ok(())
    }

    fn recover_one(
        &mut self,
        mut slot: Slot<'scope>,
        now: &Workers,
    ) -> Result<Option<Slot<'scope>>, WorkersError> {
        let project = self.trees.project(&self.trees.of_item(slot.claim.item));
        if let Some(client) = followed::living(&project, &now.works[slot.claim.item]) {
            if let Some(known) = client.identity() {
                self.table.change(|workers| {
                    let work = &mut workers.works[slot.claim.item];
                    (work.pid, work.process_started) = (Some(known.pid), known.started);
                })?;
            }
            slot.stage = Stage::AtWork(client);
            return Ok(Some(slot));
        }
        if child::is_over(&project) && now.works[slot.claim.item].pid.is_some() {
            return self.ended(slot, &plimsoll_domain::Exit::default());
        }
        self.prepare(slot).map(Some)
    }

    fn count(&self) -> usize {
        self.run.options.workers.as_ref().map_or(1, |workers| workers.count.max(1))
    }

    /// Orders of the user, and what was used.
    fn hear(&mut self) -> Result<(), WorkersError> {
        let interrupts = self.interrupts.count();
        if interrupts > 0 && self.closing.is_none() {
            self.closing = Some(Closing::Interrupted);
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= FILES_INTERVAL) {
            self.looked = Some(Instant::now());
            self.look_at_files()?;
        }
        let is_cancelled = self.closing == Some(Closing::Cancelled);
        self.cut.fetch_or(is_cancelled, Ordering::Relaxed);
        let times = if interrupts >= 2 || is_cancelled { 2 } else { usize::from(self.closing.is_some()) };
        self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(times));
        Ok(())
    }

    fn look_at_files(&mut self) -> Result<(), WorkersError> {
        for slot in self.slots.iter_mut().flatten() {
            let project = self.trees.project(&self.trees.of_item(slot.claim.item));
            slot.percent = followed::percent(&project);
            let used = child::used(&project);
            let is_at_work = slot.process().is_some();
            self.table.touch(|workers| {
                if is_at_work {
                    workers.works[slot.claim.item].now = used;
                }
            });
        }
        let gone = || StartError::NoRun(self.project.root().display().to_string());
        let state = state_file::load(self.project, Some(&self.run.run_id))?.ok_or_else(gone)?;
        if state.lifecycle.status() == Status::Cancelled {
            self.closing = Some(Closing::Cancelled);
        }
        if take_answers(self.project, self.table)? {
            show(self.project, self.run, self.table)?;
        }
        self.look_at_limits(state);
        Ok(())
    }

    /// Sessions that are at work when a limit is reached come to their end.
    fn look_at_limits(&mut self, mut state: RunState) {
        let (used, most) = (self.table.now().used(), self.run.options.max_iterations);
        (state.spent.cost_usd, state.spent.tokens) = (used.cost_usd, used.tokens);
        let spent = match plimsoll_policy::bounds::spent(&state, &clock::stamp(clock::now())) {
            Some(Verdict::Stop { status, reason }) => Some(Closing::Stop(status, reason)),
            Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => None,
        };
        let sessions = || Closing::Stop(Status::MaxIterations, format!("{} sessions used", used.sessions));
        let reached = spent.or_else(|| (used.sessions >= most).then(sessions));
        self.closing = self.closing.take().or(reached);
    }

    /// Goes on with each worker.
    fn follow(&mut self) -> Result<(), WorkersError> {
        for place in 0..self.slots.len() {
            let Some(slot) = self.slots[place].take() else { continue };
            self.slots[place] = self.follow_one(slot)?;
        }
        Ok(())
    }

    fn follow_one(&mut self, mut slot: Slot<'scope>) -> Result<Option<Slot<'scope>>, WorkersError> {
        if let Some(exit) = slot.ended() {
            return self.ended(slot, &exit);
        }
        match slot.stage {
            Stage::AtWork(_) => Ok(Some(slot)),
            Stage::Preparing(handle) if !handle.is_finished() => {
                Ok(Some(Slot { stage: Stage::Preparing(handle), ..slot }))
            }
            // The item stays its worker's: the next `--resume` goes on with it.
            Stage::Preparing(handle) if self.closing.is_some() => {
                drop(handle.join());
                Ok(None)
            }
            Stage::Preparing(handle) => {
                let slot = Slot { stage: Stage::Waiting, ..slot };
                match handle.join() {
                    Ok(Ok(())) => self.start(slot),
                    Ok(Err(error)) => self.failed(&slot, &error.to_string()).map(|()| None),
                    Err(_) => self.failed(&slot, "its worktree could not be prepared").map(|()| None),
                }
            }
            Stage::Waiting if self.closing.is_some() => Ok(None),
            Stage::Waiting if moment() < self.table.now().board.paused_until => Ok(Some(slot)),
            Stage::Waiting if !self.takes_its_turn(slot.worker) => Ok(Some(slot)),
            Stage::Waiting => self.start(slot),
        }
    }

    /// True if a worker may begin now: then the next one waits.
    fn takes_its_turn(&mut self, worker: usize) -> bool {
        if self.proven.contains(&worker) {
            return true;
        }
        let is_soon = self.begun.is_some_and(|begun| begun.elapsed() < STAGGER);
        if !is_soon {
            self.begun = Some(Instant::now());
            self.proven.insert(worker);
        }
        !is_soon
    }

    fn prepare(&mut self, mut slot: Slot<'scope>) -> Result<Slot<'scope>, WorkersError> {
        let now = self.table.now();
        let Claim { item, epoch } = slot.claim;
        let wanted = Wanted {
            item,
            worker: slot.worker,
            branch: now.branch(item, epoch),
            begins_at: now.works[item].start.clone(),
            plan: item_plan(self.project, &now, item)?,
        };
        // No session is at work yet: the first Ctrl-C is enough.
        let (trees, interrupts, cut) = (self.trees, self.interrupts.clone(), Arc::clone(&self.cut));
        let give_up = move || interrupts.count() > 0 || cut.load(Ordering::Relaxed);
        let handle = self.scope.spawn(move || trees.prepare(&wanted, &give_up));
        slot.stage = Stage::Preparing(handle);
        Ok(slot)
    }

    /// Starts the item's run, if there is money for it; one that waits for money comes again.
    fn start(&mut self, slot: Slot<'scope>) -> Result<Option<Slot<'scope>>, WorkersError> {
        let now = self.table.now();
        let Claim { item, epoch } = slot.claim;
        let others = self.slots.iter().flatten().map(|slot| slot.claim.item).filter(|other| *other != item);
        let (cost_usd, tokens, sessions) =
            match means(self.run, &now, item, &others.collect::<Vec<_>>(), self.count()) {
                Means::Enough { cost_usd, tokens, sessions } => (cost_usd, tokens, sessions),
                Means::Later => return Ok(Some(slot)),
                Means::None(status, reason) => {
                    self.closing.get_or_insert(Closing::Stop(status, reason));
                    return Ok(Some(slot));
                }
            };
        let tree = self.trees.of_item(item);
        let project = self.trees.project(&tree);
        let (output, errors) = child::outputs(self.project, self.run, item, epoch);
        let task = task_path(self.project, self.run).unwrap_or_default();
        let start = Start {
            run: self.run,
            client: &self.options.client,
            project: &project,
            worker: slot.worker,
            item: &now.board.items[item].text,
            verify: &now.passed,
            task: &task,
            sessions,
            cost_usd,
            tokens,
            output: &output,
            errors: &errors,
        };
        // A kill before the process is written down leaves one that holds the lock of its worktree: it is found by that.
        let client = match start.start() {
            Ok(client) => client,
            Err(error) => return self.failed(&slot, &error.to_string()).map(|()| None),
        };
        let known = client.identity();
        self.table.change(|workers| {
            let work = &mut workers.works[item];
            work.pid = known.map(|known| known.pid);
            work.process_started = known.map_or(0, |known| known.started);
            work.allowance_usd = cost_usd;
        })?;
        self.note(JournalEvent::WorkerBegan(WorkerBegan {
            worker: slot.worker,
            item: now.board.items[item].text.clone(),
            number: item + 1,
            attempt: epoch,
            folder: tree.display().to_string(),
        }))?;
        Ok(Some(Slot { stage: Stage::AtWork(client), asked: 0, ..slot }))
    }

    /// The item's run could not do it: it is tried again, or set aside.
    fn failed(&mut self, slot: &Slot<'_>, reason: &str) -> Result<(), WorkersError> {
        let item = slot.claim.item;
        let tree = self.trees.of_item(item);
        let is_ours = self.trees.is_ours(&tree);
        let head = is_ours.then(|| followed::keep_work(&self.trees.project(&tree))).flatten();
        let is_set_aside = self.table.change(|workers| {
            let _ = fail(&mut workers.board, slot.claim, reason);
            workers.works[item].pid = None;
            // What it has committed is where the next attempt begins.
            if let Some(head) = head {
                workers.works[item].start = head;
            }
            matches!(workers.board.items[item].stage, plimsoll_domain::board::Stage::Aside { .. })
        })?;
        let text = self.table.now().board.items[item].text.clone();
        let (item, reason) = (text, reason.to_owned());
        self.note(JournalEvent::SentBack(SentBack { item, reason, is_set_aside }))
    }

    /// Takes the next item, if a worker is free.
    fn take_up(&mut self) -> Result<(), WorkersError> {
        let free = (0..self.count()).find(|place| self.slots[*place].is_none());
        let (Some(place), None) = (free, &self.closing) else { return Ok(()) };
        if outlook(&self.table.now().board, moment()) != Outlook::Free || !self.takes_its_turn(place + 1) {
            return Ok(());
        }
        let held: Vec<Claim> = self.slots.iter().flatten().map(|slot| slot.claim).collect();
        let target = self.table.now().target;
        let tip = worktree::end_of(&self.trees.ground.repository, &target).unwrap_or_default();
        let taken = self.table.change(|workers| {
            for held in held {
                // One that is fenced has landed: its run is ended when it is tidied up.
                let _ = renew(&mut workers.board, held, moment());
            }
            let claim = claim(&mut workers.board, &format!("worker {}", place + 1), moment())?;
            let work = &mut workers.works[claim.item];
            work.before += std::mem::take(&mut work.now);
            work.worker = place + 1;
            work.pid = None;
            if work.start.is_empty() {
                (work.start, work.beyond) = (tip.clone(), tip);
            }
            Some(claim)
        })?;
        let Some(claim) = taken else { return Ok(()) };
        let slot = Slot { worker: place + 1, claim, stage: Stage::Waiting, asked: 0, percent: None };
        self.slots[place] = Some(self.prepare(slot)?);
        Ok(())
    }

    /// Takes up what a round of merging has left, and begins another where something waits.
    fn look_at_merging(&mut self) -> Result<(), WorkersError> {
        if self.merging.as_ref().is_some_and(ScopedJoinHandle::is_finished)
            && let Some(merging) = self.merging.take()
        {
            match merging.join() {
                Ok(Ok(())) => {}
                Ok(Err(MergeError::GivenUp)) if self.closing.is_some() => self.is_merging_over = true,
                Ok(Err(error)) => self.cannot_merge(&error.to_string()),
                Err(_) => self.cannot_merge("the merger has failed"),
            }
            self.tidy()?;
            show(self.project, self.run, self.table)?;
        }
        let waits = !offered(&self.table.now().board).is_empty();
        let may =
            !self.is_merging_over && self.interrupts.count() < 2 && self.closing != Some(Closing::Cancelled);
        if waits && may && self.merging.is_none() {
            let give_up = self.give_up();
            let (table, trees, run, settings) = (self.table, self.trees, self.run, self.settings);
            let news = self.news.0.clone();
            self.merging = Some(
                self.scope.spawn(move || Merger::new(table, trees, run, settings, &give_up, news).merge()),
            );
        }
        Ok(())
    }

    fn cannot_merge(&mut self, why: &str) {
        self.is_merging_over = true;
        self.closing.get_or_insert(Closing::Pause(PauseKind::Fault, format!("nothing can be merged: {why}")));
    }

    fn tell_news(&mut self) -> Result<(), WorkersError> {
        while let Ok(event) = self.news.1.try_recv() {
            self.note(event)?;
        }
        Ok(())
    }

    pub(super) fn note(&mut self, event: JournalEvent) -> Result<(), WorkersError> {
        self.watcher.tell(&Progress::Workers { event: &event });
        Ok(journal::note(self.project, JournalEntry::of_run(self.run, event))?)
    }

    /// The exit code, once nothing is at work any more.
    fn end(&mut self) -> Result<Option<u8>, WorkersError> {
        let now = self.table.now();
        let may_merge =
            !self.is_merging_over && self.interrupts.count() < 2 && self.closing != Some(Closing::Cancelled);
        let is_busy = self.slots.iter().any(Option::is_some)
            || self.merging.is_some()
            || may_merge && !offered(&now.board).is_empty();
        if is_busy {
            return Ok(None);
        }
        self.tell_news()?;
        // What is done is done, whatever else was about to end it.
        let closing = match (outlook(&now.board, moment()), self.closing.clone()) {
            (Outlook::Done, closing) if closing != Some(Closing::Cancelled) => ending::done(self.run, &now),
            (_, Some(closing)) => closing,
            (Outlook::Free | Outlook::Busy, None) => return Ok(None),
            (Outlook::Stuck | Outlook::Done, None) => ending::stuck(&now),
        };
        self.finish(closing).map(Some)
    }

    fn tell_standing(&mut self) {
        let now = self.table.now();
        let lines = live(&self.slots, &now, self.merging.is_some());
        self.watcher.tell(&Progress::Standing { lines: &lines });
    }
}

impl From<MergeError> for WorkersError {
    fn from(error: MergeError) -> WorkersError {
        match error {
            MergeError::Store(error) => WorkersError::Store(error),
            other => WorkersError::NoMerger(other.to_string()),
        }
    }
}

/// What a worker does once its item's run has ended; none for nothing.
type Ended<'scope> = Result<Option<Slot<'scope>>, WorkersError>;
