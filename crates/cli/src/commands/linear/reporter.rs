//! A watcher of a run that delivers its notes: after each session, while it waits out a pause, and at its end. It never
//! fails a run, and holds it up a few seconds at most.

use super::deliver::{Asked, Report, deliver};
use super::way;
use plimsoll_domain::Settings;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_flows::run::{Interrupts, Progress, RunObserver};
use plimsoll_linear_client::{Linear, RetryLimits};
use plimsoll_store::{Project, journal, outbox};
use std::time::{Duration, Instant};

/// Between two sessions.
const BETWEEN: Duration = Duration::from_secs(5);
/// At the end there is nothing more to be late for, except for the user who wants to leave.
const AT_END: Duration = Duration::from_secs(10);
const INTERRUPTED: Duration = Duration::from_secs(2);
const TRIES: u32 = 2;
/// How often it is looked in a pause whether the time to try has come.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// The watcher, which also tells Linear where an issue is set.
pub(crate) fn reporting<'a>(
    project: &'a Project,
    settings: &Settings,
    inner: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    let Some(issue) = settings.linear.issue.clone() else { return inner };
    // Now, while the user sits there whom a password manager can ask.
    let linear = way(project, settings);
    let untold = linear.as_ref().err().map(|error| format!("{error}; {}", error.hint()));
    if let Some(trouble) = &untold {
        let event = JournalEvent::LinearFailed { trouble: trouble.clone(), until: None };
        let _ = journal::note(project, JournalEntry::new(event));
    }
    Box::new(Reporter { inner, project, issue, linear: linear.ok(), untold, looked: Instant::now() })
}

struct Reporter<'a> {
    inner: Box<dyn RunObserver + 'a>,
    project: &'a Project,
    /// Where its notes go.
    issue: String,
    /// None if there is no way: then the notes wait.
    linear: Option<Linear>,
    /// Why there is none, until it has been said.
    untold: Option<String>,
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
            Progress::Waiting { .. } if self.looked.elapsed() >= LOOK_INTERVAL => self.deliver(BETWEEN),
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
        let Some(linear) = &self.linear else { return };
        if outbox::all_undelivered(self.project) == 0 {
            return;
        }
        // The user has pressed Ctrl-C and waits: what is not delivered stays in the outbox.
        let time = if self.inner.interrupts().count() > 0 { INTERRUPTED } else { time };
        let report = deliver(self.project, linear, &self.issue, RetryLimits::of(time, TRIES), Asked::ByRun);
        match report {
            Ok(Report { trouble: Some(trouble), is_new_trouble: true, .. }) => self.say(&format!(
                "Linear was not notified: {trouble}; Plimsoll retries by itself, or run `plimsoll linear sync`"
            )),
            Ok(_) => {}
            Err(error) => self.say(&format!("Linear was not notified: {error}; {}", error.hint())),
        }
    }

    fn say(&mut self, words: &str) {
        self.inner.tell(&Progress::Note(plimsoll_domain::text::for_terminal(words)));
    }
}
