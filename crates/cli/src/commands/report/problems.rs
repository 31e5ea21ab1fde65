//! The problems of the run, from the journal. Each is listed once, with its newest evidence and all its occurrences.

use super::contents::Problem;
use super::entry::RunEntry;
use crate::render::redact::RedactedText;
use plimsoll_domain::Marker;
use plimsoll_domain::journal::{
    BreakerOpened, ItemReturned, JournalEvent, TicksReverted, VerdictReached, WipCommit,
};
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::verdict::ContinueKind;

/// Returns the problems, in the order of their first occurrence.
pub(super) fn run_problems_merging_repeats(entries: &[RunEntry<'_>]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for entry in entries {
        for (kind, description, evidence) in problems_of_entry(entry) {
            let occurrence = (entry.recorded_at, entry.iteration());
            match problems
                .iter_mut()
                .find(|problem| problem.kind == kind && problem.description == description)
            {
                Some(problem) => {
                    problem.occurrences.push(occurrence);
                    // Only the newest evidence may still be there for the user to inspect, so it replaces the older evidence.
                    problem.evidence = evidence;
                }
                None => problems.push(Problem { kind, description, evidence, occurrences: vec![occurrence] }),
            }
        }
    }
    problems
}

type ProblemParts = (&'static str, RedactedText, Vec<RedactedText>);

fn problems_of_entry(entry: &RunEntry<'_>) -> Vec<ProblemParts> {
    let redact = |text: &str| redact_or_unknown(entry, text);
    match entry.event() {
        JournalEvent::Verdict(verdict) => refused_promise_ending_and_error_problems(entry, verdict),
        JournalEvent::BreakerOpened(breaker) => vec![breaker_problem(entry, breaker)],
        JournalEvent::SetAside { item } => vec![set_aside_problem(entry, item)],
        JournalEvent::Parked { item, question } => vec![("Question", redact(item), vec![redact(question)])],
        JournalEvent::TicksReverted(reverted) => reverted_tick_problems(entry, reverted),
        JournalEvent::Reviewed(reviewed) => unreviewed_or_open_findings_problems(entry, reviewed),
        JournalEvent::Fault { error, action_taken: action, .. } => {
            vec![("Fault", redact(error), vec![redact(action)])]
        }
        JournalEvent::HooksDidNotRun { client_version } => {
            vec![hooks_did_not_run_problem(entry, client_version)]
        }
        JournalEvent::WipCommit(WipCommit { error: Some(reason), .. }) => {
            problem_without_evidence("Not committed", redact(reason))
        }
        JournalEvent::ClientEnded { reason } => {
            problem_without_evidence("Session ended by Plimsoll", redact(reason))
        }
        JournalEvent::ProcessesLeftBehind { processes } => vec![leftover_processes_problem(entry, processes)],
        JournalEvent::Notified { program, error: Some(error), .. } => {
            vec![("Notification", redact(error), program.iter().take(1).map(|name| redact(name)).collect())]
        }
        JournalEvent::TelemetryLost { last_error: error, .. } => {
            problem_without_evidence("Telemetry not delivered", redact(error))
        }
        JournalEvent::ItemReturned(returned) => vec![returned_item_problem(entry, returned)],
        // No other event is a problem. A test compares this match with the table of event traits.
        _ => Vec::new(),
    }
}

fn problem_without_evidence(kind: &'static str, description: RedactedText) -> Vec<ProblemParts> {
    vec![(kind, description, Vec::new())]
}

fn returned_item_problem(entry: &RunEntry<'_>, returned: &ItemReturned) -> ProblemParts {
    let kind = if returned.is_set_aside { "Set aside" } else { "Not merged" };
    (kind, entry.redact(&returned.item), vec![entry.redact(&returned.reason)])
}

fn redact_or_unknown(entry: &RunEntry<'_>, text: &str) -> RedactedText {
    entry.redact(if text.is_empty() { "?" } else { text })
}

fn leftover_processes_problem(entry: &RunEntry<'_>, processes: &[String]) -> ProblemParts {
    ("Left running", entry.redact("processes that a session started"), entry.redact_all(processes))
}

fn set_aside_problem(entry: &RunEntry<'_>, item: &str) -> ProblemParts {
    let reason = entry.redact("no session made progress on it");
    ("Set aside", redact_or_unknown(entry, item), vec![reason])
}

fn reverted_tick_problems(entry: &RunEntry<'_>, reverted: &TicksReverted) -> Vec<ProblemParts> {
    let to_problem = |item: &String| {
        ("Tick taken back", redact_or_unknown(entry, item), tick_revert_causes_as_evidence(entry, reverted))
    };
    reverted.items.iter().map(to_problem).collect()
}

/// Returns the problems of a review: items that were not reviewed, and open findings of items that stay ticked. Findings
/// that reverted a tick are reported with the reverted tick.
fn unreviewed_or_open_findings_problems(entry: &RunEntry<'_>, reviewed: &ReviewOutcome) -> Vec<ProblemParts> {
    if let Some(error) = &reviewed.failure {
        let to_unreviewed_problem =
            |item: &String| ("Not reviewed", redact_or_unknown(entry, item), vec![entry.redact(error)]);
        return reviewed.items.iter().map(to_unreviewed_problem).collect();
    }
    let to_open_findings_problem = |item: &String| {
        ("Open findings", redact_or_unknown(entry, item), entry.redact_all(&reviewed.findings_for_item(item)))
    };
    reviewed.kept_ticks.iter().map(to_open_findings_problem).collect()
}

fn tick_revert_causes_as_evidence(entry: &RunEntry<'_>, reverted: &TicksReverted) -> Vec<RedactedText> {
    let failed_commands =
        reverted.failed_commands.iter().map(|command| entry.redact(&format!("`{command}` fails")));
    let changed_protected_files = reverted
        .protected_file_changes
        .iter()
        .map(|path| entry.redact(&format!("{path} is protected and had changed")));
    failed_commands
        .chain(changed_protected_files)
        .chain(entry.redact_all(&reverted.review_findings))
        .collect()
}

fn breaker_problem(entry: &RunEntry<'_>, breaker: &BreakerOpened) -> ProblemParts {
    let cause = format!("{}, {} in a row", breaker.cause.as_str().replace('_', " "), breaker.failure_count);
    ("Circuit breaker", redact_or_unknown(entry, &cause), vec![redact_or_unknown(entry, &breaker.evidence)])
}

fn hooks_did_not_run_problem(entry: &RunEntry<'_>, client_version: &str) -> ProblemParts {
    let text = format!("our hooks did not run (client {client_version})");
    ("Unguarded", redact_or_unknown(entry, &text), Vec::new())
}

fn refused_promise_ending_and_error_problems(
    entry: &RunEntry<'_>,
    verdict: &VerdictReached,
) -> Vec<ProblemParts> {
    let mut problems = Vec::new();
    if let Marker::Continue { kind: ContinueKind::RefusedPromise, reason } = &verdict.marker {
        problems.push((
            "Promise refused",
            entry.redact(reason),
            failed_verify_commands_with_output(entry, verdict),
        ));
    }
    if let Some(ending) = verdict.ending.as_ref().filter(|ending| ending.is_aborted()) {
        let detail = ending.detail_text().filter(|detail| !detail.is_empty()).unwrap_or("no more is known");
        let description = format!("{}: {detail}", ending.as_str().replace('_', " "));
        problems.push(("Session broke off", entry.redact(&description), Vec::new()));
    } else if let Some(error) = &verdict.error {
        problems.push(("Error", entry.redact(error), Vec::new()));
    }
    problems
}

/// Returns the verify commands that failed, each with the end of its output.
fn failed_verify_commands_with_output(entry: &RunEntry<'_>, verdict: &VerdictReached) -> Vec<RedactedText> {
    let failed_results = verdict.verify_results.iter().flatten().filter(|outcome| !outcome.passed);
    failed_results
        .map(|outcome| match outcome.output_tail.as_str() {
            "" => entry.redact(&format!("{} failed", outcome.command)),
            output => entry.redact(&format!("{} failed: {output}", outcome.command)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::RunId;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::json;

    /// Creates an event of this name that reports a problem, if this kind of event can.
    fn entry_with_problem(name: &str) -> JournalEntry {
        let fields = match name {
            "breaker_opened" => json!({"cause": "no_progress"}),
            "verdict" | "provisional_verdict" => json!({"marker": "RALPH_CONTINUE|refused|1 open item"}),
            "ticks_taken_back" => json!({"items": ["a"]}),
            "reviewed" => json!({"items": ["a"], "trouble": "no answer"}),
            _ => json!({"trouble": "it failed"}),
        };
        let mut line = json!({"at": "2026-01-06T22:00:00Z", "run_id": "r1", "event": name});
        line.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap_or_default());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn exactly_the_events_that_can_be_trouble_are_reported() {
        for name in JournalEvent::NAMES.iter().filter(|name| **name != "unknown") {
            let entries = [entry_with_problem(name)];
            let event = &entries[0].event;
            assert!(!matches!(event, JournalEvent::Unknown(_)), "{name}");
            let is_listed =
                !run_problems_merging_repeats(&RunEntry::for_run(&entries, &RunId::from("r1"))).is_empty();
            assert_eq!(is_listed, event.traits().can_be_problem, "{name}");
        }
    }
}
