//! Describes lines of the journal. Some descriptions depend on earlier lines, and some lines are not shown.

use super::phrase::LineStyle;
use super::sentence::{EventSentence, describe_event};
use chrono::{DateTime, Utc};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, JournalLine};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_store::clock;

/// A line of the journal, described for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DescribedLine {
    /// When it happened; `None` if the line has no time.
    pub(crate) recorded_at: Option<DateTime<Utc>>,
    /// The iteration; `None` outside of one.
    pub(crate) iteration: Option<u32>,
    /// The description of the event.
    pub(crate) text: String,
    pub(crate) style: LineStyle,
}

/// Describes lines in order, because some descriptions depend on earlier lines.
#[derive(Debug, Default)]
pub(crate) struct JournalDescriber {
    /// The last planned iteration, and whether it resumes a checkpoint. Its session starts later, or never.
    last_planned: Option<(Option<u32>, bool)>,
}

/// Maximum characters that are shown of a line that is not a journal entry.
const MAX_FOREIGN_CHARS: usize = 120;

impl JournalDescriber {
    /// Describes a line; `None` if it is not shown.
    pub(crate) fn describe_line(&mut self, line: &JournalLine) -> Option<DescribedLine> {
        match line {
            JournalLine::Foreign(text) => Some(describe_torn_or_foreign_line(text)),
            JournalLine::Entry(entry) => self.describe_entry(entry),
        }
    }

    /// Describes an entry; `None` if it is not shown.
    pub(crate) fn describe_entry(&mut self, entry: &JournalEntry) -> Option<DescribedLine> {
        if let JournalEvent::Planned(planned) = &entry.event {
            self.last_planned = Some((entry.iteration, planned.resumes_checkpoint));
        }
        let (text, style) = match describe_event(entry) {
            EventSentence::Shown(sentence, style) => (sentence, style),
            EventSentence::Omitted => return None,
        };
        let text =
            format!("{text}{}{}", self.take_fresh_or_resumed_note(entry), session_note_if_outside_run(entry));
        Some(DescribedLine {
            recorded_at: clock::parse_timestamp(&entry.recorded_at),
            iteration: entry.session_number(),
            text: to_safe_single_line(&text),
            style,
        })
    }

    /// If the entry starts the planned session, returns a note that it is fresh or resumes a checkpoint. Returns
    /// the note only once per planned session.
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

/// Returns a note with the session id if the session belongs to no run, so that it is not mistaken for one.
fn session_note_if_outside_run(entry: &JournalEntry) -> String {
    match (&entry.run_id, &entry.session_id) {
        (None, Some(session)) => {
            format!(" [session {} of no run]", truncate_end(&to_safe_single_line(session), 9))
        }
        _ => String::new(),
    }
}

fn describe_torn_or_foreign_line(text: &str) -> DescribedLine {
    let clipped_text = truncate_end(&to_safe_single_line(text), MAX_FOREIGN_CHARS);
    let kind = if text.trim_start().starts_with('{') { "a torn line" } else { "not a line of ours" };
    DescribedLine {
        recorded_at: None,
        iteration: None,
        text: format!("({kind}) {clipped_text}"),
        style: LineStyle::Plain,
    }
}
