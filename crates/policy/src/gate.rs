//! The gate: end the run, wait, or continue with a fresh session. One pure function for the Stop hook (which
//! judges provisionally) and for `plimsoll run` and `plimsoll gate` (which judge finally).

use crate::bounds;
use crate::breaker::{self, Observation};
use crate::completion::{
    Completion, Unpromised, completed_words, completion, promise_failures, refusal_reasons, unpromised,
};
pub use crate::evidence::Evidence;
use crate::questions::{Asking, asking};
use crate::review;
use crate::todo_list::unclear_at_end;
use plimsoll_domain::breaker::Opened;
use plimsoll_domain::protected::describe_changes;
use plimsoll_domain::settings::{Settings, Thrash};
use plimsoll_domain::state::Cause;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::{ContinueKind, PauseKind};
use plimsoll_domain::{Ending, RunState, Status, Timestamp, Verdict};

/// Judges, in the order of the design: cancelled, completed or blocked, fatal, limits, bounds, protected files that only the
/// user can restore, breaker, continue. A session that is blocked ends the run only if no other item is open.
/// Completion comes before the limits, so that a promise on the last iteration counts. The state takes the
/// verdict; an active checkpoint is left as it is, for the next prompt to carry on.
pub fn gate(state: &mut RunState, evidence: &Evidence, settings: &Settings) -> Verdict {
    let verdict = judge(state, evidence, settings);
    state.outcomes.refusals = match &verdict {
        Verdict::Continue { kind: ContinueKind::Refused, .. } => refusal_reasons(state, evidence),
        Verdict::Pause { .. } => std::mem::take(&mut state.outcomes.refusals),
        Verdict::Continue { .. } | Verdict::Stop { .. } => Vec::new(),
    };
    state.lifecycle.take(&verdict);
    verdict
}

fn judge(state: &mut RunState, evidence: &Evidence, settings: &Settings) -> Verdict {
    if state.lifecycle.is_over() {
        return Verdict::Stop { status: state.lifecycle.status(), reason: String::new() };
    }
    let completion = completion(state, evidence);
    let asking = asking(state, evidence, &completion);
    if let Some(verdict) = done_or_blocked(state, evidence, &completion, &asking) {
        return verdict;
    }
    if let Some(verdict) = blocked_by_unclear_lines(state, evidence, &completion) {
        return verdict;
    }
    let unpromised = unpromised(state, evidence);
    state.outcomes.promise_failures = promise_failures(state, evidence);
    match &unpromised {
        Unpromised::Completed(_) if is_review_missing(state, evidence) => {}
        Unpromised::Completed(reason) => {
            return Verdict::Stop { status: Status::Completed, reason: reason.clone() };
        }
        Unpromised::Blocked(reason) => {
            return Verdict::Stop { status: Status::Blocked, reason: reason.clone() };
        }
        Unpromised::No | Unpromised::AskAgain | Unpromised::Undecided | Unpromised::Fails => {}
    }
    if let Some(verdict) = stopped_by_its_ending(state, evidence) {
        return verdict;
    }
    let refused = asking == Asking::No
        && (matches!(completion, Completion::Refused(_) | Completion::Plausible)
            || unpromised == Unpromised::Fails);
    let refusal = refused.then(|| clip(&one_line(&refusal_reasons(state, evidence).join("; ")), 500));
    // Counted also where a bound ends the run: it may be resumed with a larger one.
    let seen = evidence.observation.as_ref();
    // That it asked is neither progress nor a standstill; an item that it finished before counts.
    let seen = seen.filter(|seen| asking == Asking::No || seen.finished);
    // A session that had nothing left to do but the promise could not move anything. That it is asked once more is
    // bounded by itself, so the breaker must not end the run before.
    let is_asked_again =
        unpromised == Unpromised::AskAgain && evidence.verify.iter().all(|outcome| outcome.passed);
    let counted = seen.filter(|seen| !is_asked_again || seen.finished);
    let opened =
        counted.and_then(|seen| breaker::observe(state, seen, refusal.as_deref(), &settings.breaker));
    let is_thrashing = seen.and_then(|seen| thrash(state, evidence, seen, settings.thrash));
    let ended = bounds::reached(state, &evidence.now).or_else(|| stopped_by_protected_files(evidence));
    if let Some(verdict) = ended {
        return verdict;
    }
    if let Some(opened) = opened {
        return open_breaker(state, &opened, &evidence.now);
    }
    if let Some(reason) = is_thrashing {
        return Verdict::Pause { kind: PauseKind::Thrash, until: None, reason };
    }
    if asking == Asking::OthersOpen {
        return Verdict::Continue { kind: ContinueKind::Next, reason: next_words(state, evidence) };
    }
    go_on(state, evidence, refusal)
}

/// The end of a run that is done, or that nobody but the user can continue.
fn done_or_blocked(
    state: &RunState,
    evidence: &Evidence,
    completion: &Completion,
    asking: &Asking,
) -> Option<Verdict> {
    match (completion, asking) {
        (Completion::Plausible, _)
            if evidence.verify.iter().all(|outcome| outcome.passed)
                && !is_review_missing(state, evidence) =>
        {
            let unclear = unclear_lines(state, evidence);
            Some(unclear.map_or_else(
                || Verdict::Stop { status: Status::Completed, reason: completed_words(state, evidence) },
                |reason| Verdict::Stop { status: Status::Blocked, reason },
            ))
        }
        (_, Asking::NothingElse(reason)) | (Completion::Blocked(reason), Asking::No) => {
            Some(Verdict::Stop { status: Status::Blocked, reason: reason.clone() })
        }
        (
            Completion::Blocked(_) | Completion::NotClaimed | Completion::Refused(_) | Completion::Plausible,
            Asking::No | Asking::OthersOpen,
        ) => None,
    }
}

/// Why the run is not completed although nothing is open: lines of its plan look like items and are none.
fn unclear_lines(state: &RunState, evidence: &Evidence) -> Option<String> {
    let file = state.options.todo_file.as_ref()?;
    unclear_at_end(evidence.todo.as_ref()?, file)
}

/// The end of a run whose session ended by itself and left nothing open but lines that only look like items. Only the user can
/// say what these are, so another session would cost money and change nothing. A promise that the verify commands or a review
/// contradict is judged first: there is work left.
fn blocked_by_unclear_lines(
    state: &RunState,
    evidence: &Evidence,
    completion: &Completion,
) -> Option<Verdict> {
    let is_judged_otherwise = matches!(completion, Completion::Plausible | Completion::Blocked(_));
    if is_judged_otherwise || evidence.ending != Ending::Completed {
        return None;
    }
    let reason = unclear_lines(state, evidence)?;
    Some(Verdict::Stop { status: Status::Blocked, reason })
}

/// Returns true if the review of a ticked item had to come before this verdict, and could not begin. At Stop it has not been
/// due yet.
fn is_review_missing(state: &RunState, evidence: &Evidence) -> bool {
    evidence.observation.is_some() && review::missing_review(state, evidence.todo.as_ref()).is_some()
}

/// A failing service is waited for; but what breaks one session after another in the middle of
/// its work may well be the work: from then on each of them counts.
fn keeps_breaking_off(state: &RunState, evidence: &Evidence) -> bool {
    /// With the backoff of a pause these are about ten minutes.
    const MOST_PAUSES: u32 = 8;
    let has_worked = state.iteration_record.tokens > 0;
    matches!(evidence.ending, Ending::Overloaded(_))
        && has_worked
        && state.lifecycle.pauses_in_a_row() >= MOST_PAUSES
}

/// The end of a run with protected files that no session can restore: another one would only cost money.
fn stopped_by_protected_files(evidence: &Evidence) -> Option<Verdict> {
    let changes = clip(&describe_changes(&evidence.changed_protected), 280);
    // Advice first: the end is cut off where it is shown.
    let reason =
        format!("no session can undo this: restore it, and let verify commands write elsewhere: {changes}");
    evidence.protected_needs_user.then_some(Verdict::Stop { status: Status::FatalError, reason })
}

/// A session that could not work is no iteration: the run ends, or waits.
fn stopped_by_its_ending(state: &RunState, evidence: &Evidence) -> Option<Verdict> {
    let verdict = verdict_of_its_ending(state, evidence).filter(|_| !keeps_breaking_off(state, evidence))?;
    // A session that is not counted has cost something all the same.
    let passes = matches!(&verdict, Verdict::Pause { kind, .. } if kind.passes());
    let spent = if passes { bounds::spent(state, &evidence.now) } else { None };
    spent.or(Some(verdict))
}

/// What a session's end alone means for the run: it ends, or waits; none if neither follows from it.
pub fn verdict_of_its_ending(state: &RunState, evidence: &Evidence) -> Option<Verdict> {
    let now = evidence.now.as_str();
    let pause = |kind, until, reason| Some(Verdict::Pause { kind, until, reason });
    match &evidence.ending {
        Ending::Fatal(fatal) => {
            Some(Verdict::Stop { status: Status::FatalError, reason: clip(fatal.words(), 300) })
        }
        Ending::Limit(words) => {
            // A reset that has passed is nothing to wait for: without a moment the backoff of a pause counts.
            let until = evidence.resets_at.clone().filter(|reset| reset.as_str() > now);
            let reason = format!("usage limit: {}", clip(words, 200));
            let too_late = until
                .as_ref()
                .zip(state.options.limits.deadline.as_ref())
                .is_some_and(|(reset, end)| reset >= end);
            if too_late {
                let reason = format!("{reason}; it resets after the deadline");
                return Some(Verdict::Stop { status: Status::Deadline, reason });
            }
            pause(PauseKind::Limit, until, reason)
        }
        Ending::Overloaded(words) => {
            pause(PauseKind::Overload, None, format!("overloaded: {}", clip(words, 200)))
        }
        Ending::Interrupted => pause(PauseKind::Interrupted, None, "interrupted".to_owned()),
        Ending::Completed
        | Ending::HookStopped
        | Ending::WindowFull(_)
        | Ending::ClientLimit(_)
        | Ending::Silent(_)
        | Ending::OutOfTime
        | Ending::Cancelled
        | Ending::Crashed(_)
        | Ending::Failed(_)
        | Ending::Unknown => None,
    }
}

fn open_breaker(state: &mut RunState, opened: &Opened, now: &Timestamp) -> Verdict {
    state.outcomes.breaker.opened = Some(Opened { at: now.to_owned(), ..opened.clone() });
    let reason = format!("{}: {}", opened.cause.word(), opened.evidence);
    Verdict::Stop { status: Status::CircuitBreaker, reason }
}

/// Why checkpoints follow one another and nothing gets done, if so.
fn thrash(state: &mut RunState, evidence: &Evidence, seen: &Observation, rule: Thrash) -> Option<String> {
    let checkpoint = &state.context_checkpoint;
    let is_fresh = checkpoint.iteration == state.iteration && checkpoint.cause == Cause::Level;
    // A session that finished an item was no thrash, however soon its checkpoint came.
    if seen.finished {
        state.outcomes.breaker.fruitless_checkpoints_at.clear();
    }
    if seen.finished || !is_fresh || !checkpoint.active || rule.checkpoints == 0 {
        return None;
    }
    let now = evidence.now_seconds;
    let percent = checkpoint.percent_at_checkpoint.unwrap_or(0);
    let times = &mut state.outcomes.breaker.fruitless_checkpoints_at;
    times.push(now);
    times.retain(|at| now - at <= i64::from(rule.minutes) * 60);
    if evidence.started_above {
        return Some(format!(
            "checkpoint thrash: the session was at L2 before any work (checkpoint at {percent}%): what is loaded at its start leaves no room"
        ));
    }
    (times.len() >= rule.checkpoints as usize).then(|| {
        format!(
            "checkpoint thrash: {} within {} minutes, and no item finished",
            counted(times.len(), "checkpoint"),
            rule.minutes
        )
    })
}

fn go_on(state: &mut RunState, evidence: &Evidence, refusal: Option<String>) -> Verdict {
    if let Some(reason) = refusal {
        return Verdict::Continue { kind: ContinueKind::Refused, reason };
    }
    let checkpoint = &state.context_checkpoint;
    if crate::resume::due(checkpoint, evidence.todo.as_ref(), &state.items.set_aside).is_some() {
        return Verdict::Continue { kind: ContinueKind::Checkpoint, reason: checkpoint.handoff_file.clone() };
    }
    Verdict::Continue { kind: ContinueKind::Next, reason: next_words(state, evidence) }
}

fn next_words(state: &RunState, evidence: &Evidence) -> String {
    let ending = match &evidence.ending {
        Ending::Completed | Ending::HookStopped | Ending::Unknown => String::new(),
        Ending::WindowFull(why) => format!("the window was full ({why}); "),
        Ending::ClientLimit(which) => format!("the client's {which} ended the session; "),
        Ending::Crashed(why) => format!("the client {why}; "),
        Ending::Failed(words) => format!("the session failed: {}; ", clip(words, 200)),
        Ending::Silent(why) => format!("the client was silent ({why}); "),
        Ending::Overloaded(_) => "the service failed; ".to_owned(),
        Ending::OutOfTime | Ending::Fatal(_) | Ending::Limit(_) | Ending::Interrupted | Ending::Cancelled => {
            String::new()
        }
    };
    let open = evidence.todo.as_ref().map_or(state.items.todo_items.len(), |todo| todo.open().len());
    match &state.options.todo_file {
        Some(_) => {
            format!("{ending}{}{}{}", taken_back(state), counted(open, "open item"), waiting(state))
        }
        None => format!("{ending}no promise yet"),
    }
}

/// That ticks of this session were taken back.
fn taken_back(state: &RunState) -> String {
    let taken = state.outcomes.taken_back.as_ref().filter(|taken| taken.is_pending);
    taken.map(|taken| format!("{}; ", clip(&taken.words(), 300))).unwrap_or_default()
}

/// How many of the open items wait for an answer.
fn waiting(state: &RunState) -> String {
    match state.items.parked.len() {
        0 => String::new(),
        1 => ", 1 of them waits for an answer".to_owned(),
        many => format!(", {many} of them wait for answers"),
    }
}

#[cfg(test)]
mod tests;
