//! The session that a command is about, never guessed: inside a session its own, else the run's, else the one
//! that was measured last, which is then named in the output.

use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::{RunState, SessionId, SessionRecord};
use plimsoll_store::ledger;
use plimsoll_store::{Project, StoreError, disk, environment, sessions, state_file};
use std::path::PathBuf;

/// The session that a command is about, and its run if it belongs to one.
#[derive(Debug)]
pub(crate) struct TargetSession {
    pub(crate) record: SessionRecord,
    /// The run that the session belongs to.
    pub(crate) run: Option<RunState>,
}

impl TargetSession {
    /// Finds the session; `None` if there is none.
    pub(crate) fn find(project: &Project) -> Result<Option<TargetSession>, StoreError> {
        let run_id = ledger::run_id_from_environment();
        let state =
            state_file::load_state(project, run_id.as_ref())?.filter(|state| !state.lifecycle.is_over());
        // An agent may call the command in a session that does not belong to the run; its own session goes
        // first.
        let own_session_id =
            environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).map(SessionId::from);
        let run_session_id = || state.as_ref().and_then(|state| state.session_id.clone());
        let Some(session_id) = own_session_id
            .or_else(run_session_id)
            .or_else(|| last_written_session_id(project).map(SessionId::from))
        else {
            return Ok(None);
        };
        let run = state.filter(|state| state.session_id.as_ref() == Some(&session_id));
        Ok(Some(TargetSession { record: sessions::load_session_record(project, &session_id), run }))
    }

    /// Finds the session for the monitor. If the run's next session has not begun, this is an empty record:
    /// the session measured last would be judged by its old usage.
    pub(crate) fn find_or_use_planned_run(project: &Project) -> Result<Option<TargetSession>, StoreError> {
        let target = TargetSession::find(project)?;
        if TargetSession::is_called_inside_session()
            || target.as_ref().is_some_and(|target| target.run.is_some())
        {
            return Ok(target);
        }
        let state = state_file::load_state(project, ledger::run_id_from_environment().as_ref())?;
        let is_planned = |state: &RunState| {
            !state.lifecycle.is_over() && state.iteration_record.phase == IterationPhase::Planned
        };
        match state.filter(is_planned) {
            Some(run) => Ok(Some(TargetSession { record: SessionRecord::default(), run: Some(run) })),
            None => Ok(target),
        }
    }

    /// Returns true if the command was called by an agent, from one of its tools.
    pub(crate) fn is_called_inside_session() -> bool {
        environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).is_some()
    }

    pub(crate) fn transcript_path(&self) -> Option<PathBuf> {
        self.record.start.transcript_path.as_ref().map(PathBuf::from)
    }
}

/// Returns the id of the session whose record was written last.
fn last_written_session_id(project: &Project) -> Option<String> {
    let folder = project.data_folder().join("sessions");
    let records = disk::list_names(&folder).into_iter().filter(|name| name.ends_with(".json"));
    let newest = records.max_by_key(|name| disk::modified_at(&folder.join(name)))?;
    Some(newest.trim_end_matches(".json").trim_end_matches(".status").to_owned())
}
