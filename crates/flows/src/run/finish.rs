//! The end of an iteration, in the order in which it becomes true: the end is recorded, what the session left is
//! observed, its work is saved, the iteration is closed, the verify commands run, the gate judges, the verdict is reported.
//!
//! The state says how far it has come (`Phase::Ended`, `closed`, `Phase::Judged`), and each step writes before the next
//! one begins. So the process that comes after a kill begins at the top again: a step that was done finds that it was, and does
//! nothing. The gate judges once per (run, iteration).

use crate::context::{facts, subagent_usage};
use crate::run::changed_checks::changed_checks;
use crate::run::evidence::{footing, observe, started_above};
use crate::run::review::{Outcome, Reviewer, note as note_review, review_ticks};
use crate::run::ticks::{note as note_ticks, take_back};
use crate::run::verify::{verified_tree, verify};
use crate::run::{archive, backup, close, day, protect, questions, receipt, save_work};
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use crate::turns::capture;
use crate::turns::catch_up::own_transcript;
use plimsoll_domain::item_check::ItemCheck;
use plimsoll_domain::journal::{BreakerOpened, JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::state::{Phase, WorktreeFingerprint};
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{Ending, RunState, SessionRecord, Timestamp, Verdict};
use plimsoll_launcher::worktree;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::gate::{Evidence, gate};
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_policy::{breaker, review, ticks};
use plimsoll_store::{StoreError, clock, journal};
use std::path::Path;

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
    fn with(verdict: Verdict) -> Finished {
        Finished { verdict, verify: Vec::new(), review: None, taken_back: None, not_run: Vec::new() }
    }
}

/// Takes an iteration from its end to its verdict. None if there is no run, or nothing to judge.
pub fn finish(context: &RunContext<'_>, ended: &SessionResult) -> Result<Option<Finished>, StoreError> {
    finish_unless(context, ended, &|| false, None)
}

/// The same, but neither a verify command nor a review is waited for once `give_up` says so: then the iteration stays to be
/// judged, and the run is paused. Without a reviewer there is no review.
pub(super) fn finish_unless(
    context: &RunContext<'_>,
    ended: &SessionResult,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Option<Finished>, StoreError> {
    // A copy that fails must not end the run.
    let _ = backup::journal(context.project);
    // The end first: a kill below leaves an iteration that has ended, and the next process judges it.
    let Some(state) = record_end(context, ended)? else { return Ok(None) };
    if state.iteration_record.phase == Phase::Judged {
        make_up(context, &state)?;
        return Ok(state.lifecycle.last_verdict().cloned().map(Finished::with));
    }
    let left = observe_end(context, &state);
    save_all_work(context, &state, &left)?;
    // After the commit: a handoff that is closed here names the new HEAD.
    close::close(context, state.iteration)?;
    let Some(mut state) = context.load_state()? else { return Ok(None) };
    if !state.lifecycle.is_over() {
        // A tick counts whatever has become of the plan since: it must hold, too.
        backup::mend_todo(context.project, &state)?;
    }
    let mut evidence = gather_evidence(context, &state, &left, ended);
    let mut not_run = Vec::new();
    if !state.lifecycle.is_over() {
        questions::write_down(context, &state, &mut evidence)?;
        not_run = ticks::not_run(&state, &evidence);
        let checked = check(context, &state, &mut evidence, give_up, reviewer)?;
        match checked {
            Checked::Paused(paused) => return Ok(Some(Finished::with(paused))),
            Checked::Gone => return Ok(None),
            Checked::State(checked) => state = *checked,
        }
    }
    // A review may have taken long, and a run that the user has stopped must know them, too.
    protect::record_changes(context.project, &state, &mut evidence);
    if !state.lifecycle.is_over()
        && let Some(taken) = ticks::refused_for_protected(&state, &evidence)
    {
        let Some(checked) = take_back(context, &taken, &mut evidence)? else { return Ok(None) };
        state = checked;
    }
    // Observing only looks. The breaker counts in `judge`, together with the phase, so a repeat counts once.
    evidence.observation = Some(observe(context, &state, &left.record, &evidence, &left.fingerprint));
    // Only now: the verify commands may have taken long.
    let now = clock::now();
    (evidence.now, evidence.now_seconds) = (clock::stamp(now), now.timestamp());
    let taken_back = state.outcomes.taken_back.clone().filter(|taken| taken.is_pending);
    let verdict = judge(context, &state, &left, &evidence)?;
    let review =
        state.outcomes.reviews.last.filter(|last| last.is_of(state.iteration, state.session_id.as_ref()));
    let review = review.map(|review| review.facts);
    Ok(verdict.map(|verdict| Finished { verdict, verify: evidence.verify, review, taken_back, not_run }))
}

/// That an item names a check which was not there when the run began.
pub fn not_run_words(check: &ItemCheck) -> String {
    format!(
        "the check `{}` of \"{}\" was not run: it was not in the plan when the run began",
        clip(&one_line(&check.command), 120),
        clip(&one_line(&check.item), 80)
    )
}

/// What came of running the commands that have to pass.
enum Checked {
    /// The state after it.
    State(Box<RunState>),
    /// They were given up, and the run is paused.
    Paused(Verdict),
    /// The run is gone.
    Gone,
}

/// Runs the commands that the verdict or a tick depends on, and takes ticks back that do not hold. What was decided before a
/// kill is carried out, and nothing runs again.
fn check(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &mut Evidence,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Checked, StoreError> {
    let decided = state.outcomes.taken_back.clone().filter(|taken| taken.is_pending);
    let taken = match decided {
        Some(taken) => {
            evidence.verify = ticks::outcomes_of(&taken);
            Some(taken)
        }
        None => {
            protect::record_changes(context.project, state, evidence);
            if let Some(taken) = ticks::refused_for_protected(state, evidence) {
                return take_back_as_decided(context, &taken, evidence);
            }
            let commands = ticks::commands_due(state, evidence);
            evidence.verify = verify(context.project, context.settings, state, &commands, give_up);
            let has_changed = protect::record_changes(context.project, state, evidence);
            // The next session would undo what the commands change, and the commands would change it again.
            evidence.protected_needs_user |= has_changed && !commands.is_empty();
            if evidence.changed_protected.is_empty() {
                receipt::keep(context, state, &commands, &evidence.verify)?;
            }
            let was_given_up = evidence.verify.len() < commands.len();
            if was_given_up && let Some(paused) = pause(context)? {
                return Ok(Checked::Paused(paused));
            }
            ticks::refused_for_protected(state, evidence).or_else(|| ticks::refused(state, evidence))
        }
    };
    let Some(taken) = taken else { return review_of(context, state, evidence, give_up, reviewer) };
    take_back_as_decided(context, &taken, evidence)
}

/// Reviews ticks that the commands leave standing, and takes those back in which the review found something.
fn review_of(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &mut Evidence,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Checked, StoreError> {
    let unchanged = || Ok(Checked::State(Box::new(state.clone())));
    let Some(reviewer) = reviewer else { return unchanged() };
    match review_ticks(context, state, evidence, reviewer, give_up)? {
        Outcome::State(state) => match state.outcomes.taken_back.clone().filter(|taken| taken.is_pending) {
            Some(taken) => take_back_as_decided(context, &taken, evidence),
            None => Ok(Checked::State(state)),
        },
        Outcome::Paused(paused) => Ok(Checked::Paused(paused)),
        // A run that was cancelled meanwhile is judged.
        Outcome::GivenUp => pause(context)?.map_or_else(unchanged, |paused| Ok(Checked::Paused(paused))),
    }
}

fn take_back_as_decided(
    context: &RunContext<'_>,
    taken: &TakenBack,
    evidence: &mut Evidence,
) -> Result<Checked, StoreError> {
    let state = take_back(context, taken, evidence)?;
    Ok(state.map_or(Checked::Gone, |state| Checked::State(Box::new(state))))
}

/// What a session has left behind.
struct LeftBySession {
    record: SessionRecord,
    ending: Ending,
    /// The worktree before our own commit, which is not the session's work.
    fingerprint: WorktreeFingerprint,
}

/// Looks at what the session left. It writes copies alone (working memory, turn log), and their troubles must not end
/// the run: a kill here leaves nothing that the next try does not find.
fn observe_end(context: &RunContext<'_>, state: &RunState) -> LeftBySession {
    if state.options.memory {
        let _ = plimsoll_store::memory::keep(context.project);
    }
    let record = context.session_record(state);
    // What a killed session has not recorded itself.
    let named = record.start.transcript_path.as_ref().map(Path::new);
    if let Some(transcript) = named.and_then(|named| own_transcript(context.project, named)) {
        let limits = capture::CaptureLimits::USER;
        let _ = capture::at_end(context.project, &record.session_id, &transcript, limits);
    }
    let ending = state.iteration_record.ending.clone().unwrap_or_default();
    LeftBySession { record, ending, fingerprint: footing(context.project) }
}

/// Saves unfinished work: its handoff first, then the commit. A kill between them leaves uncommitted work that the handoff
/// names. Repeated, this renews the handoff and finds nothing more to commit.
fn save_all_work(context: &RunContext<'_>, state: &RunState, left: &LeftBySession) -> Result<(), StoreError> {
    // A run that the user has stopped, and a session that could not begin, leave the files as they are.
    if state.lifecycle.is_over() {
        return Ok(());
    }
    set_repository_free(context, state)?;
    let LeftBySession { record, ending, fingerprint } = left;
    let before = state.iteration_record.footing.as_ref();
    let is_untouched = before == Some(fingerprint);
    let has_changed_files = before.is_some_and(|before| fingerprint.files_changed(before) == Some(true));
    if !is_untouched || record.checkpoint.claim.is_some() {
        save_work::handoff_of_unfinished_work(context, state, record, ending, has_changed_files)?;
    }
    let is_where_it_began = fingerprint.head.is_some() && fingerprint.head == state.context_checkpoint.head;
    // A checkpoint that nothing was done about would be lost here: planning has marked it as consumed.
    if is_untouched || is_where_it_began || !has_changed_files {
        save_work::keep_what_it_resumed(context, state, record)?;
    }
    if save_work::commit(context)? {
        // SessionEnd may have closed the iteration already: the handoff must name the new HEAD.
        close::renew_handoff(context)?;
    }
    Ok(())
}

/// A git that was ended with its session leaves the repository locked: no later session could commit anything.
fn set_repository_free(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let began = state.iteration_record.started_at.as_ref().and_then(clock::moment);
    let Some(began) = began else { return Ok(()) };
    for lock in worktree::clear_locks_since(context.project.root(), began.into()) {
        let words = format!("removed {}, which a git of the session had left", lock.display());
        context.note(state, JournalEvent::Note { words })?;
    }
    Ok(())
}

/// Pauses the run before its verdict; none for a run that has been cancelled meanwhile. The iteration stays "ended": the
/// next `--resume` verifies and judges it.
pub(super) fn pause(context: &RunContext<'_>) -> Result<Option<Verdict>, StoreError> {
    let paused = context.update(|state| {
        let open = !state.lifecycle.is_over();
        if open {
            state.lifecycle.wait(None);
        }
        open
    })?;
    let interrupted =
        Verdict::Pause { kind: PauseKind::Interrupted, until: None, reason: "interrupted".to_owned() };
    Ok(paused.filter(|paused| *paused).map(|_| interrupted))
}

/// Records how the session ended and what it used, once: the phase says whether that was done. From here on a kill
/// leaves an iteration that has ended and waits to be judged.
pub(super) fn record_end(
    context: &RunContext<'_>,
    ended: &SessionResult,
) -> Result<Option<RunState>, StoreError> {
    context.update(|state| {
        let record = &mut state.iteration_record;
        if matches!(record.phase, Phase::Planned | Phase::Spawned) {
            record.phase = Phase::Ended;
            record.ended_at = Some(clock::stamp(ended.at.unwrap_or_else(clock::now)));
            record.ending = Some(ended.ending.clone());
            record.resets_at.clone_from(&ended.resets_at);
            record.denied_tool = ended.denied_tools.first().cloned();
            record.api_trouble = None;
            record.tokens = ended.tokens;
            // In the same write as the phase: after a kill nothing of the money, the tokens or the quota counts twice.
            state.iteration_record.cost_usd = day::add_session(context.project, state, ended);
            state.iteration_record.is_cost_unknown = ended.cost.is_none();
            for tool in &ended.denied_tools {
                if !state.outcomes.denied_tools.contains(tool) {
                    state.outcomes.denied_tools.push(tool.clone());
                }
            }
            if let Some(quota) = &ended.quota {
                state.spent.quota.merge(quota);
            }
            note_history(state);
        }
        state.clone()
    })
}

fn note_history(state: &mut RunState) {
    let record = state.iteration_record.clone();
    let at = |moment: &Option<Timestamp>| moment.as_ref().and_then(clock::moment);
    let seconds =
        at(&record.ended_at).zip(at(&record.started_at)).map(|(end, start)| (end - start).num_seconds());
    let entry = state.history_of(record.iteration);
    // A limit may bring several sessions under one number.
    entry.cost_usd += record.cost_usd;
    entry.seconds += seconds.unwrap_or(0).max(0).unsigned_abs();
    entry.ending = record.ending.map(|ending| ending.word().to_owned()).unwrap_or_default();
}

fn gather_evidence(
    context: &RunContext<'_>,
    state: &RunState,
    left: &LeftBySession,
    ended: &SessionResult,
) -> Evidence {
    let at_stop = left.record.end.stop.as_ref().map(|stop| stop.last_words.clone());
    let last_message = match &left.ending {
        // What a hook of ours cut off is no last word; an earlier turn's is not either.
        Ending::HookStopped => None,
        Ending::Completed => ended.result_text.clone().filter(|text| !text.is_empty()).or(at_stop),
        _ => at_stop,
    };
    Evidence {
        ending: left.ending.clone(),
        item: left.record.continuation.as_ref().map(|told| told.item.clone()),
        resets_at: state.iteration_record.resets_at.clone(),
        last_message,
        root_popped: facts::root_popped(context.project, state),
        todo: facts::todo(context.project, state),
        started_above: started_above(context, &left.record),
        ..Evidence::default()
    }
}

/// Judges under the state's lock, and reports the verdict after it. After a kill between the two the next process writes the
/// report ([`make_up`]): the state is the truth, the journal follows it.
fn judge(
    context: &RunContext<'_>,
    state: &RunState,
    left: &LeftBySession,
    evidence: &Evidence,
) -> Result<Option<Verdict>, StoreError> {
    let iteration = state.iteration;
    // Looked at before the lock is taken.
    let changed_checks = changed_checks(context.project, state, None);
    let tree =
        if evidence.verify.is_empty() { VerifiedTree::default() } else { verified_tree(context.project) };
    let delegated: SubagentUsage = subagent_usage::in_session(context.project, &left.record.session_id);
    let files = left.fingerprint.short_hash(iteration);
    let judged = context.update(|state| {
        // Two may judge at once (`run` and `gate`): the first to get the lock decides, the other repeats its verdict.
        if state.iteration != iteration || state.iteration_record.phase == Phase::Judged {
            return state.lifecycle.last_verdict().cloned().map(|verdict| (verdict, None));
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
        Some((verdict, Some((state.clone(), set_aside))))
    })?;
    // No `fresh` state for a verdict that another process has reached: that one reports it, or `make_up` does.
    let Some((verdict, fresh)) = judged.flatten() else { return Ok(None) };
    if let Some((state, set_aside)) = fresh {
        note_verdict(context, &state, &verdict, evidence, set_aside)?;
    }
    Ok(Some(verdict))
}

/// Completes the last iteration of a run that is resumed, where a kill came after its verdict.
pub(crate) fn complete(context: &RunContext<'_>) -> Result<(), StoreError> {
    // First: it brings back lines that only the journal itself has lost. A copy that fails must not prevent the resume.
    let _ = backup::journal(context.project);
    match context.load_state()? {
        Some(state) if state.iteration_record.phase == Phase::Judged => make_up(context, &state),
        _ => Ok(()),
    }
}

/// Writes what comes after the verdict, where a kill came between them. The line then contains less: what was seen is gone.
fn make_up(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
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
