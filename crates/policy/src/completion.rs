//! Decides whether a run is done: checks the agent's claim against the plan and the protected files.

use crate::bounds;
use crate::evidence::SessionEvidence;
pub use crate::evidence::VerifyOutcome;
use crate::near_miss::{NearMiss, find_near_miss};
use crate::review::missing_review_reason;
use plimsoll_domain::item_set;
use plimsoll_domain::promise::{self, PromiseClaim};
use plimsoll_domain::protected::describe_protected_changes;
use plimsoll_domain::text::{count_with_noun, truncate_end};
use plimsoll_domain::{RunState, SessionEnding, TodoList};

/// The agent's claim after checking it against everything except the verify commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimAssessment {
    /// No promise was made.
    NotClaimed,
    /// The agent reports that it cannot continue.
    Blocked(String),
    /// The promise is refused for these reasons: its form is wrong, or something is not done.
    Refused(Vec<String>),
    /// Nothing contradicts the promise; the verify commands decide.
    PendingVerification,
}

/// The maximum number of item names listed in a refusal.
const MAX_LISTED_ITEM_NAMES: usize = 5;

/// Checks the promise (the promise line, or the pop of the root frame) against the items and protected files.
pub fn assess_completion_claim(state: &RunState, evidence: &SessionEvidence) -> ClaimAssessment {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    match promise::parse_claim_on_last_line(message, &state.options.completion_promise, &state.promise_code) {
        PromiseClaim::None if state.options.completes_without_promise() => {
            let are_items_done = open_item_and_protected_file_objections(state, evidence).is_empty()
                && has_ticked_items(evidence);
            let may_be_complete =
                are_items_done && ending_allows_completion_without_promise(state, &evidence.ending);
            if may_be_complete { ClaimAssessment::PendingVerification } else { ClaimAssessment::NotClaimed }
        }
        PromiseClaim::None if !evidence.is_root_frame_popped => {
            match find_promise_near_miss(state, message) {
                Some(near_miss) => {
                    let reasons = std::iter::once(describe_promise_near_miss(state, &near_miss));
                    ClaimAssessment::Refused(
                        reasons.chain(open_item_and_protected_file_objections(state, evidence)).collect(),
                    )
                }
                None => ClaimAssessment::NotClaimed,
            }
        }
        PromiseClaim::Blocked(reason) => ClaimAssessment::Blocked(reason),
        PromiseClaim::None | PromiseClaim::Complete => {
            let reasons = open_item_and_protected_file_objections(state, evidence);
            if reasons.is_empty() {
                ClaimAssessment::PendingVerification
            } else {
                ClaimAssessment::Refused(reasons)
            }
        }
    }
}

fn has_ticked_items(evidence: &SessionEvidence) -> bool {
    evidence.todo.as_ref().is_some_and(|todo| !todo.ticked_items().is_empty())
}

/// Returns true if a run may complete without a promise after a session with this ending. After a timeout or a
/// failure it may do so only if there are verify commands to confirm the ticks. Limits, overloads and interruptions
/// are judged before this.
fn ending_allows_completion_without_promise(state: &RunState, ending: &SessionEnding) -> bool {
    match ending {
        SessionEnding::Completed
        | SessionEnding::HookStopped
        | SessionEnding::WindowFull(_)
        | SessionEnding::ClientLimit(_) => true,
        SessionEnding::IdleTimeout(_)
        | SessionEnding::DeadlineReached
        | SessionEnding::Crashed(_)
        | SessionEnding::Failed(_)
        | SessionEnding::Unknown => !state.options.unique_verify_and_check_commands().is_empty(),
        SessionEnding::Limit(_)
        | SessionEnding::Overloaded(_)
        | SessionEnding::Fatal(_)
        | SessionEnding::Interrupted
        | SessionEnding::Canceled => false,
    }
}

/// Returns true if a last message reports that the session cannot continue.
pub fn claims_to_be_blocked(state: &RunState, last_message: Option<&str>) -> bool {
    let text = last_message.unwrap_or_default();
    let claim =
        promise::parse_claim_on_last_line(text, &state.options.completion_promise, &state.promise_code);
    matches!(claim, PromiseClaim::Blocked(_))
}

fn find_promise_near_miss(state: &RunState, message: &str) -> Option<NearMiss> {
    find_near_miss(message, &state.options.completion_promise, &state.promise_code)
}

/// Describes the line that resembles the promise, and the exact line that is required.
fn describe_promise_near_miss(state: &RunState, near_miss: &NearMiss) -> String {
    let required_line = if near_miss.claims_blocked {
        promise::render_blocked_line(&state.promise_code, "REASON")
    } else {
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code)
    };
    let conflicting_promise = promise::find_conflicting_promise(
        &state.options.objective,
        &state.options.completion_promise,
        &state.promise_code,
    );
    let conflicting_promise_clause = conflicting_promise.map_or(String::new(), |other_promise| {
        format!("; the task text names `{other_promise}`, but this line counts, whatever another text says")
    });
    format!(
        "the promise line did not count (it was \"{}\"): the last line of the last message must be exactly `{required_line}`, as plain text{conflicting_promise_clause}",
        near_miss.quoted_line
    )
}

/// After this many consecutive missing promises the run stops asking for the promise.
const MAX_CONSECUTIVE_MISSING_PROMISES: u32 = 2;

/// The outcome of a session after which only the promise is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MissingPromiseOutcome {
    /// Something remains to be done, the promise was made, or the session did not end by itself.
    NotApplicable,
    /// The next session is asked for the promise again.
    RetryPromise,
    /// The verify commands decide, and they have not run yet.
    VerifyPending,
    VerifyFailed,
    /// Everything else shows that the run is done.
    Completed(String),
    /// The promise was missing too often, and nothing else can show that the run is done.
    Blocked(String),
}

/// Returns how many sessions in a row lacked only the promise, including this one. Open items, changed protected files,
/// or a session that ended by itself in a run without a plan reset the count to zero. Any other session leaves it
/// unchanged.
pub(crate) fn consecutive_missing_promises_after_session(
    state: &RunState,
    evidence: &SessionEvidence,
) -> u32 {
    if lacks_only_promise(state, evidence) {
        return state.outcomes.promise_failures.saturating_add(1);
    }
    let has_objections = !open_item_and_protected_file_objections(state, evidence).is_empty();
    // Without a plan, a session that makes no promise simply continued the work.
    let has_ended_by_itself_without_plan =
        state.options.todo_file.is_none() && evidence.ending == SessionEnding::Completed;
    if has_objections || has_ended_by_itself_without_plan { 0 } else { state.outcomes.promise_failures }
}

/// Returns true if only the promise is missing: the session made a near miss, or it ticked every item and claimed
/// nothing.
fn lacks_only_promise(state: &RunState, evidence: &SessionEvidence) -> bool {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let has_no_claim =
        promise::parse_claim_on_last_line(message, &state.options.completion_promise, &state.promise_code)
            == PromiseClaim::None;
    if !has_no_claim || evidence.is_root_frame_popped || !ending_allows_missing_promise(state, evidence) {
        return false;
    }
    // A run that ends with the last tick asks for no promise.
    if state.options.completes_without_promise()
        || !open_item_and_protected_file_objections(state, evidence).is_empty()
    {
        return false;
    }
    match find_promise_near_miss(state, message) {
        Some(near_miss) => !near_miss.claims_blocked,
        None => state.options.todo_file.is_some() && has_ticked_items(evidence),
    }
}

/// Returns true if the session could have made the promise, because it ended by itself, or if a limit prevents the
/// session that would make it. In the second case commands must decide: without them, the run is continued after the limit.
fn ending_allows_missing_promise(state: &RunState, evidence: &SessionEvidence) -> bool {
    match evidence.ending {
        SessionEnding::Completed => true,
        SessionEnding::HookStopped
        | SessionEnding::WindowFull(_)
        | SessionEnding::ClientLimit(_)
        | SessionEnding::DeadlineReached => {
            verify_commands_can_replace_promise(state)
                && bounds::stop_or_pause_for_reached_limit(state, &evidence.now).is_some()
        }
        SessionEnding::Fatal(_)
        | SessionEnding::Limit(_)
        | SessionEnding::Overloaded(_)
        | SessionEnding::Interrupted
        | SessionEnding::Canceled
        | SessionEnding::IdleTimeout(_)
        | SessionEnding::Crashed(_)
        | SessionEnding::Failed(_)
        | SessionEnding::Unknown => false,
    }
}

fn verify_commands_can_replace_promise(state: &RunState) -> bool {
    !state.options.unique_verify_and_check_commands().is_empty() && !state.options.strict_promise
}

/// Returns true if the verify commands must run before the verdict because nothing else prevents completion.
pub fn needs_verify_commands_before_verdict(state: &RunState, evidence: &SessionEvidence) -> bool {
    if state.options.unique_verify_and_check_commands().is_empty() {
        return false;
    }
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let is_near_miss = find_promise_near_miss(state, message).is_some()
        && open_item_and_protected_file_objections(state, evidence).is_empty();
    assess_completion_claim(state, evidence) == ClaimAssessment::PendingVerification
        || is_near_miss
        || decide_after_missing_promise(state, evidence) == MissingPromiseOutcome::VerifyPending
}

pub(crate) fn decide_after_missing_promise(
    state: &RunState,
    evidence: &SessionEvidence,
) -> MissingPromiseOutcome {
    if !lacks_only_promise(state, evidence) {
        return MissingPromiseOutcome::NotApplicable;
    }
    // If commands can decide, another session would cost money only to repeat their result.
    if !verify_commands_can_replace_promise(state)
        && consecutive_missing_promises_after_session(state, evidence) < MAX_CONSECUTIVE_MISSING_PROMISES
    {
        return MissingPromiseOutcome::RetryPromise;
    }
    if evidence.verify_outcomes.iter().any(|outcome| !outcome.passed) {
        return MissingPromiseOutcome::VerifyFailed;
    }
    let has_verify_run = !evidence.verify_outcomes.is_empty();
    if state.options.unique_verify_and_check_commands().is_empty()
        || (has_verify_run && state.options.strict_promise)
    {
        MissingPromiseOutcome::Blocked(describe_block_for_missing_promise(state, evidence))
    } else if has_verify_run {
        MissingPromiseOutcome::Completed(format!(
            "{}, without the promise",
            render_ticked_item_and_verify_counts(state, evidence)
        ))
    } else {
        MissingPromiseOutcome::VerifyPending
    }
}

/// Describes why the run stops as blocked although only the promise is missing, and what the user can do.
fn describe_block_for_missing_promise(state: &RunState, evidence: &SessionEvidence) -> String {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let actual_line_text = match find_promise_near_miss(state, message) {
        Some(near_miss) => format!("it was \"{}\"", near_miss.quoted_line),
        None => "it was left out".to_owned(),
    };
    let items_ticked_clause = match &state.options.todo_file {
        Some(file) => format!("every item of {file} is ticked, but "),
        None => String::new(),
    };
    let (failure_count, required_line) = (
        MAX_CONSECUTIVE_MISSING_PROMISES,
        promise::render_completion_line(&state.options.completion_promise, &state.promise_code),
    );
    let advice = if state.options.unique_verify_and_check_commands().is_empty() {
        "check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide"
    } else {
        "the verify commands passed, but --strict-promise asks for the line: plimsoll run --resume --strict-promise=false lets them decide"
    };
    format!(
        "{items_ticked_clause}the promise line was not given as asked, {failure_count} times ({actual_line_text} and must be `{required_line}`); {advice}"
    )
}

fn open_item_and_protected_file_objections(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    describe_changed_protected_files(evidence)
        .into_iter()
        .chain(describe_open_or_vanished_items(state, evidence.todo.as_ref()))
        .collect()
}

fn describe_changed_protected_files(evidence: &SessionEvidence) -> Option<String> {
    let changes = &evidence.protected_file_changes;
    (!changes.is_empty()).then(|| describe_protected_changes(changes))
}

fn describe_open_or_vanished_items(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let Some(file) = &state.options.todo_file else { return Vec::new() };
    let Some(todo) = todo else {
        return vec![format!(
            "the to-do file {file} is missing, with {}",
            count_with_noun(state.plan_items.known_items.len(), "known item")
        )];
    };
    let mut reasons = Vec::new();
    let open_items = todo.open_items();
    if !open_items.is_empty() {
        let verb = if open_items.len() == 1 { "is" } else { "are" };
        reasons.push(format!(
            "{} {verb} open in {file}: {}",
            count_with_noun(open_items.len(), "item"),
            quote_first_item_names(&open_items)
        ));
    }
    // An item that was ticked once and removed from the plan later counts as done.
    let never_ticked_items =
        item_set::items_not_in(&state.plan_items.known_items, &[&state.plan_items.ever_ticked_items]);
    let missing_items = todo.known_items_missing_from_lines(&never_ticked_items);
    if !missing_items.is_empty() {
        reasons.push(format!(
            "{} vanished unticked from {file}: {}",
            count_with_noun(missing_items.len(), "item"),
            quote_first_item_names(&missing_items)
        ));
    }
    reasons
}

fn quote_first_item_names(items: &[String]) -> String {
    let names_text = items
        .iter()
        .take(MAX_LISTED_ITEM_NAMES)
        .map(|item| format!("\"{}\"", truncate_end(item, 80)))
        .collect::<Vec<_>>()
        .join(", ");
    let omitted_count = items.len().saturating_sub(MAX_LISTED_ITEM_NAMES);
    if omitted_count > 0 { format!("{names_text} and {omitted_count} more") } else { names_text }
}

/// Describes the ticked items and passed verify commands of a completed run.
pub(crate) fn render_ticked_item_and_verify_counts(state: &RunState, evidence: &SessionEvidence) -> String {
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
pub(crate) fn reasons_to_refuse_promise(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    let mut reasons = match assess_completion_claim(state, evidence) {
        ClaimAssessment::Refused(reasons) => reasons,
        ClaimAssessment::NotClaimed => {
            vec!["every item is ticked, and the promise line was left out".to_owned()]
        }
        ClaimAssessment::Blocked(_) => Vec::new(),
        ClaimAssessment::PendingVerification => {
            missing_review_reason(state, evidence.todo.as_ref()).into_iter().collect()
        }
    };
    // The commands that caused unticking are reported first in the next prompt, so they are not repeated here.
    let reverted_ticks = state.outcomes.reverted_ticks.as_ref().filter(|ticks| ticks.is_pending);
    let is_already_reported = |command: &str| {
        reverted_ticks.is_some_and(|ticks| {
            ticks.failed_commands.iter().any(|failed_command| failed_command.command == command)
        })
    };
    let failed_outcomes = evidence
        .verify_outcomes
        .iter()
        .filter(|outcome| !outcome.passed && !is_already_reported(&outcome.command));
    reasons.extend(
        failed_outcomes.map(|outcome| format!("verify command `{}` {}", outcome.command, outcome.summary)),
    );
    reasons
}
