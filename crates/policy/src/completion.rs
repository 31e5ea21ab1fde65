//! Decides whether a run is done: the agent's claim, and the facts that contradict it.

use crate::evidence::SessionEvidence;
pub use crate::evidence::VerifyOutcome;
use crate::near_miss::{NearMiss, find_near_miss};
use crate::review::missing_review_reason;
use plimsoll_domain::item_set;
use plimsoll_domain::promise::{self, PromiseClaim};
use plimsoll_domain::protected::describe_protected_changes;
use plimsoll_domain::text::{count_with_noun, truncate_end};
use plimsoll_domain::{RunState, SessionEnding, TodoList};

/// The agent's claim, checked against everything except the verify commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionClaim {
    /// No promise was made.
    NotClaimed,
    /// The agent reports that it cannot continue.
    Blocked(String),
    /// The promise is refused, for these reasons: its form is wrong, or something is not done.
    Refused(Vec<String>),
    /// Nothing contradicts the promise; the verify commands decide.
    Uncontradicted,
}

/// The most item names listed in a refusal.
const MAX_NAMES_LISTED: usize = 5;

/// Checks the promise (the promise line, or the pop of the root frame) against the items and protected files.
pub fn assess_completion(state: &RunState, evidence: &SessionEvidence) -> CompletionClaim {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    match promise::parse_claim_on_last_line(message, &state.options.completion_promise, &state.promise_code) {
        PromiseClaim::None if state.options.ends_with_last_tick() => {
            let is_done = completion_objections(state, evidence).is_empty() && has_ticked_items(evidence);
            let is_plausible = is_done && can_complete_without_promise(state, &evidence.ending);
            if is_plausible { CompletionClaim::Uncontradicted } else { CompletionClaim::NotClaimed }
        }
        PromiseClaim::None if !evidence.is_root_frame_popped => match promise_near_miss(state, message) {
            Some(near_miss) => {
                let reasons = std::iter::once(describe_near_miss(state, &near_miss));
                CompletionClaim::Refused(reasons.chain(completion_objections(state, evidence)).collect())
            }
            None => CompletionClaim::NotClaimed,
        },
        PromiseClaim::Blocked(reason) => CompletionClaim::Blocked(reason),
        PromiseClaim::None | PromiseClaim::Complete => {
            let reasons = completion_objections(state, evidence);
            if reasons.is_empty() {
                CompletionClaim::Uncontradicted
            } else {
                CompletionClaim::Refused(reasons)
            }
        }
    }
}

fn has_ticked_items(evidence: &SessionEvidence) -> bool {
    evidence.todo.as_ref().is_some_and(|todo| !todo.ticked_items().is_empty())
}

/// Returns true if ticks count without a promise after a session with this ending. If the session did not
/// finish by itself, they count only if verify commands can confirm them. Endings caused from outside are
/// judged elsewhere, before this.
fn can_complete_without_promise(state: &RunState, ending: &SessionEnding) -> bool {
    match ending {
        SessionEnding::Completed
        | SessionEnding::HookStopped
        | SessionEnding::WindowFull(_)
        | SessionEnding::ClientLimit(_) => true,
        SessionEnding::IdleTimeout(_)
        | SessionEnding::DeadlineReached
        | SessionEnding::Crashed(_)
        | SessionEnding::Failed(_)
        | SessionEnding::Unknown => !state.options.all_verify_commands().is_empty(),
        SessionEnding::Limit(_)
        | SessionEnding::Overloaded(_)
        | SessionEnding::Fatal(_)
        | SessionEnding::Interrupted
        | SessionEnding::Canceled => false,
    }
}

/// Returns true if a last message reports that the session cannot continue.
pub fn is_blocked_claim(state: &RunState, last_message: Option<&str>) -> bool {
    let text = last_message.unwrap_or_default();
    let claim =
        promise::parse_claim_on_last_line(text, &state.options.completion_promise, &state.promise_code);
    matches!(claim, PromiseClaim::Blocked(_))
}

fn promise_near_miss(state: &RunState, message: &str) -> Option<NearMiss> {
    find_near_miss(message, &state.options.completion_promise, &state.promise_code)
}

/// Describes the line that was meant as the promise, and the exact line that is required.
fn describe_near_miss(state: &RunState, near_miss: &NearMiss) -> String {
    let line = if near_miss.claims_blocked {
        promise::render_blocked_line(&state.promise_code, "REASON")
    } else {
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code)
    };
    let competing_promise = promise::find_other_promise(
        &state.options.objective,
        &state.options.completion_promise,
        &state.promise_code,
    );
    let competing_clause = competing_promise.map_or(String::new(), |rival| {
        format!("; the task text names `{rival}`, but this line counts, whatever another text says")
    });
    format!(
        "the promise line did not count (it was \"{}\"): the last line of the last message must be exactly `{line}`, as plain text{competing_clause}",
        near_miss.quoted_line
    )
}

/// After this many missing promises in a row the run stops asking for the promise, if nothing else can decide.
const MAX_PROMISE_FAILURES: u32 = 2;

/// The result for a session that left nothing to do but the promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MissingPromise {
    /// Not applicable: something is left to do, the promise was made, or the session did not end by itself.
    NotApplicable,
    /// The promise is missing, and the next session is asked for it again.
    RetryPromise,
    /// The verify commands decide, and have not run yet.
    VerifyPending,
    VerifyFailed,
    /// Everything else shows that the run is done.
    Completed(String),
    /// The promise was missing too often, and nothing else could show that the run is done.
    Blocked(String),
}

/// Returns the number of missing promises in a row, including this session's. Work that is left resets it; a
/// session that did not end by itself leaves it unchanged.
pub(crate) fn count_promise_failures(state: &RunState, evidence: &SessionEvidence) -> u32 {
    if lacks_only_promise(state, evidence) {
        return state.outcomes.promise_failures.saturating_add(1);
    }
    let has_objections = !completion_objections(state, evidence).is_empty();
    // Without a plan, a session that makes no promise simply continued the work.
    let has_continued_work = state.options.todo_file.is_none() && evidence.ending == SessionEnding::Completed;
    if has_objections || has_continued_work { 0 } else { state.outcomes.promise_failures }
}

/// Returns true if a session that ended by itself left nothing to do but the promise: it made a near miss, or
/// it ticked every item and claimed nothing.
fn lacks_only_promise(state: &RunState, evidence: &SessionEvidence) -> bool {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let has_no_claim =
        promise::parse_claim_on_last_line(message, &state.options.completion_promise, &state.promise_code)
            == PromiseClaim::None;
    if !has_no_claim || evidence.is_root_frame_popped || evidence.ending != SessionEnding::Completed {
        return false;
    }
    // In such a run no promise was asked for.
    if state.options.ends_with_last_tick() || !completion_objections(state, evidence).is_empty() {
        return false;
    }
    match promise_near_miss(state, message) {
        Some(near_miss) => !near_miss.claims_blocked,
        None => state.options.todo_file.is_some() && has_ticked_items(evidence),
    }
}

/// Returns true if the verify commands must run before the verdict because nothing else contradicts completion.
pub fn needs_verify_commands(state: &RunState, evidence: &SessionEvidence) -> bool {
    if state.options.all_verify_commands().is_empty() {
        return false;
    }
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let is_near_miss =
        promise_near_miss(state, message).is_some() && completion_objections(state, evidence).is_empty();
    assess_completion(state, evidence) == CompletionClaim::Uncontradicted
        || is_near_miss
        || judge_missing_promise(state, evidence) == MissingPromise::VerifyPending
}

pub(crate) fn judge_missing_promise(state: &RunState, evidence: &SessionEvidence) -> MissingPromise {
    if !lacks_only_promise(state, evidence) {
        return MissingPromise::NotApplicable;
    }
    // If commands can decide, another session would cost money only to repeat their result.
    let commands_decide = !state.options.all_verify_commands().is_empty() && !state.options.strict_promise;
    if !commands_decide && count_promise_failures(state, evidence) < MAX_PROMISE_FAILURES {
        return MissingPromise::RetryPromise;
    }
    if evidence.verify_outcomes.iter().any(|outcome| !outcome.passed) {
        return MissingPromise::VerifyFailed;
    }
    let has_run = !evidence.verify_outcomes.is_empty();
    if state.options.all_verify_commands().is_empty() || (has_run && state.options.strict_promise) {
        MissingPromise::Blocked(describe_missing_promise(state, evidence))
    } else if has_run {
        MissingPromise::Completed(format!("{}, without the promise", describe_completed_run(state, evidence)))
    } else {
        MissingPromise::VerifyPending
    }
}

/// Describes why a run ends although only the promise is missing, and what the user can do.
fn describe_missing_promise(state: &RunState, evidence: &SessionEvidence) -> String {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let given_text = match promise_near_miss(state, message) {
        Some(near_miss) => format!("it was \"{}\"", near_miss.quoted_line),
        None => "it was left out".to_owned(),
    };
    let done_clause = match &state.options.todo_file {
        Some(file) => format!("every item of {file} is ticked, but "),
        None => String::new(),
    };
    let (failure_count, line) = (
        MAX_PROMISE_FAILURES,
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code),
    );
    let advice = if state.options.all_verify_commands().is_empty() {
        "check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide"
    } else {
        "the verify commands passed, but --strict-promise asks for the line: plimsoll run --resume --strict-promise=false lets them decide"
    };
    format!(
        "{done_clause}the promise line was not given as asked, {failure_count} times ({given_text} and must be `{line}`); {advice}"
    )
}

fn completion_objections(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    describe_changed_protected_files(evidence)
        .into_iter()
        .chain(describe_remaining_items(state, evidence.todo.as_ref()))
        .collect()
}

fn describe_changed_protected_files(evidence: &SessionEvidence) -> Option<String> {
    let changes = &evidence.changed_protected;
    (!changes.is_empty()).then(|| describe_protected_changes(changes))
}

fn describe_remaining_items(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let Some(file) = &state.options.todo_file else { return Vec::new() };
    let Some(todo) = todo else {
        return vec![format!(
            "the to-do file {file} is missing, with {}",
            count_with_noun(state.plan_items.known_items.len(), "known item")
        )];
    };
    let mut reasons = Vec::new();
    let open = todo.open_items();
    if !open.is_empty() {
        let verb = if open.len() == 1 { "is" } else { "are" };
        reasons.push(format!(
            "{} {verb} open in {file}: {}",
            count_with_noun(open.len(), "item"),
            render_item_names(&open)
        ));
    }
    // An item that was ticked once and removed from the plan later counts as done.
    let unticked =
        item_set::items_not_in(&state.plan_items.known_items, &[&state.plan_items.ever_ticked_items]);
    let vanished = todo.find_missing_items(&unticked);
    if !vanished.is_empty() {
        reasons.push(format!(
            "{} vanished unticked from {file}: {}",
            count_with_noun(vanished.len(), "item"),
            render_item_names(&vanished)
        ));
    }
    reasons
}

fn render_item_names(items: &[String]) -> String {
    let listed = items
        .iter()
        .take(MAX_NAMES_LISTED)
        .map(|item| format!("\"{}\"", truncate_end(item, 80)))
        .collect::<Vec<_>>()
        .join(", ");
    let omitted_count = items.len().saturating_sub(MAX_NAMES_LISTED);
    if omitted_count > 0 { format!("{listed} and {omitted_count} more") } else { listed }
}

/// Describes what a completed run has achieved.
pub(crate) fn describe_completed_run(state: &RunState, evidence: &SessionEvidence) -> String {
    let mut parts = Vec::new();
    if state.options.todo_file.is_some()
        && let Some(todo) = &evidence.todo
    {
        parts.push(count_with_noun(todo.ticked_items().len(), "item"));
    }
    if !evidence.verify_outcomes.is_empty() {
        parts.push(format!("{} passed", count_with_noun(evidence.verify_outcomes.len(), "verify command")));
    }
    if parts.is_empty() { "promised".to_owned() } else { parts.join(", ") }
}

/// Returns the reasons why a promise is refused.
pub(crate) fn refusal_reasons(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    let mut reasons = match assess_completion(state, evidence) {
        CompletionClaim::Refused(reasons) => reasons,
        CompletionClaim::NotClaimed => {
            vec!["every item is ticked, and the promise line was left out".to_owned()]
        }
        CompletionClaim::Blocked(_) => Vec::new(),
        CompletionClaim::Uncontradicted => {
            missing_review_reason(state, evidence.todo.as_ref()).into_iter().collect()
        }
    };
    // The commands that caused unticking are reported first in the next prompt, so they are not repeated here.
    let taken_back = state.outcomes.reverted_ticks.as_ref().filter(|taken| taken.is_pending);
    let is_already_reported = |command: &str| {
        taken_back.is_some_and(|taken_back| {
            taken_back.failed_commands.iter().any(|failed| failed.command == command)
        })
    };
    let failed = evidence
        .verify_outcomes
        .iter()
        .filter(|outcome| !outcome.passed && !is_already_reported(&outcome.command));
    reasons.extend(failed.map(|outcome| format!("verify command `{}` {}", outcome.command, outcome.summary)));
    reasons
}
