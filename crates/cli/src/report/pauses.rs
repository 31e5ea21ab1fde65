//! From the journal to the times in which the run stood still.

use super::entry::Entry;
use super::night::{At, Pause};

/// The pauses in their order. The last one has no end where the run still waits.
pub(super) fn pauses(entries: &[Entry<'_>], is_paused: bool) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    let mut open: Option<Pause> = None;
    let mut before: Option<At> = None;
    for entry in entries {
        let goes_on = matches!(entry.event(), "planned" | "resumed" | "adopted" | "spawned");
        if goes_on && let Some(pause) = open.take() {
            pauses.push(Pause { to: Some(entry.at), ..pause });
        } else if entry.event() == "resumed"
            && let Some(from) = before
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

/// What a verdict begins. A stop is a pause once somebody resumes.
fn standstill(entry: &Entry<'_>) -> Option<Pause> {
    let (kind, what, why) = entry.marker();
    let reason = match (kind, why) {
        ("RALPH_PAUSE", "") => "paused".to_owned(),
        ("RALPH_PAUSE", why) => why.to_owned(),
        ("RALPH_STOP", why) => format!("stopped ({what}): {why}"),
        _ => return None,
    };
    Some(Pause { from: entry.at, to: None, reason: entry.line(reason.trim_end_matches(": ")) })
}
