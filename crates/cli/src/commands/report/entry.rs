//! A journal entry of the reported run.

use super::contents::UtcTime;
use crate::render::redact::RedactedText;
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_store::clock;

/// A journal entry of the run, with its parsed time.
#[derive(Clone, Copy)]
pub(super) struct RunEntry<'a> {
    pub(super) entry: &'a JournalEntry,
    pub(super) recorded_at: UtcTime,
}

/// Maximum length of a fact in the report.
pub(super) const MAX_FACT_CHARS: usize = 300;

impl<'a> RunEntry<'a> {
    /// Returns the entries of a run, without those that have no valid time.
    pub(super) fn for_run(entries: &'a [JournalEntry], run_id: &RunId) -> Vec<RunEntry<'a>> {
        let entries_of_run = entries.iter().filter(|entry| entry.run_id.as_deref() == Some(run_id));
        entries_of_run
            .filter_map(|entry| {
                Some(RunEntry { entry, recorded_at: clock::parse_timestamp(&entry.recorded_at)? })
            })
            .collect()
    }

    pub(super) fn event(&self) -> &'a JournalEvent {
        &self.entry.event
    }

    /// Returns the number of the entry's session in the run, or `None` outside a session.
    pub(super) fn iteration(&self) -> Option<u32> {
        self.entry.session_number()
    }

    pub(super) fn session_id(&self) -> Option<&'a str> {
        self.entry.session_id.as_deref().filter(|id| !id.is_empty())
    }

    pub(super) fn redact(&self, text: &str) -> RedactedText {
        RedactedText::single_line(text, MAX_FACT_CHARS)
    }

    pub(super) fn redact_all(&self, texts: &[String]) -> Vec<RedactedText> {
        texts.iter().map(|text| self.redact(text)).collect()
    }
}
