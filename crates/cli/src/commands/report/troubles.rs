//! From the journal to what went wrong, each thing once, with its evidence and how often it was so.

use super::contents::Trouble;
use super::entry::RunLine;
use crate::render::redact::RedactedText;
use plimsoll_domain::Marker;
use plimsoll_domain::journal::{
    BreakerOpened, JournalEvent, SentBack, TicksTakenBack, VerdictReached, WipCommit,
};
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::verdict::ContinueKind;

/// The troubles, in the order in which each came first.
pub(super) fn troubles(entries: &[RunLine<'_>]) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    for entry in entries {
        for (kind, words, evidence) in of(entry) {
            let time = (entry.at, entry.iteration());
            match troubles.iter_mut().find(|known| known.kind == kind && known.words == words) {
                Some(known) => {
                    known.times.push(time);
                    // The newest evidence is what the user can still look at.
                    known.evidence = evidence;
                }
                None => troubles.push(Trouble { kind, words, evidence, times: vec![time] }),
            }
        }
    }
    troubles
}

type TroubleParts = (&'static str, RedactedText, Vec<RedactedText>);

fn of(entry: &RunLine<'_>) -> Vec<TroubleParts> {
    let words = |text: &str| words_or_unknown(entry, text);
    match entry.event() {
        JournalEvent::Verdict(reached) => verdict(entry, reached),
        JournalEvent::BreakerOpened(opened) => vec![breaker(entry, opened)],
        JournalEvent::SetAside { item } => vec![set_aside(entry, item)],
        JournalEvent::Parked { item, question } => vec![("Question", words(item), vec![words(question)])],
        JournalEvent::TicksTakenBack(taken) => ticks_taken_back(entry, taken),
        JournalEvent::Reviewed(reviewed) => review(entry, reviewed),
        JournalEvent::Fault { error, then, .. } => vec![("Fault", words(error), vec![words(then)])],
        JournalEvent::Unguarded { client_version } => vec![unguarded(entry, client_version)],
        JournalEvent::WipCommit(WipCommit { trouble: Some(why), .. }) => titled("Not committed", words(why)),
        JournalEvent::ClientEnded { reason } => titled("Session ended by Plimsoll", words(reason)),
        JournalEvent::LeftBehind { processes } => vec![left_running(entry, processes)],
        JournalEvent::Notified { program, trouble: Some(trouble), .. } => {
            vec![("Notification", words(trouble), program.iter().take(1).map(|name| words(name)).collect())]
        }
        JournalEvent::TelemetryLost { trouble, .. } => titled("Telemetry not delivered", words(trouble)),
        JournalEvent::SentBack(back) => vec![sent_back(entry, back)],
        // Nothing went wrong. A test holds this against the table of the events.
        _ => Vec::new(),
    }
}

fn titled(title: &'static str, words: RedactedText) -> Vec<TroubleParts> {
    vec![(title, words, Vec::new())]
}

fn sent_back(entry: &RunLine<'_>, back: &SentBack) -> TroubleParts {
    let title = if back.is_set_aside { "Set aside" } else { "Not merged" };
    (title, entry.words(&back.item), vec![entry.words(&back.reason)])
}

fn words_or_unknown(entry: &RunLine<'_>, text: &str) -> RedactedText {
    entry.words(if text.is_empty() { "?" } else { text })
}

fn left_running(entry: &RunLine<'_>, processes: &[String]) -> TroubleParts {
    ("Left running", entry.words("processes that a session started"), entry.list(processes))
}

fn set_aside(entry: &RunLine<'_>, item: &str) -> TroubleParts {
    let why = entry.words("no session made progress on it");
    ("Set aside", words_or_unknown(entry, item), vec![why])
}

fn ticks_taken_back(entry: &RunLine<'_>, taken: &TicksTakenBack) -> Vec<TroubleParts> {
    let of =
        |item: &String| ("Tick taken back", words_or_unknown(entry, item), failing_commands(entry, taken));
    taken.items.iter().map(of).collect()
}

/// A review without an answer, and findings with which a tick stands: those that took one back are told with it.
fn review(entry: &RunLine<'_>, reviewed: &Reviewed) -> Vec<TroubleParts> {
    if let Some(trouble) = &reviewed.trouble {
        let of = |item: &String| ("Not reviewed", words_or_unknown(entry, item), vec![entry.words(trouble)]);
        return reviewed.items.iter().map(of).collect();
    }
    let of = |item: &String| {
        ("Open findings", words_or_unknown(entry, item), entry.list(&reviewed.findings_of(item)))
    };
    reviewed.stand.iter().map(of).collect()
}

fn failing_commands(entry: &RunLine<'_>, taken: &TicksTakenBack) -> Vec<RedactedText> {
    let failed = taken.failed.iter().map(|command| entry.words(&format!("`{command}` fails")));
    let protected =
        taken.protected.iter().map(|path| entry.words(&format!("{path} is protected and had changed")));
    failed.chain(protected).chain(entry.list(&taken.findings)).collect()
}

fn breaker(entry: &RunLine<'_>, opened: &BreakerOpened) -> TroubleParts {
    let cause = format!("{}, {} in a row", opened.cause.word().replace('_', " "), opened.count);
    ("Circuit breaker", words_or_unknown(entry, &cause), vec![words_or_unknown(entry, &opened.evidence)])
}

fn unguarded(entry: &RunLine<'_>, client_version: &str) -> TroubleParts {
    let text = format!("our hooks did not run (client {client_version})");
    ("Unguarded", words_or_unknown(entry, &text), Vec::new())
}

fn verdict(entry: &RunLine<'_>, reached: &VerdictReached) -> Vec<TroubleParts> {
    let mut troubles = Vec::new();
    if let Marker::Continue { kind: ContinueKind::Refused, reason } = &reached.marker {
        troubles.push(("Promise refused", entry.words(reason), failing(entry, reached)));
    }
    if let Some(ending) = reached.ending.as_ref().filter(|ending| ending.is_broken()) {
        let detail = ending.detail().filter(|detail| !detail.is_empty()).unwrap_or("no more is known");
        let words = format!("{}: {detail}", ending.word().replace('_', " "));
        troubles.push(("Session broke off", entry.words(&words), Vec::new()));
    } else if let Some(error) = &reached.error {
        troubles.push(("Error", entry.words(error), Vec::new()));
    }
    troubles
}

/// The verify commands that did not pass, and what they said.
fn failing(entry: &RunLine<'_>, reached: &VerdictReached) -> Vec<RedactedText> {
    let failed = reached.verify.iter().flatten().filter(|outcome| !outcome.passed);
    failed
        .map(|outcome| match outcome.words.as_str() {
            "" => entry.words(&format!("{} failed", outcome.command)),
            words => entry.words(&format!("{} failed: {words}", outcome.command)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::RunId;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::json;

    /// Makes an event of this name that tells of a trouble, if such an event can.
    fn worst(name: &str) -> JournalEntry {
        let facts = match name {
            "breaker_opened" => json!({"cause": "no_progress"}),
            "verdict" | "provisional_verdict" => json!({"marker": "RALPH_CONTINUE|refused|1 open item"}),
            "ticks_taken_back" => json!({"items": ["a"]}),
            "reviewed" => json!({"items": ["a"], "trouble": "no answer"}),
            _ => json!({"trouble": "it failed"}),
        };
        let mut line = json!({"at": "2026-01-06T22:00:00Z", "run_id": "r1", "event": name});
        line.as_object_mut().unwrap().extend(facts.as_object().cloned().unwrap_or_default());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn the_report_has_words_for_each_event_that_can_be_a_trouble_and_for_no_other() {
        for name in JournalEvent::NAMES.iter().filter(|name| **name != "unknown") {
            let entries = [worst(name)];
            let event = &entries[0].event;
            assert!(!matches!(event, JournalEvent::Unknown(_)), "{name}");
            let is_listed = !troubles(&RunLine::of_run(&entries, &RunId::from("r1"))).is_empty();
            assert_eq!(is_listed, event.traits().can_be_trouble, "{name}");
        }
    }
}
