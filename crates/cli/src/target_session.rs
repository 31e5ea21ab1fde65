//! Which session does a command speak of? Never a guess: inside a session its own, else the run's, else the
//! one that was measured last, and then it is named.

use plimsoll_domain::state::Phase;
use plimsoll_domain::{RunState, SessionId, SessionRecord};
use plimsoll_store::ledger;
use plimsoll_store::{Project, StoreError, disk, environment, sessions, state_file};
use std::path::PathBuf;

/// The session a command speaks of, and its run if it owns one.
#[derive(Debug)]
pub(crate) struct TargetSession {
    /// The session.
    pub(crate) record: SessionRecord,
    /// The run that it owns.
    pub(crate) run: Option<RunState>,
}

impl TargetSession {
    /// Finds it; none if no session is known.
    pub(crate) fn find(project: &Project) -> Result<Option<TargetSession>, StoreError> {
        let run_id = ledger::run_of_environment();
        let state = state_file::load(project, run_id.as_ref())?.filter(|state| !state.lifecycle.is_over());
        // An agent may ask from a session that is not the run's: then the answer is about its own.
        let inside =
            environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).map(SessionId::from);
        let of_run = || state.as_ref().and_then(|state| state.session_id.clone());
        let Some(session_id) = inside.or_else(of_run).or_else(|| newest(project).map(SessionId::from)) else {
            return Ok(None);
        };
        let run = state.filter(|state| state.session_id.as_ref() == Some(&session_id));
        Ok(Some(TargetSession { record: sessions::load(project, &session_id), run }))
    }

    /// Finds the session that the monitor looks at. If the run's session has not begun, that is one of which nothing is known
    /// yet: the session that was measured last would answer with its own usage.
    pub(crate) fn find_for_monitor(project: &Project) -> Result<Option<TargetSession>, StoreError> {
        let target = TargetSession::find(project)?;
        if TargetSession::is_inside() || target.as_ref().is_some_and(|target| target.run.is_some()) {
            return Ok(target);
        }
        let state = state_file::load(project, ledger::run_of_environment().as_ref())?;
        let is_planned =
            |state: &RunState| !state.lifecycle.is_over() && state.iteration_record.phase == Phase::Planned;
        match state.filter(is_planned) {
            Some(run) => Ok(Some(TargetSession { record: SessionRecord::default(), run: Some(run) })),
            None => Ok(target),
        }
    }

    /// Whether it is an agent that asks, from one of its tools.
    pub(crate) fn is_inside() -> bool {
        environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).is_some()
    }

    /// Its transcript.
    pub(crate) fn transcript(&self) -> Option<PathBuf> {
        self.record.start.transcript_path.as_ref().map(PathBuf::from)
    }
}

/// The session whose record was written last.
fn newest(project: &Project) -> Option<String> {
    let folder = project.own().join("sessions");
    let records = disk::names(&folder).into_iter().filter(|name| name.ends_with(".json"));
    let newest = records.max_by_key(|name| disk::modified(&folder.join(name)))?;
    Some(newest.trim_end_matches(".json").trim_end_matches(".status").to_owned())
}
