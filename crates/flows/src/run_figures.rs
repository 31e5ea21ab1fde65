//! Reads the figures of a run ([`RunFigures`]) off its files: for the screen of `plimsoll run`, for `plimsoll status` and the report.
//!
//! Sessions that are running are in nobody's sums yet. Their transcripts say what they have used; whoever looks again and again keeps
//! the reader, which reads only what is new.
//!
//! A [`RunSnapshot`] has them beside the run's state and its activity, all of one moment.

use crate::context::session_usage::TranscriptUsage;
use crate::workers::{child, project_of_item, table};
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::state::Phase;
use plimsoll_domain::workers::{Used, Work, Workers};
use plimsoll_domain::{RunId, RunState, SessionId};
use plimsoll_launcher::process::{Identity, is_alive};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, run_activity};
use plimsoll_policy::run_figures::{ItemRunFacts, RunningSession, figures_of_sessions, figures_of_workers};
use plimsoll_store::{Project, StoreError, lock, sessions, state_file};
use std::collections::{BTreeMap, BTreeSet};

/// A run at one moment.
#[derive(Debug, Clone)]
pub struct RunSnapshot {
    /// Its state.
    pub state: RunState,
    /// Its figures.
    pub figures: RunFigures,
    /// What it does.
    pub activity: RunActivity,
    /// Why no new session or item starts; none if they do.
    pub stop_reason: Option<String>,
    /// True while a `plimsoll run` works on it or waits.
    pub is_run_active: bool,
}

/// How often a run is looked at again whose process has begun or ended meanwhile: what the state says is then of another moment.
const LOOKS: usize = 5;

/// Reads the run of a project, or the one with this id; none if there is none.
pub fn read_snapshot(
    project: &Project,
    run_id: Option<&RunId>,
    reader: &mut FiguresReader,
) -> Result<Option<RunSnapshot>, StoreError> {
    let mut is_run_active = lock::is_run_held(project);
    let mut looks = 0;
    loop {
        let Some(state) = state_file::load(project, run_id)? else { return Ok(None) };
        let figures = reader.read(project, &state)?;
        let is_active_now = lock::is_run_held(project);
        looks += 1;
        if is_active_now == is_run_active || looks == LOOKS {
            return Ok(Some(snapshot(project, state, figures, is_active_now)));
        }
        is_run_active = is_active_now;
    }
}

/// Completes a state that was read before. Of an earlier run of the project nothing is running.
pub fn complete_snapshot(
    project: &Project,
    state: &RunState,
    is_present: bool,
) -> Result<RunSnapshot, StoreError> {
    if is_present {
        let figures = FiguresReader::default().read(project, state)?;
        return Ok(snapshot(project, state.clone(), figures, lock::is_run_held(project)));
    }
    Ok(RunSnapshot {
        figures: figures_of_sessions(state, None),
        activity: run_activity(&ActivityEvidence::from_state(state, false)),
        stop_reason: None,
        is_run_active: false,
        state: state.clone(),
    })
}

fn snapshot(project: &Project, state: RunState, figures: RunFigures, is_run_active: bool) -> RunSnapshot {
    let workers = table::load(project, &state.run_id).ok().flatten();
    let of_session = state.iteration_record.stops_after.then(|| "Ctrl-C".to_owned());
    let stop_reason = workers.and_then(|workers| workers.stop_reason).or(of_session);
    let is_working = |worker: &&WorkerFigures| worker.activity == WorkerActivity::Working;
    let activity = run_activity(&ActivityEvidence {
        is_stop_requested: stop_reason.is_some(),
        client: living_client(&state),
        is_api_failing: state.iteration_record.api_trouble.is_some() || figures.api_trouble().is_some(),
        items_at_work: figures.workers.iter().filter(is_working).count(),
        ..ActivityEvidence::from_state(&state, is_run_active)
    });
    RunSnapshot { state, figures, activity, stop_reason, is_run_active }
}

/// How often the record of a parallel run is read again if it has changed meanwhile: then an item may have been counted nowhere.
const ATTEMPTS: usize = 5;

/// Reads the figures of a run, also repeatedly.
#[derive(Debug, Default)]
pub struct FiguresReader {
    sessions: BTreeMap<SessionId, TranscriptUsage>,
    /// Sessions that the last look was about; the others are forgotten.
    seen: BTreeSet<SessionId>,
}

impl FiguresReader {
    /// Reads the figures of a run as its files have them now.
    pub fn read(&mut self, project: &Project, run: &RunState) -> Result<RunFigures, StoreError> {
        let Some(mut record) = table::load(project, &run.run_id)? else {
            return Ok(self.read_sessions(project, run));
        };
        for _ in 1..ATTEMPTS {
            let figures = self.read_record(project, run, &record);
            let now = table::load(project, &run.run_id)?.unwrap_or_default();
            if now == record {
                return Ok(figures);
            }
            record = now;
        }
        Ok(self.read_record(project, run, &record))
    }

    /// Reads the figures of a run that has one session after another.
    pub(crate) fn read_sessions(&mut self, project: &Project, run: &RunState) -> RunFigures {
        let session = self.read_running_session(project, run);
        self.forget_ended_sessions();
        figures_of_sessions(run, session)
    }

    fn read_record(&mut self, project: &Project, run: &RunState, record: &Workers) -> RunFigures {
        let facts = self.read_items(project, run, record);
        figures_of_workers(record, &facts, lock::is_run_held(project))
    }

    /// Reads what the runs of all items say that have a process, or had one.
    pub(crate) fn read_items(
        &mut self,
        project: &Project,
        run: &RunState,
        record: &Workers,
    ) -> Vec<ItemRunFacts> {
        let items = record.works.iter().enumerate();
        let facts = items
            .map(|(item, work)| {
                let is_ours = work.pid.is_some() || record.is_held_here(item);
                let folder = if is_ours { project_of_item(project, run, item + 1) } else { None };
                folder.map(|folder| self.read_item(&folder, work)).unwrap_or_default()
            })
            .collect();
        self.forget_ended_sessions();
        facts
    }

    fn read_item(&mut self, project: &Project, work: &Work) -> ItemRunFacts {
        let known = work.pid.map(|pid| Identity { pid, started: work.process_started });
        // A kill may have come before the process was written down; it holds the lock of its worktree.
        let is_alive = known.is_some_and(is_alive) || known.is_none() && lock::is_run_held(project);
        if known.is_none() && !is_alive {
            return ItemRunFacts::default();
        }
        let Some(state) = child::present(project, &work.earlier_run) else {
            return ItemRunFacts { pid: work.pid, is_alive, ..ItemRunFacts::default() };
        };
        let session = self.read_running_session(project, &state);
        let mut used = child::used_by(&state);
        if let Some(session) = &session {
            used += Used { sessions: 0, ..session.used };
        }
        ItemRunFacts {
            pid: work.pid,
            is_alive,
            used: Some(used),
            is_session_running: session.is_some_and(|session| session.is_alive),
            api_trouble: session.and_then(|_| state.iteration_record.api_trouble.clone()),
            percent: session.and_then(|_| sessions::load(project, state.session_id.as_ref()?).usage.percent),
        }
    }

    /// Reads what the session has used that is in no sum yet: from its start until its end is recorded.
    fn read_running_session(&mut self, project: &Project, state: &RunState) -> Option<RunningSession> {
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

    fn forget_ended_sessions(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.sessions.retain(|session_id, _| seen.contains(session_id));
    }
}

/// The client of the current session, while it lives: also one whose `plimsoll run` has died.
pub fn living_client(state: &RunState) -> Option<u32> {
    let record = &state.iteration_record;
    let known = record.pid.zip(record.process_started).map(|(pid, started)| Identity { pid, started });
    known.filter(|known| is_alive(*known)).map(|known| known.pid)
}
