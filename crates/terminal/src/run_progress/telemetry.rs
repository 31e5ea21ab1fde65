//! A watcher of a run that tells `plimsoll-otel` what `plimsoll run --json` would print. It never waits, and never fails a run.

use super::json::{StreamPrinter, stamped};
use plimsoll_domain::journal::StreamEvent;
use plimsoll_flows::run::{Interrupts, Progress, RunObserver};
use plimsoll_flows::telemetry::{Feed, Found, Trouble};

/// The watcher, which also feeds the exporter, if there is one.
pub fn exporting<'a>(found: Found, inner: Box<dyn RunObserver + 'a>) -> Box<dyn RunObserver + 'a> {
    if found.feed.is_none() && found.trouble.is_empty() {
        return inner;
    }
    Box::new(Exporting { inner, printer: StreamPrinter::default(), feed: found.feed, untold: found.trouble })
}

struct Exporting<'a> {
    inner: Box<dyn RunObserver + 'a>,
    printer: StreamPrinter,
    feed: Option<Feed>,
    /// What the user has to hear once.
    untold: Vec<Trouble>,
}

impl RunObserver for Exporting<'_> {
    fn tell(&mut self, progress: &Progress<'_>) {
        self.inner.tell(progress);
        if let Some(feed) = &mut self.feed {
            for entry in self.printer.tell(progress) {
                // The client exports its tools itself.
                if !matches!(entry.event, StreamEvent::Tool { .. }) {
                    feed.tell(&stamped(entry));
                }
            }
        }
        if matches!(progress, Progress::Run { .. }) {
            for trouble in std::mem::take(&mut self.untold) {
                self.inner.tell(&Progress::Note(trouble.to_string()));
            }
        }
    }

    fn interrupts(&self) -> &Interrupts {
        self.inner.interrupts()
    }
}
