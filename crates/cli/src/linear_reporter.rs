//! A run observer that delivers notes to Linear: after each session, during a pause, and at the end of the
//! run. It never fails a run, and delays it by a few seconds at most.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::{RunId, Settings};
use plimsoll_flows::linear::delivery::{self, Delivery, DeliveryError};
use plimsoll_flows::run::{Interrupt, InterruptCounter, RunEvent, RunObserver};
use plimsoll_flows::workers::is_item_run;
use plimsoll_store::{Project, journal};
use std::time::{Duration, Instant};

/// Maximum time for a delivery between two sessions.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time at the end of the run. Longer, because only the user waits for it.
const FINAL_DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
const INTERRUPTED_DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often notes are delivered during a pause, and while workers run.
const DELIVERY_INTERVAL: Duration = Duration::from_secs(15);

/// Wraps an observer so that notes are also sent to Linear, if the settings name an issue.
pub(crate) fn wrap_with_linear_delivery_if_configured<'a>(
    project: &'a Project,
    settings: &Settings,
    run_id: RunId,
    inner: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    let Some(issue) = settings.linear.issue.clone().filter(|_| !is_item_run()) else { return inner };
    // Prepared at the start, because a password manager may prompt the user, who is still at the terminal.
    let delivery_result = delivery::prepare_delivery_if_program_is_ready(project, settings, &issue);
    if let Err(error) = &delivery_result {
        let event = JournalEvent::LinearFailed { error: error.to_string(), retry_at: None };
        let _ = journal::append_entry(project, JournalEntry::new(event));
    }
    let (delivery, unreported_error) = match delivery_result {
        Ok(delivery) => (Some(delivery), None),
        Err(error) => (None, Some(error)),
    };
    Box::new(LinearReporter {
        inner,
        project,
        run_id,
        delivery,
        unreported_error,
        last_attempt_at: Instant::now(),
    })
}

struct LinearReporter<'a> {
    inner: Box<dyn RunObserver + 'a>,
    project: &'a Project,
    run_id: RunId,
    /// `None` if delivery is impossible; the notes stay in the outbox.
    delivery: Option<Delivery>,
    /// Why delivery is impossible, until it has been reported.
    unreported_error: Option<DeliveryError>,
    /// When a delivery was last attempted.
    last_attempt_at: Instant,
}

impl RunObserver for LinearReporter<'_> {
    fn on_event(&mut self, event: &RunEvent<'_>) {
        // Notes are delivered first, so that the end of the run stays the last message on the screen.
        if matches!(event, RunEvent::ProgramEnded { .. } | RunEvent::RunFailed { .. }) {
            self.deliver_notes_and_report_failure(FINAL_DELIVERY_TIMEOUT);
        }
        self.inner.on_event(event);
        match event {
            RunEvent::RunStarted { .. } => {
                if let Some(error) = self.unreported_error.take() {
                    self.report_to_inner(&format!("Linear was not notified: {error}"));
                }
            }
            RunEvent::VerdictReached { .. } => self.deliver_notes_and_report_failure(DELIVERY_TIMEOUT),
            RunEvent::PauseContinues { .. } | RunEvent::FiguresUpdated { .. }
                if self.last_attempt_at.elapsed() >= DELIVERY_INTERVAL =>
            {
                self.deliver_notes_and_report_failure(DELIVERY_TIMEOUT);
            }
            _ => {}
        }
    }

    fn interrupts(&self) -> &InterruptCounter {
        self.inner.interrupts()
    }
}

impl LinearReporter<'_> {
    fn deliver_notes_and_report_failure(&mut self, timeout: Duration) {
        self.last_attempt_at = Instant::now();
        let Some(delivery) = &self.delivery else { return };
        // After Ctrl-C the user is waiting; undelivered notes stay in the outbox.
        let timeout = if self.inner.interrupts().has_requested(Interrupt::AfterSession) {
            INTERRUPTED_DELIVERY_TIMEOUT
        } else {
            timeout
        };
        match delivery.deliver_waiting_notes_unless_backing_off(self.project, &self.run_id, timeout) {
            Ok(None) => {}
            Ok(Some(failure)) => self.report_to_inner(&format!("Linear was not notified: {failure}")),
            Err(error) => {
                self.report_to_inner(&format!("Linear was not notified: {error}; {}", error.hint()));
            }
        }
    }

    fn report_to_inner(&mut self, text: &str) {
        self.inner.on_event(&RunEvent::Notice(plimsoll_domain::text::to_safe_single_line(text)));
    }
}
