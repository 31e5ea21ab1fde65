//! From lines of the journal to what is said about them: some need what came before them, some need nothing said.

use super::phrase::Tone;
use super::sentence::{Sentence, sentence};
use chrono::{DateTime, Utc};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, Line};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_store::clock;

/// One line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// When; none if the line does not say.
    pub(crate) at: Option<DateTime<Utc>>,
    /// In which iteration; none outside of one.
    pub(crate) iteration: Option<u32>,
    /// What happened.
    pub(crate) words: String,
    /// Its tone.
    pub(crate) tone: Tone,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct EventPrinter {
    /// The iteration that was planned last, and whether it resumes a checkpoint. Its session begins later, or
    /// never.
    planned: Option<(Option<u32>, bool)>,
}

/// How much of a line that is not ours is shown.
const FOREIGN: usize = 120;

impl EventPrinter {
    /// Describes a line; none if there is nothing to say about it.
    pub(crate) fn tell(&mut self, line: &Line) -> Option<LogLine> {
        match line {
            Line::Foreign(text) => Some(foreign(text)),
            Line::Entry(entry) => self.entry(entry),
        }
    }

    /// Describes an entry; none if the log says nothing of it.
    pub(crate) fn entry(&mut self, entry: &JournalEntry) -> Option<LogLine> {
        if let JournalEvent::Planned(planned) = &entry.event {
            self.planned = Some((entry.iteration, planned.resuming));
        }
        let (words, tone) = match sentence(entry) {
            Sentence::Shown(words, tone) => (words, tone),
            Sentence::LeftOut => return None,
        };
        let words = format!("{words}{}{}", self.plan(entry), whose(entry));
        Some(LogLine {
            at: clock::moment(&entry.at),
            iteration: entry.session_number(),
            words: one_line(&words),
            tone,
        })
    }

    /// How the session that begins was planned, said once.
    fn plan(&mut self, entry: &JournalEntry) -> &'static str {
        let begins = matches!(entry.event, JournalEvent::SessionStart { .. }) && entry.run_id.is_some();
        let planned = self.planned.take_if(|(iteration, _)| begins && *iteration == entry.iteration);
        match planned {
            Some((_, true)) => " (it resumes from the checkpoint)",
            Some((_, false)) => " (fresh)",
            None => "",
        }
    }
}

/// A session that belongs to no run is named, so that it is not taken for one of the run's.
fn whose(entry: &JournalEntry) -> String {
    match (&entry.run_id, &entry.session_id) {
        (None, Some(session)) => format!(" [session {} of no run]", clip(&one_line(session), 9)),
        _ => String::new(),
    }
}

fn foreign(text: &str) -> LogLine {
    let words = clip(&one_line(text), FOREIGN);
    let kind = if text.trim_start().starts_with('{') { "a torn line" } else { "not a line of ours" };
    LogLine { at: None, iteration: None, words: format!("({kind}) {words}"), tone: Tone::Plain }
}
