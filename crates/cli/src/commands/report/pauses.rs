//! From the journal to the times in which the run stood still.

use super::contents::{At, Pause};
use super::entry::RunLine;
use super::standing::of_breaker;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::{Marker, Status};

/// The pauses in their order. The last one has no end where the run still waits.
pub(super) fn pauses(entries: &[RunLine<'_>], is_paused: bool) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    let mut open: Option<Pause> = None;
    let mut before: Option<At> = None;
    for (place, entry) in entries.iter().enumerate() {
        let event = entry.event();
        if goes_on(event)
            && let Some(pause) = open.take()
        {
            pauses.push(Pause { to: Some(entry.at), ..pause });
        } else if matches!(event, JournalEvent::Resumed(_))
            && let Some(from) = before
            && !goes_on_at_work(&entries[place + 1..])
        {
            // Ctrl-C, a kill, a reboot: no process was left to record it.
            let reason = entry.words("stopped by you, or by the end of its process");
            pauses.push(Pause { from, to: Some(entry.at), reason });
        }
        match event {
            JournalEvent::Verdict(reached) => open = standstill(entry, &reached.marker),
            // It follows its verdict, and says more plainly why.
            JournalEvent::BreakerOpened(opened) => {
                if let Some(pause) = &mut open {
                    let why = of_breaker(opened.cause, &opened.evidence);
                    pause.reason = entry.words(&format!("stopped (circuit breaker): {why}"));
                }
            }
            _ => {}
        }
        // What the user or a session outside a run did meanwhile is not the run's.
        if !matches!(event, JournalEvent::Notified { .. } | JournalEvent::StateMended { .. }) {
            before = Some(entry.at);
        }
    }
    if is_paused {
        pauses.extend(open);
    }
    pauses
}

fn goes_on(event: &JournalEvent) -> bool {
    matches!(
        event,
        JournalEvent::Planned(_)
            | JournalEvent::Resumed(_)
            | JournalEvent::Adopted { .. }
            | JournalEvent::Spawned { .. }
    )
}

/// The client of a `plimsoll run` that died worked on by itself: nothing stood still.
fn goes_on_at_work(after: &[RunLine<'_>]) -> bool {
    after.first().is_some_and(|next| matches!(next.event(), JournalEvent::Adopted { .. }))
}

/// What a verdict begins. A stop is a pause once the run is resumed.
fn standstill(entry: &RunLine<'_>, marker: &Marker) -> Option<Pause> {
    let reason = match marker {
        Marker::Pause { reason, .. } if reason.is_empty() => "paused".to_owned(),
        Marker::Pause { reason, .. } => reason.clone(),
        Marker::Stop { status, reason } => stopped(*status, reason),
        _ => return None,
    };
    Some(Pause { from: entry.at, to: None, reason: entry.words(&reason) })
}

fn stopped(status: Status, reason: &str) -> String {
    let stopped = format!("stopped ({})", status.word().replace('_', " "));
    if reason.is_empty() { stopped } else { format!("{stopped}: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::{Value, json};

    /// Minutes and reasons of the pauses in a journal of these events, one a minute.
    fn told(events: &[Value], is_paused: bool) -> Vec<(i64, Option<i64>, String)> {
        let minute = |number: usize| format!("2026-01-06T22:{number:02}:00Z");
        let line = |(number, event): (usize, &Value)| {
            let mut line = event.clone();
            (line["at"], line["run_id"]) = (json!(minute(number)), json!("r1"));
            line
        };
        let entry = |line: Value| serde_json::from_value(line).unwrap();
        let journal: Vec<JournalEntry> = events.iter().enumerate().map(line).map(entry).collect();
        let start: At = minute(0).parse().unwrap();
        let since = |at: At| (at - start).num_minutes();
        let pauses = pauses(&RunLine::of_run(&journal, &"r1".into()), is_paused);
        pauses
            .into_iter()
            .map(|pause| (since(pause.from), pause.to.map(since), pause.reason.text().to_owned()))
            .collect()
    }

    fn verdict(marker: &str) -> Value {
        json!({"event": "verdict", "marker": marker})
    }

    fn plain(event: &str) -> Value {
        json!({ "event": event })
    }

    #[test]
    fn a_pause_lasts_from_the_verdict_to_the_next_plan() {
        let limit = verdict("RALPH_PAUSE|2026-01-06T23:00:00Z|usage limit");
        let night = [plain("spawned"), limit.clone(), plain("notified"), plain("planned"), limit];
        let first = (1, Some(3), "usage limit".to_owned());
        assert_eq!(told(&night, true), [first.clone(), (4, None, "usage limit".to_owned())]);
        assert_eq!(told(&night, false), [first], "over is not paused");
    }

    #[test]
    fn what_nobody_wrote_down_is_a_pause_once_it_is_resumed() {
        let stop = verdict("RALPH_STOP|budget|$20.00 of $20.00 spent");
        let after_a_stop = told(&[stop, plain("resumed"), plain("planned")], false);
        assert_eq!(after_a_stop, [(0, Some(1), "stopped (budget): $20.00 of $20.00 spent".to_owned())]);
        let stuck = verdict("RALPH_STOP|circuit_breaker|no_progress: HEAD is as it was");
        let opened =
            json!({"event": "breaker_opened", "cause": "no_progress", "evidence": "HEAD is as it was"});
        let after_it = told(&[stuck, opened, plain("resumed"), plain("planned")], false);
        assert_eq!(after_it[0].2, "stopped (circuit breaker): no more progress: HEAD is as it was");
        let after_ctrl_c = told(&[plain("session_end"), plain("resumed"), plain("planned")], false);
        assert_eq!((after_ctrl_c[0].0, after_ctrl_c[0].1, after_ctrl_c.len()), (0, Some(1), 1));
        assert!(after_ctrl_c[0].2.contains("stopped by you"), "{after_ctrl_c:?}");
        let adopted = told(&[plain("spawned"), plain("resumed"), plain("adopted")], false);
        assert_eq!(adopted, [], "its client worked on");
    }
}
