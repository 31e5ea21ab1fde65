//! The gate: decides whether the run ends, pauses, or continues with a fresh session. The Stop hook uses it for a
//! provisional verdict, `plimsoll run` and `plimsoll gate` for the final one.

use crate::bounds;
use crate::breaker::{self, SessionObservation};
use crate::completion::{
    ClaimAssessment, MissingPromiseOutcome, assess_completion_claim,
    consecutive_missing_promises_after_session, decide_after_missing_promise, reasons_to_refuse_promise,
    render_ticked_item_and_verify_counts,
};
pub use crate::evidence::SessionEvidence;
use crate::questions::{QuestionOutcome, record_questions_of_session};
use crate::review;
use crate::todo_list::render_unclear_lines_if_no_item_open;
use plimsoll_domain::breaker::BreakerTrip;
use plimsoll_domain::fatal_error::{FatalError, FatalErrorKind};
use plimsoll_domain::marker::CHECKPOINT_THRASH_PREFIX;
use plimsoll_domain::protected::describe_protected_changes;
use plimsoll_domain::settings::{Settings, ThrashLimits};
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::{ContinueKind, PauseKind};
use plimsoll_domain::{RunState, RunStatus, SessionEnding, Timestamp, Verdict};

/// Judges the session and applies the verdict to the state. The order is: canceled, completed or blocked, fatal
/// error, usage limits, limits of the run, protected files that only the user can restore, circuit breaker,
/// continue. A blocked session ends the run only if no other item is open. Completion comes before the limits,
/// so that a promise in the last iteration counts. An active checkpoint is left unchanged for the next prompt.
pub fn judge_session_and_apply_verdict(
    state: &mut RunState,
    evidence: &SessionEvidence,
    settings: &Settings,
) -> Verdict {
    let verdict = decide_verdict(state, evidence, settings);
    state.outcomes.refusals = match &verdict {
        Verdict::Continue { kind: ContinueKind::RefusedPromise, .. } => {
            reasons_to_refuse_promise(state, evidence)
        }
        Verdict::Pause { .. } => std::mem::take(&mut state.outcomes.refusals),
        Verdict::Continue { .. } | Verdict::Stop { .. } => Vec::new(),
    };
    state.lifecycle.apply_verdict(&verdict);
    verdict
}

fn decide_verdict(state: &mut RunState, evidence: &SessionEvidence, settings: &Settings) -> Verdict {
    if state.lifecycle.has_ended() {
        return Verdict::Stop { status: state.lifecycle.status(), reason: String::new() };
    }
    let completion = assess_completion_claim(state, evidence);
    let question_outcome = record_questions_of_session(state, evidence, &completion);
    if let Some(verdict) = completed_or_blocked_verdict(state, evidence, &completion, &question_outcome) {
        return verdict;
    }
    if let Some(verdict) = stop_if_only_unclear_lines_remain(state, evidence, &completion) {
        return verdict;
    }
    let missing_promise = decide_after_missing_promise(state, evidence);
    state.outcomes.promise_failures = consecutive_missing_promises_after_session(state, evidence);
    match &missing_promise {
        MissingPromiseOutcome::Completed(_) if is_review_missing(state, evidence) => {}
        MissingPromiseOutcome::Completed(reason) => {
            return completed_verdict_unless_lines_unclear(state, evidence, reason.clone());
        }
        MissingPromiseOutcome::Blocked(reason) => {
            return Verdict::Stop { status: RunStatus::Blocked, reason: reason.clone() };
        }
        MissingPromiseOutcome::NotApplicable
        | MissingPromiseOutcome::RetryPromise
        | MissingPromiseOutcome::VerifyPending
        | MissingPromiseOutcome::VerifyFailed => {}
    }
    if let Some(verdict) = stop_or_pause_for_ending_or_spent_budget(state, evidence) {
        return verdict;
    }
    let is_refused = question_outcome == QuestionOutcome::NoEffect
        && (matches!(completion, ClaimAssessment::Refused(_) | ClaimAssessment::PendingVerification)
            || missing_promise == MissingPromiseOutcome::VerifyFailed);
    let refusal = is_refused.then(|| {
        truncate_end(&to_safe_single_line(&reasons_to_refuse_promise(state, evidence).join("; ")), 500)
    });
    // The session is counted even if a limit ends the run, because the run may be resumed with a larger limit.
    let observation = evidence.observation.as_ref();
    // A session that asked the user counts neither as progress nor as no progress, unless it finished an item before.
    let observation = observation
        .filter(|observation| question_outcome == QuestionOutcome::NoEffect || observation.has_finished_item);
    // A session in which only the promise was missing could not make progress. Retries of the promise have their own
    // limit, so the breaker must not end the run first.
    let is_promise_retried = missing_promise == MissingPromiseOutcome::RetryPromise
        && evidence.verify_outcomes.iter().all(|outcome| outcome.passed);
    let counted_observation =
        observation.filter(|observation| !is_promise_retried || observation.has_finished_item);
    let trip = counted_observation.and_then(|observation| {
        breaker::record_session_and_trip_if_due(state, observation, refusal.as_deref(), &settings.breaker)
    });
    let thrash_reason = observation.and_then(|observation| {
        record_checkpoint_and_detect_thrash(state, evidence, observation, settings.thrash)
    });
    let limit_verdict = bounds::stop_or_pause_for_reached_limit(state, &evidence.now)
        .or_else(|| stop_if_only_user_can_restore_protected(evidence));
    if let Some(verdict) = limit_verdict {
        return verdict;
    }
    if let Some(trip) = trip {
        return record_trip_and_stop(state, &trip, &evidence.now);
    }
    if let Some(reason) = thrash_reason {
        return Verdict::Pause { kind: PauseKind::Thrash, pause_end: None, reason };
    }
    if question_outcome == QuestionOutcome::OtherItemsOpen {
        return Verdict::Continue {
            kind: ContinueKind::NextItem,
            reason: describe_ending_and_open_item_count(state, evidence),
        };
    }
    choose_continue_verdict(state, evidence, refusal)
}

/// Returns a stop verdict for a run that is done, or that only the user can continue.
fn completed_or_blocked_verdict(
    state: &RunState,
    evidence: &SessionEvidence,
    completion: &ClaimAssessment,
    question_outcome: &QuestionOutcome,
) -> Option<Verdict> {
    match (completion, question_outcome) {
        (ClaimAssessment::PendingVerification, _)
            if evidence.verify_outcomes.iter().all(|outcome| outcome.passed)
                && !is_review_missing(state, evidence) =>
        {
            let reason = render_ticked_item_and_verify_counts(state, evidence);
            Some(completed_verdict_unless_lines_unclear(state, evidence, reason))
        }
        (_, QuestionOutcome::AllItemsParked(reason))
        | (ClaimAssessment::Blocked(reason), QuestionOutcome::NoEffect) => {
            Some(Verdict::Stop { status: RunStatus::Blocked, reason: reason.clone() })
        }
        (
            ClaimAssessment::Blocked(_)
            | ClaimAssessment::NotClaimed
            | ClaimAssessment::Refused(_)
            | ClaimAssessment::PendingVerification,
            QuestionOutcome::NoEffect | QuestionOutcome::OtherItemsOpen,
        ) => None,
    }
}

fn completed_verdict_unless_lines_unclear(
    state: &RunState,
    evidence: &SessionEvidence,
    completion_reason: String,
) -> Verdict {
    match unclear_lines_reason(state, evidence) {
        Some(reason) => Verdict::Stop { status: RunStatus::Blocked, reason },
        None => Verdict::Stop { status: RunStatus::Completed, reason: completion_reason },
    }
}

/// Returns why the run is not completed although no item is open: some lines of its plan resemble items but do not
/// parse as items.
fn unclear_lines_reason(state: &RunState, evidence: &SessionEvidence) -> Option<String> {
    let file = state.options.todo_file.as_ref()?;
    render_unclear_lines_if_no_item_open(evidence.todo.as_ref()?, file)
}

/// Returns a stop verdict (blocked) if the session ended by itself, every item is ticked, and the plan has lines that
/// resemble items. Only the user can clarify these lines, so another session would cost money and change nothing.
/// Does not apply to a promise that verify commands or a review contradict, because work remains.
fn stop_if_only_unclear_lines_remain(
    state: &RunState,
    evidence: &SessionEvidence,
    completion: &ClaimAssessment,
) -> Option<Verdict> {
    let is_decided_elsewhere =
        matches!(completion, ClaimAssessment::PendingVerification | ClaimAssessment::Blocked(_));
    if is_decided_elsewhere || evidence.ending != SessionEnding::Completed {
        return None;
    }
    let reason = unclear_lines_reason(state, evidence)?;
    Some(Verdict::Stop { status: RunStatus::Blocked, reason })
}

/// Returns true if a review of a ticked item is required before this verdict and could not start. In the Stop hook
/// the review is not required yet.
fn is_review_missing(state: &RunState, evidence: &SessionEvidence) -> bool {
    evidence.observation.is_some() && review::missing_review_reason(state, evidence.todo.as_ref()).is_some()
}

/// Returns true if overload errors keep interrupting sessions that had started work. The run normally waits for the
/// service, but after `MAX_PAUSES` pauses the work itself may be the cause, so the sessions count as iterations.
fn is_repeated_overload_during_work(state: &RunState, evidence: &SessionEvidence) -> bool {
    /// With the backoff between pauses, this many pauses take about ten minutes.
    const MAX_PAUSES: u32 = 8;
    let has_worked = state.iteration_record.tokens > 0;
    matches!(evidence.ending, SessionEnding::Overloaded(_))
        && has_worked
        && state.lifecycle.consecutive_pauses() >= MAX_PAUSES
}

/// Returns a stop verdict if protected files were changed that no session can restore: another session would only
/// cost money.
fn stop_if_only_user_can_restore_protected(evidence: &SessionEvidence) -> Option<Verdict> {
    let changes = truncate_end(&describe_protected_changes(&evidence.protected_file_changes), 280);
    // The advice comes first because displays cut off the end.
    let reason =
        format!("no session can undo this: restore it, and let verify commands write elsewhere: {changes}");
    evidence
        .only_user_can_restore_protected
        .then_some(Verdict::Stop { status: RunStatus::FatalError, reason })
}

/// Returns a stop or pause verdict for a session that could not work and does not count as an iteration. If the run
/// would wait but its budget is spent or its deadline has passed, returns that stop verdict.
fn stop_or_pause_for_ending_or_spent_budget(state: &RunState, evidence: &SessionEvidence) -> Option<Verdict> {
    let verdict = stop_or_pause_for_ending(state, evidence)
        .filter(|_| !is_repeated_overload_during_work(state, evidence))?;
    // A session that is followed by a pause still has a cost, so the budget is checked first.
    let resolves_by_waiting = matches!(&verdict, Verdict::Pause { kind, .. } if kind.resolves_by_waiting());
    let budget_verdict = if resolves_by_waiting {
        bounds::stop_if_budget_spent_or_deadline_passed(state, &evidence.now)
    } else {
        None
    };
    budget_verdict.or(Some(verdict))
}

/// Returns the stop or pause verdict that the session's ending alone requires. Returns `None` if it requires neither.
pub fn stop_or_pause_for_ending(state: &RunState, evidence: &SessionEvidence) -> Option<Verdict> {
    let now = evidence.now.as_str();
    let pause = |kind, until, reason| Some(Verdict::Pause { kind, pause_end: until, reason });
    match &evidence.ending {
        SessionEnding::Fatal(error) => {
            Some(Verdict::Stop { status: RunStatus::FatalError, reason: truncate_end(error.message(), 300) })
        }
        SessionEnding::Limit(message) => {
            // The run does not wait for a reset in the past; without a reset time the pause backoff applies.
            let future_reset = evidence.limit_resets_at.clone().filter(|reset| reset.as_str() > now);
            // Nobody knows how long to wait: the limit of a gateway or an organization may last for a month, or until somebody
            // raises it. Trying again every few minutes would not end, and hide from the user what to do.
            if evidence.limit_resets_at.is_none() && is_spend_limit(message) {
                let error = FatalError::new(FatalErrorKind::SpendLimit, message);
                let reason = truncate_end(error.message(), 300);
                return Some(Verdict::Stop { status: RunStatus::FatalError, reason });
            }
            let reason = format!("usage limit: {}", truncate_end(message, 200));
            let is_after_deadline = future_reset
                .as_ref()
                .zip(state.options.limits.deadline.as_ref())
                .is_some_and(|(reset, deadline)| reset >= deadline);
            if is_after_deadline {
                let reason = format!("{reason}; it resets after the deadline");
                return Some(Verdict::Stop { status: RunStatus::Deadline, reason });
            }
            pause(PauseKind::Limit, future_reset, reason)
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

/// Returns true if money and not time has run out, by the client's message: "You've hit your individual spend limit",
/// "spend limit reached", "service_spend_limit_reached", "You're out of usage credits" (2.1.329 and 2.1.332).
fn is_spend_limit(message: &str) -> bool {
    let message = message.to_lowercase().replace('_', " ");
    message.contains("spend limit") || message.contains("out of usage credits")
}

fn record_trip_and_stop(state: &mut RunState, trip: &BreakerTrip, now: &Timestamp) -> Verdict {
    state.outcomes.breaker.trip = Some(BreakerTrip { tripped_at: now.to_owned(), ..trip.clone() });
    let reason = format!("{}: {}", trip.cause.as_str(), trip.evidence);
    Verdict::Stop { status: RunStatus::CircuitBreaker, reason }
}

/// Records the session's checkpoint. Returns the reason to pause if checkpoints repeat without any item being
/// finished, or if the session started at L2 or above.
fn record_checkpoint_and_detect_thrash(
    state: &mut RunState,
    evidence: &SessionEvidence,
    observation: &SessionObservation,
    limits: ThrashLimits,
) -> Option<String> {
    let checkpoint = &state.context_checkpoint;
    let is_level_checkpoint_of_iteration =
        checkpoint.iteration == state.iteration && checkpoint.cause == CheckpointCause::Level;
    // A session that finished an item is not thrashing, however early its checkpoint was.
    if observation.has_finished_item {
        state.outcomes.breaker.fruitless_checkpoint_times.clear();
    }
    if observation.has_finished_item
        || !is_level_checkpoint_of_iteration
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
    if evidence.started_at_or_above_l2 {
        return Some(format!(
            "{CHECKPOINT_THRASH_PREFIX}the session was at L2 before any work (checkpoint at {percent}%): what is loaded at its start leaves no room"
        ));
    }
    (checkpoint_times.len() >= limits.checkpoints as usize).then(|| {
        format!(
            "{CHECKPOINT_THRASH_PREFIX}{} within {} minutes, and no item finished",
            count_with_noun(checkpoint_times.len(), "checkpoint"),
            limits.minutes
        )
    })
}

fn choose_continue_verdict(
    state: &mut RunState,
    evidence: &SessionEvidence,
    refusal_reason: Option<String>,
) -> Verdict {
    if let Some(reason) = refusal_reason {
        return Verdict::Continue { kind: ContinueKind::RefusedPromise, reason };
    }
    let checkpoint = &state.context_checkpoint;
    if crate::resume::checkpoint_to_resume_or_carry_to_next_item(
        checkpoint,
        evidence.todo.as_ref(),
        &state.plan_items.set_aside_items,
    )
    .is_some()
    {
        return Verdict::Continue { kind: ContinueKind::Checkpoint, reason: checkpoint.handoff_file.clone() };
    }
    Verdict::Continue {
        kind: ContinueKind::NextItem,
        reason: describe_ending_and_open_item_count(state, evidence),
    }
}

fn describe_ending_and_open_item_count(state: &RunState, evidence: &SessionEvidence) -> String {
    let ending_clause = match &evidence.ending {
        SessionEnding::Completed | SessionEnding::HookStopped | SessionEnding::Unknown => String::new(),
        SessionEnding::WindowFull(reason) => format!("the window was full ({reason}); "),
        SessionEnding::ClientLimit(limit_name) => format!("Claude Code's {limit_name} ended the session; "),
        SessionEnding::Crashed(reason) => format!("Claude Code {reason}; "),
        SessionEnding::Failed(error) => format!("the session failed: {}; ", truncate_end(error, 200)),
        SessionEnding::IdleTimeout(reason) => format!("Claude Code was silent ({reason}); "),
        SessionEnding::Overloaded(_) => "the service failed; ".to_owned(),
        SessionEnding::DeadlineReached
        | SessionEnding::Fatal(_)
        | SessionEnding::Limit(_)
        | SessionEnding::Interrupted
        | SessionEnding::Canceled => String::new(),
    };
    let open_count =
        evidence.todo.as_ref().map_or(state.plan_items.todo_items.len(), |todo| todo.open_items().len());
    match &state.options.todo_file {
        Some(_) => {
            format!(
                "{ending_clause}{}{}{}",
                describe_reverted_ticks(state),
                count_with_noun(open_count, "open item"),
                parked_item_count_suffix(state)
            )
        }
        None => format!("{ending_clause}no promise yet"),
    }
}

/// Describes the ticks of this session that were undone; empty if there are none.
fn describe_reverted_ticks(state: &RunState) -> String {
    let reverted_ticks = state.outcomes.reverted_ticks.as_ref().filter(|ticks| ticks.is_pending);
    reverted_ticks
        .map(|ticks| format!("{}; ", truncate_end(&ticks.describe_revert(), 300)))
        .unwrap_or_default()
}

/// Returns a suffix with the number of open items that wait for an answer; empty if there are none.
fn parked_item_count_suffix(state: &RunState) -> String {
    match state.plan_items.parked_questions.len() {
        0 => String::new(),
        1 => ", 1 of them waits for an answer".to_owned(),
        count => format!(", {count} of them wait for answers"),
    }
}

#[cfg(test)]
mod tests;
