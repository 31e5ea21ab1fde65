//! The review of ticked items: a session that only reads, after the verify commands and before the ticks count.
//!
//! Each step is in the state before the next one begins: the reviewing session, its process, its answer with what becomes of the
//! ticks. So after a kill a session at work is waited for, the answer of one that has ended counts, and none is paid twice.
//! A first review without a verdict is in the state, too, before the second one begins: a resume does not begin to count anew.

mod session;

use crate::read_only::failure;
use crate::run::day;
use crate::run::observer::{Progress, RunObserver};
use crate::run::watchdog::Watchdog;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::review::{ReviewSession, named};
use plimsoll_domain::{Ending, RunState, Verdict};
use plimsoll_policy::gate::{Evidence, verdict_of_its_ending};
use plimsoll_policy::review::{AfterReview, Answer};
use plimsoll_policy::{bounds, review};
use plimsoll_protocol::settings::HookSupport;
use plimsoll_store::{StoreError, clock};
use std::path::Path;
use std::time::Duration;

/// Names to an item's own run the repository in which results are merged: its reviews read there.
pub(crate) const MERGE_REPOSITORY_VARIABLE: &str = "PLIMSOLL_MERGE_REPOSITORY";
/// How the names of folders begin in which reviews read, beside the worktrees.
pub(crate) const EXPORTED: &str = "review-";

/// What `plimsoll run` lends to a review.
pub(super) struct Reviewer<'a> {
    pub(super) client: &'a Path,
    /// What the user passes on to it.
    pub(super) client_arguments: &'a [String],
    /// The model of the sessions, which also reviews unless the user names another one.
    pub(super) model: Option<&'a str>,
    pub(super) version: &'a str,
    pub(super) era: HookSupport,
    /// How long a client may live on after its result.
    pub(super) linger: Duration,
    pub(super) watchdog: &'a Watchdog,
    pub(super) observer: &'a mut dyn RunObserver,
}

/// What came of looking for something to review.
pub(super) enum Outcome {
    /// The state after it: with an answer, or as it was because nothing is due.
    State(Box<RunState>),
    /// The review met a limit, and the run waits. The iteration is judged after it.
    Paused(Verdict),
    /// The user ended it.
    GivenUp,
}

/// How a reviewing session ended.
struct Ended {
    result: SessionResult,
    cause: EndCause,
}

enum EndCause {
    /// By itself.
    Itself,
    /// We ended it, or it could not be asked.
    Trouble(String),
    /// We ended it at the run's deadline: that says nothing of the reviewer, and the items wait for their review.
    OutOfTime,
    /// The user ended it.
    GivenUp,
}

/// Reviews what is due. The answer is in the state then, with the decision on the ticks, which are still in the plan.
pub(super) fn review_ticks(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &Evidence,
    reviewer: &mut Reviewer<'_>,
    give_up: &dyn Fn() -> bool,
) -> Result<Outcome, StoreError> {
    let mut current = state.clone();
    loop {
        match review_once(context, &current, evidence, reviewer, give_up)? {
            Attempt::Repeat(state) => current = *state,
            Attempt::Over(outcome) => return Ok(outcome),
        }
    }
}

/// What came of one reviewing session.
enum Attempt {
    /// It gave no verdict, and another one follows.
    Repeat(Box<RunState>),
    Over(Outcome),
}

fn review_once(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &Evidence,
    reviewer: &mut Reviewer<'_>,
    give_up: &dyn Fn() -> bool,
) -> Result<Attempt, StoreError> {
    let items = review::due(state, evidence.todo.as_ref());
    // Without money or time nothing is reviewed: the items wait, for a resume that has more.
    if items.is_empty() || bounds::spent(state, &clock::stamp(clock::now())).is_some() {
        return Ok(Attempt::Over(Outcome::State(Box::new(state.clone()))));
    }
    if give_up() {
        return Ok(Attempt::Over(Outcome::GivenUp));
    }
    let mut reviewing = Reviewing { context, state, reviewer, give_up };
    let begun = format!("reviewing {}, in a session that can only read", named(&items));
    reviewing.reviewer.observer.tell(&Progress::Note(begun));
    let (session, ended) = match reviewing.left_by_a_kill(&items)? {
        Some(found) => found,
        None => {
            let session = reviewing.note_new(items)?;
            let ended = reviewing.ask(&session, evidence)?;
            (session, ended)
        }
    };
    reviewing.settle(&session, ended)
}

/// A review that is due.
struct Reviewing<'a, 'b> {
    context: &'a RunContext<'a>,
    state: &'a RunState,
    reviewer: &'a mut Reviewer<'b>,
    give_up: &'a dyn Fn() -> bool,
}

impl Reviewing<'_, '_> {
    /// Writes what came of it: the price, and the answer with what becomes of the ticks, in one step.
    fn settle(&mut self, session: &ReviewSession, ended: Ended) -> Result<Attempt, StoreError> {
        let Ended { result, cause } = ended;
        let answer = match cause {
            EndCause::GivenUp => {
                self.count_without_answer(&result)?;
                return Ok(Attempt::Over(Outcome::GivenUp));
            }
            EndCause::OutOfTime => {
                let state = self.count_without_answer(&result)?;
                let outcome = state.map_or(Outcome::GivenUp, |state| Outcome::State(Box::new(state)));
                return Ok(Attempt::Over(outcome));
            }
            EndCause::Trouble(words) => Answer::Missing(words),
            EndCause::Itself => match pause_of(self.state, &result) {
                Some(paused) => return self.pause(&result, paused).map(Attempt::Over),
                None => answer_of(&result),
            },
        };
        let seconds = clock::moment(&session.started_at)
            .map_or(0, |begun| (clock::now() - begun).num_seconds().max(0).unsigned_abs());
        let mut review = review::review(session, &answer);
        let facts = &mut review.facts;
        (facts.model, facts.seconds, facts.tokens) =
            (self.model().map(str::to_owned), seconds, result.tokens);
        let after = self.update(|state| {
            review.facts.cost_usd = count(self.context, state, &result);
            let next = review::take(state, review);
            (next, Box::new(state.clone()))
        })?;
        Ok(match after {
            None => Attempt::Over(Outcome::GivenUp),
            Some((AfterReview::Decided, state)) => Attempt::Over(Outcome::State(state)),
            Some((AfterReview::Repeat, state)) => {
                self.report_repeat(&state)?;
                Attempt::Repeat(state)
            }
        })
    }

    /// Counts what a session used that ended without an answer of its own accord.
    fn count_without_answer(&self, result: &SessionResult) -> Result<Option<RunState>, StoreError> {
        self.update(|state| {
            count(self.context, state, result);
            state.outcomes.reviews.session = None;
            state.clone()
        })
    }

    /// Tells that the same items are reviewed once more. A kill before the line in the journal costs only that line.
    fn report_repeat(&mut self, state: &RunState) -> Result<(), StoreError> {
        let Some(attempt) = &state.outcomes.reviews.failed_attempt else { return Ok(()) };
        let words = format!("{}; it is repeated once", attempt.facts.words());
        self.reviewer.observer.tell(&Progress::Note(words.clone()));
        self.context.note(state, JournalEvent::Note { words })
    }

    /// The run waits as for a session that met a limit; then the same ticks are reviewed.
    fn pause(&self, result: &SessionResult, paused: Verdict) -> Result<Outcome, StoreError> {
        let is_open = self.update(|state| {
            count(self.context, state, result);
            state.outcomes.reviews.session = None;
            let is_open = !state.lifecycle.is_over();
            if is_open {
                state.lifecycle.take(&paused);
            }
            is_open
        })?;
        Ok(if is_open == Some(true) { Outcome::Paused(paused) } else { Outcome::GivenUp })
    }

    fn update<T>(&self, change: impl FnOnce(&mut RunState) -> T) -> Result<Option<T>, StoreError> {
        self.context.update(change)
    }
}

/// Counts what a reviewing session used in the run's limits, and apart; answers with its price.
fn count(context: &RunContext<'_>, state: &mut RunState, result: &SessionResult) -> f64 {
    let cost_usd = day::add_session(context, state, result);
    let spent = &mut state.spent;
    spent.review_cost_usd += cost_usd;
    spent.review_tokens += result.tokens;
    if let Some(quota) = &result.quota {
        spent.quota.merge(quota);
    }
    cost_usd
}

/// The pause that a session's end in a limit means for the run. A limit beyond the deadline is not waited for.
fn pause_of(state: &RunState, result: &SessionResult) -> Option<Verdict> {
    let evidence = Evidence {
        ending: result.ending.clone(),
        resets_at: result.resets_at.clone(),
        now: clock::stamp(clock::now()),
        ..Evidence::default()
    };
    let verdict = verdict_of_its_ending(state, &evidence);
    verdict.filter(|verdict| matches!(verdict, Verdict::Pause { kind, .. } if kind.passes()))
}

/// What it answered, without what looks like a secret; else why it did not.
fn answer_of(result: &SessionResult) -> Answer {
    match &result.ending {
        Ending::Completed => {
            Answer::Text(plimsoll_secrets::without(result.result_text.as_deref().unwrap_or_default()))
        }
        ending => Answer::Missing(failure(ending)),
    }
}

/// Journals the review of the current session; nothing if that was done, or if there was none.
pub(super) fn note(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let last = state.outcomes.reviews.last.as_ref();
    let Some(review) = last.filter(|review| review.is_of(state.iteration, state.session_id.as_ref())) else {
        return Ok(());
    };
    let reviewed = JournalEvent::Reviewed(Box::new(review.facts.clone()));
    context.note_once(JournalEntry::of_run_session(state, reviewed))
}
