//! Exports the spans and logs of a run to the user's collector. This module opens no connection:
//! `plimsoll-otel`, an optional program, does. It is started with a run and receives each event as `plimsoll run
//! --json` prints it. The run never waits for it.
//!
//! The events come from the run's process, not from a file in the project, so a session cannot forge a span.
//! For the logs, the exporter reads the journal itself.

pub mod command;

use crate::optional_program::{self, OTEL_PROGRAM};
use command::follow_arguments;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, StreamEntry};
use plimsoll_domain::{RunId, RunState};
use plimsoll_launcher::BackgroundHelper;
use plimsoll_policy::telemetry::exporter::{ExporterConfig, InvalidVariable};
use plimsoll_policy::telemetry::{self, trace::TraceContext};
use plimsoll_store::{Project, disk, environment, journal};
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// The maximum number of queued lines. The exporter reads lines immediately, so the queue is full only if the
/// exporter is stopped.
const MAX_QUEUED_LINES: usize = 1_000;
/// How long to wait for the last line to be written. This normally takes no time; the limit is for a stopped
/// exporter.
const LAST_LINE_TIMEOUT: Duration = Duration::from_millis(200);

/// The outcome of starting the exporter.
#[derive(Debug, Default)]
pub struct ExporterStartOutcome {
    /// Sends lines to the exporter; `None` if nothing is exported.
    pub line_sender: Option<ExporterLineSender>,
    /// True if spans are exported.
    pub exports_spans: bool,
    /// Problems that the user should know about.
    pub errors: Vec<TelemetryError>,
}

/// Why something is not exported.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A variable of the environment has an unsupported value.
    #[error("telemetry: {0}")]
    InvalidVariable(InvalidVariable),
    /// The system could not start the program.
    #[error("telemetry: {OTEL_PROGRAM} cannot be started: {0}")]
    NotStarted(std::io::Error),
}

/// Starts the exporter of a run if the user's environment turns the client's telemetry on and names a
/// collector. It is not an error if the optional program is not installed.
pub fn start_exporter_if_configured_and_installed(project: &Project, run: &RunState) -> ExporterStartOutcome {
    let config = ExporterConfig::from_variables_if_telemetry_enabled(environment::variable);
    let errors = config.invalid_variables.iter().cloned().map(TelemetryError::InvalidVariable).collect();
    let mut start_outcome = ExporterStartOutcome { errors, ..ExporterStartOutcome::default() };
    if !config.has_target() {
        return start_outcome;
    }
    let Ok(program) = optional_program::find_sibling_or_trusted_program(project, OTEL_PROGRAM) else {
        return start_outcome;
    };
    // Entries before this offset belong to an earlier process and are not exported.
    let journal_offset = disk::file_size(&project.journal_path()).unwrap_or(0);
    match plimsoll_launcher::start_background_helper_with_piped_stdin(
        &program,
        &follow_arguments(journal_offset),
        project.root(),
    ) {
        Ok(exporter_process) => {
            let trace = TraceContext::from_valid_traceparent_or_run_id(
                &run.run_id,
                environment::variable(telemetry::TRACEPARENT_VARIABLE).as_deref(),
            );
            start_outcome.exports_spans = config.traces.is_some() && trace.is_sampled();
            start_outcome.line_sender =
                Some(ExporterLineSender::start_writer_thread(exporter_process, project, &run.run_id));
        }
        Err(error) => start_outcome.errors.push(TelemetryError::NotStarted(error)),
    }
    start_outcome
}

/// Sends lines to the exporter through a bounded queue. Lines are dropped while the queue is full.
#[derive(Debug)]
pub struct ExporterLineSender {
    line_sender: Option<SyncSender<String>>,
    /// Receives the number of lines that could not be written because the exporter has ended; sent after the
    /// last line.
    unwritten_count_receiver: Receiver<u64>,
    /// The number of lines that were dropped because the queue was full.
    dropped_count: u64,
    project: Project,
    run_id: RunId,
}

impl ExporterLineSender {
    fn start_writer_thread(
        mut exporter_process: BackgroundHelper,
        project: &Project,
        run_id: &RunId,
    ) -> ExporterLineSender {
        let (line_sender, line_receiver) = sync_channel::<String>(MAX_QUEUED_LINES);
        let (unwritten_count_sender, unwritten_count_receiver) = channel();
        std::thread::spawn(move || {
            let (mut is_exporter_alive, mut unwritten_count) = (true, 0);
            for line in line_receiver {
                is_exporter_alive = is_exporter_alive && exporter_process.write_all(line.as_bytes()).is_ok();
                unwritten_count += u64::from(!is_exporter_alive);
            }
            drop(exporter_process);
            // An error means that the receiver no longer waits for the count.
            let _ = unwritten_count_sender.send(unwritten_count);
        });
        ExporterLineSender {
            line_sender: Some(line_sender),
            unwritten_count_receiver,
            dropped_count: 0,
            project: project.clone(),
            run_id: run_id.clone(),
        }
    }

    /// Queues an event without blocking. Counts it as dropped if the queue is full.
    pub fn send(&mut self, entry: &StreamEntry) {
        let Some(line_sender) = &self.line_sender else { return };
        if let Err(TrySendError::Full(_)) = line_sender.try_send(format!("{}\n", entry.to_line())) {
            self.dropped_count += 1;
        }
    }
}

impl Drop for ExporterLineSender {
    fn drop(&mut self) {
        self.line_sender = None;
        // A timeout means that the exporter is stopped. It may still read the contents of its pipe later.
        let unwritten_count = self.unwritten_count_receiver.recv_timeout(LAST_LINE_TIMEOUT).unwrap_or(0);
        let lost_count = self.dropped_count + unwritten_count;
        if lost_count > 0 {
            let reason =
                if unwritten_count > 0 { "ended before the run did" } else { "did not read its input" };
            let event = JournalEvent::TelemetryLost {
                span_count: lost_count,
                log_count: 0,
                last_error: format!("{OTEL_PROGRAM} {reason}"),
            };
            let _ = journal::append_entry(
                &self.project,
                JournalEntry::new(event).with_run(Some((&self.run_id, 0))),
            );
        }
    }
}
