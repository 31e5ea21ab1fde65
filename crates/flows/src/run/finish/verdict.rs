//! Judges an iteration once, then records the verdict in the journal and archives the run if it has ended.

use super::gate_input::GateInput;
use crate::context::subagent_usage;
use crate::run::changed_checks::list_check_files_changed_since_run_start;
use crate::run::evidence::build_session_observation;
use crate::run::review::journal_review_of_current_session;
use crate::run::ticks::journal_ticks_reverted_in_session;
use crate::run::verify::head_and_whether_tracked_files_changed;
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
use plimsoll_policy::gate::{SessionEvidence, judge_session_and_apply_verdict};
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_policy::{breaker, review, ticks};
use plimsoll_store::{StoreError, clock, journal};

/// The result of an iteration.
#[derive(Debug, Clone)]
pub struct FinishedIteration {
    pub verdict: Verdict,
    /// The outcomes of the verify commands; empty if this process ran none.
    pub verify_outcomes: Vec<VerifyOutcome>,
    /// The outcome of a review, if there was one.
    pub review_outcome: Option<ReviewOutcome>,
    /// The ticks that this process has reverted.
    pub reverted_ticks: Option<RevertedTicks>,
    /// Checks of ticked items that did not run because they were not in the plan when the run began.
    pub skipped_checks: Vec<ItemCheck>,
}

impl FinishedIteration {
    /// Creates a result without outcomes, for a pause or for a verdict that was reached earlier.
    pub(super) fn from_verdict_only(verdict: Verdict) -> FinishedIteration {
        FinishedIteration {
            verdict,
            verify_outcomes: Vec::new(),
            review_outcome: None,
            reverted_ticks: None,
            skipped_checks: Vec::new(),
        }
    }
}

/// Judges under the state's lock, and then writes the verdict to the journal. After a crash between the two,
/// the next process writes it ([`journal_missing_verdict_and_archive_if_over`]). Returns `None` if the run no
/// longer exists.
pub(super) fn judge_once_and_journal_if_run_exists(
    context: &RunContext<'_>,
    mut input: GateInput,
) -> Result<Option<FinishedIteration>, StoreError> {
    // The observation has no side effects. The breaker counts it under the lock, together with the phase, so
    // a repetition counts once.
    input.evidence.observation =
        Some(build_session_observation(context.project, &input.session, &input.evidence));
    // Read only now, because the verify commands may have taken long.
    let now = clock::now();
    (input.evidence.now, input.evidence.now_seconds) = (clock::to_timestamp(now), now.timestamp());
    let Some(judgment) = judge_once_or_get_verdict_under_state_lock(context, &input)? else {
        return Ok(None);
    };
    let GateInput { session, evidence, skipped_checks } = input;
    // There is no state if another process has reached the verdict: that process journals it, or
    // `journal_missing_verdict_and_archive_if_over` does.
    if let Some((state, set_aside_item)) = judgment.new_state {
        journal_verdict_and_archive_if_over(context, &state, &judgment.verdict, &evidence, set_aside_item)?;
    }
    let state_before = session.state;
    let last_review = state_before.outcomes.reviews.last_review;
    let review = last_review
        .filter(|review| review.is_after_session(state_before.iteration, state_before.session_id.as_ref()));
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
    /// The new state and the item that was set aside; `None` if another process has judged.
    new_state: Option<(RunState, Option<String>)>,
}

fn judge_once_or_get_verdict_under_state_lock(
    context: &RunContext<'_>,
    input: &GateInput,
) -> Result<Option<Judgment>, StoreError> {
    let GateInput { session, evidence, .. } = input;
    let iteration = session.state.iteration;
    // Read before the lock is taken.
    let changed_checks = list_check_files_changed_since_run_start(context.project, &session.state, None);
    let verified_tree = if evidence.verify_outcomes.is_empty() {
        VerifiedTree::default()
    } else {
        head_and_whether_tracked_files_changed(context.project)
    };
    let session_subagent_usage: SubagentUsage =
        subagent_usage::read_subagent_usage_from_turn_log(context.project, &session.record.session_id);
    let files_hash = session.fingerprint.short_files_hash(iteration);
    let judgment = context.update_state(|state| {
        // Two processes may judge at once (`run` and `gate`): the first to get the lock decides, and the other
        // returns the same verdict.
        if state.iteration != iteration || state.iteration_record.phase == IterationPhase::Judged {
            return state
                .lifecycle
                .last_verdict()
                .cloned()
                .map(|verdict| Judgment { verdict, new_state: None });
        }
        let verdict = judge_session_and_apply_verdict(state, evidence, context.settings);
        let continues = matches!(verdict, Verdict::Continue { .. });
        let set_aside_item = if continues {
            breaker::set_aside_item_one_session_before_trip(state, &context.settings.breaker)
        } else {
            None
        };
        // If an unfinished item is set aside or parked, the checkpoint stays active only if it contains work
        // on that item.
        let unfinished_item = set_aside_item
            .as_ref()
            .or(evidence.item_worked_on(state).filter(|item| continues && state.is_parked(item)));
        let keeps_checkpoint =
            unfinished_item.is_none_or(|item| state.context_checkpoint.has_work_on_item(item));
        state.context_checkpoint.active &= keeps_checkpoint;
        store_outcomes_and_update_reverted_ticks(state, evidence);
        ticks::record_last_conclusive_verify_runs(state, &evidence.verify_outcomes, &verified_tree);
        state.outcomes.changed_checks = changed_checks;
        state.outcomes.protected_changes.clone_from(&evidence.protected_file_changes);
        state.outcomes.protected_needs_user = evidence.only_user_can_restore_protected;
        state.outcomes.last_action =
            plimsoll_policy::resume::describe_current_iteration_result(state, &evidence.ending);
        let ticked_count = state.items_ticked_in_iteration().len() as u32;
        let history_entry = state.history_entry_or_insert(iteration);
        history_entry.ticked_item_count = ticked_count;
        // A limit may cause several sessions under one number.
        history_entry.subagent_usage += session_subagent_usage;
        state.iteration_record.phase = IterationPhase::Judged;
        state.outcomes.last_diff_hash = files_hash;
        state.lifecycle.record_end_time_if_ended(clock::to_timestamp(clock::now()));
        Some(Judgment { verdict, new_state: Some((state.clone(), set_aside_item)) })
    })?;
    Ok(judgment.flatten())
}

/// Writes the journal entries of the last verdict if a kill prevented it, and archives a run that has ended.
/// The verdict's entry then contains less, because the evidence is lost.
pub(super) fn journal_missing_verdict_and_archive_if_over(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    // The verdict's line is written before the archive, so if the archive exists, so does the line.
    if state.lifecycle.has_ended() && archive::is_end_archived(context.project, state) {
        return Ok(());
    }
    let Some(verdict) = state.lifecycle.last_verdict() else { return Ok(()) };
    let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(verdict)));
    let entry = JournalEntry::for_run_session(state, event);
    if journal::has_same_event_and_origin_near_end(context.project, &entry) {
        journal_review_of_current_session(context, state)?;
        journal_ticks_reverted_in_session(context, state)?;
        questions::journal_iteration_questions_and_queue_note(context, state)?;
    } else {
        let ending = state.iteration_record.ending.clone().unwrap_or_default();
        return journal_verdict_and_archive_if_over(
            context,
            state,
            verdict,
            &SessionEvidence { ending, ..SessionEvidence::default() },
            None,
        );
    }
    if state.lifecycle.has_ended() {
        archive::archive_run_and_clean_up_prompt_and_memory(context.project, state)
    } else {
        Ok(())
    }
}

/// Records the outcomes of the commands in the state. A pending decision to revert ticks becomes a completed
/// one, and a completed one is cleared once commands or a review have run again. Also records the items that
/// wait for a review.
fn store_outcomes_and_update_reverted_ticks(state: &mut RunState, evidence: &SessionEvidence) {
    ticks::record_conclusive_outcomes_and_add_seconds(state, &evidence.verify_outcomes);
    let has_review_verdict = review::has_review_verdict(state);
    let is_revert_pending =
        state.outcomes.reverted_ticks.as_ref().is_some_and(|reverted| reverted.is_pending);
    match &mut state.outcomes.reverted_ticks {
        Some(reverted) if is_revert_pending => reverted.is_pending = false,
        Some(reverted)
            if !reverted.protected_changes.is_empty() && evidence.protected_file_changes.is_empty() =>
        {
            state.outcomes.reverted_ticks = None;
        }
        _ if evidence.verify_outcomes.is_empty() && !has_review_verdict => {}
        reverted_ticks => *reverted_ticks = None,
    }
    review::update_items_awaiting_review_and_work_starts(state, evidence.todo.as_ref());
}

fn journal_verdict_and_archive_if_over(
    context: &RunContext<'_>,
    state: &RunState,
    verdict: &Verdict,
    evidence: &SessionEvidence,
    set_aside_item: Option<String>,
) -> Result<(), StoreError> {
    let verifications = evidence.verify_outcomes.iter().map(VerifyOutcome::to_verify_result);
    let observation = evidence.observation.clone().unwrap_or_default();
    let verdict_details = VerdictReached {
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
    let record_event = |event: JournalEvent| context.journal_session_event(state, event);
    record_event(JournalEvent::Verdict(Box::new(verdict_details)))?;
    journal_review_of_current_session(context, state)?;
    journal_ticks_reverted_in_session(context, state)?;
    questions::journal_iteration_questions_and_queue_note(context, state)?;
    if let Some(item) = set_aside_item {
        record_event(JournalEvent::SetAside { item })?;
    }
    if let Some(trip) = state.outcomes.breaker.trip.as_ref().filter(|trip| trip.iteration == state.iteration)
    {
        let (cause, count, trip_evidence) = (trip.cause, trip.failure_count, trip.evidence.clone());
        record_event(JournalEvent::BreakerOpened(BreakerOpened {
            cause,
            failure_count: count,
            evidence: trip_evidence,
        }))?;
    }
    // Last: a kill before this line leaves an ended run without an archive, which
    // `journal_missing_verdict_and_archive_if_over` detects.
    if state.lifecycle.has_ended() {
        archive::archive_run_and_clean_up_prompt_and_memory(context.project, state)
    } else {
        Ok(())
    }
}
