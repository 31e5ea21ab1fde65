//! The pauses of the run, from the journal.

use super::contents::{RunPause, UtcTime};
use super::entry::RunEntry;
use super::status_text::describe_breaker_cause;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::{Marker, RunStatus};

/// Returns the pauses in order. The last one has no end if the run is still paused.
pub(super) fn recorded_and_inferred_pauses(entries: &[RunEntry<'_>], is_paused: bool) -> Vec<RunPause> {
    let mut pauses: Vec<RunPause> = Vec::new();
    let mut open_pause: Option<RunPause> = None;
    let mut previous_event_time: Option<UtcTime> = None;
    for (index, entry) in entries.iter().enumerate() {
        let event = entry.event();
        if ends_open_pause(event)
            && let Some(pause) = open_pause.take()
        {
            pauses.push(RunPause { ended_at: Some(entry.recorded_at), ..pause });
        } else if matches!(event, JournalEvent::RunResumed(_))
            && let Some(started_at) = previous_event_time
            && !is_client_adopted_next(&entries[index + 1..])
        {
            // After Ctrl-C, a kill or a reboot, no process could record the pause.
            let reason = entry.redact("stopped by you, or by the end of its process");
            pauses.push(RunPause { started_at, ended_at: Some(entry.recorded_at), reason });
        }
        match event {
            JournalEvent::Verdict(verdict) => {
                open_pause = pause_from_pause_or_stop_marker(entry, &verdict.marker);
            }
            // This entry follows the verdict that stopped the run, and has a clearer reason.
            JournalEvent::BreakerOpened(breaker) => {
                if let Some(pause) = &mut open_pause {
                    let cause_text = describe_breaker_cause(breaker.cause, &breaker.evidence);
                    pause.reason = entry.redact(&format!("stopped (circuit breaker): {cause_text}"));
                }
            }
            _ => {}
        }
        // Another process may have recorded these events, so they do not show that the run was active.
        if !matches!(event, JournalEvent::Notified { .. } | JournalEvent::StateRepaired { .. }) {
            previous_event_time = Some(entry.recorded_at);
        }
    }
    if is_paused {
        pauses.extend(open_pause);
    }
    pauses
}

fn ends_open_pause(event: &JournalEvent) -> bool {
    matches!(
        event,
        JournalEvent::Planned(_)
            | JournalEvent::RunResumed(_)
            | JournalEvent::ClientAdopted { .. }
            | JournalEvent::ClientStarted { .. }
    )
}

/// Returns true if the next entry adopts a client that kept working after its `plimsoll run` had died, so that there was no pause.
fn is_client_adopted_next(following_entries: &[RunEntry<'_>]) -> bool {
    following_entries.first().is_some_and(|entry| matches!(entry.event(), JournalEvent::ClientAdopted { .. }))
}

/// Returns the pause that a verdict with this marker starts, or `None`. A stop also counts as a pause, because the run
/// may be resumed.
fn pause_from_pause_or_stop_marker(entry: &RunEntry<'_>, marker: &Marker) -> Option<RunPause> {
    let reason = match marker {
        Marker::Pause { reason, .. } if reason.is_empty() => "paused".to_owned(),
        Marker::Pause { reason, .. } => reason.clone(),
        Marker::Stop { status, reason } => stop_text(*status, reason),
        _ => return None,
    };
    Some(RunPause { started_at: entry.recorded_at, ended_at: None, reason: entry.redact(&reason) })
}

fn stop_text(status: RunStatus, reason: &str) -> String {
    let status_text = format!("stopped ({})", status.as_str().replace('_', " "));
    if reason.is_empty() { status_text } else { format!("{status_text}: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::{Value, json};

    /// Returns start and end in minutes, and the reason, of each pause in a journal with one event per minute.
    fn pauses_of_events(events: &[Value], is_paused: bool) -> Vec<(i64, Option<i64>, String)> {
        let to_time = |number: usize| format!("2026-01-06T22:{number:02}:00Z");
        let to_line = |(number, event): (usize, &Value)| {
            let mut line = event.clone();
            (line["at"], line["run_id"]) = (json!(to_time(number)), json!("r1"));
            line
        };
        let to_entry = |line: Value| serde_json::from_value(line).unwrap();
        let journal: Vec<JournalEntry> = events.iter().enumerate().map(to_line).map(to_entry).collect();
        let start: UtcTime = to_time(0).parse().unwrap();
        let minutes_since_start = |at: UtcTime| (at - start).num_minutes();
        let pauses = recorded_and_inferred_pauses(&RunEntry::for_run(&journal, &"r1".into()), is_paused);
        pauses
            .into_iter()
            .map(|pause| {
                (
                    minutes_since_start(pause.started_at),
                    pause.ended_at.map(minutes_since_start),
                    pause.reason.text().to_owned(),
                )
            })
            .collect()
    }

    fn verdict_event(marker: &str) -> Value {
        json!({"event": "verdict", "marker": marker})
    }

    fn event_without_facts(event: &str) -> Value {
        json!({ "event": event })
    }

    #[test]
    fn a_pause_lasts_from_the_verdict_to_the_next_plan() {
        let limit = verdict_event("RALPH_PAUSE|2026-01-06T23:00:00Z|usage limit");
        let events = [
            event_without_facts("spawned"),
            limit.clone(),
            event_without_facts("notified"),
            event_without_facts("planned"),
            limit,
        ];
        let first_pause = (1, Some(3), "usage limit".to_owned());
        assert_eq!(
            pauses_of_events(&events, true),
            [first_pause.clone(), (4, None, "usage limit".to_owned())]
        );
        assert_eq!(pauses_of_events(&events, false), [first_pause], "over is not paused");
    }

    #[test]
    fn a_resumed_run_has_a_pause_even_if_no_process_recorded_it() {
        let budget_stop = verdict_event("RALPH_STOP|budget|$20.00 of $20.00 spent");
        let pauses_after_stop = pauses_of_events(
            &[budget_stop, event_without_facts("resumed"), event_without_facts("planned")],
            false,
        );
        assert_eq!(pauses_after_stop, [(0, Some(1), "stopped (budget): $20.00 of $20.00 spent".to_owned())]);
        let breaker_stop = verdict_event("RALPH_STOP|circuit_breaker|no_progress: HEAD is as it was");
        let opened =
            json!({"event": "breaker_opened", "cause": "no_progress", "evidence": "HEAD is as it was"});
        let pauses_after_breaker = pauses_of_events(
            &[breaker_stop, opened, event_without_facts("resumed"), event_without_facts("planned")],
            false,
        );
        assert_eq!(
            pauses_after_breaker[0].2,
            "stopped (circuit breaker): no more progress: HEAD is as it was"
        );
        let pauses_after_ctrl_c = pauses_of_events(
            &[
                event_without_facts("session_end"),
                event_without_facts("resumed"),
                event_without_facts("planned"),
            ],
            false,
        );
        assert_eq!(
            (pauses_after_ctrl_c[0].0, pauses_after_ctrl_c[0].1, pauses_after_ctrl_c.len()),
            (0, Some(1), 1)
        );
        assert!(pauses_after_ctrl_c[0].2.contains("stopped by you"), "{pauses_after_ctrl_c:?}");
        let pauses_after_adoption = pauses_of_events(
            &[event_without_facts("spawned"), event_without_facts("resumed"), event_without_facts("adopted")],
            false,
        );
        assert_eq!(pauses_after_adoption, [], "its client worked on");
    }
}
