//! A session that has ended: records its end, and collects its data for the later steps.

use crate::context::measure::{MeasureInput, Measurement, measure_usage_waiting_near_threshold};
use crate::run::daily_spending;
use crate::run::fingerprint::read_fingerprint;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use crate::turns::capture;
use crate::turns::catch_up::transcript_path_if_started_in_project;
use plimsoll_domain::state::{IterationPhase, WorktreeFingerprint};
use plimsoll_domain::{RunState, SessionEnding, SessionRecord, Timestamp};
use plimsoll_store::{StoreError, clock};
use std::path::Path;

/// The data of an ended session. Each step takes it from the previous one and passes it on with the newest
/// state.
pub(super) struct EndedSession {
    /// The number of the session's iteration. A newer state may belong to another iteration.
    pub(super) iteration: u32,
    pub(super) state: RunState,
    /// The session's record as its hooks left it.
    pub(super) record: SessionRecord,
    pub(super) ending: SessionEnding,
    /// The fingerprint of the worktree before Plimsoll's own commit, which is not the session's work.
    pub(super) fingerprint: WorktreeFingerprint,
    /// The context usage after the last response.
    pub(super) measurement: Measurement,
}

impl EndedSession {
    pub(super) fn transcript(&self) -> Option<&Path> {
        self.record.start.transcript_path.as_ref().map(Path::new)
    }
}

/// Records how the session ended, and adds its cost, tokens and quota, unless the phase shows that this was
/// done. Returns the newest state; `None` if the run no longer exists. After a kill that follows, the
/// iteration is recorded as ended and still has to be judged.
pub(super) fn record_session_end_and_cost_once(
    context: &RunContext<'_>,
    result: &SessionResult,
) -> Result<Option<RunState>, StoreError> {
    context.update_state(|state| {
        let record = &mut state.iteration_record;
        if matches!(record.phase, IterationPhase::Planned | IterationPhase::Spawned) {
            record.phase = IterationPhase::Ended;
            record.ended_at = Some(clock::to_timestamp(result.ended_at.unwrap_or_else(clock::now)));
            record.ending = Some(result.ending.clone());
            record.resets_at.clone_from(&result.limit_resets_at);
            record.denied_tool = result.denied_tools.first().cloned();
            record.api_retry = None;
            record.tokens = result.tokens;
            // In the same write as the phase, so that a kill cannot make them count twice.
            state.iteration_record.cost_usd = daily_spending::add_session_cost(context, state, result);
            state.iteration_record.is_cost_unknown = result.cost.is_none();
            for tool in &result.denied_tools {
                if !state.outcomes.denied_tools.contains(tool) {
                    state.outcomes.denied_tools.push(tool.clone());
                }
            }
            if let Some(quota) = &result.quota {
                state.spending.quota.update_from(quota);
            }
            add_cost_duration_and_ending_to_history(state);
        }
        state.clone()
    })
}

fn add_cost_duration_and_ending_to_history(state: &mut RunState) {
    let record = state.iteration_record.clone();
    let parse_time = |timestamp: &Option<Timestamp>| timestamp.as_ref().and_then(clock::parse_timestamp);
    let seconds = parse_time(&record.ended_at)
        .zip(parse_time(&record.started_at))
        .map(|(end, start)| (end - start).num_seconds());
    let history_entry = state.history_entry_or_insert(record.iteration);
    // A limit may cause several sessions under one number.
    history_entry.cost_usd += record.cost_usd;
    history_entry.duration_seconds += seconds.unwrap_or(0).max(0).unsigned_abs();
    history_entry.ending = record.ending.map(|ending| ending.as_str().to_owned()).unwrap_or_default();
}

/// Collects the data of an ended session. Also copies the working memory and captures the remaining turns; a
/// failure of these copies must not end the run. After a crash the next process repeats this.
pub(super) fn capture_turns_and_measure_ended_session(
    context: &RunContext<'_>,
    state: RunState,
) -> EndedSession {
    let (project, settings) = (context.project, context.settings);
    if state.options.uses_working_memory {
        let _ = plimsoll_store::memory::restore_damaged_memory_and_create_copy(project);
    }
    let record = context.load_session_record_or_default(&state);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    // Captures the turns that a killed session has not recorded.
    if let Some(verified_path) =
        transcript.and_then(|path| transcript_path_if_started_in_project(project, path))
    {
        let _ = capture::capture_transcripts_of_ended_session(
            project,
            &record.session_id,
            &verified_path,
            capture::CaptureLimits::FOR_USER_COMMAND_OR_RUN,
        );
    }
    let measurement = measure_usage_waiting_near_threshold(&MeasureInput {
        project,
        settings,
        record: &record,
        transcript_path: transcript,
        pending_calls: &[],
    });
    let ending = state.iteration_record.ending.clone().unwrap_or_default();
    let (iteration, fingerprint) = (state.iteration, read_fingerprint(project));
    EndedSession { iteration, state, record, ending, fingerprint, measurement }
}
