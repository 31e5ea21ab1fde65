//! Describes lines of the journal. Some descriptions depend on earlier lines, and some lines are not shown.

use super::phrase::Tone;
use super::sentence::{EventSentence, describe_event};
use chrono::{DateTime, Utc};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, JournalLine};
use plimsoll_domain::text::{to_single_line, truncate_end};
use plimsoll_store::clock;

/// A line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DescribedLine {
    /// When it happened; `None` if the line has no time.
    pub(crate) at: Option<DateTime<Utc>>,
    /// The iteration; `None` outside of one.
    pub(crate) iteration: Option<u32>,
    /// What happened.
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// Describes lines in order; keeps what later descriptions need.
#[derive(Debug, Default)]
pub(crate) struct JournalDescriber {
    /// The iteration planned last, and whether it resumes a checkpoint. Its session starts later, or never.
    last_planned: Option<(Option<u32>, bool)>,
}

/// Maximum characters that are shown of a line in another format.
const MAX_FOREIGN_CHARS: usize = 120;

impl JournalDescriber {
    /// Describes a line; `None` if it is not shown.
    pub(crate) fn describe_line(&mut self, line: &JournalLine) -> Option<DescribedLine> {
        match line {
            JournalLine::Foreign(text) => Some(describe_foreign_line(text)),
            JournalLine::Entry(entry) => self.describe_entry(entry),
        }
    }

    /// Describes an entry; `None` if it is not shown.
    pub(crate) fn describe_entry(&mut self, entry: &JournalEntry) -> Option<DescribedLine> {
        if let JournalEvent::Planned(planned) = &entry.event {
            self.last_planned = Some((entry.iteration, planned.resumes_checkpoint));
        }
        let (text, tone) = match describe_event(entry) {
            EventSentence::Shown(sentence, tone) => (sentence, tone),
            EventSentence::Omitted => return None,
        };
        let text =
            format!("{text}{}{}", self.take_fresh_or_resumed_note(entry), session_note_if_outside_run(entry));
        Some(DescribedLine {
            at: clock::parse_timestamp(&entry.recorded_at),
            iteration: entry.session_number(),
            text: to_single_line(&text),
            tone,
        })
    }

    /// Returns a note whether the session that begins is fresh or resumes a checkpoint. Returns it only once per
    /// planned session.
    fn take_fresh_or_resumed_note(&mut self, entry: &JournalEntry) -> &'static str {
        let is_session_start =
            matches!(entry.event, JournalEvent::SessionStart { .. }) && entry.run_id.is_some();
        let planned =
            self.last_planned.take_if(|(iteration, _)| is_session_start && *iteration == entry.iteration);
        match planned {
            Some((_, true)) => " (it resumes from the checkpoint)",
            Some((_, false)) => " (fresh)",
            None => "",
        }
    }
}

/// Names a session that belongs to no run, so that it is not mistaken for one of the run.
fn session_note_if_outside_run(entry: &JournalEntry) -> String {
    match (&entry.run_id, &entry.session_id) {
        (None, Some(session)) => {
            format!(" [session {} of no run]", truncate_end(&to_single_line(session), 9))
        }
        _ => String::new(),
    }
}

fn describe_foreign_line(text: &str) -> DescribedLine {
    let clipped = truncate_end(&to_single_line(text), MAX_FOREIGN_CHARS);
    let kind = if text.trim_start().starts_with('{') { "a torn line" } else { "not a line of ours" };
    DescribedLine { at: None, iteration: None, text: format!("({kind}) {clipped}"), tone: Tone::Plain }
}
