//! An observer that sends the entries of `plimsoll run --json` to `plimsoll-otel`. It never blocks a run and never makes it fail.

use super::json::{StreamEntryBuilder, with_current_time};
use plimsoll_domain::journal::StreamEvent;
use plimsoll_flows::run::{InterruptCounter, RunEvent, RunObserver};
use plimsoll_flows::telemetry::{ExporterLineSender, ExporterStartOutcome, TelemetryError};

/// Wraps an observer so that events also go to the exporter. Returns it unchanged if there is no exporter and no error to report.
pub fn with_telemetry_export_and_start_errors_if_any<'a>(
    exporter_start_outcome: ExporterStartOutcome,
    observer: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    if exporter_start_outcome.line_sender.is_none() && exporter_start_outcome.errors.is_empty() {
        return observer;
    }
    Box::new(ExportingObserver {
        observer,
        entry_builder: StreamEntryBuilder::default(),
        line_sender: exporter_start_outcome.line_sender,
        unreported_errors: exporter_start_outcome.errors,
    })
}

struct ExportingObserver<'a> {
    observer: Box<dyn RunObserver + 'a>,
    entry_builder: StreamEntryBuilder,
    line_sender: Option<ExporterLineSender>,
    /// Start-up errors that are shown to the user once, when the run starts.
    unreported_errors: Vec<TelemetryError>,
}

impl RunObserver for ExportingObserver<'_> {
    fn on_event(&mut self, run_event: &RunEvent<'_>) {
        self.observer.on_event(run_event);
        if let Some(line_sender) = &mut self.line_sender {
            for entry in self.entry_builder.build_entries_with_run_and_session(run_event) {
                // Not sent, because the client exports its tool calls itself.
                if !matches!(entry.event, StreamEvent::Tool { .. }) {
                    line_sender.send(&with_current_time(entry));
                }
            }
        }
        if matches!(run_event, RunEvent::RunStarted { .. }) {
            for error in std::mem::take(&mut self.unreported_errors) {
                self.observer.on_event(&RunEvent::Notice(error.to_string()));
            }
        }
    }

    fn interrupts(&self) -> &InterruptCounter {
        self.observer.interrupts()
    }
}
