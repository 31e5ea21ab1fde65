//! The events that a run reports to its observers.

use crate::session_result::SessionResult;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::{RunState, SessionRecord, Timestamp, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An event of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The run continues.
    Run {
        /// Its state.
        state: &'a RunState,
    },
    /// An iteration begins.
    Iteration {
        /// The state with its plan.
        state: &'a RunState,
        /// The model, if the item or its size has chosen another one than the user's arguments.
        model: Option<&'a str>,
    },
    /// The client has reported its model and version.
    Client {
        /// The model.
        model: String,
        /// Its version.
        version: String,
    },
    /// The model uses a tool.
    Tool {
        /// Its name.
        name: String,
        /// What for, in a few words.
        detail: String,
    },
    /// The client tries again after an error of the API.
    Retry {
        /// The HTTP status; 0 if the API could not be reached.
        status: u64,
        /// When the first of these requests failed, RFC 3339 UTC.
        since: Timestamp,
    },
    /// Ctrl-C was pressed once: the run stops after this session.
    StopRequested,
    /// The client refused to run tools.
    Denied {
        /// The state.
        state: &'a RunState,
        /// The tools, each once.
        tools: &'a [String],
    },
    /// The client has compacted.
    Compacted,
    /// How full the session is, a few times a second.
    Load {
        /// The state now.
        state: &'a RunState,
        /// The session's record.
        record: &'a SessionRecord,
        /// The figures of the run, with this session.
        figures: &'a RunFigures,
    },
    /// An iteration has ended.
    Ended {
        /// Its number.
        iteration: u32,
        /// How.
        ended: &'a SessionResult,
        /// The item of its prompt, and whether it is still open.
        item: Option<(&'a str, bool)>,
    },
    /// The gate has judged.
    Judged {
        /// The state after it.
        state: &'a RunState,
        /// The verdict.
        verdict: &'a Verdict,
    },
    /// Verify commands have run.
    Verified {
        /// What they said.
        outcomes: &'a [VerifyOutcome],
    },
    /// Ticked items were reviewed.
    Reviewed {
        /// What came of it.
        reviewed: &'a Reviewed,
    },
    /// Ticks of the session that has ended were taken back.
    TakenBack {
        /// Which, and why.
        taken: &'a TakenBack,
    },
    /// An item waits for the user's answer.
    Parked {
        /// Its question.
        question: &'a OpenQuestion,
    },
    /// The run begins to wait.
    Pause {
        /// Until when.
        until: chrono::DateTime<chrono::Utc>,
        /// How long.
        seconds: u64,
        /// Why.
        reason: &'a str,
    },
    /// The run still waits; reported a few times a second.
    Waiting {
        /// Until when.
        until: chrono::DateTime<chrono::Utc>,
    },
    /// A fault of the surroundings is tolerated.
    Fault {
        /// What went wrong.
        error: String,
        /// When it is tried again.
        seconds: u64,
    },
    /// Something happened in a parallel run.
    Workers {
        /// What, as the journal has it.
        event: &'a JournalEvent,
    },
    /// The figures of a parallel run, a few times a second.
    Figures {
        /// The figures.
        figures: &'a RunFigures,
    },
    /// Something the user should know.
    Note(String),
    /// The program ends.
    Over {
        /// The run as it is left; none if its state is gone.
        state: Option<&'a RunState>,
        /// The exit code.
        code: u8,
    },
    /// The program ends because the run could not continue.
    Failed {
        /// Why.
        error: String,
    },
}

/// Observes a run and may interrupt it.
pub trait RunObserver {
    /// Receives an event.
    fn tell(&mut self, progress: &Progress<'_>);
    /// How the user has asked the run to end.
    fn interrupts(&self) -> &Interrupts;
}

/// How urgently the user asks a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// The first Ctrl-C: the run ends after the session that is running.
    Once,
    /// The second one, SIGTERM or SIGHUP: the session is ended, too.
    Twice,
    /// Any after that: nothing more is waited for.
    Again,
}

/// How the user has asked the run to end. The thread that hears the signals shares it with the run.
#[derive(Debug, Clone, Default)]
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// Adds a Ctrl-C, or two of them at once; returns what the user has asked for by now.
    pub fn add(&self, interrupt: Interrupt) -> Interrupt {
        let count = if interrupt == Interrupt::Once { 1 } else { 2 };
        let before = self.0.fetch_add(count, Ordering::SeqCst);
        of_count(before + count).unwrap_or(interrupt)
    }

    /// Returns what the user has asked for; none without an interrupt.
    pub fn asked(&self) -> Option<Interrupt> {
        of_count(self.0.load(Ordering::SeqCst))
    }

    /// Returns true if the user has asked for at least this.
    pub fn has_asked(&self, interrupt: Interrupt) -> bool {
        self.asked() >= Some(interrupt)
    }
}

fn of_count(count: usize) -> Option<Interrupt> {
    match count {
        0 => None,
        1 => Some(Interrupt::Once),
        2 => Some(Interrupt::Twice),
        _ => Some(Interrupt::Again),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_or_a_signal_to_end_asks_for_more_than_the_first() {
        use Interrupt::{Again, Once, Twice};
        let tables: [(&[Interrupt], &[Interrupt]); 4] = [
            (&[Once, Once, Once, Once], &[Once, Twice, Again, Again]),
            (&[Twice, Once], &[Twice, Again]),
            (&[Once, Twice], &[Once, Again]),
            (&[], &[]),
        ];
        for (heard, expected) in tables {
            let interrupts = Interrupts::default();
            let asked: Vec<Interrupt> = heard.iter().map(|interrupt| interrupts.add(*interrupt)).collect();
            assert_eq!(asked, expected);
            assert_eq!(interrupts.asked(), expected.last().copied());
            assert_eq!(interrupts.has_asked(Once), !heard.is_empty());
        }
    }
}
