//! Reports the events of a parallel run to its observer, to the journal and to Linear.

use crate::linear::notes::queue_item_note;
use crate::run::{RunEvent, RunObserver};
use crate::workers::WorkersError;
use crate::workers::context::ParallelRun;
use plimsoll_domain::journal::{ItemReturned, ItemsMerged, JournalEvent};
use plimsoll_policy::linear::ParallelItemEvent;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The reporter of a parallel run.
pub(super) struct Reporter<'env> {
    parallel_run: ParallelRun<'env>,
    observer: &'env mut dyn RunObserver,
    /// Events of the merger, which runs in its own thread.
    event_channel: (Sender<JournalEvent>, Receiver<JournalEvent>),
    /// False in a fleet, in which each machine would report only its own part.
    reports_to_linear: bool,
}

impl<'env> Reporter<'env> {
    pub(super) fn new(
        parallel_run: ParallelRun<'env>,
        observer: &'env mut dyn RunObserver,
        reports_to_linear: bool,
    ) -> Reporter<'env> {
        Reporter { parallel_run, observer, event_channel: channel(), reports_to_linear }
    }

    /// Sends a progress message to the observer.
    pub(super) fn notify_observer(&mut self, run_event: &RunEvent<'_>) {
        self.observer.on_event(run_event);
    }

    /// Sends a message for the user to the observer.
    pub(super) fn send_notice_to_observer(&mut self, message: impl Into<String>) {
        self.observer.on_event(&RunEvent::Notice(message.into()));
    }

    /// Returns a sender for events of other threads.
    pub(super) fn event_sender(&self) -> Sender<JournalEvent> {
        self.event_channel.0.clone()
    }

    /// Reports the events that other threads have sent so far.
    pub(super) fn report_thread_events(&mut self) -> Result<(), WorkersError> {
        while let Ok(event) = self.event_channel.1.try_recv() {
            self.notify_and_record_event(event)?;
        }
        Ok(())
    }

    /// Sends an event to the observer and records it.
    pub(super) fn notify_and_record_event(&mut self, event: JournalEvent) -> Result<(), WorkersError> {
        self.observer.on_event(&RunEvent::WorkersEvent { event: &event });
        self.record_event(event)
    }

    /// Records an event of which the observer is notified separately.
    pub(super) fn record_event(&self, event: JournalEvent) -> Result<(), WorkersError> {
        self.queue_linear_notes_for_event(&event);
        Ok(self.parallel_run.context.journal_run_event(self.parallel_run.initial_state, event)?)
    }

    /// Queues notes for Linear about items that were merged, sent back, set aside or parked.
    fn queue_linear_notes_for_event(&self, event: &JournalEvent) {
        match event {
            JournalEvent::ItemsMerged(ItemsMerged { items, branch_head: commit, .. }) => {
                items.iter().for_each(|item| {
                    self.queue_linear_note_if_enabled(item, ParallelItemEvent::Merged(commit));
                });
            }
            JournalEvent::ItemReturned(ItemReturned { item, reason, is_set_aside: true, .. }) => {
                self.queue_linear_note_if_enabled(item, ParallelItemEvent::SetAside(reason));
            }
            JournalEvent::ItemReturned(ItemReturned { item, reason, is_set_aside: false, .. }) => {
                self.queue_linear_note_if_enabled(item, ParallelItemEvent::Requeued(reason));
            }
            JournalEvent::Parked { item, question } => {
                self.queue_linear_note_if_enabled(item, ParallelItemEvent::WaitsForAnswer(question));
            }
            _ => {}
        }
    }

    fn queue_linear_note_if_enabled(&self, item_text: &str, item_event: ParallelItemEvent<'_>) {
        let item_index = || {
            self.parallel_run
                .workers_state()
                .board
                .items
                .iter()
                .position(|board_item| board_item.text == item_text)
        };
        let Some(item_index) = self.reports_to_linear.then(item_index).flatten() else { return };
        let item_number = u32::try_from(item_index + 1).unwrap_or(u32::MAX);
        queue_item_note(
            self.parallel_run.context.project,
            self.parallel_run.context.settings,
            self.parallel_run.initial_state,
            item_number,
            item_text,
            item_event,
        );
    }
}
