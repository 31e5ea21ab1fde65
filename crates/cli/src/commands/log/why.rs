//! `plimsoll log --why`: explains the last decision from the journal.

use super::empty_journal_message;
use crate::journal_lines::JournalDescriber;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::{Level, Marker};
use plimsoll_store::{Project, journal};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with_store_error, print_nothing_to_show, print_text};
use serde_json::json;
use std::process::ExitCode;

/// Prints the last event of the requested kind with its reasons. Returns exit code 1 if the journal has events but none
/// of this kind.
pub(super) fn print_explanation_of_last_event(project: &Project, kind: &str, as_json: bool) -> ExitCode {
    let entries = match journal::read_entries(project) {
        Ok(entries) => entries,
        Err(error) => return fail_with_store_error(&error),
    };
    if entries.is_empty() {
        return print_nothing_to_show(empty_journal_message(project));
    }
    let event_filter = EventFilter::parse(kind);
    let Some(index) = entries.iter().rposition(|entry| event_filter.matches(&entry.event)) else {
        return fail(format!("the journal has no {kind}\nhint: it has {}", searchable_names(&entries)));
    };
    let related_entries = related_entries_after_verdict(&entries, index);
    if as_json {
        let explained_entries: Vec<&JournalEntry> =
            std::iter::once(&entries[index]).chain(&related_entries).collect();
        console::print_json(json!(explained_entries));
    } else {
        print_text(render_entry_with_reasons(&entries[index], &related_entries));
    }
    ExitCode::SUCCESS
}

/// Selects the journal entry to explain, as `--why WHAT` names it.
#[derive(Debug, PartialEq, Eq)]
enum EventFilter {
    Last,
    Level(Option<Level>),
    Verdict,
    /// The status in a verdict's marker, or the name of an event.
    StatusOrEventName(String),
}

impl EventFilter {
    fn parse(name: &str) -> EventFilter {
        let name = name.to_lowercase();
        match name.as_str() {
            "last" => EventFilter::Last,
            "level" => EventFilter::Level(None),
            "l1" => EventFilter::Level(Some(Level::L1)),
            "l2" => EventFilter::Level(Some(Level::L2)),
            "l3" => EventFilter::Level(Some(Level::L3)),
            "verdict" => EventFilter::Verdict,
            _ => EventFilter::StatusOrEventName(name),
        }
    }

    fn matches(&self, event: &JournalEvent) -> bool {
        match self {
            EventFilter::Last => !event.traits().is_record_only,
            EventFilter::Level(None) => reached_level(event).is_some(),
            EventFilter::Level(level) => reached_level(event) == *level,
            EventFilter::Verdict => verdict_marker(event).is_some(),
            EventFilter::StatusOrEventName(name) => {
                event.name() == name
                    || verdict_marker(event).is_some_and(|marker| marker_matches_status_or_kind(marker, name))
            }
        }
    }
}

/// Returns the level at which a session was warned, checkpointed or ended.
fn reached_level(event: &JournalEvent) -> Option<Level> {
    match event {
        JournalEvent::Warning(details) | JournalEvent::SessionEndRequested(details) => Some(details.level),
        JournalEvent::Checkpoint(checkpoint)
            if matches!(checkpoint.cause, None | Some(CheckpointCause::Level | CheckpointCause::Step)) =>
        {
            Some(checkpoint.level)
        }
        _ => None,
    }
}

fn verdict_marker(event: &JournalEvent) -> Option<&Marker> {
    match event {
        JournalEvent::Verdict(verdict) => Some(&verdict.marker),
        JournalEvent::ProvisionalVerdict { marker } => Some(marker),
        _ => None,
    }
}

/// Returns true if the name is the marker's status, its reason to continue, or its kind: `pause`, `paused`, `stop` or `continue`.
fn marker_matches_status_or_kind(marker: &Marker, name: &str) -> bool {
    match marker {
        Marker::Pause { .. } => matches!(name, "pause" | "paused"),
        Marker::Stop { status, .. } => status.as_str() == name || name == "stop",
        Marker::Continue { kind, .. } => kind.as_str() == name || name == "continue",
        Marker::Warning { .. } | Marker::Checkpoint { .. } => false,
    }
}

/// Returns the entries of a verdict's iteration that explain it, among the four entries after it. Empty if the entry is
/// not a verdict.
fn related_entries_after_verdict(entries: &[JournalEntry], index: usize) -> Vec<JournalEntry> {
    let verdict_entry = &entries[index];
    if !matches!(verdict_entry.event, JournalEvent::Verdict(_)) {
        return Vec::new();
    }
    let belongs_to_verdict = |entry: &&JournalEntry| {
        entry.event.traits().follows_verdict
            && entry.run_id == verdict_entry.run_id
            && entry.iteration == verdict_entry.iteration
    };
    entries[index + 1..].iter().take(4).filter(belongs_to_verdict).cloned().collect()
}

/// Renders the time and the log line of an entry, with the reasons below it.
fn render_entry_with_reasons(entry: &JournalEntry, related_entries: &[JournalEntry]) -> String {
    let line = JournalDescriber::default().describe_entry(entry);
    let time = plimsoll_store::clock::parse_timestamp(&entry.recorded_at)
        .map(plimsoll_store::clock::format_local_time_with_seconds);
    let session_text = match (entry.iteration, &entry.session_id) {
        (Some(number), _) => format!(", session {number} of the run"),
        (None, Some(id)) => format!(", session {id}"),
        (None, None) => String::new(),
    };
    let headline = line.map_or_else(|| entry.event.name().replace('_', " "), |line| line.text);
    let reasons = plimsoll_policy::explain::explain_entry(entry, related_entries);
    let mut lines = vec![format!("{}{session_text}", time.unwrap_or_else(|| "?".to_owned())), headline];
    lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
    lines.join("\n")
}

/// Returns the names for which the journal has an entry.
fn searchable_names(entries: &[JournalEntry]) -> String {
    let events = || entries.iter().map(|entry| &entry.event);
    let mut names: Vec<&str> =
        events().filter(|event| verdict_marker(event).is_none()).map(JournalEvent::name).collect();
    if events().any(|event| verdict_marker(event).is_some()) {
        names.push("verdict");
    }
    if events().any(|event| reached_level(event).is_some()) {
        names.push("level");
    }
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_the_wanted_kind_is_found() {
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
            let wanted_event = EventFilter::parse(word);
            assert_eq!(
                entries.iter().rposition(|entry| wanted_event.matches(&entry.event)),
                expected,
                "{word}"
            );
        }
        assert_eq!(related_entries_after_verdict(&entries, 6).len(), 1);
        assert_eq!(related_entries_after_verdict(&entries, 5).len(), 0, "another iteration's");
        assert!(searchable_names(&entries).contains("ended, level"), "{}", searchable_names(&entries));
    }
}
