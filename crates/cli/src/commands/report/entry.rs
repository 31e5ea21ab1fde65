//! A line of the journal, as the report asks it.

use super::contents::At;
use crate::render::redact::RedactedText;
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_store::clock;

/// A line of the run.
#[derive(Clone, Copy)]
pub(super) struct RunLine<'a> {
    pub(super) line: &'a JournalEntry,
    pub(super) at: At,
}

/// How much of one fact is shown.
pub(super) const FACT: usize = 300;

impl<'a> RunLine<'a> {
    /// Of a run's entries those that say when.
    pub(super) fn of_run(entries: &'a [JournalEntry], run_id: &RunId) -> Vec<RunLine<'a>> {
        let of_it = entries.iter().filter(|entry| entry.run_id.as_deref() == Some(run_id));
        of_it.filter_map(|line| Some(RunLine { line, at: clock::moment(&line.at)? })).collect()
    }

    pub(super) fn event(&self) -> &'a JournalEvent {
        &self.line.event
    }

    /// Its session's number in the run; none outside of one.
    pub(super) fn iteration(&self) -> Option<u32> {
        self.line.session_number()
    }

    pub(super) fn session_id(&self) -> Option<&'a str> {
        self.line.session_id.as_deref().filter(|id| !id.is_empty())
    }

    pub(super) fn words(&self, text: &str) -> RedactedText {
        RedactedText::line(text, FACT)
    }

    pub(super) fn list(&self, texts: &[String]) -> Vec<RedactedText> {
        texts.iter().map(|text| self.words(text)).collect()
    }
}
