//! The loop of a parallel run: gives items to workers, follows their runs, and has what they offer merged. Every decision is
//! `plimsoll_policy::workers`'.

mod begin;
mod ending;
mod followed;
mod means;
mod offers;
mod orders;
mod recover;
mod together;

use crate::context::running_sessions::FiguresReader;
use crate::run::linear_notes::note_item;
use crate::run::{Interrupts, Options, Progress, RunObserver};
use crate::workers::WorkersError;
use crate::workers::board::show;
use crate::workers::merger::{MergeError, Merger};
use crate::workers::slot::{Slot, Stage};
use crate::workers::table::Table;
use crate::workers::tree::{TreeError, Trees};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, Landed, SentBack};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Work;
use plimsoll_domain::{RunState, Settings, Status, Verdict};
use plimsoll_policy::linear::ItemNews;
use plimsoll_policy::run_figures::{ItemRunFacts, figures_of_workers};
use plimsoll_policy::workers::{Outlook, items_to_merge, outlook};
use plimsoll_store::{Durability, Project, journal, state_file};
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

impl Closing {
    /// Why no new item starts, for people.
    fn reason(&self) -> String {
        match self {
            Closing::Interrupted => "Ctrl-C".to_owned(),
            Closing::Cancelled => "plimsoll stop".to_owned(),
            Closing::Stop(_, reason) | Closing::Pause(_, reason) => clip(&one_line(reason), 200),
        }
    }
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
    /// Items whose worktrees have to stay, and that were named.
    kept: BTreeSet<usize>,
    /// True while a pause holds all workers.
    is_paused: bool,
    /// When files were looked at last.
    looked: Option<Instant>,
    figures: FiguresReader,
    /// What the runs of items said then, an entry for each item.
    facts: Vec<ItemRunFacts>,
    /// When all money was others' share; none once one of them has ended since.
    is_short_since: Option<Instant>,
    closing: Option<Closing>,
    /// When the shared board was asked for an item last, and what it gave was none.
    claimed: Option<Instant>,
    /// When it was asked to end at once.
    hurried: Option<Instant>,
    /// Since when this process, which closes, waits for another machine's merger.
    left_merging: Option<Instant>,
    /// When a round of merging began last where others merge, too.
    merged: Option<Instant>,
    /// True once it was said that the board or the remote is waited for.
    is_waiting: bool,
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
            kept: BTreeSet::new(),
            is_paused: false,
            looked: None,
            figures: FiguresReader::default(),
            facts: Vec::new(),
            is_short_since: None,
            closing: None,
            claimed: None,
            hurried: None,
            left_merging: None,
            merged: None,
            is_waiting: false,
            cut: Arc::default(),
        }
    }

    /// To the end; answers with the exit code.
    pub(super) fn run(mut self) -> Result<u8, WorkersError> {
        let ended = self.work();
        if let Err(error) = &ended {
            self.watcher.tell(&Progress::Failed { error: error.to_string() });
            // What is at work ends with its session; the next `--resume` finds it.
            self.cut.store(true, Ordering::Relaxed);
            self.slots.iter_mut().flatten().for_each(|slot| slot.ask_to_end(1));
        }
        ended
    }

    fn work(&mut self) -> Result<u8, WorkersError> {
        self.watcher.tell(&Progress::Run { state: self.run });
        self.enter_status()?;
        self.begin()?;
        self.recover()?;
        loop {
            self.hear()?;
            self.leave_paused();
            self.follow()?;
            self.look_at_merging()?;
            self.tell_news()?;
            if let Some(code) = self.end()? {
                return Ok(code);
            }
            self.take_up()?;
            self.note_for_others();
            self.tell_figures();
            sleep(LOOK_INTERVAL);
        }
    }

    fn merger<'m>(&self, give_up: &'m (dyn Fn() -> bool + Sync)) -> Merger<'m>
    where
        'env: 'm,
    {
        let news = self.news.0.clone();
        Merger::new(self.table, self.trees, self.run, self.settings, give_up, news, self.takes_all())
    }

    /// Asked by threads and commands whether anybody still waits for them.
    fn give_up(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (interrupts, cut) = (self.interrupts.clone(), Arc::clone(&self.cut));
        move || interrupts.count() >= 2 || cut.load(Ordering::Relaxed)
    }

    fn count(&self) -> usize {
        self.run.options.workers.as_ref().map_or(1, |workers| workers.count.max(1))
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
                self.leave(&Slot { stage: Stage::Waiting, ..slot }).map(|()| None)
            }
            Stage::Preparing(handle) => {
                let slot = Slot { stage: Stage::Waiting, ..slot };
                match handle.join() {
                    _ if !self.table.is_held(slot.claim) => Ok(None),
                    Ok(Ok(())) => self.start(slot),
                    // That costs no try: it goes back, and is taken again once the remote is there.
                    Ok(Err(TreeError::Remote(error))) => {
                        if let Some(shared) = &self.table.shared {
                            shared.heard_of_remote(Some(error.to_string()));
                        }
                        self.leave(&slot).map(|()| None)
                    }
                    Ok(Err(error)) => self.failed(&slot, &error.to_string()).map(|()| None),
                    Err(_) => self.failed(&slot, "its worktree could not be prepared").map(|()| None),
                }
            }
            Stage::Waiting if !self.table.is_held(slot.claim) => self.keep(&slot).map(|()| None),
            Stage::Waiting if self.closing.is_some() => self.leave(&slot).map(|()| None),
            Stage::Waiting if self.table.is_paused() => Ok(Some(slot)),
            // What is left of a day is in the ledgers of all runs.
            Stage::Waiting if self.is_short_since.is_some_and(|since| since.elapsed() < FILES_INTERVAL) => {
                Ok(Some(slot))
            }
            Stage::Waiting if !self.takes_its_turn(slot.worker) => Ok(Some(slot)),
            Stage::Waiting => self.start(slot),
        }
    }

    /// With `--no-wait` a pause that was there before ends this process as it ended the one before.
    fn leave_paused(&mut self) {
        if !self.table.is_paused() || self.options.wait || self.closing.is_some() {
            return;
        }
        if let Verdict::Pause { kind, reason, .. } = self.lasting_pause() {
            self.closing = Some(Closing::Pause(kind, reason));
        }
    }

    /// Takes up what a round of merging has left, and begins another where something waits.
    fn look_at_merging(&mut self) -> Result<(), WorkersError> {
        if self.merging.as_ref().is_some_and(ScopedJoinHandle::is_finished)
            && let Some(merging) = self.merging.take()
        {
            match merging.join() {
                Ok(Ok(())) => {}
                Ok(Err(MergeError::GivenUp)) if self.closing.is_some() => self.is_merging_over = true,
                Ok(Err(error)) if error.may_pass() => {}
                Ok(Err(error)) => self.cannot_merge(&error.to_string()),
                Err(_) => self.cannot_merge("the merger has failed"),
            }
            self.tidy()?;
            show(self.project, self.run, self.table)?;
        }
        if self.merging.is_none() && self.may_merge() && self.is_merger_here() {
            let give_up = self.give_up();
            let (table, trees, run, settings) = (self.table, self.trees, self.run, self.settings);
            let (news, takes_all) = (self.news.0.clone(), self.takes_all());
            self.merging =
                Some(self.scope.spawn(move || {
                    Merger::new(table, trees, run, settings, &give_up, news, takes_all).merge()
                }));
        }
        Ok(())
    }

    /// True while something waits to be merged, and nothing keeps this process from it.
    fn may_merge(&self) -> bool {
        !self.is_merging_over
            && self.interrupts.count() < 2
            && !self.ends_at_once()
            && !items_to_merge(&self.table.now().board, self.takes_all()).is_empty()
    }

    /// True if nothing waits for an item's next attempt: none begins any more, or others may work on it.
    fn takes_all(&self) -> bool {
        let is_idle = self.slots.iter().all(Option::is_none);
        // Nobody works and no item is free, so waiting would have no end.
        let has_no_next =
            || is_idle && outlook(&self.table.now().board, self.table.moment()) != Outlook::Free;
        self.closing.is_some() || self.table.shared.is_some() || has_no_next()
    }

    /// Where others merge, too, one of them may be at it; and what is away is asked again after a moment.
    fn is_merger_here(&mut self) -> bool {
        let Some(shared) = &self.table.shared else { return true };
        let now = self.table.now();
        let name = now.member.unwrap_or_default().name;
        let is_others = now.board.merger.holds(shared.moment()) && now.board.merger.holder != name;
        let is_soon = self.merged.is_some_and(|at| at.elapsed() < MERGE_INTERVAL);
        if is_others || is_soon || shared.trouble().is_some() && !shared.is_to_be_tried(&self.table.now()) {
            return false;
        }
        self.merged = Some(Instant::now());
        true
    }

    /// Sessions do not even come to their end.
    fn ends_at_once(&self) -> bool {
        matches!(self.closing, Some(Closing::Cancelled | Closing::Stop(Status::Cancelled, _)))
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
        self.record(event)
    }

    /// What the watcher hears in another way.
    fn record(&self, event: JournalEvent) -> Result<(), WorkersError> {
        self.tell_linear(&event);
        Ok(journal::note(self.project, JournalEntry::of_run(self.run, event))?)
    }

    /// Notes for Linear what has become of items.
    fn tell_linear(&self, event: &JournalEvent) {
        match event {
            JournalEvent::Landed(Landed { items, commit }) => {
                items.iter().for_each(|item| self.tell_linear_of(item, ItemNews::Merged(commit)));
            }
            JournalEvent::SentBack(SentBack { item, reason, is_set_aside: true }) => {
                self.tell_linear_of(item, ItemNews::SetAside(reason));
            }
            JournalEvent::SentBack(SentBack { item, reason, is_set_aside: false }) => {
                self.tell_linear_of(item, ItemNews::SentBack(reason));
            }
            JournalEvent::Parked { item, question } => {
                self.tell_linear_of(item, ItemNews::Asked(question));
            }
            _ => {}
        }
    }

    fn tell_linear_of(&self, item: &str, news: ItemNews<'_>) {
        // Of a fleet each machine would tell its own part.
        if self.table.shared.is_some() {
            return;
        }
        let Some(place) = self.table.now().board.items.iter().position(|row| row.text == item) else {
            return;
        };
        let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
        note_item(self.project, self.settings, self.run, number, item, news);
    }

    /// The exit code, once nothing is at work any more.
    fn end(&mut self) -> Result<Option<u8>, WorkersError> {
        let now = self.table.now();
        let is_busy = self.slots.iter().any(Option::is_some)
            || self.merging.is_some()
            || self.may_merge() && self.merges_on()
            || self.has_to_tell();
        if is_busy {
            return Ok(None);
        }
        self.tell_news()?;
        self.close_drained(&now);
        // What is done is done, whatever else was about to end it.
        let closing = match (outlook(&now.board, self.table.moment()), self.closing.clone()) {
            (Outlook::Done, closing) if closing != Some(Closing::Cancelled) => ending::done(self.run, &now),
            (_, Some(closing)) => closing,
            (Outlook::Free | Outlook::Busy, None) => return Ok(None),
            (Outlook::Stuck | Outlook::Done, None) => ending::stuck(&now),
        };
        self.finish(closing).map(Some)
    }

    fn tell_figures(&mut self) {
        let figures = figures_of_workers(&self.table.now(), &self.facts, true);
        self.watcher.tell(&Progress::Figures { figures: &figures });
    }

    /// The process before this one may have left the state as paused: it is, if a limit still holds.
    fn enter_status(&mut self) -> Result<(), WorkersError> {
        self.is_paused = self.table.is_paused();
        let limit = self.is_paused.then(|| self.lasting_pause());
        if self.table.now().stop_reason.is_some() {
            self.table.change(|workers| workers.stop_reason = None)?;
        }
        state_file::update(
            self.project,
            Some(&self.run.run_id),
            Durability::Durable,
            |state| match &limit {
                Some(limit) => state.lifecycle.wait_for(limit),
                None => state.lifecycle.go_on(),
            },
        )?;
        Ok(())
    }

    /// The pause of an earlier process that still lasts.
    fn lasting_pause(&self) -> Verdict {
        let until = self.paused_until();
        match self.run.lifecycle.last_verdict() {
            Some(Verdict::Pause { kind, reason, .. }) if kind.passes() => {
                Verdict::Pause { kind: *kind, until, reason: reason.clone() }
            }
            _ => Verdict::Pause { kind: PauseKind::Limit, until, reason: "a limit still holds".to_owned() },
        }
    }

    /// Writes down what `plimsoll status` cannot see by itself: which workers wait, and why no new item starts.
    fn note_for_others(&self) {
        let now = self.table.now();
        let waiting: Vec<usize> = self
            .slots
            .iter()
            .flatten()
            .filter(|slot| slot.is_waiting())
            .map(|slot| slot.claim.item)
            .collect();
        let stop_reason = self.closing.as_ref().map(Closing::reason);
        let is_known = |(item, work): (usize, &Work)| work.is_waiting == waiting.contains(&item);
        if now.stop_reason == stop_reason && now.works.iter().enumerate().all(is_known) {
            return;
        }
        // A write that fails must not end the run: it is repeated in the next round.
        let _ = self.table.change(|workers| {
            workers.stop_reason = stop_reason;
            for (item, work) in workers.works.iter_mut().enumerate() {
                work.is_waiting = waiting.contains(&item);
            }
        });
    }
}

impl From<MergeError> for WorkersError {
    fn from(error: MergeError) -> WorkersError {
        match error {
            MergeError::Store(error) => WorkersError::Store(error),
            MergeError::Board(error) => WorkersError::Board(error),
            other => WorkersError::NoMerger(other.to_string()),
        }
    }
}

/// How often what could not be merged is tried again, where others merge, too.
const MERGE_INTERVAL: Duration = Duration::from_secs(2);

/// What a worker does once its item's run has ended; none for nothing.
type Ended<'scope> = Result<Option<Slot<'scope>>, WorkersError>;
