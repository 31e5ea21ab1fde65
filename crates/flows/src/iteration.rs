//! The end of an iteration: evidence recorded, work saved, closed, verified, judged. Each step is written down
//! before the next, so that a kill between two is recoverable; judging happens once per (run, iteration).

use crate::checkpoint::{self, Request};
use crate::{close, facts, keep};
use policy::gate::{Completion, Evidence, VerifyOutcome, completion, gate};
use session::journal::Entry;
use session::level::Level;
use session::state::{Cause, Phase};
use session::text::{clip, clip_start};
use session::{Ending, RunState, SessionRecord, Settings, Status, Verdict};
use std::path::PathBuf;
use std::time::Duration;
use store::{Durability, Project, StoreError, clock, disk, journal, sessions, state_file};

/// What is known of a session that has ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// The result's text.
    pub result_text: Option<String>,
    /// What it cost, US dollars.
    pub cost_usd: f64,
}

impl Ended {
    /// What the hooks' records alone tell of an ending: in a shell loop nobody sees the client's result.
    pub fn by_record(record: &SessionRecord) -> Ended {
        let ending = if record.ended_by_us.is_some() {
            Ending::HookStopped
        } else if let Some(failure) = &record.failure {
            crate::gate::ending_of(&protocol::event::StopFailure {
                error: Some(failure.error.clone()),
                error_details: Some(failure.details.clone()),
                last_assistant_message: None,
            })
        } else if record.stop.is_some() {
            Ending::Completed
        } else {
            Ending::Unknown
        };
        Ended { ending, ..Ended::default() }
    }
}

/// So much of a verify command's output goes into journal and prompt, from its beginning and its end.
const OUTPUT_KEPT: usize = 2_000;

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
    let verdict = finish_once(project, settings, run_id, ended, give_up)?;
    let _ = keep::journal(project);
    Ok(verdict)
}

fn finish_once(
    project: &Project,
    settings: &Settings,
    run_id: &str,
    ended: &Ended,
    give_up: &dyn Fn() -> bool,
) -> Result<Option<Verdict>, StoreError> {
    let Some(state) = note_end(project, run_id, ended)? else { return Ok(None) };
    if state.iteration_record.phase == Phase::Judged {
        return Ok(state.last_verdict);
    }
    let record = state.session_id.as_ref().map(|id| sessions::load(project, id)).unwrap_or_default();
    let ending = state.iteration_record.ending.clone().unwrap_or_default();
    save_work(project, settings, &state, &record, &ending)?;
    close::close(project, settings, run_id, state.iteration)?;
    let Some(state) = state_file::load(project, Some(run_id))? else { return Ok(None) };
    let (evidence, given_up) = evidence(project, settings, &state, &record, ending, ended, give_up);
    if given_up && let Some(paused) = pause(project, run_id)? {
        return Ok(Some(paused));
    }
    judge(project, run_id, state.iteration, &evidence)
}

/// A pause before the verdict; none for a run that has been cancelled meanwhile.
fn pause(project: &Project, run_id: &str) -> Result<Option<Verdict>, StoreError> {
    let paused = state_file::update(project, Some(run_id), Durability::Durable, |state| {
        let open = !state.status.is_over();
        if open {
            state.status = Status::Paused;
        }
        open
    })?;
    let verdict = Verdict::Pause { until: None, reason: "interrupted".to_owned() };
    Ok(paused.filter(|paused| *paused).map(|_| verdict))
}

fn note_end(project: &Project, run_id: &str, ended: &Ended) -> Result<Option<RunState>, StoreError> {
    state_file::update(project, Some(run_id), Durability::Durable, |state| {
        let record = &mut state.iteration_record;
        if matches!(record.phase, Phase::Planned | Phase::Spawned) {
            record.phase = Phase::Ended;
            record.ended_at = Some(clock::stamp(clock::now()));
            record.ending = Some(ended.ending.clone());
            record.cost_usd = ended.cost_usd;
            state.cost_usd += ended.cost_usd;
        }
        state.clone()
    })
}

/// A session that ended in the middle of its work, with no checkpoint, leaves one all the same: the files it
/// was changing must not be forgotten.
fn save_work(
    project: &Project,
    settings: &Settings,
    state: &RunState,
    record: &SessionRecord,
    ending: &Ending,
) -> Result<(), StoreError> {
    // A claim that is still there: its hook was killed, and no event came after it.
    let claim = record.claim.as_ref();
    let orderly = claim.is_none() && matches!(ending, Ending::Completed | Ending::HookStopped);
    let there = &state.context_checkpoint;
    let has_one = there.active && there.iteration == state.iteration && there.cause == Cause::Level;
    if orderly || has_one {
        return Ok(());
    }
    let transcript = record.transcript_path.as_ref().map(PathBuf::from);
    let found = facts::of_session(project, transcript.as_deref(), record, &[]);
    if found.files.iter().all(|file| file.description == launcher::git::COMMITTED) {
        return Ok(());
    }
    checkpoint::write(&Request {
        project,
        settings,
        session_id: state.session_id.as_deref().unwrap_or_default(),
        transcript,
        run: Some(state),
        cause: claim.map_or(Cause::Crash, |_| Cause::Level),
        level: claim.map_or(Level::L0, |claim| claim.level),
        reading: record.reading.as_ref(),
        waited: None,
        calls: &[],
        notes: session::handoff::Notes::default(),
    })
    .map(|_| ())
}

fn evidence(
    project: &Project,
    settings: &Settings,
    state: &RunState,
    record: &SessionRecord,
    ending: Ending,
    ended: &Ended,
    give_up: &dyn Fn() -> bool,
) -> (Evidence, bool) {
    let at_stop = record.stop.as_ref().map(|stop| stop.last_words.clone());
    let last_message = match &ending {
        // What a hook of ours cut off is no last word; an earlier turn's is not either.
        Ending::HookStopped => None,
        Ending::Completed => ended.result_text.clone().filter(|text| !text.is_empty()).or(at_stop),
        _ => at_stop,
    };
    let mut evidence =
        Evidence { ending, last_message, todo: facts::todo(project, state), verify: Vec::new() };
    let mut given_up = false;
    if !state.status.is_over() && completion(state, &evidence) == Completion::Plausible {
        evidence.verify = verify(project, settings, &state.verify, give_up);
        given_up = evidence.verify.len() < state.verify.len();
    }
    (evidence, given_up)
}

/// Runs the verify commands, as the user gave them, outside any lock. One that was given up, and those after
/// it, have no outcome.
fn verify(
    project: &Project,
    settings: &Settings,
    commands: &[String],
    give_up: &dyn Fn() -> bool,
) -> Vec<VerifyOutcome> {
    let limit = Duration::from_secs(settings.verify_timeout_seconds);
    commands
        .iter()
        .map_while(|command| {
            let outcome = launcher::shell_unless(command, project.root(), limit, give_up);
            if outcome.given_up {
                return None;
            }
            let how = match (&outcome.trouble, outcome.timed_out, outcome.code) {
                (Some(trouble), ..) => format!("could not be started: {trouble}"),
                (None, true, _) => format!("took longer than {} s and was ended", limit.as_secs()),
                (None, false, Some(code)) => format!("exited with {code}"),
                (None, false, None) => "was ended by a signal".to_owned(),
            };
            let output = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
            let output = shorten(String::from_utf8_lossy(&output).trim());
            let words = if output.is_empty() { how } else { format!("{how}; it printed:\n{output}") };
            Some(VerifyOutcome { command: command.clone(), passed: outcome.succeeded(), words })
        })
        .collect()
}

fn shorten(output: &str) -> String {
    if output.chars().count() <= OUTPUT_KEPT * 2 {
        return output.to_owned();
    }
    format!("{}\n{}", clip(output, OUTPUT_KEPT), clip_start(output, OUTPUT_KEPT))
}

fn judge(
    project: &Project,
    run_id: &str,
    iteration: u32,
    evidence: &Evidence,
) -> Result<Option<Verdict>, StoreError> {
    let judged = state_file::update(project, Some(run_id), Durability::Durable, |state| {
        if state.iteration != iteration || state.iteration_record.phase == Phase::Judged {
            return state.last_verdict.clone().map(|verdict| (verdict, None));
        }
        let verdict = gate(state, evidence);
        state.iteration_record.phase = Phase::Judged;
        if state.status.is_over() {
            state.ended_at.get_or_insert(clock::stamp(clock::now()));
        }
        Some((verdict, Some(state.clone())))
    })?;
    let Some((verdict, fresh)) = judged.flatten() else { return Ok(None) };
    if let Some(state) = fresh {
        note_verdict(project, &state, &verdict, evidence)?;
    }
    Ok(Some(verdict))
}

fn note_verdict(
    project: &Project,
    state: &RunState,
    verdict: &Verdict,
    evidence: &Evidence,
) -> Result<(), StoreError> {
    let verify: Vec<serde_json::Value> = evidence
        .verify
        .iter()
        .map(|outcome| serde_json::json!({"command": outcome.command, "passed": outcome.passed, "words": outcome.words}))
        .collect();
    let entry = Entry::new("verdict")
        .run(Some((&state.run_id, state.iteration)))
        .session(state.session_id.as_deref())
        .fact("marker", verdict.marker().to_string())
        .fact("ending", serde_json::to_value(&evidence.ending).unwrap_or_default())
        .fact("open", state.todo_items.len())
        .fact("done", state.completed_items.len())
        .fact("verify", verify)
        .fact("cost_usd", state.cost_usd);
    journal::note(project, entry)?;
    if state.status.is_over() {
        let archive = project.run_folder(&state.run_id).join("state.json");
        disk::replace(&archive, &serde_json::to_vec_pretty(state).unwrap_or_default(), Durability::Lazy)?;
    }
    Ok(())
}
