//! What a parallel run reports: to its observer, to the journal, and to Linear.

use crate::linear::notes::note_item;
use crate::run::{Progress, RunObserver};
use crate::workers::WorkersError;
use crate::workers::context::ParallelRun;
use plimsoll_domain::journal::{JournalEvent, Landed, SentBack};
use plimsoll_policy::linear::ItemNews;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Reports for a parallel run.
pub(super) struct Reporter<'env> {
    run: ParallelRun<'env>,
    watcher: &'env mut dyn RunObserver,
    /// Events of the merger, which has a thread of its own.
    channel: (Sender<JournalEvent>, Receiver<JournalEvent>),
    /// Of a fleet each machine would tell its own part.
    tells_linear: bool,
}

impl<'env> Reporter<'env> {
    pub(super) fn new(
        run: ParallelRun<'env>,
        watcher: &'env mut dyn RunObserver,
        tells_linear: bool,
    ) -> Reporter<'env> {
        Reporter { run, watcher, channel: channel(), tells_linear }
    }

    /// Tells the observer.
    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        self.watcher.tell(progress);
    }

    /// Tells the observer something that the user should know.
    pub(super) fn tell_note(&mut self, words: impl Into<String>) {
        self.watcher.tell(&Progress::Note(words.into()));
    }

    /// Where other threads send events.
    pub(super) fn sender(&self) -> Sender<JournalEvent> {
        self.channel.0.clone()
    }

    /// Reports what other threads have sent.
    pub(super) fn report_sent(&mut self) -> Result<(), WorkersError> {
        while let Ok(event) = self.channel.1.try_recv() {
            self.note(event)?;
        }
        Ok(())
    }

    /// Tells the observer of an event, and records it.
    pub(super) fn note(&mut self, event: JournalEvent) -> Result<(), WorkersError> {
        self.watcher.tell(&Progress::Workers { event: &event });
        self.record(event)
    }

    /// Records an event of which the observer hears in another way.
    pub(super) fn record(&self, event: JournalEvent) -> Result<(), WorkersError> {
        self.tell_linear(&event);
        Ok(self.run.context.note_of_run(self.run.state, event)?)
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
        let place = || self.run.record().board.items.iter().position(|row| row.text == item);
        let Some(place) = self.tells_linear.then(place).flatten() else { return };
        let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
        note_item(self.run.context.project, self.run.context.settings, self.run.state, number, item, news);
    }
}
