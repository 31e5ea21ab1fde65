//! `plimsoll log --why`: why it last acted, from the journal.

use super::no_events;
use crate::journal_lines::EventPrinter;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::state::Cause;
use plimsoll_domain::{Level, Marker};
use plimsoll_store::{Project, journal};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, nothing_to_show, refused, say};
use serde_json::json;
use std::process::ExitCode;

/// Explains the last decision of the kind: exit code 0, or 1 where the journal has events but none of the kind.
pub(super) fn why(project: &Project, what: &str, as_json: bool) -> ExitCode {
    let entries = match journal::read(project) {
        Ok(entries) => entries,
        Err(error) => return refused(&error),
    };
    if entries.is_empty() {
        return nothing_to_show(no_events(project));
    }
    let wanted = Wanted::named(what);
    let Some(at) = entries.iter().rposition(|entry| wanted.is(&entry.event)) else {
        return fail(format!("the journal has no {what}\nhint: it has {}", kinds(&entries)));
    };
    let beside = beside(&entries, at);
    if as_json {
        let found: Vec<&JournalEntry> = std::iter::once(&entries[at]).chain(&beside).collect();
        console::json(json!(found));
    } else {
        say(words(&entries[at], &beside));
    }
    ExitCode::SUCCESS
}

/// Which entry is meant.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Last,
    Level(Option<Level>),
    Verdict,
    /// What a verdict said, or an event's name.
    Word(String),
}

impl Wanted {
    fn named(word: &str) -> Wanted {
        let word = word.to_lowercase();
        match word.as_str() {
            "last" => Wanted::Last,
            "level" => Wanted::Level(None),
            "l1" => Wanted::Level(Some(Level::L1)),
            "l2" => Wanted::Level(Some(Level::L2)),
            "l3" => Wanted::Level(Some(Level::L3)),
            "verdict" => Wanted::Verdict,
            _ => Wanted::Word(word),
        }
    }

    fn is(&self, event: &JournalEvent) -> bool {
        match self {
            Wanted::Last => !event.traits().is_mere_record,
            Wanted::Level(None) => level(event).is_some(),
            Wanted::Level(wanted) => level(event) == *wanted,
            Wanted::Verdict => verdict(event).is_some(),
            Wanted::Word(word) => {
                event.name() == word || verdict(event).is_some_and(|marker| says(marker, word))
            }
        }
    }
}

/// The level that made a session be warned, checkpointed or ended.
fn level(event: &JournalEvent) -> Option<Level> {
    match event {
        JournalEvent::Warning(reached) | JournalEvent::Ended(reached) => Some(reached.level),
        JournalEvent::Checkpoint(written)
            if matches!(written.cause, None | Some(Cause::Level | Cause::Step)) =>
        {
            Some(written.level)
        }
        _ => None,
    }
}

fn verdict(event: &JournalEvent) -> Option<&Marker> {
    match event {
        JournalEvent::Verdict(reached) => Some(&reached.marker),
        JournalEvent::ProvisionalVerdict { marker } => Some(marker),
        _ => None,
    }
}

/// Whether a verdict's marker says this: a status, what makes it continue, or `paused`.
fn says(marker: &Marker, word: &str) -> bool {
    match marker {
        Marker::Pause { .. } => matches!(word, "pause" | "paused"),
        Marker::Stop { status, .. } => status.word() == word || word == "stop",
        Marker::Continue { kind, .. } => kind.word() == word || word == "continue",
        Marker::Warning { .. } | Marker::Checkpoint { .. } => false,
    }
}

/// What was decided with a verdict follows it directly.
fn beside(entries: &[JournalEntry], at: usize) -> Vec<JournalEntry> {
    let verdict = &entries[at];
    if !matches!(verdict.event, JournalEvent::Verdict(_)) {
        return Vec::new();
    }
    let belongs = |entry: &&JournalEntry| {
        entry.event.traits().follows_verdict
            && entry.run_id == verdict.run_id
            && entry.iteration == verdict.iteration
    };
    entries[at + 1..].iter().take(4).filter(belongs).cloned().collect()
}

/// The line of the log, then the reasons beneath it.
fn words(entry: &JournalEntry, beside: &[JournalEntry]) -> String {
    let line = EventPrinter::default().entry(entry);
    let at = plimsoll_store::clock::moment(&entry.at).map(plimsoll_store::clock::for_people);
    let whose = match (entry.iteration, &entry.session_id) {
        (Some(number), _) => format!(", session {number} of the run"),
        (None, Some(id)) => format!(", session {id}"),
        (None, None) => String::new(),
    };
    let head = line.map_or_else(|| entry.event.name().replace('_', " "), |line| line.words);
    let reasons = plimsoll_policy::explain::reasons(entry, beside);
    let mut lines = vec![format!("{}{whose}", at.unwrap_or_else(|| "?".to_owned())), head];
    lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
    lines.join("\n")
}

/// The names that would find something.
fn kinds(entries: &[JournalEntry]) -> String {
    let events = || entries.iter().map(|entry| &entry.event);
    let mut kinds: Vec<&str> =
        events().filter(|event| verdict(event).is_none()).map(JournalEvent::name).collect();
    if events().any(|event| verdict(event).is_some()) {
        kinds.push("verdict");
    }
    if events().any(|event| level(event).is_some()) {
        kinds.push("level");
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_kind_that_was_asked_for_is_found() {
        let entries = [
            json!({ "event": "warning", "level": "L1" }),
            json!({ "event": "checkpoint", "cause": "level", "level": "L2" }),
            json!({ "event": "checkpoint", "cause": "compact", "level": "L1" }),
            json!({ "event": "ended", "level": "L3" }),
            json!({ "event": "provisional_verdict", "marker": "RALPH_CONTINUE|refused|x" }),
            json!({ "event": "verdict", "marker": "RALPH_PAUSE|-|thrash", "run_id": "r", "iteration": 2 }),
            json!({ "event": "verdict", "marker": "RALPH_STOP|circuit_breaker|x", "run_id": "r", "iteration": 3 }),
            json!({ "event": "breaker_opened", "cause": "no_progress", "run_id": "r", "iteration": 3 }),
            json!({ "event": "session_end" }),
        ]
        .map(|line| serde_json::from_value::<JournalEntry>(line).unwrap());
        for (word, expected) in [
            ("level", Some(3)),
            ("L1", Some(0)),
            ("l2", Some(1)),
            ("L3", Some(3)),
            ("verdict", Some(6)),
            ("refused", Some(4)),
            ("paused", Some(5)),
            ("circuit_breaker", Some(6)),
            ("checkpoint", Some(2)),
            ("LAST", Some(6)),
            ("session_end", Some(8)),
            ("completed", None),
        ] {
            let wanted = Wanted::named(word);
            assert_eq!(entries.iter().rposition(|entry| wanted.is(&entry.event)), expected, "{word}");
        }
        assert_eq!(beside(&entries, 6).len(), 1);
        assert_eq!(beside(&entries, 5).len(), 0, "another iteration's");
        assert!(kinds(&entries).contains("ended, level"), "{}", kinds(&entries));
    }
}
