//! An observer that sends the entries of `plimsoll run --json` to `plimsoll-otel`. It never blocks a run and never makes it fail.

use super::json::{StreamEntryBuilder, with_current_time};
use plimsoll_domain::journal::StreamEvent;
use plimsoll_flows::run::{InterruptCounter, RunEvent, RunObserver};
use plimsoll_flows::telemetry::{ExporterFeed, ExporterStartOutcome, TelemetryError};

/// Wraps an observer so that events also go to the exporter. Returns it unchanged if there is no exporter and no error to report.
pub fn with_telemetry_export_if_started<'a>(
    started_telemetry: ExporterStartOutcome,
    observer: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    if started_telemetry.feed.is_none() && started_telemetry.errors.is_empty() {
        return observer;
    }
    Box::new(ExportingObserver {
        observer,
        entry_builder: StreamEntryBuilder::default(),
        feed: started_telemetry.feed,
        unreported_errors: started_telemetry.errors,
    })
}

struct ExportingObserver<'a> {
    observer: Box<dyn RunObserver + 'a>,
    entry_builder: StreamEntryBuilder,
    feed: Option<ExporterFeed>,
    /// Start-up errors that are shown to the user once, when the run starts.
    unreported_errors: Vec<TelemetryError>,
}

impl RunObserver for ExportingObserver<'_> {
    fn on_event(&mut self, run_event: &RunEvent<'_>) {
        self.observer.on_event(run_event);
        if let Some(feed) = &mut self.feed {
            for entry in self.entry_builder.build_entries_with_run_and_session(run_event) {
                // Not sent, because the client exports its tool calls itself.
                if !matches!(entry.event, StreamEvent::Tool { .. }) {
                    feed.send(&with_current_time(entry));
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
