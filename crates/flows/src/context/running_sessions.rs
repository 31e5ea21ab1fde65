//! Usage of the running sessions of a run. No total includes it yet, so it is read from their transcripts.

use crate::context::session_usage::TranscriptUsage;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::workers::WorkUsage;
use plimsoll_domain::{RunState, SessionId};
use plimsoll_launcher::process::{ProcessIdentity, is_alive};
use plimsoll_policy::run_figures::{RunningSession, figures_of_sequential_run};
use plimsoll_store::{Project, sessions};
use std::collections::{BTreeMap, BTreeSet};

/// Reads the usage of running sessions. Repeated calls read only the new part of their transcripts.
#[derive(Debug, Default)]
pub struct RunFiguresReader {
    usage_by_session: BTreeMap<SessionId, TranscriptUsage>,
    /// Sessions read since the last cleanup. The next cleanup removes all others.
    recently_read_sessions: BTreeSet<SessionId>,
}

impl RunFiguresReader {
    /// Reads the figures of a run without parallel workers, including its running session.
    pub(crate) fn read_figures_of_sequential_run(&mut self, project: &Project, run: &RunState) -> RunFigures {
        let session = self.read_usage_and_liveness_of_open_session(project, run);
        self.remove_sessions_not_read_since_last_call();
        figures_of_sequential_run(run, session)
    }

    /// Reads the usage of the current session that is not in any total yet, that is, from its start until its
    /// end is recorded, even if its client is no longer running.
    pub(crate) fn read_usage_and_liveness_of_open_session(
        &mut self,
        project: &Project,
        state: &RunState,
    ) -> Option<RunningSession> {
        let session_id = state.session_id.as_ref()?;
        if state.lifecycle.has_ended() || state.iteration_record.phase != IterationPhase::Spawned {
            return None;
        }
        let usage = self.usage_by_session.entry(session_id.clone()).or_default();
        usage.read_new_lines(session_id, &sessions::load_session_record(project, session_id));
        self.recently_read_sessions.insert(session_id.clone());
        let (cost, tokens) = (usage.cost(), usage.tokens());
        let work_usage = WorkUsage { cost_usd: cost.usd, cost_basis: cost.basis, tokens, sessions: 1 };
        Some(RunningSession { is_alive: live_client_pid(state).is_some(), usage: work_usage })
    }

    /// Removes the sessions that were not read since the last call of this function.
    pub(crate) fn remove_sessions_not_read_since_last_call(&mut self) {
        let read_sessions = std::mem::take(&mut self.recently_read_sessions);
        self.usage_by_session.retain(|session_id, _| read_sessions.contains(session_id));
    }
}

/// Returns the pid of the current session's client if it is alive, even if its `plimsoll run` has died.
pub(crate) fn live_client_pid(state: &RunState) -> Option<u32> {
    let record = &state.iteration_record;
    let process = record
        .pid
        .zip(record.process_start_ticks)
        .map(|(pid, start_ticks)| ProcessIdentity { pid, start_time: start_ticks });
    process.filter(|process| is_alive(*process)).map(|live_process| live_process.pid)
}
