//! A session that has ended: the record of its end, and the value in which what it left goes on to the later steps.

use crate::context::measure::{Measurement, Question, measure};
use crate::run::day;
use crate::run::footing::footing;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use crate::turns::capture;
use crate::turns::catch_up::own_transcript;
use plimsoll_domain::state::{Phase, WorktreeFingerprint};
use plimsoll_domain::{Ending, RunState, SessionRecord, Timestamp};
use plimsoll_store::{StoreError, clock};
use std::path::Path;

/// What a session has left. Each step takes it from the one before and hands it on with the state as that is now.
pub(super) struct EndedSession {
    /// The number of its iteration. A newer state may be about another one.
    pub(super) iteration: u32,
    pub(super) state: RunState,
    /// Its record as its hooks left it.
    pub(super) record: SessionRecord,
    pub(super) ending: Ending,
    /// The worktree before our own commit, which is not the session's work.
    pub(super) fingerprint: WorktreeFingerprint,
    /// Its usage after its last answer.
    pub(super) measurement: Measurement,
}

impl EndedSession {
    /// Its transcript.
    pub(super) fn transcript(&self) -> Option<&Path> {
        self.record.start.transcript_path.as_ref().map(Path::new)
    }
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
            state.iteration_record.cost_usd = day::add_session(context, state, ended);
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

/// Looks at what the session left. It writes copies alone (working memory, turn log), and their troubles must not end
/// the run. After a crash the next process looks again, and finds the same.
pub(super) fn observe_end(context: &RunContext<'_>, state: RunState) -> EndedSession {
    let (project, settings) = (context.project, context.settings);
    if state.options.memory {
        let _ = plimsoll_store::memory::keep(project);
    }
    let record = context.session_record(&state);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    // What a killed session has not recorded itself.
    if let Some(own) = transcript.and_then(|named| own_transcript(project, named)) {
        let _ = capture::at_end(project, &record.session_id, &own, capture::CaptureLimits::USER);
    }
    let measurement = measure(&Question { project, settings, record: &record, transcript, calls: &[] });
    let ending = state.iteration_record.ending.clone().unwrap_or_default();
    let (iteration, fingerprint) = (state.iteration, footing(project));
    EndedSession { iteration, state, record, ending, fingerprint, measurement }
}
