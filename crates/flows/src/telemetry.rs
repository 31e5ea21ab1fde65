//! A run's own spans and logs on their way to the user's collector. Nothing here opens a connection: `plimsoll-otel` does, an
//! optional program. It is started with a run, told each event as `plimsoll run --json` prints it, and never waited for.
//!
//! What it is told comes from the run's process, not from a file in the project, so a session cannot forge a span; the journal it
//! reads by itself, for the logs.

pub mod command;

use crate::optional_program::{self, OTEL};
use command::follow_arguments;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, StreamEntry};
use plimsoll_domain::{RunId, RunState};
use plimsoll_launcher::Listener;
use plimsoll_policy::telemetry::exporter::{Exporter, UnfitVariable};
use plimsoll_policy::telemetry::{self, trace::Trace};
use plimsoll_store::{Project, disk, environment, journal};
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// Lines that wait for the exporter: it reads at once, so only one that was stopped has so many.
const WAITING: usize = 1_000;
/// The last line is on its way at once; a stopped exporter must not keep the user waiting.
const LAST_LINE: Duration = Duration::from_millis(200);

/// What came of looking for a way to the collector.
#[derive(Debug, Default)]
pub struct Found {
    /// The exporter; none if nothing is exported.
    pub feed: Option<Feed>,
    /// True if it exports spans.
    pub has_spans: bool,
    /// What the user should hear.
    pub trouble: Vec<Trouble>,
}

/// Why something is not exported.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The environment asks for what cannot be done.
    #[error("telemetry: {0}")]
    Unfit(UnfitVariable),
    /// The system did not start the program.
    #[error("telemetry: {OTEL} cannot be started: {0}")]
    NotStarted(std::io::Error),
}

/// Starts the exporter of a run if the user's environment has the client's telemetry on and names a collector. A program that is
/// not installed is no trouble: it is optional.
pub fn start(project: &Project, run: &RunState) -> Found {
    let exporter = Exporter::of(environment::variable);
    let trouble = exporter.unfit.iter().cloned().map(Trouble::Unfit).collect();
    let mut found = Found { trouble, ..Found::default() };
    if !exporter.is_on() {
        return found;
    }
    let Ok(program) = optional_program::find(project, OTEL) else { return found };
    // From here on: what was before belongs to an earlier process.
    let from = disk::size(&project.journal()).unwrap_or(0);
    match plimsoll_launcher::start_listener(&program, &follow_arguments(from), project.root()) {
        Ok(listener) => {
            let trace = Trace::of(&run.run_id, environment::variable(telemetry::PARENT).as_deref());
            found.has_spans = exporter.traces.is_some() && trace.is_recorded();
            found.feed = Some(Feed::of(listener, project, &run.run_id));
        }
        Err(error) => found.trouble.push(Trouble::NotStarted(error)),
    }
    found
}

/// The way to the exporter: what it does not take at once waits, within bounds, and then is lost.
#[derive(Debug)]
pub struct Feed {
    lines: Option<SyncSender<String>>,
    /// Told when the last line has been written: how many could not be, because the exporter has ended.
    written: Receiver<u64>,
    /// Lines that found no place.
    lost: u64,
    project: Project,
    run_id: RunId,
}

impl Feed {
    fn of(mut listener: Listener, project: &Project, run_id: &RunId) -> Feed {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        let (done, written) = channel();
        std::thread::spawn(move || {
            let (mut is_there, mut unheard) = (true, 0);
            for line in waiting {
                is_there = is_there && listener.write_all(line.as_bytes()).is_ok();
                unheard += u64::from(!is_there);
            }
            drop(listener);
            // Nobody may wait for it any more.
            let _ = done.send(unheard);
        });
        Feed { lines: Some(lines), written, lost: 0, project: project.clone(), run_id: run_id.clone() }
    }

    /// Tells an event; never waits.
    pub fn tell(&mut self, entry: &StreamEntry) {
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(format!("{}\n", entry.to_line())) {
            self.lost += 1;
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.lines = None;
        // A timeout: it is stopped, and what is in its pipe may still be read.
        let unheard = self.written.recv_timeout(LAST_LINE).unwrap_or(0);
        let lost = self.lost + unheard;
        if lost > 0 {
            let what = if unheard > 0 { "ended before the run did" } else { "did not read what it was told" };
            let event =
                JournalEvent::TelemetryLost { spans: lost, logs: 0, trouble: format!("{OTEL} {what}") };
            let _ = journal::note(&self.project, JournalEntry::new(event).run(Some((&self.run_id, 0))));
        }
    }
}
