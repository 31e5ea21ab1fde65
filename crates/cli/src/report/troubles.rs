//! From the journal to what went wrong, each thing once, with its evidence and how often it was so.

use super::entry::Entry;
use super::night::Trouble;
use super::words::Words;
use serde_json::Value;

/// The troubles, in the order in which each came first.
pub(super) fn troubles(entries: &[Entry<'_>]) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    for entry in entries {
        for (kind, words, evidence) in of(entry) {
            let time = (entry.at, entry.iteration());
            match troubles.iter_mut().find(|known| known.kind == kind && known.words == words) {
                Some(known) => {
                    known.times.push(time);
                    // The newest evidence is what a person can still look at.
                    known.evidence = evidence;
                }
                None => troubles.push(Trouble { kind, words, evidence, times: vec![time] }),
            }
        }
    }
    troubles
}

type Told = (&'static str, Words, Vec<Words>);

/// Endings of sessions that a person should know of.
pub(super) const BROKEN: [&str; 6] = ["window_full", "client_limit", "silent", "crashed", "failed", "fatal"];

fn of(entry: &Entry<'_>) -> Vec<Told> {
    let fact = |name: &str| entry.words(name).unwrap_or_else(|| entry.line("?"));
    match entry.event() {
        "verdict" => verdict(entry),
        "breaker_opened" => {
            let count = entry.number("count").map(|count| format!(", {count} in a row")).unwrap_or_default();
            let cause = entry.raw("cause").unwrap_or("?").replace('_', " ");
            vec![("Circuit breaker", entry.line(&format!("{cause}{count}")), vec![fact("evidence")])]
        }
        "set_aside" => vec![("Set aside", fact("item"), vec![entry.line("nobody got anywhere with it")])],
        "fault" => vec![("Fault", fact("error"), vec![fact("then")])],
        "unguarded" => {
            let version = entry.raw("client_version").unwrap_or("?");
            vec![("Unguarded", entry.line(&format!("our hooks did not run (client {version})")), Vec::new())]
        }
        "wip_commit" if entry.raw("trouble").is_some() => {
            vec![("Not committed", fact("trouble"), Vec::new())]
        }
        "client_ended" => vec![("Session ended by us", fact("reason"), Vec::new())],
        "left_behind" => {
            vec![("Left at work", entry.line("processes that a session started"), entry.list("processes"))]
        }
        "notified" if entry.raw("trouble").is_some() => {
            let program = entry.list("program");
            vec![("Notification", fact("trouble"), program.into_iter().take(1).collect())]
        }
        _ => Vec::new(),
    }
}

fn verdict(entry: &Entry<'_>) -> Vec<Told> {
    let mut told = Vec::new();
    let (kind, what, why) = entry.marker();
    if kind == "RALPH_CONTINUE" && what == "refused" {
        told.push(("Promise refused", entry.line(why), failing(entry)));
    }
    if let Some((word, detail)) = entry.ending().filter(|(word, _)| BROKEN.contains(word)) {
        let words = format!("{}: {}", word.replace('_', " "), detail.unwrap_or("no more is known"));
        told.push(("Session broke off", entry.line(&words), Vec::new()));
    } else if let Some(error) = entry.words("error") {
        told.push(("Error", error, Vec::new()));
    }
    told
}

/// The verify commands that did not pass, and what they said.
fn failing(entry: &Entry<'_>) -> Vec<Words> {
    let outcomes = entry.value["verify"].as_array().into_iter().flatten();
    let failed = outcomes.filter(|outcome| outcome["passed"] == false);
    let text = |outcome: &Value, name: &str| outcome[name].as_str().unwrap_or_default().to_owned();
    failed
        .map(|outcome| {
            let said = text(outcome, "words");
            let said = if said.is_empty() { "failed".to_owned() } else { format!("failed: {said}") };
            entry.line(&format!("{} {said}", text(outcome, "command")))
        })
        .collect()
}
