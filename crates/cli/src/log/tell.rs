//! From lines of the journal to what is told of them: some need what came before them, some need nothing said.

use super::entry::{Entry, Line};
use super::sentence::{Sentence, Tone, sentence};
use chrono::{DateTime, Utc};
use session::text::{clip, one_line};

/// One line for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// When; none where the line does not say.
    pub(super) at: Option<DateTime<Utc>>,
    /// In which iteration; none outside of one.
    pub(super) iteration: Option<u64>,
    /// What happened.
    pub(super) words: String,
    /// How it is to sound.
    pub(super) tone: Tone,
}

/// What has been heard so far.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// The iteration that was planned last, and whether it resumes a checkpoint. Its session begins later, or
    /// never.
    planned: Option<(Option<u64>, bool)>,
}

/// So much of a line that is not ours is shown.
const FOREIGN: usize = 120;

impl Teller {
    /// Tells a line; none if there is nothing to say about it.
    pub(super) fn tell(&mut self, line: &Line) -> Option<Told> {
        match line {
            Line::Foreign(text) => Some(foreign(text)),
            Line::Entry(entry) => self.entry(entry),
        }
    }

    /// Tells an entry as the log does; none where it says nothing of it.
    pub(crate) fn tell_entry(&mut self, entry: &serde_json::Value) -> Option<String> {
        self.entry(&Entry::of_value(entry)?).map(|told| told.words)
    }

    fn entry(&mut self, entry: &Entry) -> Option<Told> {
        if entry.event() == "planned" {
            self.planned = Some((entry.iteration(), entry.truth("resuming").unwrap_or(false)));
        }
        let (words, tone) = match sentence(entry) {
            Sentence::Said(words, tone) => (words, tone),
            Sentence::LeftOut => return None,
            Sentence::Unknown => {
                (format!("{} {}", one_line(entry.event()), entry.all()).trim_end().to_owned(), Tone::Plain)
            }
        };
        let words = format!("{words}{}{}", self.plan(entry), whose(entry));
        let iteration = entry.iteration().filter(|iteration| *iteration > 0);
        Some(Told { at: entry.at(), iteration, words: one_line(&words), tone })
    }

    /// How the session that begins was planned, said once.
    fn plan(&mut self, entry: &Entry) -> &'static str {
        let begins = entry.event() == "session_start" && entry.run_id().is_some();
        let planned = self.planned.filter(|(iteration, _)| begins && *iteration == entry.iteration());
        if planned.is_some() {
            self.planned = None;
        }
        match planned {
            Some((_, true)) => " (it resumes from the checkpoint)",
            Some((_, false)) => " (fresh)",
            None => "",
        }
    }
}

/// A session that belongs to no run is named, so that nobody takes it for one of the night's.
fn whose(entry: &Entry) -> String {
    match (entry.run_id(), entry.session_id()) {
        (None, Some(session)) => format!(" [session {} of no run]", clip(&one_line(session), 9)),
        _ => String::new(),
    }
}

fn foreign(text: &str) -> Told {
    let words = clip(&one_line(text), FOREIGN);
    let kind = if text.trim_start().starts_with('{') { "a torn line" } else { "not a line of ours" };
    Told { at: None, iteration: None, words: format!("({kind}) {words}"), tone: Tone::Plain }
}
