//! A watcher of a run that delivers its notes: after each session, while it waits out a pause, and at its end. It never
//! fails a run, and holds it up a few seconds at most.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::{RunId, Settings};
use plimsoll_flows::linear::delivery::{self, Delivery, DeliveryError};
use plimsoll_flows::run::{Interrupt, Interrupts, Progress, RunObserver};
use plimsoll_flows::workers::is_item_run;
use plimsoll_store::{Project, journal};
use std::time::{Duration, Instant};

/// Between two sessions.
const BETWEEN: Duration = Duration::from_secs(5);
/// At the end there is nothing more to be late for, except for the user who wants to leave.
const AT_END: Duration = Duration::from_secs(10);
const INTERRUPTED: Duration = Duration::from_secs(2);
/// How often it is looked in a pause whether the time to try has come, and beside workers whether there is something to tell.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// The watcher, which also tells Linear where an issue is set.
pub(crate) fn reporting<'a>(
    project: &'a Project,
    settings: &Settings,
    run_id: RunId,
    inner: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    let Some(issue) = settings.linear.issue.clone().filter(|_| !is_item_run()) else { return inner };
    // Now, while the user sits there whom a password manager can ask.
    let ready = delivery::ready(project, settings, &issue);
    if let Err(error) = &ready {
        let event = JournalEvent::LinearFailed { trouble: error.to_string(), until: None };
        let _ = journal::note(project, JournalEntry::new(event));
    }
    let (delivery, untold) = match ready {
        Ok(delivery) => (Some(delivery), None),
        Err(error) => (None, Some(error)),
    };
    Box::new(Reporter { inner, project, run_id, delivery, untold, looked: Instant::now() })
}

struct Reporter<'a> {
    inner: Box<dyn RunObserver + 'a>,
    project: &'a Project,
    run_id: RunId,
    /// None if there is no way: then the notes wait.
    delivery: Option<Delivery>,
    /// Why there is none, until it has been said.
    untold: Option<DeliveryError>,
    /// When it was last looked in a pause.
    looked: Instant,
}

impl RunObserver for Reporter<'_> {
    fn tell(&mut self, progress: &Progress<'_>) {
        // The end is reported last.
        if matches!(progress, Progress::Over { .. } | Progress::Failed { .. }) {
            self.deliver(AT_END);
        }
        self.inner.tell(progress);
        match progress {
            Progress::Run { .. } => {
                if let Some(trouble) = self.untold.take() {
                    self.say(&format!("Linear was not notified: {trouble}"));
                }
            }
            Progress::Judged { .. } => self.deliver(BETWEEN),
            Progress::Waiting { .. } | Progress::Figures { .. } if self.looked.elapsed() >= LOOK_INTERVAL => {
                self.deliver(BETWEEN);
            }
            _ => {}
        }
    }

    fn interrupts(&self) -> &Interrupts {
        self.inner.interrupts()
    }
}

impl Reporter<'_> {
    fn deliver(&mut self, time: Duration) {
        self.looked = Instant::now();
        let Some(delivery) = &self.delivery else { return };
        // The user has pressed Ctrl-C and waits: what is not delivered stays in the outbox.
        let time = if self.inner.interrupts().has_asked(Interrupt::Once) { INTERRUPTED } else { time };
        match delivery.deliver(self.project, &self.run_id, time) {
            Ok(None) => {}
            Ok(Some(words)) => self.say(&format!("Linear was not notified: {words}")),
            Err(error) => self.say(&format!("Linear was not notified: {error}; {}", error.hint())),
        }
    }

    fn say(&mut self, words: &str) {
        self.inner.tell(&Progress::Note(plimsoll_domain::text::one_line(words)));
    }
}
