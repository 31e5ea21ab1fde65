//! The events that a run reports to its observer, and the interrupts that it receives from the user.

use crate::session_result::SessionResult;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::{RunState, SessionRecord, Timestamp, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An event that a run reports to its observer.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The run starts or continues.
    RunStarted { state: &'a RunState },
    /// An iteration starts.
    IterationStarted {
        /// The state with the planned iteration.
        state: &'a RunState,
        /// The model, if the item or its size selects another model than the user's arguments.
        model: Option<&'a str>,
    },
    /// The client has reported its model and version.
    ClientStarted { model: String, version: String },
    /// The model uses a tool.
    ToolUsed {
        name: String,
        /// A short description of the call.
        detail: String,
    },
    /// The client tries again after an error of the API.
    ApiRetry {
        /// The HTTP status; 0 if the API was unreachable.
        status: u64,
        /// The time at which the first of these requests failed, RFC 3339 UTC.
        first_failed_at: Timestamp,
    },
    /// The model has answered, for the first time in a session or after the API failed.
    ApiAnswered,
    /// Ctrl-C was pressed once: the run stops after this session.
    StopRequested,
    /// The client refused to run tools.
    ToolsDenied {
        state: &'a RunState,
        /// The tools, each once.
        tools: &'a [String],
    },
    /// The client has compacted its context.
    Compacted,
    /// The context usage of the session, a few times a second.
    UsageUpdated {
        /// The current state.
        state: &'a RunState,
        record: &'a SessionRecord,
        /// The figures of the run, including this session.
        figures: &'a RunFigures,
    },
    /// An iteration has ended.
    IterationEnded {
        iteration: u32,
        /// How the session ended and what it used.
        result: &'a SessionResult,
        /// The item of its prompt, and whether it is still open.
        item: Option<(&'a str, bool)>,
    },
    /// The gate has reached a verdict on the iteration.
    VerdictReached { state: &'a RunState, verdict: &'a Verdict },
    /// Verify commands have run.
    VerifyCommandsFinished { outcomes: &'a [VerifyOutcome] },
    /// Ticked items were reviewed.
    Reviewed { outcome: &'a ReviewOutcome },
    /// Ticks of the session that has ended were reverted.
    TicksReverted {
        /// The items and the reasons.
        reverted_ticks: &'a RevertedTicks,
    },
    /// A session has asked a question, and the item is parked until the user answers it.
    QuestionAsked { question: &'a OpenQuestion },
    /// A pause begins.
    PauseStarted {
        /// The end of the pause.
        pause_end: chrono::DateTime<chrono::Utc>,
        seconds: u64,
        reason: &'a str,
    },
    /// The run still waits; reported a few times a second.
    PauseContinues {
        /// The end of the pause.
        pause_end: chrono::DateTime<chrono::Utc>,
    },
    /// A temporary error occurred, and the run will retry.
    TemporaryErrorRetry {
        error: String,
        /// Seconds until the retry.
        retry_seconds: u64,
    },
    /// An event of a parallel run.
    WorkersEvent {
        /// The journal event.
        event: &'a JournalEvent,
    },
    /// The figures of a parallel run have been read, a few times a second.
    FiguresUpdated { figures: &'a RunFigures },
    /// A message for the user.
    Notice(String),
    /// The program ends.
    ProgramEnded {
        /// The final state of the run; `None` if it no longer exists or cannot be read.
        state: Option<&'a RunState>,
        exit_code: u8,
    },
    /// The program ends because the run could not continue.
    RunFailed { error: String },
}

/// Observes a run and may interrupt it.
pub trait RunObserver {
    fn on_event(&mut self, event: &RunEvent<'_>);
    /// Returns the counter of the interrupts with which the user has requested the run to end.
    fn interrupts(&self) -> &InterruptCounter;
}

/// The urgency with which the user requests a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// The first Ctrl-C: the run ends after the session that is running.
    AfterSession,
    /// The second Ctrl-C, SIGTERM or SIGHUP: the session is also ended.
    EndSession,
    /// Any further interrupt: the program exits without waiting.
    Immediately,
}

/// Counts the interrupts by the user. The thread that receives the signals shares it with the run.
#[derive(Debug, Clone, Default)]
pub struct InterruptCounter(Arc<AtomicUsize>);

impl InterruptCounter {
    /// Adds one interrupt, or two for a request more urgent than `AfterSession`. Returns the resulting request.
    pub fn add_interrupt(&self, interrupt: Interrupt) -> Interrupt {
        let added_count = if interrupt == Interrupt::AfterSession { 1 } else { 2 };
        let count_before = self.0.fetch_add(added_count, Ordering::SeqCst);
        interrupt_for_count(count_before + added_count).unwrap_or(interrupt)
    }

    /// Returns the most urgent request so far; `None` without an interrupt.
    pub fn highest_request(&self) -> Option<Interrupt> {
        interrupt_for_count(self.0.load(Ordering::SeqCst))
    }

    /// Returns true if the user has requested this interrupt or a more urgent one.
    pub fn has_requested(&self, interrupt: Interrupt) -> bool {
        self.highest_request() >= Some(interrupt)
    }
}

fn interrupt_for_count(count: usize) -> Option<Interrupt> {
    match count {
        0 => None,
        1 => Some(Interrupt::AfterSession),
        2 => Some(Interrupt::EndSession),
        _ => Some(Interrupt::Immediately),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_or_a_signal_is_more_urgent_than_the_first() {
        use Interrupt::{AfterSession, EndSession, Immediately};
        let tables: [(&[Interrupt], &[Interrupt]); 4] = [
            (
                &[AfterSession, AfterSession, AfterSession, AfterSession],
                &[AfterSession, EndSession, Immediately, Immediately],
            ),
            (&[EndSession, AfterSession], &[EndSession, Immediately]),
            (&[AfterSession, EndSession], &[AfterSession, Immediately]),
            (&[], &[]),
        ];
        for (interrupts_added, expected) in tables {
            let interrupts = InterruptCounter::default();
            let requests: Vec<Interrupt> =
                interrupts_added.iter().map(|interrupt| interrupts.add_interrupt(*interrupt)).collect();
            assert_eq!(requests, expected);
            assert_eq!(interrupts.highest_request(), expected.last().copied());
            assert_eq!(interrupts.has_requested(AfterSession), !interrupts_added.is_empty());
        }
    }
}
