//! The session that a command is about: the session that calls the command, else the run's session, else the
//! session whose record was written last. The output names the session in the last case.

use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::{RunState, SessionId, SessionRecord};
use plimsoll_store::ledger;
use plimsoll_store::{Project, StoreError, config, disk, environment, sessions, state_file};
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
    pub(crate) fn find_current_or_run_or_latest(
        project: &Project,
    ) -> Result<Option<TargetSession>, StoreError> {
        let run_id = ledger::run_id_from_environment();
        let state =
            state_file::load_state(project, run_id.as_ref())?.filter(|state| !state.lifecycle.has_ended());
        // An agent may call the command in a session that does not belong to the run; that session takes precedence.
        let calling_session_id =
            environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).map(SessionId::from);
        let run_session_id = || state.as_ref().and_then(|state| state.session_id.clone());
        let Some(session_id) = calling_session_id
            .or_else(run_session_id)
            .or_else(|| last_written_session_id(project).map(SessionId::from))
        else {
            return Ok(None);
        };
        let run = state.filter(|state| state.session_id.as_ref() == Some(&session_id));
        Ok(Some(TargetSession { record: sessions::load_session_record(project, &session_id), run }))
    }

    /// Finds the session for the monitor. If the run's next session is planned but has not started, returns an
    /// empty record, because the latest session has outdated usage.
    pub(crate) fn find_current_or_run_or_planned_or_latest(
        project: &Project,
    ) -> Result<Option<TargetSession>, StoreError> {
        let target = TargetSession::find_current_or_run_or_latest(project)?;
        if TargetSession::is_called_inside_session()
            || target.as_ref().is_some_and(|target| target.run.is_some())
        {
            return Ok(target);
        }
        let state = state_file::load_state(project, ledger::run_id_from_environment().as_ref())?;
        let is_next_session_planned = |state: &RunState| {
            !state.lifecycle.has_ended() && state.iteration_record.phase == IterationPhase::Planned
        };
        match state.filter(is_next_session_planned) {
            Some(run) => Ok(Some(TargetSession { record: SessionRecord::default(), run: Some(run) })),
            None => Ok(target),
        }
    }

    /// Returns true if an agent called the command, from one of its tools.
    pub(crate) fn is_called_inside_session() -> bool {
        environment::variable(plimsoll_flows::hook_invocation::SESSION_VARIABLE).is_some()
    }

    /// Returns the session's transcript in the client's own folder, or else the one that the record names. A program in
    /// the project can write records, so the record alone does not decide.
    pub(crate) fn transcript_path(&self) -> Option<PathBuf> {
        let recorded_path = || self.record.start.transcript_path.as_ref().map(PathBuf::from);
        config::find_client_transcript(&self.record.session_id).or_else(recorded_path)
    }
}

/// Returns the id of the session whose record was written last.
fn last_written_session_id(project: &Project) -> Option<String> {
    let folder = project.data_folder().join("sessions");
    let record_names = disk::list_names(&folder).into_iter().filter(|name| name.ends_with(".json"));
    let newest_name = record_names.max_by_key(|name| disk::modified_at(&folder.join(name)))?;
    Some(newest_name.trim_end_matches(".json").trim_end_matches(".status").to_owned())
}
