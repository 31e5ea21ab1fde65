//! From the journal to the times in which the run stood still.

use super::entry::Entry;
use super::night::{At, Pause};
use super::standing::plainly;

/// The pauses in their order. The last one has no end where the run still waits.
pub(super) fn pauses(entries: &[Entry<'_>], is_paused: bool) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    let mut open: Option<Pause> = None;
    let mut before: Option<At> = None;
    for (place, entry) in entries.iter().enumerate() {
        let goes_on = matches!(entry.event(), "planned" | "resumed" | "adopted" | "spawned");
        if goes_on && let Some(pause) = open.take() {
            pauses.push(Pause { to: Some(entry.at), ..pause });
        } else if entry.event() == "resumed"
            && let Some(from) = before
            && !goes_on_at_work(&entries[place + 1..])
        {
            // Ctrl-C, a kill, a reboot: nobody was there to write it down.
            let reason = entry.line("stopped by a person, or by the end of its process");
            pauses.push(Pause { from, to: Some(entry.at), reason });
        }
        if entry.event() == "verdict" {
            open = standstill(entry);
        }
        // What a person or a session of no run did meanwhile is not the run's.
        if !matches!(entry.event(), "notified" | "state_mended") {
            before = Some(entry.at);
        }
    }
    pauses.extend(open.filter(|_| is_paused));
    pauses
}

/// The client of a `plimsoll run` that died worked on by itself: nothing stood still.
fn goes_on_at_work(after: &[Entry<'_>]) -> bool {
    after.first().is_some_and(|next| next.event() == "adopted")
}

/// What a verdict begins. A stop is a pause once somebody resumes.
fn standstill(entry: &Entry<'_>) -> Option<Pause> {
    let (kind, what, why) = entry.marker();
    let reason = match (kind, why) {
        ("RALPH_PAUSE", "") => "paused".to_owned(),
        ("RALPH_PAUSE", why) => why.to_owned(),
        ("RALPH_STOP", why) => format!("stopped ({}): {}", what.replace('_', " "), plainly(why)),
        _ => return None,
    };
    Some(Pause { from: entry.at, to: None, reason: entry.line(reason.trim_end_matches(": ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::words::Cleaner;
    use serde_json::{Value, json};

    /// Minutes and reasons of the pauses in a journal of these events, one a minute.
    fn told(events: &[Value], is_paused: bool) -> Vec<(i64, Option<i64>, String)> {
        let minute = |number: usize| format!("2026-01-06T22:{number:02}:00Z");
        let line = |(number, event): (usize, &Value)| {
            let mut line = event.clone();
            (line["at"], line["run_id"]) = (json!(minute(number)), json!("r1"));
            line
        };
        let journal: Vec<Value> = events.iter().enumerate().map(line).collect();
        let cleaner = Cleaner;
        let start: At = minute(0).parse().unwrap();
        let since = |at: At| (at - start).num_minutes();
        let pauses = pauses(&Entry::of_run(&journal, "r1", &cleaner), is_paused);
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
        let after_it = told(&[stuck, plain("resumed"), plain("planned")], false);
        assert_eq!(after_it[0].2, "stopped (circuit breaker): nothing changed any more: HEAD is as it was");
        let after_ctrl_c = told(&[plain("session_end"), plain("resumed"), plain("planned")], false);
        assert_eq!((after_ctrl_c[0].0, after_ctrl_c[0].1, after_ctrl_c.len()), (0, Some(1), 1));
        assert!(after_ctrl_c[0].2.contains("stopped by a person"), "{after_ctrl_c:?}");
        let adopted = told(&[plain("spawned"), plain("resumed"), plain("adopted")], false);
        assert_eq!(adopted, [], "its client worked on");
    }
}
