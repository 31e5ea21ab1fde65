//! The end of an iteration: evidence recorded, work saved, closed, verified, judged. Each step is written down
//! before the next, so that a kill between two is recoverable; judging happens once per (run, iteration).

pub use crate::ended::Ended;

use crate::observe::{footing, observe, started_above};
use crate::verify::verify;
use crate::{archive, capture, close, delegated, facts, keep, save};
use policy::completion::needs_verify;
use policy::gate::{Evidence, gate};
use policy::{bounds, breaker};
use session::delegated::Delegated;
use session::journal::Entry;
use session::state::Phase;
use session::text::clip;
use session::verdict::PauseKind;
use session::{Ending, RunState, SessionRecord, Settings, Verdict};
use std::path::Path;
use store::{Durability, Project, StoreError, clock, journal, sessions, state_file};

/// Takes an iteration from its end to its verdict. None if there is no run, or nothing to judge.
pub fn finish(
    project: &Project,
    settings: &Settings,
    run_id: &str,
    ended: &Ended,
) -> Result<Option<Verdict>, StoreError> {
    finish_unless(project, settings, run_id, ended, &|| false)
}

/// The same, but a verify command is not waited for once `give_up` says so: then the iteration stays to be
/// judged, and the run is paused.
pub fn finish_unless(
    project: &Project,
    settings: &Settings,
    run_id: &str,
    ended: &Ended,
    give_up: &dyn Fn() -> bool,
) -> Result<Option<Verdict>, StoreError> {
    // What keeps copies must not end the night.
    let _ = keep::journal(project);
    let Some(state) = note_end(project, run_id, ended)? else { return Ok(None) };
    if state.iteration_record.phase == Phase::Judged {
        if let Some(verdict) = &state.last_verdict {
            make_up(project, &state, verdict)?;
        }
        return Ok(state.last_verdict);
    }
    if state.memory {
        let _ = store::memory::keep(project);
    }
    let record = state.session_id.as_ref().map(|id| sessions::load(project, id)).unwrap_or_default();
    // What a killed session has left out; the turn log's troubles must not end the night.
    if let Some(transcript) = &record.transcript_path {
        let patience = capture::Patience::PERSON;
        let _ = capture::at_end(project, &record.session_id, Path::new(transcript), patience);
    }
    let ending = state.iteration_record.ending.clone().unwrap_or_default();
    // Before our own commit, which is not the session's work.
    let stands_on = footing(project);
    // A run that a person has stopped, and a session that could not begin, leave the files as they are.
    let may_save = !state.status.is_over();
    let before = state.iteration_record.footing.as_ref();
    let is_untouched = before == Some(&stands_on);
    let has_changed_files = before.is_some_and(|before| stands_on.files_changed(before) == Some(true));
    if may_save && (!is_untouched || record.claim.is_some()) {
        save::handoff_of_unfinished_work(project, settings, &state, &record, &ending, has_changed_files)?;
    }
    let is_where_it_began = stands_on.head.is_some() && stands_on.head == state.context_checkpoint.head;
    if may_save && (is_untouched || is_where_it_began || !has_changed_files) {
        save::keep_what_it_resumed(project, &state, &record)?;
    }
    if may_save && save::commit(project, run_id)? {
        // SessionEnd may have closed the iteration already: the handoff must name the new HEAD.
        close::renew_handoff(project, settings, run_id)?;
    }
    close::close(project, settings, run_id, state.iteration)?;
    let Some(state) = state_file::load(project, Some(run_id))? else { return Ok(None) };
    let mut evidence = evidence(project, &state, &record, ending, ended);
    evidence.started_above = started_above(project, settings, &record);
    if !state.status.is_over() && needs_verify(&state, &evidence) {
        evidence.verify = verify(project, settings, &state, give_up);
        let given_up = evidence.verify.len() < state.verify.len();
        if given_up && let Some(paused) = pause(project, run_id)? {
            return Ok(Some(paused));
        }
    }
    evidence.observation = Some(observe(project, settings, &state, &record, &evidence, &stands_on));
    // Only now: the verify commands may have taken long.
    let now = clock::now();
    (evidence.now, evidence.now_seconds) = (clock::stamp(now), now.timestamp());
    let delegated = delegated::in_session(project, &record.session_id);
    let files = stands_on.short_hash(state.iteration);
    judge(project, settings, run_id, (state.iteration, files), &evidence, delegated)
}

/// A pause before the verdict; none for a run that has been cancelled meanwhile.
fn pause(project: &Project, run_id: &str) -> Result<Option<Verdict>, StoreError> {
    let paused = state_file::update(project, Some(run_id), Durability::Durable, |state| {
        let open = !state.status.is_over();
        if open {
            state.status = session::Status::Paused;
        }
        open
    })?;
    let interrupted =
        Verdict::Pause { kind: PauseKind::Interrupted, until: None, reason: "interrupted".to_owned() };
    Ok(paused.filter(|paused| *paused).map(|_| interrupted))
}

fn note_end(project: &Project, run_id: &str, ended: &Ended) -> Result<Option<RunState>, StoreError> {
    state_file::update(project, Some(run_id), Durability::Durable, |state| {
        let record = &mut state.iteration_record;
        if matches!(record.phase, Phase::Planned | Phase::Spawned) {
            record.phase = Phase::Ended;
            record.ended_at = Some(clock::stamp(ended.at.unwrap_or_else(clock::now)));
            record.ending = Some(ended.ending.clone());
            record.resets_at.clone_from(&ended.resets_at);
            record.denied_tool = ended.denied_tools.first().cloned();
            record.api_trouble = None;
            record.tokens = ended.tokens;
            record.cost_usd = ended.cost_usd;
            // A session that broke off has told no price: it is reckoned by what the run's others have cost.
            if ended.cost_usd == 0.0 && ended.tokens > 0 {
                record.cost_usd = bounds::reckoned_usd(state.cost_usd, state.tokens, ended.tokens);
                state.cost_is_reckoned = true;
            }
            state.cost_usd += state.iteration_record.cost_usd;
            state.tokens += ended.tokens;
            for tool in &ended.denied_tools {
                if !state.denied_tools.contains(tool) {
                    state.denied_tools.push(tool.clone());
                }
            }
            if let Some(quota) = &ended.quota {
                state.quota.merge(quota);
            }
            note_history(state);
        }
        state.clone()
    })
}

fn note_history(state: &mut RunState) {
    let record = state.iteration_record.clone();
    let at = |moment: &Option<String>| moment.as_deref().and_then(clock::parse);
    let seconds =
        at(&record.ended_at).zip(at(&record.started_at)).map(|(end, start)| (end - start).num_seconds());
    let entry = state.history_of(record.iteration);
    // A limit may bring several sessions under one number.
    entry.cost_usd += record.cost_usd;
    entry.seconds += seconds.unwrap_or(0).max(0).unsigned_abs();
    entry.ending = record.ending.map(|ending| ending.word().to_owned()).unwrap_or_default();
}

fn evidence(
    project: &Project,
    state: &RunState,
    record: &SessionRecord,
    ending: Ending,
    ended: &Ended,
) -> Evidence {
    let at_stop = record.stop.as_ref().map(|stop| stop.last_words.clone());
    let last_message = match &ending {
        // What a hook of ours cut off is no last word; an earlier turn's is not either.
        Ending::HookStopped => None,
        Ending::Completed => ended.result_text.clone().filter(|text| !text.is_empty()).or(at_stop),
        _ => at_stop,
    };
    Evidence {
        ending,
        resets_at: state.iteration_record.resets_at.clone(),
        last_message,
        root_popped: facts::root_popped(project, state),
        todo: facts::todo(project, state),
        ..Evidence::default()
    }
}

fn judge(
    project: &Project,
    settings: &Settings,
    run_id: &str,
    (iteration, files): (u32, String),
    evidence: &Evidence,
    delegated: Delegated,
) -> Result<Option<Verdict>, StoreError> {
    let judged = state_file::update(project, Some(run_id), Durability::Durable, |state| {
        if state.iteration != iteration || state.iteration_record.phase == Phase::Judged {
            return state.last_verdict.clone().map(|verdict| (verdict, None));
        }
        let verdict = gate(state, evidence, settings);
        let set_aside = matches!(verdict, Verdict::Continue { .. })
            .then(|| breaker::set_aside(state, &settings.breaker))
            .flatten();
        // What is half done waits for its item's turn; of another one nothing is handed on to the next item.
        state.context_checkpoint.active &=
            set_aside.as_ref().is_none_or(|item| state.context_checkpoint.is_half_done(item));
        take_verify(state, evidence);
        state.last_action = policy::resume::last_action(state, &evidence.ending);
        let items = state.ticked_now().len() as u32;
        let entry = state.history_of(iteration);
        entry.items = items;
        // A limit may bring several sessions under one number.
        entry.delegated += delegated;
        state.iteration_record.phase = Phase::Judged;
        state.last_diff_hash = files;
        if state.status.is_over() {
            state.ended_at.get_or_insert(clock::stamp(clock::now()));
        }
        Some((verdict, Some((state.clone(), set_aside))))
    })?;
    let Some((verdict, fresh)) = judged.flatten() else { return Ok(None) };
    if let Some((state, set_aside)) = fresh {
        note_verdict(project, &state, &verdict, evidence, set_aside)?;
    }
    Ok(Some(verdict))
}

/// What comes after the verdict, where a kill came between them. The line then tells less: what was seen is gone.
fn make_up(project: &Project, state: &RunState, verdict: &Verdict) -> Result<(), StoreError> {
    let line = Entry::new("verdict")
        .run(Some((&state.run_id, state.iteration)))
        .session(state.session_id.as_deref());
    if !journal::tells(project, &line) {
        let ending = state.iteration_record.ending.clone().unwrap_or_default();
        return note_verdict(project, state, verdict, &Evidence { ending, ..Evidence::default() }, None);
    }
    if state.status.is_over() && !archive::is_archived(project, state) {
        return archive::archive(project, state);
    }
    Ok(())
}

fn take_verify(state: &mut RunState, evidence: &Evidence) {
    if !evidence.verify.is_empty() {
        let failing = evidence.verify.iter().filter(|outcome| !outcome.passed);
        state.verify_failing = failing.map(|outcome| outcome.command.clone()).collect();
    }
}

fn note_verdict(
    project: &Project,
    state: &RunState,
    verdict: &Verdict,
    evidence: &Evidence,
    set_aside: Option<String>,
) -> Result<(), StoreError> {
    let verify: Vec<serde_json::Value> = evidence
        .verify
        .iter()
        .map(|outcome| serde_json::json!({"command": outcome.command, "passed": outcome.passed, "words": outcome.words}))
        .collect();
    let seen = evidence.observation.clone().unwrap_or_default();
    let line = |event: &str| {
        Entry::new(event).run(Some((&state.run_id, state.iteration))).session(state.session_id.as_deref())
    };
    let entry = line("verdict")
        .fact("marker", verdict.marker().to_string())
        .fact("ending", serde_json::to_value(&evidence.ending).unwrap_or_default())
        .fact("open", state.todo_items.len())
        .fact("done", state.completed_items.len())
        .fact("ticked", state.ticked_now())
        .fact("verify", verify)
        .fact("progress", seen.progress)
        .fact("error", seen.error.map(|error| clip(&error, 500)))
        .fact("no_change_count", state.no_change_count)
        .fact("same_errors", state.error_hashes.len())
        .fact("cost_usd", state.cost_usd)
        .fact("tokens", state.tokens);
    let entry = if state.cost_is_unknown() { entry.fact("cost_unknown", true) } else { entry };
    journal::note(project, entry)?;
    if let Some(item) = set_aside {
        journal::note(project, line("set_aside").fact("item", item))?;
    }
    if let Some(opened) = state.breaker.opened.as_ref().filter(|opened| opened.iteration == state.iteration) {
        let entry = line("breaker_opened")
            .fact("cause", opened.cause.word())
            .fact("count", opened.count)
            .fact("evidence", opened.evidence.clone());
        journal::note(project, entry)?;
    }
    if state.status.is_over() { archive::archive(project, state) } else { Ok(()) }
}
