//! Prints an outage of the API, or an error that repeats, once when it begins and once when it ends, and not at each retry.
//!
//! Pure: the caller passes each event, its line and the time, and prints the returned lines.

use crate::duration::format_seconds;
use chrono::{DateTime, Utc};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{SessionEnding, Verdict};
use plimsoll_flows::run::RunEvent;
use plimsoll_store::clock;

/// The outages that have begun and not ended.
#[derive(Debug, Default)]
pub(super) struct OutageTracker {
    api_outage: Option<ApiOutage>,
    repeated_error: Option<RepeatedError>,
}

#[derive(Debug)]
struct ApiOutage {
    began_at: DateTime<Utc>,
    printed_steps: Vec<OutageStep>,
    /// The lines of the session that started during the outage. They are printed once it works.
    session_lines: Vec<String>,
}

#[derive(Debug)]
struct RepeatedError {
    text: String,
    began_at: DateTime<Utc>,
}

/// A step that repeats during an outage of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutageStep {
    Retry,
    SessionEnd,
    Verdict,
    Pause,
}

/// The effect of an event on an outage of the API.
enum OutageSignal {
    /// The API fails.
    Failing(OutageStep),
    /// Belongs to a retry during an outage; says nothing outside of one.
    Repeating(OutageStep),
    SessionStart,
    /// The API has answered.
    Answered,
    /// The session or the run has ended for another reason.
    EndedOtherwise,
    None,
}

impl OutageTracker {
    /// Returns the lines to print for an event. `line` is the event's own line.
    pub(super) fn lines_to_print(
        &mut self,
        event: &RunEvent<'_>,
        line: Option<String>,
        now: DateTime<Utc>,
    ) -> Vec<String> {
        let mut lines: Vec<String> =
            self.end_repeated_error_and_render_recovery(event, now).into_iter().collect();
        if let RunEvent::TemporaryErrorRetry { error, .. } = event {
            if self.repeated_error.is_some() {
                return lines;
            }
            self.repeated_error = Some(RepeatedError { text: error.clone(), began_at: now });
        }
        let signal = outage_signal(event);
        if let OutageSignal::Failing(_) = signal {
            self.api_outage.get_or_insert_with(|| ApiOutage {
                began_at: failure_time(event).unwrap_or(now),
                printed_steps: Vec::new(),
                session_lines: Vec::new(),
            });
        }
        let Some(outage) = &mut self.api_outage else {
            lines.extend(line);
            return lines;
        };
        match signal {
            OutageSignal::Failing(step) | OutageSignal::Repeating(step)
                if outage.printed_steps.contains(&step) => {}
            OutageSignal::Failing(step) | OutageSignal::Repeating(step) => {
                outage.printed_steps.push(step);
                lines.extend(line);
            }
            OutageSignal::SessionStart => {
                if matches!(event, RunEvent::IterationStarted { .. }) {
                    outage.session_lines.clear();
                }
                outage.session_lines.extend(line);
            }
            OutageSignal::Answered => {
                let seconds = (now - outage.began_at).num_seconds().max(0);
                lines.push(format!("   the API answers again after {}", format_seconds(seconds)));
                lines.append(&mut outage.session_lines);
                lines.extend(line);
                self.api_outage = None;
            }
            OutageSignal::EndedOtherwise => {
                self.api_outage = None;
                lines.extend(line);
            }
            OutageSignal::None => lines.extend(line),
        }
        lines
    }

    /// Ends a repeated error at the first event that shows that the run continues, or at another error.
    fn end_repeated_error_and_render_recovery(
        &mut self,
        event: &RunEvent<'_>,
        now: DateTime<Utc>,
    ) -> Option<String> {
        let error = self.repeated_error.as_ref()?;
        let continues = match event {
            RunEvent::TemporaryErrorRetry { error: newest_error, .. } => {
                if *newest_error != error.text {
                    self.repeated_error = None;
                }
                return None;
            }
            RunEvent::FiguresUpdated { .. }
            | RunEvent::PauseContinues { .. }
            | RunEvent::StopRequested
            | RunEvent::Notice(_) => return None,
            RunEvent::RunFailed { .. } | RunEvent::ProgramEnded { .. } => false,
            _ => true,
        };
        let seconds = (now - error.began_at).num_seconds().max(0);
        self.repeated_error = None;
        continues.then(|| format!("   this works again after {}", format_seconds(seconds)))
    }
}

fn failure_time(event: &RunEvent<'_>) -> Option<DateTime<Utc>> {
    match event {
        RunEvent::ApiRetry { first_failed_at, .. } => clock::parse_timestamp(first_failed_at),
        _ => None,
    }
}

fn outage_signal(event: &RunEvent<'_>) -> OutageSignal {
    match event {
        RunEvent::ApiRetry { .. } => OutageSignal::Failing(OutageStep::Retry),
        RunEvent::IterationEnded { result, .. } => match result.ending {
            SessionEnding::Overloaded(_) => OutageSignal::Failing(OutageStep::SessionEnd),
            SessionEnding::Completed | SessionEnding::HookStopped | SessionEnding::WindowFull(_) => {
                OutageSignal::Answered
            }
            _ => OutageSignal::EndedOtherwise,
        },
        RunEvent::VerdictReached { verdict: Verdict::Pause { kind: PauseKind::Overload, .. }, .. } => {
            OutageSignal::Repeating(OutageStep::Verdict)
        }
        RunEvent::PauseStarted { .. } => OutageSignal::Repeating(OutageStep::Pause),
        RunEvent::IterationStarted { .. } | RunEvent::ClientStarted { .. } => OutageSignal::SessionStart,
        RunEvent::ApiAnswered | RunEvent::ToolUsed { .. } | RunEvent::Compacted => OutageSignal::Answered,
        RunEvent::VerdictReached { .. } | RunEvent::RunFailed { .. } | RunEvent::ProgramEnded { .. } => {
            OutageSignal::EndedOtherwise
        }
        _ => OutageSignal::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use plimsoll_domain::{RunState, Timestamp};
    use plimsoll_flows::session_result::SessionResult;

    /// Passes events one minute apart, and returns the printed lines without indentation.
    fn printed_lines(events: &[(RunEvent<'_>, &str)]) -> Vec<String> {
        let mut tracker = OutageTracker::default();
        let start = clock::parse_rfc3339("2026-01-07T05:00:00Z").expect("a time");
        let mut lines = Vec::new();
        for ((event, line), minute) in events.iter().zip(0..) {
            let now = start + TimeDelta::minutes(minute);
            lines.extend(tracker.lines_to_print(event, Some((*line).to_owned()), now));
        }
        lines.iter().map(|line| line.trim().to_owned()).collect()
    }

    fn retry() -> RunEvent<'static> {
        RunEvent::ApiRetry { status: 529, first_failed_at: Timestamp::from("2026-01-07T05:00:00Z") }
    }

    #[test]
    fn retries_of_a_session_are_told_once_and_their_end_once() {
        assert_eq!(
            printed_lines(&[
                (RunEvent::ApiAnswered, "first answer"),
                (retry(), "failing"),
                (retry(), "failing"),
                (RunEvent::Notice("note".into()), "note"),
                (RunEvent::ApiAnswered, ""),
                (RunEvent::ApiAnswered, ""),
            ]),
            ["first answer", "failing", "note", "the API answers again after 4 min", "", ""]
        );
    }

    #[test]
    fn sessions_that_fail_during_an_outage_are_not_told_again() {
        let state = RunState::default();
        let overloaded =
            SessionResult { ending: SessionEnding::Overloaded("529".into()), ..SessionResult::default() };
        let verdict =
            Verdict::Pause { kind: PauseKind::Overload, pause_end: None, reason: "overloaded".into() };
        let now = clock::now();
        let mut events = Vec::new();
        for _ in 0..3 {
            events.extend([
                (RunEvent::IterationStarted { state: &state, model: None }, "session 1"),
                (RunEvent::ClientStarted { model: String::new(), version: String::new() }, "client"),
                (retry(), "failing"),
                (RunEvent::IterationEnded { iteration: 1, result: &overloaded, item: None }, "ended"),
                (RunEvent::VerdictReached { state: &state, verdict: &verdict }, "verdict"),
                (RunEvent::PauseStarted { pause_end: now, seconds: 1, reason: "" }, "paused"),
            ]);
        }
        events.push((RunEvent::IterationStarted { state: &state, model: None }, "session 1, again"));
        events.push((RunEvent::ToolUsed { name: "Bash".into(), detail: String::new() }, "Bash"));
        assert_eq!(
            printed_lines(&events),
            [
                "session 1",
                "client",
                "failing",
                "ended",
                "verdict",
                "paused",
                "the API answers again after 19 min",
                "session 1, again",
                "Bash"
            ]
        );
    }

    #[test]
    fn a_repeated_error_is_told_once_until_the_run_continues() {
        let error = |text: &str| RunEvent::TemporaryErrorRetry { error: text.to_owned(), retry_seconds: 1 };
        let state = RunState::default();
        assert_eq!(
            printed_lines(&[
                (error("disk full"), "disk full"),
                (error("disk full"), "disk full"),
                (error("no file"), "no file"),
                (error("no file"), "no file"),
                (RunEvent::IterationStarted { state: &state, model: None }, "session 1"),
            ]),
            ["disk full", "no file", "this works again after 2 min", "session 1"]
        );
    }
}
