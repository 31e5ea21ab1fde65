//! The verdict on an iteration: judged once, then reported in the journal and, at the end of a run, in its archive.

use super::gate_input::GateInput;
use crate::context::subagent_usage;
use crate::run::changed_checks::changed_checks;
use crate::run::evidence::observe;
use crate::run::review::note as note_review;
use crate::run::ticks::note as note_ticks;
use crate::run::verify::verified_tree;
use crate::run::{archive, questions};
use crate::run_context::RunContext;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::journal::{BreakerOpened, JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::state::Phase;
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::text::clip;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::gate::{Evidence, gate};
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_policy::{breaker, review, ticks};
use plimsoll_store::{StoreError, clock, journal};

/// What the end of an iteration came to.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The verdict.
    pub verdict: Verdict,
    /// What the verify commands said; empty if none ran now.
    pub verify: Vec<VerifyOutcome>,
    /// What came of a review.
    pub review: Option<Reviewed>,
    /// Ticks that were taken back.
    pub taken_back: Option<TakenBack>,
    /// Checks of ticked items that did not run, for they were not in the plan when the run began.
    pub not_run: Vec<ItemCheck>,
}

impl Finished {
    /// A verdict of which nothing more is known, or none that was judged now.
    pub(super) fn with(verdict: Verdict) -> Finished {
        Finished { verdict, verify: Vec::new(), review: None, taken_back: None, not_run: Vec::new() }
    }
}

/// Judges under the state's lock, and reports the verdict after it. After a crash between the two the next process writes the
/// report ([`make_up`]): the state is the truth, the journal follows it.
pub(super) fn judge(context: &RunContext<'_>, mut input: GateInput) -> Result<Option<Finished>, StoreError> {
    // Observing only looks. The breaker counts under the lock, together with the phase, so a repeat counts once.
    input.evidence.observation = Some(observe(context.project, &input.session, &input.evidence));
    // Only now: the verify commands may have taken long.
    let now = clock::now();
    (input.evidence.now, input.evidence.now_seconds) = (clock::stamp(now), now.timestamp());
    let Some(judged) = judge_once(context, &input)? else { return Ok(None) };
    let GateInput { session, evidence, not_run } = input;
    // No state for a verdict that another process has reached: that one reports it, or `make_up` does.
    if let Some((state, set_aside)) = judged.fresh {
        note_verdict(context, &state, &judged.verdict, &evidence, set_aside)?;
    }
    let before = session.state;
    let last = before.outcomes.reviews.last;
    let review = last.filter(|last| last.is_of(before.iteration, before.session_id.as_ref()));
    Ok(Some(Finished {
        verdict: judged.verdict,
        verify: evidence.verify,
        review: review.map(|review| review.facts),
        taken_back: before.outcomes.taken_back.filter(|taken| taken.is_pending),
        not_run,
    }))
}

/// A verdict that is in the state.
struct Judged {
    verdict: Verdict,
    /// The state and the item that is set aside, if this process has judged.
    fresh: Option<(RunState, Option<String>)>,
}

fn judge_once(context: &RunContext<'_>, input: &GateInput) -> Result<Option<Judged>, StoreError> {
    let GateInput { session, evidence, .. } = input;
    let iteration = session.state.iteration;
    // Looked at before the lock is taken.
    let changed_checks = changed_checks(context.project, &session.state, None);
    let tree =
        if evidence.verify.is_empty() { VerifiedTree::default() } else { verified_tree(context.project) };
    let delegated: SubagentUsage = subagent_usage::in_session(context.project, &session.record.session_id);
    let files = session.fingerprint.short_hash(iteration);
    let judged = context.update(|state| {
        // Two may judge at once (`run` and `gate`): the first to get the lock decides, the other repeats its verdict.
        if state.iteration != iteration || state.iteration_record.phase == Phase::Judged {
            return state.lifecycle.last_verdict().cloned().map(|verdict| Judged { verdict, fresh: None });
        }
        let verdict = gate(state, evidence, context.settings);
        let is_going_on = matches!(verdict, Verdict::Continue { .. });
        let set_aside = if is_going_on { breaker::set_aside(state, &context.settings.breaker) } else { None };
        // What is half done waits for its item's turn; of another one nothing is handed on to the next item.
        let left = set_aside
            .as_ref()
            .or(evidence.own_item(state).filter(|item| is_going_on && state.is_parked(item)));
        let is_handed_on = left.is_none_or(|item| state.context_checkpoint.is_half_done(item));
        state.context_checkpoint.active &= is_handed_on;
        take_verify(state, evidence);
        ticks::record_verify_runs(state, &evidence.verify, &tree);
        state.outcomes.changed_checks = changed_checks;
        state.outcomes.changed_protected.clone_from(&evidence.changed_protected);
        state.outcomes.protected_needs_user = evidence.protected_needs_user;
        state.outcomes.last_action = plimsoll_policy::resume::last_action(state, &evidence.ending);
        let items = state.ticked_now().len() as u32;
        let entry = state.history_of(iteration);
        entry.items = items;
        // A limit may bring several sessions under one number.
        entry.delegated += delegated;
        state.iteration_record.phase = Phase::Judged;
        state.outcomes.last_diff_hash = files;
        state.lifecycle.end(clock::stamp(clock::now()));
        Some(Judged { verdict, fresh: Some((state.clone(), set_aside)) })
    })?;
    Ok(judged.flatten())
}

/// Writes what comes after the verdict, where a kill came between them. The line then contains less: what was seen is gone.
pub(super) fn make_up(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    // The verdict's line comes before the archive: where the archive is, the line was written, too.
    if state.lifecycle.is_over() && archive::is_archived(context.project, state) {
        return Ok(());
    }
    let Some(verdict) = state.lifecycle.last_verdict() else { return Ok(()) };
    let event = JournalEvent::Verdict(Box::new(VerdictReached::of(verdict)));
    let line = JournalEntry::of_run_session(state, event);
    if journal::tells(context.project, &line) {
        note_review(context, state)?;
        note_ticks(context, state)?;
        questions::note(context, state)?;
    } else {
        let ending = state.iteration_record.ending.clone().unwrap_or_default();
        return note_verdict(context, state, verdict, &Evidence { ending, ..Evidence::default() }, None);
    }
    if state.lifecycle.is_over() { archive::archive(context.project, state) } else { Ok(()) }
}

/// Takes what the commands said, and whether ticks were taken back: what was decided before is history once a tick holds.
fn take_verify(state: &mut RunState, evidence: &Evidence) {
    ticks::note(state, &evidence.verify);
    let has_reviewed = review::has_answered(state);
    let is_decided_now = state.outcomes.taken_back.as_ref().is_some_and(|taken| taken.is_pending);
    match &mut state.outcomes.taken_back {
        Some(taken) if is_decided_now => taken.is_pending = false,
        Some(taken) if !taken.protected.is_empty() && evidence.changed_protected.is_empty() => {
            state.outcomes.taken_back = None;
        }
        _ if evidence.verify.is_empty() && !has_reviewed => {}
        taken => *taken = None,
    }
    review::wait(state, evidence.todo.as_ref());
}

fn note_verdict(
    context: &RunContext<'_>,
    state: &RunState,
    verdict: &Verdict,
    evidence: &Evidence,
    set_aside: Option<String>,
) -> Result<(), StoreError> {
    let verify = evidence.verify.iter().map(VerifyOutcome::fact);
    let seen = evidence.observation.clone().unwrap_or_default();
    let reached = VerdictReached {
        ending: Some(evidence.ending.clone()),
        open: Some(state.items.todo_items.len()),
        done: Some(state.items.completed_items.len()),
        ticked: Some(state.ticked_now()),
        verify: Some(verify.collect()),
        progress: Some(seen.progress),
        error: seen.error.map(|error| clip(&error, 500)),
        no_change_count: Some(state.outcomes.no_change_count),
        same_errors: Some(state.outcomes.error_hashes.len()),
        cost_usd: Some(state.spent.cost_usd),
        cost_basis: state.spent.cost_basis(),
        tokens: Some(state.spent.tokens),
        cost_unknown: state.cost_is_unknown(),
        ..VerdictReached::of(verdict)
    };
    let note = |event: JournalEvent| context.note(state, event);
    note(JournalEvent::Verdict(Box::new(reached)))?;
    note_review(context, state)?;
    note_ticks(context, state)?;
    questions::note(context, state)?;
    if let Some(item) = set_aside {
        note(JournalEvent::SetAside { item })?;
    }
    if let Some(opened) =
        state.outcomes.breaker.opened.as_ref().filter(|opened| opened.iteration == state.iteration)
    {
        let (cause, count, evidence) = (opened.cause, opened.count, opened.evidence.clone());
        note(JournalEvent::BreakerOpened(BreakerOpened { cause, count, evidence }))?;
    }
    // Last: a kill before it leaves a run that is over and not archived, which `make_up` sees.
    if state.lifecycle.is_over() { archive::archive(context.project, state) } else { Ok(()) }
}
