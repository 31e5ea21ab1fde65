//! The verdict on an iteration: judged once, then reported in the journal and, at the end of a run, in its
//! archive.

use super::gate_input::GateInput;
use crate::context::subagent_usage;
use crate::run::changed_checks::changed_check_files;
use crate::run::evidence::observe_session;
use crate::run::review::journal_review;
use crate::run::ticks::journal_ticks_reverted_in_session;
use crate::run::verify::read_head_and_uncommitted_flag;
use crate::run::{archive, questions};
use crate::run_context::RunContext;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::journal::{BreakerOpened, JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::gate::{SessionEvidence, judge_session};
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_policy::{breaker, review, ticks};
use plimsoll_store::{StoreError, clock, journal};

/// The result of an iteration.
#[derive(Debug, Clone)]
pub struct FinishedIteration {
    pub verdict: Verdict,
    /// The outcomes of the verify commands; empty if none ran now.
    pub verify_outcomes: Vec<VerifyOutcome>,
    /// The outcome of a review, if there was one.
    pub review_outcome: Option<ReviewOutcome>,
    /// The ticks that were reverted now.
    pub reverted_ticks: Option<RevertedTicks>,
    /// Checks of ticked items that did not run because they were not in the plan when the run began.
    pub skipped_checks: Vec<ItemCheck>,
}

impl FinishedIteration {
    /// Creates the result for a verdict without further facts, such as one that was not judged now.
    pub(super) fn with_verdict_only(verdict: Verdict) -> FinishedIteration {
        FinishedIteration {
            verdict,
            verify_outcomes: Vec::new(),
            review_outcome: None,
            reverted_ticks: None,
            skipped_checks: Vec::new(),
        }
    }
}

/// Judges under the state's lock, and reports the verdict after it. After a crash between the two the next
/// process writes the report ([`complete_report`]), because the journal follows the state.
pub(super) fn judge_and_report(
    context: &RunContext<'_>,
    mut input: GateInput,
) -> Result<Option<FinishedIteration>, StoreError> {
    // Observing has no side effects. The breaker counts under the lock, together with the phase, so a repeat
    // counts once.
    input.evidence.observation = Some(observe_session(context.project, &input.session, &input.evidence));
    // Read only now, because the verify commands may have taken long.
    let now = clock::now();
    (input.evidence.now, input.evidence.now_seconds) = (clock::to_timestamp(now), now.timestamp());
    let Some(judgment) = judge_under_lock(context, &input)? else { return Ok(None) };
    let GateInput { session, evidence, skipped_checks } = input;
    // There is no state if another process has reached the verdict: that process reports it, or
    // `complete_report` does.
    if let Some((state, set_aside_item)) = judgment.new_state {
        report_verdict(context, &state, &judgment.verdict, &evidence, set_aside_item)?;
    }
    let state_before = session.state;
    let last_review = state_before.outcomes.reviews.last_review;
    let review = last_review
        .filter(|last| last.is_after_session(state_before.iteration, state_before.session_id.as_ref()));
    Ok(Some(FinishedIteration {
        verdict: judgment.verdict,
        verify_outcomes: evidence.verify_outcomes,
        review_outcome: review.map(|review| review.outcome),
        reverted_ticks: state_before.outcomes.reverted_ticks.filter(|reverted| reverted.is_pending),
        skipped_checks,
    }))
}

/// A verdict that has been written to the state.
struct Judgment {
    verdict: Verdict,
    /// The state and the item that is set aside, if this process has judged.
    new_state: Option<(RunState, Option<String>)>,
}

fn judge_under_lock(context: &RunContext<'_>, input: &GateInput) -> Result<Option<Judgment>, StoreError> {
    let GateInput { session, evidence, .. } = input;
    let iteration = session.state.iteration;
    // Read before the lock is taken.
    let changed_checks = changed_check_files(context.project, &session.state, None);
    let verified_tree = if evidence.verify_outcomes.is_empty() {
        VerifiedTree::default()
    } else {
        read_head_and_uncommitted_flag(context.project)
    };
    let session_subagent_usage: SubagentUsage =
        subagent_usage::subagent_usage_of_session(context.project, &session.record.session_id);
    let files_hash = session.fingerprint.short_files_hash(iteration);
    let judgment = context.update_state(|state| {
        // Two processes may judge at once (`run` and `gate`): the first to get the lock decides, the other
        // repeats its verdict.
        if state.iteration != iteration || state.iteration_record.phase == IterationPhase::Judged {
            return state
                .lifecycle
                .last_verdict()
                .cloned()
                .map(|verdict| Judgment { verdict, new_state: None });
        }
        let verdict = judge_session(state, evidence, context.settings);
        let continues = matches!(verdict, Verdict::Continue { .. });
        let set_aside_item =
            if continues { breaker::set_aside_stuck_item(state, &context.settings.breaker) } else { None };
        // A half-done item that is set aside or parked keeps its checkpoint for its turn; a checkpoint of
        // another item is not handed on.
        let unfinished_item = set_aside_item
            .as_ref()
            .or(evidence.item_worked_on(state).filter(|item| continues && state.is_parked(item)));
        let keeps_checkpoint =
            unfinished_item.is_none_or(|item| state.context_checkpoint.has_work_on_item(item));
        state.context_checkpoint.active &= keeps_checkpoint;
        store_verify_outcomes(state, evidence);
        ticks::record_verify_runs(state, &evidence.verify_outcomes, &verified_tree);
        state.outcomes.changed_checks = changed_checks;
        state.outcomes.protected_changes.clone_from(&evidence.changed_protected);
        state.outcomes.protected_needs_user = evidence.protected_needs_user;
        state.outcomes.last_action = plimsoll_policy::resume::describe_last_action(state, &evidence.ending);
        let ticked_count = state.items_ticked_in_iteration().len() as u32;
        let history_entry = state.history_entry_or_insert(iteration);
        history_entry.ticked_item_count = ticked_count;
        // A limit may cause several sessions under one number.
        history_entry.subagent_usage += session_subagent_usage;
        state.iteration_record.phase = IterationPhase::Judged;
        state.outcomes.last_diff_hash = files_hash;
        state.lifecycle.record_end_once(clock::to_timestamp(clock::now()));
        Some(Judgment { verdict, new_state: Some((state.clone(), set_aside_item)) })
    })?;
    Ok(judgment.flatten())
}

/// Writes what follows the verdict, if a kill came between them. The journal line then contains less, because
/// what was observed is lost.
pub(super) fn complete_report(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    // The verdict's line is written before the archive, so an existing archive means that the line was
    // written.
    if state.lifecycle.is_over() && archive::is_end_archived(context.project, state) {
        return Ok(());
    }
    let Some(verdict) = state.lifecycle.last_verdict() else { return Ok(()) };
    let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(verdict)));
    let entry = JournalEntry::for_run_session(state, event);
    if journal::has_matching_entry(context.project, &entry) {
        journal_review(context, state)?;
        journal_ticks_reverted_in_session(context, state)?;
        questions::journal_asked_questions(context, state)?;
    } else {
        let ending = state.iteration_record.ending.clone().unwrap_or_default();
        return report_verdict(
            context,
            state,
            verdict,
            &SessionEvidence { ending, ..SessionEvidence::default() },
            None,
        );
    }
    if state.lifecycle.is_over() { archive::archive_run(context.project, state) } else { Ok(()) }
}

/// Records the outcomes of the commands in the state. An earlier decision to revert ticks is cleared once a
/// tick passes.
fn store_verify_outcomes(state: &mut RunState, evidence: &SessionEvidence) {
    ticks::record_verify_outcomes(state, &evidence.verify_outcomes);
    let has_review_answer = review::has_review_verdict(state);
    let is_decided_now = state.outcomes.reverted_ticks.as_ref().is_some_and(|reverted| reverted.is_pending);
    match &mut state.outcomes.reverted_ticks {
        Some(reverted) if is_decided_now => reverted.is_pending = false,
        Some(reverted) if !reverted.protected_changes.is_empty() && evidence.changed_protected.is_empty() => {
            state.outcomes.reverted_ticks = None;
        }
        _ if evidence.verify_outcomes.is_empty() && !has_review_answer => {}
        reverted_ticks => *reverted_ticks = None,
    }
    review::record_items_awaiting_review(state, evidence.todo.as_ref());
}

fn report_verdict(
    context: &RunContext<'_>,
    state: &RunState,
    verdict: &Verdict,
    evidence: &SessionEvidence,
    set_aside_item: Option<String>,
) -> Result<(), StoreError> {
    let verifications = evidence.verify_outcomes.iter().map(VerifyOutcome::to_verification);
    let observation = evidence.observation.clone().unwrap_or_default();
    let facts = VerdictReached {
        ending: Some(evidence.ending.clone()),
        open_count: Some(state.plan_items.todo_items.len()),
        done_count: Some(state.plan_items.completed_items.len()),
        ticked_items: Some(state.items_ticked_in_iteration()),
        verify_results: Some(verifications.collect()),
        progress: Some(observation.progress),
        error: observation.error.map(|error| truncate_end(&error, 500)),
        no_progress_count: Some(state.outcomes.no_change_count),
        same_error_count: Some(state.outcomes.error_hashes.len()),
        cost_usd: Some(state.spending.cost_usd),
        cost_basis: state.spending.cost_basis(),
        tokens: Some(state.spending.tokens),
        is_cost_unknown: state.has_cost_limit_but_unknown_cost(),
        ..VerdictReached::from_verdict_without_evidence(verdict)
    };
    let record = |event: JournalEvent| context.record_session_event(state, event);
    record(JournalEvent::Verdict(Box::new(facts)))?;
    journal_review(context, state)?;
    journal_ticks_reverted_in_session(context, state)?;
    questions::journal_asked_questions(context, state)?;
    if let Some(item) = set_aside_item {
        record(JournalEvent::SetAside { item })?;
    }
    if let Some(trip) = state.outcomes.breaker.trip.as_ref().filter(|trip| trip.iteration == state.iteration)
    {
        let (cause, count, evidence) = (trip.cause, trip.failure_count, trip.evidence.clone());
        record(JournalEvent::BreakerOpened(BreakerOpened { cause, failure_count: count, evidence }))?;
    }
    // Last: a kill before it leaves a run that has ended and is not archived, which `complete_report`
    // detects.
    if state.lifecycle.is_over() { archive::archive_run(context.project, state) } else { Ok(()) }
}
