//! The review of ticked items: a read-only session after the verify commands and before the ticks count.
//!
//! Each step is recorded in the state before the next one begins: the review session, its process, its answer
//! with the decision on the ticks. After a kill, a review session that is still running is followed to its end,
//! and an answer that was already written counts, so no review is paid for twice. A first review without a
//! verdict is also recorded before the second one begins, so a resume does not start counting again.

mod session;

use crate::read_only::describe_missing_answer;
use crate::run::daily_spending;
use crate::run::observer::{RunEvent, RunObserver};
use crate::run::watchdog::Watchdog;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::review::{ReviewSession, quote_first_items};
use plimsoll_domain::{RunState, SessionEnding, Verdict};
use plimsoll_policy::gate::{SessionEvidence, stop_or_pause_for_ending};
use plimsoll_policy::review::{ReviewAnswer, ReviewProgress};
use plimsoll_policy::{bounds, review};
use plimsoll_protocol::settings::HookSupport;
use plimsoll_store::{StoreError, clock};
use std::path::Path;
use std::time::Duration;

/// The variable that names the repository in which results are merged, for the run of one item; its reviews
/// read from that repository.
pub(crate) const MERGE_REPOSITORY_VARIABLE: &str = "PLIMSOLL_MERGE_REPOSITORY";
/// The name prefix of the folders that reviews read, next to the worktrees.
pub(crate) const EXPORT_FOLDER_PREFIX: &str = "review-";

/// The parts of `plimsoll run` that a review uses.
pub(super) struct Reviewer<'a> {
    pub(super) client_program: &'a Path,
    /// The arguments that the user passes on to the client.
    pub(super) client_arguments: &'a [String],
    /// The model of the sessions, which also reviews unless the user names another one.
    pub(super) session_model: Option<&'a str>,
    pub(super) client_version: &'a str,
    pub(super) hook_support: HookSupport,
    /// How long a client may stay alive after its result.
    pub(super) linger_timeout: Duration,
    pub(super) watchdog: &'a Watchdog,
    pub(super) observer: &'a mut dyn RunObserver,
}

/// The outcome of reviewing the due items.
pub(super) enum ReviewTicksOutcome {
    /// The resulting state: with an answer, or unchanged because nothing is due.
    Finished(Box<RunState>),
    /// The review hit a limit, and the run waits. The iteration is judged afterwards.
    Paused(Verdict),
    /// The user ended the review, or the run has ended or no longer exists.
    Aborted,
}

/// A review session that has ended.
struct EndedReview {
    result: SessionResult,
    end_cause: ReviewEndCause,
}

enum ReviewEndCause {
    Finished,
    /// Plimsoll ended it because of a problem, or it could not be started.
    Failed(String),
    /// Plimsoll ended it at the run's deadline. The items still have to be reviewed.
    DeadlineReached,
    StoppedByUser,
}

/// Reviews the items that are due. Afterwards the state contains the answer with the decision on the ticks,
/// which are still in the plan.
pub(super) fn review_due_items(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &SessionEvidence,
    reviewer: &mut Reviewer<'_>,
    should_abort: &dyn Fn() -> bool,
) -> Result<ReviewTicksOutcome, StoreError> {
    let mut current_state = state.clone();
    loop {
        match recover_or_run_review_if_due_and_in_budget(
            context,
            &current_state,
            evidence,
            reviewer,
            should_abort,
        )? {
            ReviewAttempt::Repeat(new_state) => current_state = *new_state,
            ReviewAttempt::Finished(outcome) => return Ok(outcome),
        }
    }
}

/// The outcome of one review session.
enum ReviewAttempt {
    /// The session gave no verdict, and another one follows.
    Repeat(Box<RunState>),
    Finished(ReviewTicksOutcome),
}

fn recover_or_run_review_if_due_and_in_budget(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &SessionEvidence,
    reviewer: &mut Reviewer<'_>,
    should_abort: &dyn Fn() -> bool,
) -> Result<ReviewAttempt, StoreError> {
    let items = review::items_to_review_now(state, evidence.todo.as_ref());
    // Without budget or time nothing is reviewed: the items wait for a resume that has more.
    if items.is_empty()
        || bounds::stop_if_budget_spent_or_deadline_passed(state, &clock::to_timestamp(clock::now()))
            .is_some()
    {
        return Ok(ReviewAttempt::Finished(ReviewTicksOutcome::Finished(Box::new(state.clone()))));
    }
    if should_abort() {
        return Ok(ReviewAttempt::Finished(ReviewTicksOutcome::Aborted));
    }
    let mut due_review = DueReview { context, state, reviewer, should_abort };
    let message = format!("reviewing {}, in a session that can only read", quote_first_items(&items));
    due_review.reviewer.observer.on_event(&RunEvent::Notice(message));
    let (session, ended_review) = match due_review.recover_or_discard_open_session(&items)? {
        Some(recovered_session) => recovered_session,
        None => {
            let session = due_review.create_and_record_session(items)?;
            let ended_review = due_review.run_session(&session, evidence)?;
            (session, ended_review)
        }
    };
    due_review.record_result_and_decide_repeat(&session, ended_review)
}

/// A review that is due, with everything needed to run it.
struct DueReview<'a, 'b> {
    context: &'a RunContext<'a>,
    state: &'a RunState,
    reviewer: &'a mut Reviewer<'b>,
    should_abort: &'a dyn Fn() -> bool,
}

impl DueReview<'_, '_> {
    /// Records the cost and the answer with the decision on the ticks, in one step.
    fn record_result_and_decide_repeat(
        &mut self,
        session: &ReviewSession,
        ended_review: EndedReview,
    ) -> Result<ReviewAttempt, StoreError> {
        let EndedReview { result, end_cause: cause } = ended_review;
        let answer = match cause {
            ReviewEndCause::StoppedByUser => {
                self.add_usage_and_close_unanswered_session(&result)?;
                return Ok(ReviewAttempt::Finished(ReviewTicksOutcome::Aborted));
            }
            ReviewEndCause::DeadlineReached => {
                let state = self.add_usage_and_close_unanswered_session(&result)?;
                let outcome = state.map_or(ReviewTicksOutcome::Aborted, |state| {
                    ReviewTicksOutcome::Finished(Box::new(state))
                });
                return Ok(ReviewAttempt::Finished(outcome));
            }
            ReviewEndCause::Failed(message) => ReviewAnswer::Missing(message),
            ReviewEndCause::Finished => {
                match pause_verdict_if_ending_resolves_by_waiting(self.state, &result) {
                    Some(pause_verdict) => {
                        return self
                            .add_usage_and_pause_run_if_open(&result, pause_verdict)
                            .map(ReviewAttempt::Finished);
                    }
                    None => redacted_answer_or_reason_it_is_missing(&result),
                }
            }
        };
        let seconds = clock::parse_timestamp(&session.started_at)
            .map_or(0, |started_at| (clock::now() - started_at).num_seconds().max(0).unsigned_abs());
        let mut review = review::build_review(session, &answer);
        let outcome = &mut review.outcome;
        (outcome.model, outcome.seconds, outcome.tokens) =
            (self.review_model().map(str::to_owned), seconds, result.tokens);
        let decision = self.update_state(|state| {
            review.outcome.cost_usd = add_review_usage_and_return_cost(self.context, state, &result);
            let progress = review::apply_review(state, review);
            (progress, Box::new(state.clone()))
        })?;
        Ok(match decision {
            None => ReviewAttempt::Finished(ReviewTicksOutcome::Aborted),
            Some((ReviewProgress::Decided, state)) => {
                ReviewAttempt::Finished(ReviewTicksOutcome::Finished(state))
            }
            Some((ReviewProgress::Repeat, state)) => {
                self.report_repeated_review(&state)?;
                ReviewAttempt::Repeat(state)
            }
        })
    }

    /// Adds the usage of a session that was ended before it answered, and removes the session from the state.
    fn add_usage_and_close_unanswered_session(
        &self,
        result: &SessionResult,
    ) -> Result<Option<RunState>, StoreError> {
        self.update_state(|state| {
            add_review_usage_and_return_cost(self.context, state, result);
            state.outcomes.reviews.open_session = None;
            state.clone()
        })
    }

    /// Reports that the same items are reviewed once more. A kill before the journal line loses only that
    /// line.
    fn report_repeated_review(&mut self, state: &RunState) -> Result<(), StoreError> {
        let Some(attempt) = &state.outcomes.reviews.attempt_without_verdict else { return Ok(()) };
        let message = format!("{}; it is repeated once", attempt.outcome.describe());
        self.reviewer.observer.on_event(&RunEvent::Notice(message.clone()));
        self.context.journal_session_event(state, JournalEvent::Note { text: message })
    }

    /// Pauses the run as after a session that hit a limit; afterwards the same ticks are reviewed.
    fn add_usage_and_pause_run_if_open(
        &self,
        result: &SessionResult,
        pause_verdict: Verdict,
    ) -> Result<ReviewTicksOutcome, StoreError> {
        let is_open = self.update_state(|state| {
            add_review_usage_and_return_cost(self.context, state, result);
            state.outcomes.reviews.open_session = None;
            let is_open = !state.lifecycle.has_ended();
            if is_open {
                state.lifecycle.apply_verdict(&pause_verdict);
            }
            is_open
        })?;
        Ok(if is_open == Some(true) {
            ReviewTicksOutcome::Paused(pause_verdict)
        } else {
            ReviewTicksOutcome::Aborted
        })
    }

    fn update_state<T>(&self, change: impl FnOnce(&mut RunState) -> T) -> Result<Option<T>, StoreError> {
        self.context.update_state(change)
    }
}

/// Adds the usage of a review session to the run's spending and to its review spending; returns the cost.
fn add_review_usage_and_return_cost(
    context: &RunContext<'_>,
    state: &mut RunState,
    result: &SessionResult,
) -> f64 {
    let cost_usd = daily_spending::add_session_cost(context, state, result);
    let spending = &mut state.spending;
    spending.review_cost_usd += cost_usd;
    spending.review_tokens += result.tokens;
    if let Some(quota) = &result.quota {
        spending.quota.update_from(quota);
    }
    cost_usd
}

/// Returns the verdict that pauses the run if the session ended at a usage limit or because the API was
/// overloaded. Returns `None` for a limit that resets only after the deadline.
fn pause_verdict_if_ending_resolves_by_waiting(state: &RunState, result: &SessionResult) -> Option<Verdict> {
    let evidence = SessionEvidence {
        ending: result.ending.clone(),
        limit_resets_at: result.limit_resets_at.clone(),
        now: clock::to_timestamp(clock::now()),
        ..SessionEvidence::default()
    };
    let verdict = stop_or_pause_for_ending(state, &evidence);
    verdict.filter(|verdict| matches!(verdict, Verdict::Pause { kind, .. } if kind.resolves_by_waiting()))
}

/// Returns the answer with secrets removed, or the reason why there is none.
fn redacted_answer_or_reason_it_is_missing(result: &SessionResult) -> ReviewAnswer {
    match &result.ending {
        SessionEnding::Completed => {
            ReviewAnswer::Text(plimsoll_secrets::redact(result.result_text.as_deref().unwrap_or_default()))
        }
        ending => ReviewAnswer::Missing(describe_missing_answer(ending)),
    }
}

/// Journals the review of the current session, unless it is already in the journal or there was none.
pub(super) fn journal_review_of_current_session(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    let last_review = state.outcomes.reviews.last_review.as_ref();
    let Some(review) =
        last_review.filter(|review| review.is_after_session(state.iteration, state.session_id.as_ref()))
    else {
        return Ok(());
    };
    let event = JournalEvent::Reviewed(Box::new(review.outcome.clone()));
    context.append_entry_unless_near_journal_end(JournalEntry::for_run_session(state, event))
}
