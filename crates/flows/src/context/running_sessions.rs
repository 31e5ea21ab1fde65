//! What the running sessions of a run have used: it is in nobody's sum yet, and only their transcripts say it.

use crate::context::session_usage::TranscriptUsage;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::state::Phase;
use plimsoll_domain::workers::Used;
use plimsoll_domain::{RunState, SessionId};
use plimsoll_launcher::process::{Identity, is_alive};
use plimsoll_policy::run_figures::{RunningSession, figures_of_sessions};
use plimsoll_store::{Project, sessions};
use std::collections::{BTreeMap, BTreeSet};

/// Reads running sessions, also repeatedly: then only what is new in their transcripts.
#[derive(Debug, Default)]
pub struct FiguresReader {
    sessions: BTreeMap<SessionId, TranscriptUsage>,
    /// Sessions that the last look was about; the others are forgotten.
    seen: BTreeSet<SessionId>,
}

impl FiguresReader {
    /// Reads the figures of a run that has one session after another.
    pub(crate) fn read_sessions(&mut self, project: &Project, run: &RunState) -> RunFigures {
        let session = self.read_running_session(project, run);
        self.forget_ended_sessions();
        figures_of_sessions(run, session)
    }

    /// Reads what the session has used that is in no sum yet: from its start until its end is recorded.
    pub(crate) fn read_running_session(
        &mut self,
        project: &Project,
        state: &RunState,
    ) -> Option<RunningSession> {
        let session_id = state.session_id.as_ref()?;
        if state.lifecycle.is_over() || state.iteration_record.phase != Phase::Spawned {
            return None;
        }
        let usage = self.sessions.entry(session_id.clone()).or_default();
        usage.read_on(session_id, &sessions::load(project, session_id));
        self.seen.insert(session_id.clone());
        let (cost, tokens) = (usage.cost(), usage.tokens());
        let used = Used { cost_usd: cost.usd, cost_basis: cost.basis, tokens, sessions: 1 };
        Some(RunningSession { is_alive: living_client(state).is_some(), used })
    }

    /// Forgets the sessions that were not read since this was called last.
    pub(crate) fn forget_ended_sessions(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.sessions.retain(|session_id, _| seen.contains(session_id));
    }
}

/// The client of the current session, while it lives: also one whose `plimsoll run` has died.
pub(crate) fn living_client(state: &RunState) -> Option<u32> {
    let record = &state.iteration_record;
    let known = record.pid.zip(record.process_started).map(|(pid, started)| Identity { pid, started });
    known.filter(|known| is_alive(*known)).map(|known| known.pid)
}
