//! The gate: ends the run, pauses it, or continues with a fresh session. The Stop hook uses it for a
//! provisional verdict, `plimsoll run` and `plimsoll gate` for the final one.

use crate::bounds;
use crate::breaker::{self, SessionObservation};
use crate::completion::{
    CompletionClaim, MissingPromise, assess_completion, count_promise_failures, describe_completed_run,
    judge_missing_promise, refusal_reasons,
};
pub use crate::evidence::SessionEvidence;
use crate::questions::{QuestionOutcome, record_questions};
use crate::review;
use crate::todo_list::render_unclear_lines_if_all_ticked;
use plimsoll_domain::breaker::BreakerTrip;
use plimsoll_domain::protected::describe_protected_changes;
use plimsoll_domain::settings::{Settings, ThrashLimits};
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::{count_with_noun, to_single_line, truncate_end};
use plimsoll_domain::verdict::{ContinueKind, PauseKind};
use plimsoll_domain::{RunState, RunStatus, SessionEnding, Timestamp, Verdict};

/// Judges the session and applies the verdict to the state. The order is: canceled, completed or blocked, fatal
/// error, usage limits, limits of the run, protected files that only the user can restore, circuit breaker,
/// continue. A blocked session ends the run only if no other item is open. Completion comes before the limits,
/// so that a promise in the last iteration counts. An active checkpoint is left unchanged for the next prompt.
pub fn judge_session(state: &mut RunState, evidence: &SessionEvidence, settings: &Settings) -> Verdict {
    let verdict = decide_verdict(state, evidence, settings);
    state.outcomes.refusals = match &verdict {
        Verdict::Continue { kind: ContinueKind::RefusedPromise, .. } => refusal_reasons(state, evidence),
        Verdict::Pause { .. } => std::mem::take(&mut state.outcomes.refusals),
        Verdict::Continue { .. } | Verdict::Stop { .. } => Vec::new(),
    };
    state.lifecycle.apply_verdict(&verdict);
    verdict
}

fn decide_verdict(state: &mut RunState, evidence: &SessionEvidence, settings: &Settings) -> Verdict {
    if state.lifecycle.is_over() {
        return Verdict::Stop { status: state.lifecycle.status(), reason: String::new() };
    }
    let completion = assess_completion(state, evidence);
    let asking = record_questions(state, evidence, &completion);
    if let Some(verdict) = completed_or_blocked_verdict(state, evidence, &completion, &asking) {
        return verdict;
    }
    if let Some(verdict) = unclear_lines_verdict(state, evidence, &completion) {
        return verdict;
    }
    let missing_promise = judge_missing_promise(state, evidence);
    state.outcomes.promise_failures = count_promise_failures(state, evidence);
    match &missing_promise {
        MissingPromise::Completed(_) if is_review_missing(state, evidence) => {}
        MissingPromise::Completed(reason) => {
            return Verdict::Stop { status: RunStatus::Completed, reason: reason.clone() };
        }
        MissingPromise::Blocked(reason) => {
            return Verdict::Stop { status: RunStatus::Blocked, reason: reason.clone() };
        }
        MissingPromise::NotApplicable
        | MissingPromise::RetryPromise
        | MissingPromise::VerifyPending
        | MissingPromise::VerifyFailed => {}
    }
    if let Some(verdict) = ending_or_budget_verdict(state, evidence) {
        return verdict;
    }
    let is_refused = asking == QuestionOutcome::NoEffect
        && (matches!(completion, CompletionClaim::Refused(_) | CompletionClaim::Uncontradicted)
            || missing_promise == MissingPromise::VerifyFailed);
    let refusal =
        is_refused.then(|| truncate_end(&to_single_line(&refusal_reasons(state, evidence).join("; ")), 500));
    // Counted even if a limit ends the run, because it may be resumed with a larger one.
    let observation = evidence.observation.as_ref();
    // Asking the user is neither progress nor a standstill, but an item finished before it counts.
    let observation =
        observation.filter(|seen| asking == QuestionOutcome::NoEffect || seen.has_finished_item);
    // A session that had nothing left to do but the promise could not make progress. Asking for it again has
    // its own limit, so the breaker must not end the run first.
    let is_asked_again = missing_promise == MissingPromise::RetryPromise
        && evidence.verify_outcomes.iter().all(|outcome| outcome.passed);
    let counted_observation =
        observation.filter(|observation| !is_asked_again || observation.has_finished_item);
    let opening = counted_observation.and_then(|observation| {
        breaker::record_session(state, observation, refusal.as_deref(), &settings.breaker)
    });
    let thrash_reason =
        observation.and_then(|observation| detect_thrash(state, evidence, observation, settings.thrash));
    let limit_verdict =
        bounds::reached_limit_verdict(state, &evidence.now).or_else(|| protected_files_verdict(evidence));
    if let Some(verdict) = limit_verdict {
        return verdict;
    }
    if let Some(opening) = opening {
        return open_breaker(state, &opening, &evidence.now);
    }
    if let Some(reason) = thrash_reason {
        return Verdict::Pause { kind: PauseKind::Thrash, until: None, reason };
    }
    if asking == QuestionOutcome::OtherItemsOpen {
        return Verdict::Continue {
            kind: ContinueKind::NextItem,
            reason: describe_continuation(state, evidence),
        };
    }
    continue_verdict(state, evidence, refusal)
}

/// Returns the stop of a run that is done, or that only the user can continue.
fn completed_or_blocked_verdict(
    state: &RunState,
    evidence: &SessionEvidence,
    completion: &CompletionClaim,
    asking: &QuestionOutcome,
) -> Option<Verdict> {
    match (completion, asking) {
        (CompletionClaim::Uncontradicted, _)
            if evidence.verify_outcomes.iter().all(|outcome| outcome.passed)
                && !is_review_missing(state, evidence) =>
        {
            let unclear_reason = unclear_lines_reason(state, evidence);
            Some(unclear_reason.map_or_else(
                || Verdict::Stop {
                    status: RunStatus::Completed,
                    reason: describe_completed_run(state, evidence),
                },
                |reason| Verdict::Stop { status: RunStatus::Blocked, reason },
            ))
        }
        (_, QuestionOutcome::AllItemsParked(reason))
        | (CompletionClaim::Blocked(reason), QuestionOutcome::NoEffect) => {
            Some(Verdict::Stop { status: RunStatus::Blocked, reason: reason.clone() })
        }
        (
            CompletionClaim::Blocked(_)
            | CompletionClaim::NotClaimed
            | CompletionClaim::Refused(_)
            | CompletionClaim::Uncontradicted,
            QuestionOutcome::NoEffect | QuestionOutcome::OtherItemsOpen,
        ) => None,
    }
}

/// Returns why the run is not completed although no item is open: some lines of its plan look like items and
/// are none.
fn unclear_lines_reason(state: &RunState, evidence: &SessionEvidence) -> Option<String> {
    let file = state.options.todo_file.as_ref()?;
    render_unclear_lines_if_all_ticked(evidence.todo.as_ref()?, file)
}

/// Returns the stop of a run whose session ended by itself and left only lines that look like items. Only the
/// user can say what these lines are, so another session would cost money and change nothing. Does not apply to
/// a promise that verify commands or a review contradict: there is work left.
fn unclear_lines_verdict(
    state: &RunState,
    evidence: &SessionEvidence,
    completion: &CompletionClaim,
) -> Option<Verdict> {
    let is_judged_otherwise =
        matches!(completion, CompletionClaim::Uncontradicted | CompletionClaim::Blocked(_));
    if is_judged_otherwise || evidence.ending != SessionEnding::Completed {
        return None;
    }
    let reason = unclear_lines_reason(state, evidence)?;
    Some(Verdict::Stop { status: RunStatus::Blocked, reason })
}

/// Returns true if a review of a ticked item is required before this verdict and could not start. At Stop the
/// review is not due yet.
fn is_review_missing(state: &RunState, evidence: &SessionEvidence) -> bool {
    evidence.observation.is_some() && review::missing_review_reason(state, evidence.todo.as_ref()).is_some()
}

/// Returns true if overload errors keep interrupting sessions during their work. A failing service is normally
/// waited for, but after this many pauses the work itself may be the cause, so the sessions count as
/// iterations.
fn is_repeated_overload_during_work(state: &RunState, evidence: &SessionEvidence) -> bool {
    /// With the backoff between pauses, this many take about ten minutes.
    const MAX_PAUSES: u32 = 8;
    let has_worked = state.iteration_record.tokens > 0;
    matches!(evidence.ending, SessionEnding::Overloaded(_))
        && has_worked
        && state.lifecycle.consecutive_pauses() >= MAX_PAUSES
}

/// Returns the stop of a run with changed protected files that no session can restore: another session would
/// only cost money.
fn protected_files_verdict(evidence: &SessionEvidence) -> Option<Verdict> {
    let changes = truncate_end(&describe_protected_changes(&evidence.changed_protected), 280);
    // The advice comes first because displays cut off the end.
    let reason =
        format!("no session can undo this: restore it, and let verify commands write elsewhere: {changes}");
    evidence.protected_needs_user.then_some(Verdict::Stop { status: RunStatus::FatalError, reason })
}

/// Returns the verdict for a session that could not work and does not count as an iteration: the run stops or
/// pauses.
fn ending_or_budget_verdict(state: &RunState, evidence: &SessionEvidence) -> Option<Verdict> {
    let verdict =
        verdict_for_ending(state, evidence).filter(|_| !is_repeated_overload_during_work(state, evidence))?;
    // Such a session has still cost something, so the budget is checked.
    let is_transient = matches!(&verdict, Verdict::Pause { kind, .. } if kind.resolves_by_waiting());
    let budget_verdict =
        if is_transient { bounds::budget_or_deadline_verdict(state, &evidence.now) } else { None };
    budget_verdict.or(Some(verdict))
}

/// Returns the verdict that follows from a session's ending alone: the run stops or pauses. Returns `None` if
/// the ending requires neither.
pub fn verdict_for_ending(state: &RunState, evidence: &SessionEvidence) -> Option<Verdict> {
    let now = evidence.now.as_str();
    let pause = |kind, until, reason| Some(Verdict::Pause { kind, until, reason });
    match &evidence.ending {
        SessionEnding::Fatal(fatal) => {
            Some(Verdict::Stop { status: RunStatus::FatalError, reason: truncate_end(fatal.message(), 300) })
        }
        SessionEnding::Limit(message) => {
            // A reset in the past is not waited for; without a time the backoff of pauses applies.
            let until = evidence.limit_resets_at.clone().filter(|reset| reset.as_str() > now);
            let reason = format!("usage limit: {}", truncate_end(message, 200));
            let is_after_deadline = until
                .as_ref()
                .zip(state.options.limits.deadline.as_ref())
                .is_some_and(|(reset, deadline)| reset >= deadline);
            if is_after_deadline {
                let reason = format!("{reason}; it resets after the deadline");
                return Some(Verdict::Stop { status: RunStatus::Deadline, reason });
            }
            pause(PauseKind::Limit, until, reason)
        }
        SessionEnding::Overloaded(message) => {
            pause(PauseKind::Overload, None, format!("overloaded: {}", truncate_end(message, 200)))
        }
        SessionEnding::Interrupted => pause(PauseKind::Interrupted, None, "interrupted".to_owned()),
        SessionEnding::Completed
        | SessionEnding::HookStopped
        | SessionEnding::WindowFull(_)
        | SessionEnding::ClientLimit(_)
        | SessionEnding::IdleTimeout(_)
        | SessionEnding::DeadlineReached
        | SessionEnding::Canceled
        | SessionEnding::Crashed(_)
        | SessionEnding::Failed(_)
        | SessionEnding::Unknown => None,
    }
}

fn open_breaker(state: &mut RunState, opening: &BreakerTrip, now: &Timestamp) -> Verdict {
    state.outcomes.breaker.trip = Some(BreakerTrip { tripped_at: now.to_owned(), ..opening.clone() });
    let reason = format!("{}: {}", opening.cause.as_str(), opening.evidence);
    Verdict::Stop { status: RunStatus::CircuitBreaker, reason }
}

/// Returns the reason if checkpoints follow each other without any item being finished.
fn detect_thrash(
    state: &mut RunState,
    evidence: &SessionEvidence,
    observation: &SessionObservation,
    limits: ThrashLimits,
) -> Option<String> {
    let checkpoint = &state.context_checkpoint;
    let is_checkpoint_of_session =
        checkpoint.iteration == state.iteration && checkpoint.cause == CheckpointCause::Level;
    // A session that finished an item is not thrashing, however early its checkpoint was.
    if observation.has_finished_item {
        state.outcomes.breaker.fruitless_checkpoint_times.clear();
    }
    if observation.has_finished_item
        || !is_checkpoint_of_session
        || !checkpoint.active
        || limits.checkpoints == 0
    {
        return None;
    }
    let now = evidence.now_seconds;
    let percent = checkpoint.percent_at_checkpoint.unwrap_or(0);
    let checkpoint_times = &mut state.outcomes.breaker.fruitless_checkpoint_times;
    checkpoint_times.push(now);
    checkpoint_times.retain(|checkpoint_time| now - checkpoint_time <= i64::from(limits.minutes) * 60);
    if evidence.started_above_l2 {
        return Some(format!(
            "checkpoint thrash: the session was at L2 before any work (checkpoint at {percent}%): what is loaded at its start leaves no room"
        ));
    }
    (checkpoint_times.len() >= limits.checkpoints as usize).then(|| {
        format!(
            "checkpoint thrash: {} within {} minutes, and no item finished",
            count_with_noun(checkpoint_times.len(), "checkpoint"),
            limits.minutes
        )
    })
}

fn continue_verdict(state: &mut RunState, evidence: &SessionEvidence, refusal: Option<String>) -> Verdict {
    if let Some(reason) = refusal {
        return Verdict::Continue { kind: ContinueKind::RefusedPromise, reason };
    }
    let checkpoint = &state.context_checkpoint;
    if crate::resume::checkpoint_to_resume(
        checkpoint,
        evidence.todo.as_ref(),
        &state.plan_items.set_aside_items,
    )
    .is_some()
    {
        return Verdict::Continue { kind: ContinueKind::Checkpoint, reason: checkpoint.handoff_file.clone() };
    }
    Verdict::Continue { kind: ContinueKind::NextItem, reason: describe_continuation(state, evidence) }
}

fn describe_continuation(state: &RunState, evidence: &SessionEvidence) -> String {
    let ending = match &evidence.ending {
        SessionEnding::Completed | SessionEnding::HookStopped | SessionEnding::Unknown => String::new(),
        SessionEnding::WindowFull(reason) => format!("the window was full ({reason}); "),
        SessionEnding::ClientLimit(limit_name) => format!("the client's {limit_name} ended the session; "),
        SessionEnding::Crashed(reason) => format!("the client {reason}; "),
        SessionEnding::Failed(error) => format!("the session failed: {}; ", truncate_end(error, 200)),
        SessionEnding::IdleTimeout(reason) => format!("the client was silent ({reason}); "),
        SessionEnding::Overloaded(_) => "the service failed; ".to_owned(),
        SessionEnding::DeadlineReached
        | SessionEnding::Fatal(_)
        | SessionEnding::Limit(_)
        | SessionEnding::Interrupted
        | SessionEnding::Canceled => String::new(),
    };
    let open =
        evidence.todo.as_ref().map_or(state.plan_items.todo_items.len(), |todo| todo.open_items().len());
    match &state.options.todo_file {
        Some(_) => {
            format!(
                "{ending}{}{}{}",
                describe_taken_back_ticks(state),
                count_with_noun(open, "open item"),
                describe_parked_items(state)
            )
        }
        None => format!("{ending}no promise yet"),
    }
}

/// Describes the ticks of this session that were undone; empty if there are none.
fn describe_taken_back_ticks(state: &RunState) -> String {
    let taken_back = state.outcomes.reverted_ticks.as_ref().filter(|taken| taken.is_pending);
    taken_back
        .map(|taken_back| format!("{}; ", truncate_end(&taken_back.describe_revert(), 300)))
        .unwrap_or_default()
}

/// Describes how many of the open items wait for an answer; empty if none does.
fn describe_parked_items(state: &RunState) -> String {
    match state.plan_items.parked_questions.len() {
        0 => String::new(),
        1 => ", 1 of them waits for an answer".to_owned(),
        count => format!(", {count} of them wait for answers"),
    }
}

#[cfg(test)]
mod tests;
