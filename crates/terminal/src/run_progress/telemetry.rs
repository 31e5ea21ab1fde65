//! An observer that sends the entries of `plimsoll run --json` to `plimsoll-otel`. It never blocks a run and never makes it fail.

use super::json::{StreamEntryBuilder, with_current_time};
use plimsoll_domain::journal::StreamEvent;
use plimsoll_flows::run::{InterruptCounter, RunEvent, RunObserver};
use plimsoll_flows::telemetry::{ExporterFeed, StartedTelemetry, TelemetryError};

/// Wraps an observer so that it also feeds the exporter. Returns it unchanged if there is no exporter and no problem to report.
pub fn with_telemetry_export<'a>(
    started_telemetry: StartedTelemetry,
    observer: Box<dyn RunObserver + 'a>,
) -> Box<dyn RunObserver + 'a> {
    if started_telemetry.feed.is_none() && started_telemetry.errors.is_empty() {
        return observer;
    }
    Box::new(ExportingObserver {
        observer,
        entry_builder: StreamEntryBuilder::default(),
        feed: started_telemetry.feed,
        unreported_problems: started_telemetry.errors,
    })
}

struct ExportingObserver<'a> {
    observer: Box<dyn RunObserver + 'a>,
    entry_builder: StreamEntryBuilder,
    feed: Option<ExporterFeed>,
    /// Problems to report once to the user.
    unreported_problems: Vec<TelemetryError>,
}

impl RunObserver for ExportingObserver<'_> {
    fn on_event(&mut self, run_event: &RunEvent<'_>) {
        self.observer.on_event(run_event);
        if let Some(feed) = &mut self.feed {
            for entry in self.entry_builder.entries_for(run_event) {
                // The client itself exports its tool calls.
                if !matches!(entry.event, StreamEvent::Tool { .. }) {
                    feed.send(&with_current_time(entry));
                }
            }
        }
        if matches!(run_event, RunEvent::RunStarted { .. }) {
            for problem in std::mem::take(&mut self.unreported_problems) {
                self.observer.on_event(&RunEvent::Notice(problem.to_string()));
            }
        }
    }

    fn interrupts(&self) -> &InterruptCounter {
        self.observer.interrupts()
    }
}
